"""Just-in-time compilers: a kernel in, a callable out. Exports what ``pystencils.jit`` exports."""

from __future__ import annotations

from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.jit import cpu, cpujit, error
from rekernel.jit.base import JitBase, KernelWrapper, NoJit, no_jit
from rekernel.jit.cpu import AUTO, CpuJit
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
