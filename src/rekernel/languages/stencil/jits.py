"""Which just-in-time compiler a kernel's target needs: the one place where one for GPUs comes in."""

from __future__ import annotations

from functools import cache
from typing import Any

from rekernel.languages.stencil.options import Settings

__all__ = ["jit_for", "restrict_word"]


@cache
def default_gpu_jit() -> Any:
    """Return the compiler for GPU targets of loaders that were made without one."""
    from rekernel.jit.gpu import CupyJit

    return CupyJit()


def jit_for(target: Any, settings: Settings, given: Any) -> Any:
    """Return what compiles for a target of pystencils. `given` is the JIT of the text or of its loader, or None."""
    if not target.is_cpu():
        return _gpu(given)
    from rekernel.jit import cpu

    jit = given if given is not None else cpu.default_jit()
    if not hasattr(jit, "compiler_info") or (settings.march, settings.optlevel, settings.flags) == (None, None, ()):
        return jit
    info = settings.compiler(jit.compiler_info)
    return type(jit)(info, jit.objcache, module_builder=jit.module_builder, emit_warnings=jit.emit_warnings)


def _gpu(given: Any) -> Any:
    from rekernel.jit.gpu import CupyJit

    return given if isinstance(given, CupyJit) else default_gpu_jit()


def restrict_word(jit: Any, settings: Settings) -> str:
    """Return the compiler's word for an array that no other overlaps, or nothing where overlap is allowed."""
    info = getattr(jit, "compiler_info", None)
    return "" if settings.allow_alias else str(info.restrict_qualifier()) if info is not None else "__restrict__"
