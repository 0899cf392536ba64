"""A kernel of a stencil text on its way: symbols, then C code, then a callable, each made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from rekernel import _native, underway
from rekernel.errors import KernelSourceError, ToolchainError
from rekernel.jit.base import KernelWrapper, no_jit
from rekernel.kernel import Kernel
from rekernel.languages.pyrun import Execution, error_at, source_error
from rekernel.languages.stencil import jits
from rekernel.languages.stencil.options import Settings
from rekernel.languages.stencil.package import Symbols, given, unchanged
from rekernel.languages.stencil.reading import Bound
from rekernel.locks import rlock
from rekernel.symbolic import is_symbolic, kernel_of

__all__ = ["Entry", "StencilVersion"]

_LONGEST = 24  # lines of symbols that a docstring shows
#: pystencils does not promise that two threads may generate code at once, and the GIL would let only one run.
_generating = rlock()


@dataclass(eq=False)
class StencilVersion:
    """What a build leaves behind: the language's own record of a version."""

    execution: Execution
    settings: Settings
    jit: Any
    """The loader's."""
    entries: dict[str, Entry] = field(default_factory=dict)
    work: underway.Work | None = field(default_factory=underway.current)
    """Whose version it is, for what is built later."""
    failed: Callable[..., Any] | None = None
    """Answers a call whose kernel cannot be built, where the loader rolls back by itself."""


@dataclass(frozen=True)
class Generated:
    """What pystencils made of symbols."""

    kernel: Any
    value: Kernel
    jit: Any


