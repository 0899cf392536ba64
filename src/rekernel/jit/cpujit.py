"""What ``pystencils.jit.cpujit`` and the ``cpujit`` of pystencils 1.x offer, under the same names."""

from rekernel.jit.cpu import AUTO, CpuJit
from rekernel.jit.legacy import (
    LegacyCpuJit,
    add_or_change_compiler_flags,
    clear_cache,
    get_cache_config,
    get_compiler_config,
    read_config,
    set_config,
)
from rekernel.modulebuilder import ExtensionModuleBuilderBase, LibraryBuilder

__all__ = [
    "AUTO",
    "CpuJit",
    "ExtensionModuleBuilderBase",
    "LegacyCpuJit",
    "LibraryBuilder",
    "add_or_change_compiler_flags",
    "clear_cache",
    "get_cache_config",
    "get_compiler_config",
    "read_config",
    "set_config",
]
