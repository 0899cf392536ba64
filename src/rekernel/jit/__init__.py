"""Just-in-time compilers: a kernel in, a callable out. Exports what ``pystencils.jit`` exports."""

from __future__ import annotations

from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.jit import cpu, cpujit, error
from rekernel.jit.base import JitBase, KernelWrapper, NoJit, no_jit
from rekernel.jit.cpu import AUTO, CpuJit
from rekernel.jit.error import JitError
from rekernel.modulebuilder import ExtensionModuleBuilderBase

__all__ = [
    "AUTO",
    "ClangInfo",
    "CompilerInfo",
    "CpuJit",
    "ExtensionModuleBuilderBase",
    "GccInfo",
    "JitBase",
    "JitError",
    "KernelWrapper",
    "NoJit",
    "cpu",
    "cpujit",
    "error",
    "no_jit",
]
