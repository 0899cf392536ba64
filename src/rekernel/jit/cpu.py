"""`CpuJit`: kernels to native code, through the object cache.

kernel -> modulebuilder: unit -> key -> objcache: hit, or compile aside and publish -> library -> callable
"""

from __future__ import annotations

import copy
import os
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekernel import headers, key
from rekernel.errors import Diagnostic, JitError, KernelSourceError, RekernelWarning
from rekernel.jit.base import JitBase, KernelWrapper
from rekernel.jit.loading import load
from rekernel.kernel import Kernel
from rekernel.modulebuilder import ExtensionModuleBuilderBase, LibraryBuilder, Unit, as_tuple, kernel_title, text_name
from rekernel.objcache import AUTO, ObjectCache
from rekernel.probe import key_fields, probe

if TYPE_CHECKING:
    from pathlib import Path

    from rekernel.cachedir import Auto
    from rekernel.compilers import CompilerInfo
    from rekernel.pch import PrecompiledHeaders
    from rekernel.probe import Toolchain

__all__ = ["AUTO", "CpuJit"]

#: What makes the result of a compile depend on more than its text and its headers: built, and not kept.
_UNCACHED = re.compile(r"__(?:DATE|TIME|TIMESTAMP)__|\.incbin|#\s*embed")


@dataclass(frozen=True)
class Artefact:
    """What a unit became."""

    data: bytes
    key: str
    from_cache: bool
    rebuilt_because: str | None
    warnings: tuple[str, ...]
    command: tuple[str, ...]


class CpuJit(JitBase):
    """Compiles kernels with a C++ compiler of this machine.

    `compiler_info`: which compiler and flags; a copy is taken, None chooses by REKERNEL_CXX, CXX and PATH.
    `objcache`: AUTO for the user's cache directory, a path, an `ObjectCache`, or None to keep nothing.
    `module_builder`: how kernels become text. With `emit_warnings`, the compiler's warnings are shown.

    Making one starts nothing; the compiler is looked for when it is first needed (ToolchainError).
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
        """Compile several kernels as one unit: one run of the compiler."""
        values = tuple(_kernel(one) for one in kernels)
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
            )  # fmt: skip
            wrappers.append(wrapper)
        if self.emit_warnings:
            for message in artefact.warnings:
                warnings.warn(f"{name}: {message}", RekernelWarning, stacklevel=3)
        return tuple(wrappers)

    def export(self, kernel: Kernel | Sequence[Kernel], directory: Path) -> Path:
        """Write an importable extension module of one or more kernels and its ``.pyi``; return its file."""
        from rekernel.jit.export import export

        return export(self, as_tuple(kernel), directory)

    def obtain(
        self, kernels: Sequence[Kernel], text: str, include_dirs: Sequence[str], *, allow_undefined: bool = False
    ) -> Artefact:
        """Return a unit's compiled bytes: out of the cache, or compiled aside and published."""
        openmp = any(kernel.openmp for kernel in kernels)
        cache, info = self.objcache, self.compiler_info
        toolchain = probe(info, self._beside("probes"))
        digest = key.digest(
            [
                ("unit", text),
                ("module", allow_undefined),
                *key_fields(toolchain, info, openmp=openmp, include_dirs=include_dirs),
            ]
        )
        entry = cache.lookup(digest, headers.valid)
        if entry is None:
            with cache.building(digest):
                entry = cache.lookup(digest, headers.valid, again=True)
                if entry is None:
                    return self._build(toolchain, digest, kernels, text, include_dirs, openmp, allow_undefined)
        manifest = entry.manifest
        return Artefact(entry.data, digest, True, None, tuple(manifest["warnings"]), tuple(manifest["command"]))

    def _build(
        self, toolchain: Toolchain, digest: str, kernels: Sequence[Kernel], text: str, include_dirs: Sequence[str],
        openmp: bool, allow_undefined: bool,
    ) -> Artefact:  # fmt: skip
        from rekernel.toolchain import CompileFailed, build

        started = time.time_ns()
        with self.objcache.workdir() as place:
            try:
                product = build(
                    toolchain, self.compiler_info, text, openmp=openmp, include_dirs=include_dirs, workdir=place,
                    allow_undefined=allow_undefined, pch=self._precompiled(),
                )  # fmt: skip
            except CompileFailed as failure:
                raise _source_error(failure, kernels) from failure
        said = tuple(_line(message) for message in product.warnings)
        manifest: dict[str, Any] = {"warnings": said, "command": product.command, "kernels": [k.name for k in kernels]}
        if not _UNCACHED.search(text):
            try:
                manifest["headers"] = headers.record(
                    [h.path for h in product.headers if not h.system], [h.path for h in product.headers if h.system],
                    include_dirs, text=text, started_ns=started,
                )  # fmt: skip
                self.objcache.publish(digest, manifest, product.data)
            except headers.HeaderChangedError:
                pass  # what was built is good for this call; nobody knows which text of the header it has seen
        return Artefact(product.data, digest, False, self.objcache.why(digest), said, product.command)

    def _beside(self, name: str) -> str | None:
        directory = self.objcache.directory
        return None if directory is None else os.path.join(directory, name)

    def _precompiled(self) -> PrecompiledHeaders | None:
        place = self._beside("pch")
        if self._pch is None and place is not None:
            from rekernel.pch import PrecompiledHeaders

            self._pch = PrecompiledHeaders(place)
        return self._pch

    def __repr__(self) -> str:
        return f"<CpuJit {self._info!r}, {self.objcache!r}>"


def _copied(info: CompilerInfo | None) -> CompilerInfo | None:
    try:
        return copy.deepcopy(info)
    except TypeError:  # a class of the user's that holds what cannot be copied, such as a lock
        return copy.copy(info)


def _kernel(given: Any) -> Kernel:
    if isinstance(given, Kernel):
        if not given.slots and given.parameters:
            raise JitError(f"{given.name} is a {given.language} kernel that its own language compiles")
        return given
    if isinstance(given, str):
        raise JitError("CpuJit compiles Kernel values; text is loaded by KernelLoader.load")
    raise JitError(f"CpuJit compiles Kernel values, not {type(given).__module__}.{type(given).__qualname__}")


def _line(message: Diagnostic) -> str:
    place = "" if message.line is None else f"line {message.line}: "
    return f"{place}{message.message}"


def _source_error(failure: Any, kernels: Sequence[Kernel]) -> KernelSourceError:
    """Turn what the compiler said into an error at the line of the kernel's own text."""
    named = {text_name(kernel): kernel for kernel in reversed(kernels)}
    errors = [d for d in failure.diagnostics if d.severity == "error"] or list(failure.diagnostics)
    own = next((d for d in errors if d.filename in named), None)
    first = own or errors[0]
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