class Entry:
    """One kernel. `handle` is what the loader calls; its first call builds what it needs.

    Any thread may ask for anything; what fails is tried again when it is asked for again.
    """

    def __init__(self, version: StencilVersion, name: str, symbols: Symbols, bound: Bound, config: Any) -> None:
        self.version, self.name, self.symbols, self.bound = version, name, symbols, bound
        self.config = _configured(symbols.config or config, name, version.settings)
        self.jit = getattr(symbols.config or config, "jit", None)
        self.lock = rlock()
        self.generated: Generated | None = None
        self.wrapper: Any = None
        """The compiled kernel, when it is built."""
        self.known: tuple[str, Any] = "", None
        """The code of the version before, and what it was compiled to."""
        self.handle = _native.Handle(_native.Cell(), 0, name)
        self._serve(self._first_call)

    @property
    def title(self) -> str:
        """The kernel's name with its id."""
        return f"{self.version.execution.kernel_id}.{self.name}"

    def generate(self) -> Generated:
        """Return the kernel as C code; KernelSourceError at the line of its name where pystencils refuses it."""
        with self.lock:
            if self.generated is None:
                try:
                    self.generated = self._generate()
                except ToolchainError:
                    raise
                except Exception as error:
                    raise source_error(error, self.version.execution, line=self.bound.line) from error
            return self.generated

    def build(self) -> Any:
        """Return the compiled kernel; KernelSourceError at the line of its name where the compiler refuses it."""
        with self.lock:
            if self.wrapper is None:
                made, (code, wrapper) = self.generate(), self.known
                try:
                    if wrapper is None or code != made.value.code:
                        # Only pystencils' own object knows on which grid a GPU kernel is launched.
                        with underway.doing(self.version.work):
                            wrapper = made.jit.compile(made.value if made.kernel.target.is_cpu() else made.kernel)
                except KernelSourceError as error:
                    raise self._refused(error, made) from error
                self._take(wrapper)
            return self.wrapper

    def adopt(self, old: Entry | None) -> None:
        """Take over from the version before what would come out the same, as far as it has made anything."""
        if old is None or old.generated is None or old.version.settings != self.version.settings:
            return
        if old.jit is not self.jit or old.version.jit is not self.version.jit:
            return
        if old.config != self.config or not unchanged(old.symbols, self.symbols):
            self.known = old.generated.value.code, old.wrapper
            return
        self.generated = replace(old.generated, value=replace(old.generated.value, line=self.kernel.line))
        if old.wrapper is not None:
            self._take(old.wrapper)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel as a value, which is generated when somebody looks at more than its name."""
        return LazyKernel(self)

    def _generate(self) -> Generated:
        what = self.symbols.what
        with _generating:
            made = what if is_symbolic(what) else given()["ps"].create_kernel(what, self.config)
            jit = jits.jit_for(made.target, self.version.settings, self.jit or self.version.jit)
            if made.target.is_cpu():
                value = kernel_of(made, jits.restrict_word(jit, self.version.settings))
            else:
                value = kernel_of(made, gpu=True)
        return Generated(made, replace(value, name=self.name, line=self.kernel.line), jit)

    def _take(self, wrapper: Any) -> None:
        self.wrapper, self.known = wrapper, ("", None)
        table: Any = wrapper._cell.table if isinstance(wrapper, KernelWrapper) else None
        self._serve(table[0] if table is not None else wrapper)  # one step less in every call

    def _serve(self, target: Callable[..., Any]) -> None:
        _native.swap([(self.handle._cell, (target,), None)])

    def _first_call(self, *arguments: Any, **named: Any) -> Any:
        try:
            wrapper = self.build()
        except KernelSourceError as error:
            failed = self.version.failed
            if failed is None:
                raise error.with_traceback(None) from error.__cause__
            return failed(self.name, error, arguments, named)
        return wrapper(*arguments, **named)

    def _refused(self, error: KernelSourceError, made: Generated) -> KernelSourceError:
        execution = self.version.execution
        return error_at(
            execution.source, execution.kernel_id, execution.number,
            f"the compiler refuses the code of {self.name}: {error.message}", self.bound.line,
            diagnostics=error.diagnostics, command=error.command,
            output=f"{error.output or ''}\n\nthe code that pystencils generated:\n{made.value.code}",
        )  # fmt: skip


def _configured(config: Any, name: str, settings: Settings) -> Any:
    """Return a copy of the text's configuration for one kernel, with the options of the load in it."""
    made = given()["ps"].CreateKernelConfig() if config is None else config.copy()
    made.jit = no_jit  # it is we who compile; looking for pystencils' own would start a compiler
    if made.function_name is None:
        # A kernel may be called ``double`` or ``exp``, which C++ takes for something else.
        made.function_name = f"{name}_kernel" if name.isascii() else "kernel"
    if settings.target is not None:
        made.target = settings.target
    if settings.openmp is not None:
        made.cpu.openmp.enable = settings.openmp
    return made


class LazyKernel(Kernel):
    """A kernel's value, of which nothing but the name and the place is made before it is asked for."""

    def __init__(self, entry: Entry) -> None:
        line = entry.bound.line + entry.version.execution.source.first_line - 1
        told: Mapping[str, Any] = {"name": entry.name, "language": "stencil", "line": line, "policy": "pystencils"}
        vars(self).update(told, returns=None, _entry=entry)  # frozen, and the other fields are told when asked for

    @cached_property
    def doc(self) -> str:
        """The text below the binding, or the assignments themselves."""
        entry: Entry = vars(self)["_entry"]
        if entry.bound.doc:
            return entry.bound.doc
        what = entry.symbols.what
        if is_symbolic(what):
            return str(what)
        items = what if isinstance(what, list) else getattr(what, "all_assignments", [what])
        lines = [str(item) for item in items[:_LONGEST]]
        return "\n".join([*lines, *([f"... and {len(items) - _LONGEST} more"] if len(items) > _LONGEST else [])])

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, tuple(getattr(self, one.name) for one in fields(Kernel))


def _told_by_the_code(name: str) -> Any:
    def read(self: LazyKernel) -> Any:
        entry: Entry = vars(self)["_entry"]
        return getattr(entry.generate().value, name)

    made = cached_property(read)
    made.__set_name__(LazyKernel, name)
    return made


for _name in ("parameters", "code", "slots", "function", "headers", "openmp"):
    setattr(LazyKernel, _name, _told_by_the_code(_name))
