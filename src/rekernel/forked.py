"""Runtimes that a forked child inherits: their threads stayed in the parent, so that using them hangs for ever."""

from __future__ import annotations

import os
import sys
from typing import Any

_RUNTIMES = ("taichi.lang.impl", "quadrants.lang.impl", "taichi_forge.lang.impl")


def is_inherited(runtime: Any) -> bool:
    """Whether a Taichi runtime object was made in a process that this one was forked from."""
    return getattr(runtime, "_rekernel_inherited", False) is True


def _mark() -> None:
    # A later ``ti.init`` of the child makes a new runtime object, which has no mark and works.
    for name in _RUNTIMES:
        impl = sys.modules.get(name)
        if impl is not None and hasattr(impl, "get_runtime"):
            impl.get_runtime()._rekernel_inherited = True


def watch() -> None:
    """Mark what is inherited in every child from now on; early, as a process may fork before its first load."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_mark)
