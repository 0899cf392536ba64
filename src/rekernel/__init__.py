"""One loader for every kernel language.

Hand it the source text of a kernel and get a fast callable; hand it new text under the same id and the callable
you already hold runs the new code. A broken edit never takes the working kernel away.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rekernel import forked

if TYPE_CHECKING:
    from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
    from rekernel.default import info, kernels
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
    from rekernel.freezing import freeze, thaw
    from rekernel.handle import KernelHandle
    from rekernel.jit.base import JitBase, KernelWrapper, NoJit, no_jit
    from rekernel.jit.cpu import CpuJit
    from rekernel.jit.gpu import CupyJit, CupyKernelWrapper
    from rekernel.jit.legacy import LegacyCpuJit
    from rekernel.jobs import parse
    from rekernel.kernel import Kernel, Parameter, Slot
    from rekernel.launchgrid import LaunchGrid
    from rekernel.loader import KernelLoader, MetaKernelLoader
    from rekernel.modulebuilder import ExtensionModuleBuilderBase
    from rekernel.notebook.viewing import view
    from rekernel.notebook.widget import FieldView
    from rekernel.objcache import ObjectCache
    from rekernel.values import KernelInfo, LoaderStats, LogEvent, ReloadEvent, Version
    from rekernel.watch import Watch

__version__ = "0.1.0"

forked.watch()  # now, though the rest is imported later: a process may fork before it uses any of it

#: Where each public name lives. It is imported when it is first asked for, so that a program which only calls
#: compiled kernels does not pay for the loader, nor the other way round.
_HOMES = {
    "compilers": ("ClangInfo", "CompilerInfo", "GccInfo"),
    "default": ("info", "kernels"),
    "errors": (
        "ArgumentTypeError",
        "ArgumentValueError",
        "FrozenError",
        "JitError",
        "KernelNotFoundError",
        "KernelRemovedError",
        "KernelSourceError",
        "RekernelError",
        "RekernelWarning",
        "ToolchainError",
    ),
    "freezing": ("freeze", "thaw"),
    "handle": ("KernelHandle",),
    "jit.base": ("JitBase", "KernelWrapper", "NoJit", "no_jit"),
    "jit.cpu": ("CpuJit",),
    "jit.gpu": ("CupyJit", "CupyKernelWrapper"),
    "jit.legacy": ("LegacyCpuJit",),
    "jobs": ("parse",),
    "kernel": ("Kernel", "Parameter", "Slot"),
    "launchgrid": ("LaunchGrid",),
    "loader": ("KernelLoader", "MetaKernelLoader"),
    "modulebuilder": ("ExtensionModuleBuilderBase",),
    "notebook": ("load_ipython_extension", "unload_ipython_extension"),  # what ``%load_ext rekernel`` asks for
    "notebook.viewing": ("view",),
    "notebook.widget": ("FieldView",),
    "objcache": ("ObjectCache",),
    "values": ("KernelInfo", "LoaderStats", "LogEvent", "ReloadEvent", "Version"),
    "watch": ("Watch",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "ClangInfo",
    "CompilerInfo",
    "CpuJit",
    "CupyJit",
    "CupyKernelWrapper",
    "ExtensionModuleBuilderBase",
    "FieldView",
    "FrozenError",
    "GccInfo",
    "JitBase",
    "JitError",
    "Kernel",
    "KernelHandle",
    "KernelInfo",
    "KernelLoader",
    "KernelNotFoundError",
    "KernelRemovedError",
    "KernelSourceError",
    "KernelWrapper",
    "LaunchGrid",
    "LegacyCpuJit",
    "LoaderStats",
    "LogEvent",
    "MetaKernelLoader",
    "NoJit",
    "ObjectCache",
    "Parameter",
    "RekernelError",
    "RekernelWarning",
    "ReloadEvent",
    "Slot",
    "ToolchainError",
    "Version",
    "Watch",
    "freeze",
    "info",
    "kernels",
    "no_jit",
    "parse",
    "thaw",
    "view",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'rekernel' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"rekernel.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
