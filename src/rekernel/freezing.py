"""``rekernel.freeze()``: from then on nothing is compiled in this process.

What is asked of it stands right before each compile: `refused` says whether to go on. A lookup in the cache comes
first, so that what is built goes on being loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rekernel.errors import FrozenError

if TYPE_CHECKING:
    from rekernel.source import Source
    from rekernel.why import Reason

__all__ = ["Freeze", "command", "error", "freeze", "is_frozen", "looked", "looking", "refused", "thaw"]


_SUFFIXES = {"cpp": (".cpp", ".cc", ".cxx", ".hpp"), "cuda": (".cu", ".cuh")}
"""By which the command finds the language by itself; that of Python texts is told by their content."""


class _State:
    frozen = False


_state = _State()
_looks = threading.local()


class Freeze:
    """What `freeze` returns. As a context manager, leaving it brings back what was before."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> Freeze:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _state.frozen = self._before

    def __repr__(self) -> str:
        return f"<rekernel is {'frozen: nothing is compiled' if _state.frozen else 'not frozen'}>"


def freeze() -> Freeze:
    """Let nothing be compiled in this process from now on: for production, once all kernels are loaded.

    What would have to be compiled raises `FrozenError`, which names the id, what differs from the nearest kernel in
    the cache, and the command that would fill it; the version that runs goes on. Unchanged loads, rollback to versions
    that are held, and kernels that are in the cache work as before. Taichi has no such cache: each new version, and
    each call with a new kind of argument, is refused.

    It counts for all threads and loaders, until `thaw`. ``with rekernel.freeze():`` ends with the block.

    >>> import rekernel
    >>> with rekernel.freeze():
    ...     rekernel.KernelLoader()
    <KernelLoader: 0 ids, frozen>
    """
    before, _state.frozen = _state.frozen, True
    return Freeze(before)


def thaw() -> None:
    """Let kernels be compiled again, after `freeze`."""
    _state.frozen = False


def is_frozen() -> bool:
    """Whether `freeze` counts now."""
    return _state.frozen


def refused() -> bool:
    """Whether the asking thread may compile nothing: after `freeze`, or inside of `looking`."""
    return _state.frozen or getattr(_looks, "made", None) is not None


@dataclass(frozen=True)
class Look:
    """One look into the cache."""

    name: str
    """The id, or the names of the kernels."""
    language: str
    key: str | None
    reason: Reason | None
    """Why it is not there; None: it is."""


@contextmanager
def looking() -> Iterator[list[Look]]:
    """Let this thread compile nothing inside, to find out what is in the cache; gives what was looked for."""
    before = getattr(_looks, "made", None)
    try:
        made: list[Look] = []
        _looks.made = made
        yield made
    finally:
        _looks.made = before


def looked(name: str, language: str, key: str | None, reason: Reason | None) -> None:
    """Note a look into the cache for whoever is `looking`."""
    made = getattr(_looks, "made", None)
    if made is not None:
        made.append(Look(name, language, key, reason))


def error(
    kernel_id: str, language: str, field: str, said: str, *, version: int | None = None, source: Source | None = None,
    key: str | None = None, advice: str | None = None,
) -> FrozenError:  # fmt: skip
    """Return the error for something that would have to be compiled."""
    line = None if source is None or advice else command(source)
    advice = advice or (
        "load it before rekernel.freeze()" if line is None else f"this fills the cache beforehand: {line}"
    )
    number = "" if version is None else f" v{version}"
    return FrozenError(
        f"{kernel_id}{number} ({language}) would have to be compiled, and rekernel is frozen: {said}; {advice}",
        kernel_id=kernel_id, version=version, language=language, field=field, reason=said, command=line, key=key,
    )  # fmt: skip


def command(source: Source) -> str | None:
    """Return the command that builds a text ahead of time, or None where the text is in no file.

    ``python -m rekernel build 'my heat.cpp' --option openmp=false --option 'flags=["-O2"]'``
    """
    import os
    import shlex

    if source.filename is None or not os.path.exists(source.filename):
        return None
    words = ["python", "-m", "rekernel", "build", source.filename]
    if os.path.splitext(source.filename)[1].lower() not in _SUFFIXES.get(source.language, (".py",)):
        words += ["--language", source.language]
    for name, value in source.options.items():
        words += ["--option", f"{name}={_option(value)}"]
    return shlex.join(words)


def _option(value: Any) -> str:
    """Return a value as the command line reads it: JSON or a constant of Python, else text."""
    import ast
    import json

    if not isinstance(value, str):
        return json.dumps(value, default=str)
    try:
        ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return json.dumps(value) if value in ("true", "false", "null") else value
    return json.dumps(value)
