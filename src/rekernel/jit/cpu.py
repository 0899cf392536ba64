"""`CpuJit`: kernels to native code, through the object cache.

kernel -> modulebuilder: unit -> key -> objcache: hit, or compile aside and publish -> library -> callable
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from rekernel.errors import JitError, KernelSourceError, RekernelWarning
from rekernel.jit.base import JitBase, KernelWrapper
from rekernel.jit.loading import load
from rekernel.jit.obtain import Artefact, Order, beside, obtain
from rekernel.kernel import Kernel
from rekernel.modulebuilder import ExtensionModuleBuilderBase, LibraryBuilder, Unit, as_tuple, kernel_title, text_name
from rekernel.objcache import AUTO, ObjectCache

if TYPE_CHECKING:
    from pathlib import Path

    from rekernel.cachedir import Auto
    from rekernel.compilers import CompilerInfo
    from rekernel.pch import PrecompiledHeaders

__all__ = ["AUTO", "CpuJit", "default_jit"]


class CpuJit(JitBase):
    """Compiles kernels with a C++ compiler of this machine.

    `compiler_info`: which compiler and flags; a copy is taken, None chooses by REKERNEL_CXX, CXX and PATH.
    `objcache`: AUTO for the user's cache directory, a path, an `ObjectCache`, or None to keep nothing.
    `module_builder`: how kernels become text. With `emit_warnings`, the compiler's warnings are shown.

    Making one starts nothing; the compiler is looked for when it is first needed (ToolchainError).

    >>> from rekernel import Kernel, Parameter, Slot
    >>> half = Kernel(
    ...     "half", (Parameter("x", "scalar", dtype="float64"),), "cpp", returns="float64",
    ...     code="double half(double x) { return x / 2; }", slots=(Slot("scalar", "x"),),
    ... )
    >>> CpuJit().compile(half)(3)
    1.5
    """

    def __init__(
        self,
        compiler_info: CompilerInfo | None = None,
        objcache: str | os.PathLike[str] | ObjectCache | Auto | None = AUTO,
        *,
        module_builder: ExtensionModuleBuilderBase | None = None,
        emit_warnings: bool = False,
    ) -> None:
        self._info = _copied(compiler_info)
        self.objcache = objcache if isinstance(objcache, ObjectCache) else ObjectCache(objcache)
        self.module_builder = module_builder or LibraryBuilder()
        self.emit_warnings = emit_warnings
        self._pch: PrecompiledHeaders | None = None

    @staticmethod
    def create(
        compiler_info: CompilerInfo | None = None,
        objcache: str | os.PathLike[str] | ObjectCache | Auto | None = AUTO,
    ) -> CpuJit:
        """Make a CPU just-in-time compiler (pystencils' way of making one)."""
        return CpuJit(compiler_info, objcache)

    @property
    def compiler_info(self) -> CompilerInfo:
        """The compiler and its flags."""
        if self._info is None:
            from rekernel.compilers import CompilerInfo

            self._info = CompilerInfo.get_default()
        return self._info

    def compile(self, kernel: Any) -> KernelWrapper:
        """Compile one kernel and return its callable.

        Raises KernelSourceError where the compiler refuses the text, ToolchainError where there is no working
        compiler.
        """
        return self.compile_many([kernel])[0]

    def compile_many(self, kernels: Sequence[Any]) -> tuple[KernelWrapper, ...]:
        """Compile several kernels as one unit, in one run of the compiler; return a callable for each.

        Raises what `compile` raises; then there is none.
        """
        values = tuple(_kernel(one, self) for one in kernels)
        if not values:
            return ()
        builder = self.module_builder
        if builder.artefact != "library":
            raise JitError(f"{type(builder).__name__} makes a Python module to export; a JIT needs a library")
        text = builder.render_module(values, "rekernel_unit")
        artefact = self.obtain(values, text, builder.include_dirs())
        name = kernel_title(values)
        unit = Unit(load(artefact.data, name), values)
        wrappers = []
        for given, value in zip(kernels, values, strict=True):
            wrapper = builder.get_wrapper(value, unit)
            wrapper._details.update(
                ast=given, unit=text, target=self.compiler_info.target, from_cache=artefact.from_cache,
                rebuilt_because=artefact.rebuilt_because, warnings=artefact.warnings, export=self.export,
                machine=("elf", artefact.data),
            )  # fmt: skip
            wrappers.append(wrapper)
        if self.emit_warnings:
            for message in artefact.warnings:
                warnings.warn(f"{name}: {message}", RekernelWarning, stacklevel=3)
        return tuple(wrappers)

    def export(self, kernel: Kernel | Sequence[Kernel], directory: Path) -> Path:
        """Write an importable extension module of one or more kernels and its ``.pyi``; return its file.

        The module runs in a Python of this version with NumPy, without rekernel.
        """
        from rekernel.jit.export import export

        return export(self, as_tuple(kernel), directory)

    def obtain(
        self, kernels: Sequence[Kernel], text: str, include_dirs: Sequence[str], *, allow_undefined: bool = False
    ) -> Artefact:
        """Return a unit's compiled bytes: out of the cache, or compiled aside and published."""
        from rekernel.product import CompileFailed

        order = Order(
            text, self.compiler_info, openmp=any(kernel.openmp for kernel in kernels), include_dirs=include_dirs,
            allow_undefined=allow_undefined, manifest={"kernels": [kernel.name for kernel in kernels]},
            subject=(kernels[0].language, kernel_title(kernels)),
        )  # fmt: skip
        try:
            return obtain(self.objcache, order, pch=self.precompiled)
        except CompileFailed as failure:
            raise source_error(failure, kernels) from failure

    def precompiled(self) -> PrecompiledHeaders | None:
        """Return the precompiled headers that are kept beside the cache."""
        place = beside(self.objcache, "pch")
        if self._pch is None and place is not None:
            from rekernel.pch import PrecompiledHeaders

            self._pch = PrecompiledHeaders(place)
        return self._pch

    def __repr__(self) -> str:
        return f"<CpuJit {self._info!r}, {self.objcache!r}>"


@cache
def default_jit() -> CpuJit:
    """Return the compiler of all loaders that were made without one, and of all their languages."""
    return CpuJit()


def _copied(info: CompilerInfo | None) -> CompilerInfo | None:
    try:
        return copy.deepcopy(info)
    except TypeError:  # a class of the user's that holds what cannot be copied, such as a lock
        return copy.copy(info)


def _kernel(given: Any, jit: CpuJit) -> Kernel:
    if isinstance(given, Kernel):
        if not given.slots and given.parameters:
            raise JitError(f"{given.name} is a {given.language} kernel that its own language compiles")
        return given
    if isinstance(given, str):
        raise JitError("CpuJit compiles Kernel values; text is loaded by KernelLoader.load")
    from rekernel.symbolic import is_symbolic, kernel_of

    if is_symbolic(given):
        return kernel_of(given, jit.compiler_info.restrict_qualifier())
    raise JitError(f"CpuJit compiles Kernel values, not {type(given).__module__}.{type(given).__qualname__}")


def source_error(failure: Any, kernels: Sequence[Kernel]) -> KernelSourceError:
    """Turn what the compiler said into an error at the line of the kernel's own text."""
    from rekernel.diagnostics import point

    named = {text_name(kernel): kernel for kernel in reversed(kernels)}
    errors = [d for d in failure.diagnostics if d.severity == "error"] or list(failure.diagnostics)
    first = point(errors, named)
    own = first if first.filename in named else None
    kernel = named[own.filename] if own is not None and own.filename is not None else kernels[0]
    return KernelSourceError(
        first.message,
        kernel_id=kernel.name,
        version=1,
        language=kernel.language,
        source=kernel.code,
        line=None if own is None else own.line,
        column=None if own is None else own.column,
        end_column=None if own is None else own.end_column,
        diagnostics=tuple(errors),
        command=failure.command,
        output=failure.output,
    )
