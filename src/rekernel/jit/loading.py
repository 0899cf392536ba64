"""Compiled bytes into this process, such that they can leave it again."""

from __future__ import annotations

import re
from contextlib import suppress

from rekernel._native import Library

__all__ = ["load"]

#: Libraries with threads or a state of their own. Unloaded with the last kernel that uses one, an OpenMP runtime
#: would take the code away from under its waiting threads.
_RUNTIMES = re.compile(rb"(?<=\0)lib(?:gomp|i?omp5?|stdc\+\+|c\+\+|c\+\+abi|gcc_s)[^\0/]*\.so[^\0/]*(?=\0)")
_held: set[str] = set()


def load(data: bytes, name: str, path: str | None = None) -> Library:
    """Load a shared object, and keep the language runtimes that it needs in memory from now on.

    With `path` the file of that name is loaded, which has these bytes: a debugger finds it.
    """
    library = Library(data, name=name) if path is None else Library(None, name=name, path=path)
    for needed in {match.decode("ascii", "replace") for match in _RUNTIMES.findall(data)} - _held:
        with suppress(OSError):  # a text of the kernel's that looks like one
            Library.hold_open([needed])
        _held.add(needed)
    return library
