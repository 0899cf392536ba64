"""One row of `rekernel doctor`, and how a check asks another process about what may crash or hang."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["MISSING", "OK", "WARNING", "Row", "ask", "package", "rows_of"]

OK, WARNING, MISSING = "ok", "warning", "missing"
PATIENCE = 120.0
"""Seconds that another process gets: Taichi's first import takes 20 on a slow disk."""


@dataclass(frozen=True)
class Row:
    """One thing that was looked at."""

    part: str
    state: str
    """``ok``; ``warning``: works, but; ``missing``: is not there or does not work."""
    found: str
    advice: str = ""
    """What to do, where something is to be done."""
    core: bool = False
    """Whether rekernel's core does not work without it."""


def rows_of(check: Callable[[], Iterator[Row]]) -> list[Row]:
    """Return the rows of a check; one that fails says so in a row of its own."""
    rows: list[Row] = []
    try:
        rows.extend(check())
    except Exception as error:  # whatever is broken: the next check is another matter
        rows.append(Row(check.__name__, WARNING, f"could not be looked at ({_said(error)})"))
    return rows


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


_CHILD = """
import json, sys
scope = {}
try:
    exec(sys.argv[1], scope)
    answer = scope["answer"]
except BaseException as error:
    said = str(error).partition("\\nto see what is there")[0]
    ours = type(error).__module__.startswith("rekernel")
    answer = {"trouble": " ".join((said if ours else f"{type(error).__name__}: {said}").split())[:300]}
with open(sys.argv[2], "w") as file:
    json.dump(answer, file)
"""


def ask(code: str, **variables: str) -> dict[str, Any]:
    """Run code in another process, and return its ``answer``. What goes wrong is ``{"trouble": ...}``."""
    with tempfile.TemporaryDirectory(prefix="rekernel-doctor-") as place:
        path = os.path.join(place, "answer")
        try:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, code, path], cwd=place, env={**os.environ, **variables},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"trouble": f"no answer within {PATIENCE:.0f} s"}
        if done.returncode or not os.path.exists(path):
            end = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit status {done.returncode}"
            return {"trouble": f"it crashes ({end})"}
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found


def package(name: str, code: str, advice: str, absent: str, *, core: bool = False) -> Row:
    """Return the row of a package, which another process imports. One that is not installed is `absent`."""
    try:
        number = version(name)
    except PackageNotFoundError:
        number = ""
    if not number and not core:
        return Row(name, absent, "not installed", advice)
    found = ask(code)
    if "trouble" in found:
        said = f"{number}: cannot be imported: {found['trouble']}".removeprefix(": ")
        return Row(name, MISSING, said, f"pip install --force-reinstall {name}", core)
    return Row(name, OK, number or found.get("version", ""), core=core)
