"""The process's default loader, and what can be asked of anything that a loader gave out."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from rekernel.about import info_of
from rekernel.handle import KernelHandle
from rekernel.live import live_of
from rekernel.loader import KernelLoader
from rekernel.values import KernelInfo

if TYPE_CHECKING:
    from rekernel.jit.base import KernelWrapper

kernels = KernelLoader(token="default")
"""The process's default `KernelLoader`, for notebooks and the command line."""


def info(x: ModuleType | KernelHandle | KernelWrapper) -> KernelInfo:
    """Return all that rekernel knows about a module, a handle or a kernel that a JIT has compiled.

    TypeError for anything else.

    >>> import rekernel
    >>> m = rekernel.KernelLoader().load("double half(double x) { return x / 2; }")
    >>> known = rekernel.info(m.half)
    >>> known.kernel_id, known.version, known.language, str(known.kernels[0])
    ('half', 1, 'cpp', 'half(x: float64) -> float64')
    """
    if isinstance(x, KernelHandle):
        return info_of(x._live, x._pin)
    live = live_of(x)
    if live is None:
        jit = sys.modules.get("rekernel.jit.base")
        if jit is not None and isinstance(x, jit.KernelWrapper):
            found: KernelInfo = x.info()
            return found
        raise TypeError(
            f"info takes a module or a kernel that a loader gave out, or a compiled kernel, not {type(x).__name__}"
        )
    return info_of(live)
