"""One loader for every kernel language.

Hand it the source text of a kernel and get a fast callable; hand it new text under the same id and the callable
you already hold runs the new code. A broken edit never takes the working kernel away.
"""

from __future__ import annotations

from types import ModuleType

from rekernel.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    FrozenError,
    JitError,
    KernelNotFoundError,
    KernelRemovedError,
    KernelSourceError,
    RekernelError,
    RekernelWarning,
    ToolchainError,
)
from rekernel.handle import KernelHandle
from rekernel.jobs import parse
from rekernel.kernel import Kernel, Parameter
from rekernel.loader import KernelLoader, MetaKernelLoader
from rekernel.values import KernelInfo, LoaderStats, ReloadEvent, Version

__version__ = "0.1.0"

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "FrozenError",
    "JitError",
    "Kernel",
    "KernelHandle",
    "KernelInfo",
    "KernelLoader",
    "KernelNotFoundError",
    "KernelRemovedError",
    "KernelSourceError",
    "LoaderStats",
    "MetaKernelLoader",
    "Parameter",
    "RekernelError",
    "RekernelWarning",
    "ReloadEvent",
    "ToolchainError",
    "Version",
    "info",
    "kernels",
    "parse",
]

kernels = KernelLoader(token="default")
"""The process's default loader, for notebooks and the command line."""


def info(x: ModuleType | KernelHandle) -> KernelInfo:
    """Return all that rekernel knows about a module or a handle that a loader gave out."""
    from rekernel.about import info_of
    from rekernel.live import live_of

    if isinstance(x, KernelHandle):
        return info_of(x._live, x._pin)
    live = live_of(x)
    if live is None:
        raise TypeError(f"info takes a module or a kernel that a loader gave out, not {type(x).__name__}")
    return info_of(live)
