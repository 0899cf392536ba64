"""``rekernel cache why FILE``: whether the cache has what a file needs, and if not, why. Nothing is compiled.

Texts of stencils run, for only then it is known which kernels they have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel import freezing
from rekernel.commands import console, table
from rekernel.errors import FrozenError, RekernelError

if TYPE_CHECKING:
    from rekernel.freezing import Look
    from rekernel.loader import KernelLoader

__all__ = ["show", "why"]


def why(
    paths: Iterable[str | os.PathLike[str]], *, language: str | None = None, options: Mapping[str, Any] | None = None,
    jit: Any = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a row for each unit that loading the files would look up in the cache.

    A row has ``file``, ``language``, ``name`` (the id, or the kernel where each has a unit of its own), ``hit``
    (True, False, or None where nobody knows: Taichi has a cache of its own), ``reason`` (why it is a miss), ``field``
    (the first label of the key that differs), ``key``, ``command`` (which fills the cache) and ``error``: what is
    wrong with the text, or None.
    """
    return [row for path in paths for row in _of_file(Path(path), language, options or {}, jit)]


def _of_file(path: Path, language: str | None, options: Mapping[str, Any], jit: Any) -> list[dict[str, Any]]:
    from rekernel.loader import KernelLoader

    error: Exception | None = None
    with KernelLoader(jit=jit) as loader, freezing.looking() as looks:
        try:
            loader.load_file(path, path.stem, language=language, **options)
            _look_at_waiting(loader, path.stem)
        except FrozenError:
            pass  # it is among the looks
        except (RekernelError, OSError, ValueError, TypeError) as wrong:
            error = wrong
    rows = [_row(path, look, options) for look in dict.fromkeys(looks)]
    if error is not None:
        rows.append(
            {"file": str(path), "language": getattr(error, "language", language), "name": path.stem, "hit": None,
             "reason": None, "field": None, "key": None, "command": None, "error": str(error)}
        )  # fmt: skip
    return rows


def _look_at_waiting(loader: KernelLoader, kernel_id: str) -> None:
    """Look for kernels that would be built when they are first called."""
    edition = loader._lives[kernel_id].current
    assert edition is not None
    for build in getattr(edition.language, "waiting", lambda built: {})(edition.built).values():
        try:
            build()
        except FrozenError:
            continue  # the others may be there


def _row(path: Path, look: Look, options: Mapping[str, Any]) -> dict[str, Any]:
    from rekernel.source import Source

    reason = look.reason
    unknown = reason is not None and look.key is None
    missed = reason is not None and not unknown
    return {
        "file": str(path), "language": look.language, "name": look.name or path.stem,
        "hit": None if unknown else not missed, "reason": None if reason is None else reason.said,
        "field": None if reason is None else reason.field, "key": look.key,
        "command": freezing.command(Source("", look.language, options, str(path))) if missed else None, "error": None,
    }  # fmt: skip


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print the rows as a table, and errors of texts below it."""
    rows = list(rows)
    made = table("file", "kernel", "language", "cache", "why", "key")
    for row in rows:
        if row["error"] is None:
            state = {True: "hit", False: "miss", None: "not known"}[row["hit"]]
            style = {True: "green", False: "yellow", None: "dim"}[row["hit"]]
            made.add_row(row["file"], row["name"], row["language"], state, row["reason"] or "", (row["key"] or "")[:12],
                         style=style)  # fmt: skip
    console().print(made)
    for row in rows:
        if row["error"] is not None:
            console(stderr=True).print(f"{row['file']}: {row['error']}", style="bold red", soft_wrap=True)
    for command in dict.fromkeys(row["command"] for row in rows if row["command"]):
        console().print(f"to fill the cache: {command}", soft_wrap=True)
