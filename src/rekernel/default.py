"""The process's default loader, and what can be asked of anything that a loader gave out."""

from __future__ import annotations

from types import ModuleType

from rekernel.about import info_of
from rekernel.handle import KernelHandle
from rekernel.live import live_of
from rekernel.loader import KernelLoader
from rekernel.values import KernelInfo

kernels = KernelLoader(token="default")
"""The process's default loader, for notebooks and the command line."""


def info(x: ModuleType | KernelHandle) -> KernelInfo:
    """Return all that rekernel knows about a module or a handle that a loader gave out."""
    if isinstance(x, KernelHandle):
        return info_of(x._live, x._pin)
    live = live_of(x)
    if live is None:
        raise TypeError(f"info takes a module or a kernel that a loader gave out, not {type(x).__name__}")
    return info_of(live)
