"""Just-in-time compilers: a kernel in, a callable out. Exports what ``pystencils.jit`` exports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekernel.cachedir import AUTO
    from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
    from rekernel.jit import cpu, cpujit, error
    from rekernel.jit.base import JitBase, KernelWrapper, NoJit, no_jit
    from rekernel.jit.cpu import CpuJit
    from rekernel.jit.error import JitError
    from rekernel.jit.gpu import CupyJit, CupyKernelWrapper
    from rekernel.jit.legacy import (
        LegacyCpuJit,
        add_or_change_compiler_flags,
        clear_cache,
        get_cache_config,
        get_compiler_config,
        read_config,
        set_config,
    )
    from rekernel.launchgrid import LaunchGrid
    from rekernel.modulebuilder import ExtensionModuleBuilderBase

#: Where each name lives. It is imported when it is first asked for: a program that loads a text out of the cache needs
#: none of the compilers.
_HOMES = {
    "cachedir": ("AUTO",),
    "compilers": ("ClangInfo", "CompilerInfo", "GccInfo"),
    "jit.base": ("JitBase", "KernelWrapper", "NoJit", "no_jit"),
    "jit.cpu": ("CpuJit",),
    "jit.error": ("JitError",),
    "jit.gpu": ("CupyJit", "CupyKernelWrapper"),
    "jit.legacy": (
        "LegacyCpuJit",
        "add_or_change_compiler_flags",
        "clear_cache",
        "get_cache_config",
        "get_compiler_config",
        "read_config",
        "set_config",
    ),
    "launchgrid": ("LaunchGrid",),
    "modulebuilder": ("ExtensionModuleBuilderBase",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("cpu", "cpujit", "error")

__all__ = [
    "AUTO",
    "ClangInfo",
    "CompilerInfo",
    "CpuJit",
    "CupyJit",
    "CupyKernelWrapper",
    "ExtensionModuleBuilderBase",
    "GccInfo",
    "JitBase",
    "JitError",
    "KernelWrapper",
    "LaunchGrid",
    "LegacyCpuJit",
    "NoJit",
    "add_or_change_compiler_flags",
    "clear_cache",
    "cpu",
    "cpujit",
    "error",
    "get_cache_config",
    "get_compiler_config",
    "no_jit",
    "read_config",
    "set_config",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"rekernel.jit.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'rekernel.jit' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"rekernel.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
