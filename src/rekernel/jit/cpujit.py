"""What ``pystencils.jit.cpujit`` offers, under the same name."""

from rekernel.jit.cpu import AUTO, CpuJit
from rekernel.modulebuilder import ExtensionModuleBuilderBase, LibraryBuilder

__all__ = ["AUTO", "CpuJit", "ExtensionModuleBuilderBase", "LibraryBuilder"]
