"""What every just-in-time compiler shares: `JitBase`, `KernelWrapper`, and the one that refuses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from rekernel import _native
from rekernel.callstats import stats_of
from rekernel.errors import ArgumentTypeError, ArgumentValueError, JitError
from rekernel.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rekernel.values import KernelInfo

__all__ = ["JitBase", "JitError", "KernelWrapper", "NoJit", "no_jit"]


class KernelWrapper(_native.Handle):
    """A compiled kernel: call it.

    The call goes straight into native code, which checks the arguments; there is no Python frame between. Wrong ones
    raise TypeError and ValueError (`ArgumentTypeError`, `ArgumentValueError`). It never changes: to replace a kernel,
    compile another one, or load its text with a `KernelLoader`.
    """

    __slots__ = ("_details", "_kernel")
    _kernel: Kernel
    _details: dict[str, Any]

    @classmethod
    def over(cls, kernel: Kernel, function: Callable[..., Any], **details: Any) -> KernelWrapper:
        """Make the wrapper of `kernel` whose compiled code is `function`.

        `details` are what `ast`, `code`, `target`, `from_cache`, `rebuilt_because`, `warnings` and `export` give.
        """
        cell = _native.Cell()
        _native.swap([(cell, (function,), None)])
        made = cls(cell, 0, kernel.name)
        made._kernel, made._details = kernel, details
        return made

    @property
    def kernel(self) -> Any:
        """The kernel that was compiled: a `Kernel`, or pystencils' own."""
        return self._details.get("ast", self._kernel)

    @property
    def ast(self) -> Any:
        """The same as `kernel`."""
        return self.kernel

    @property
    def value(self) -> Kernel:
        """The kernel as a value, whatever it was compiled from."""
        return self._kernel

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters of `kernel`: in the order of a positional call, or those of pystencils' C function."""
        return tuple(self.kernel.parameters)

    @property
    def code(self) -> str:
        """The kernel's own text."""
        kernel = self.kernel
        return kernel.code if isinstance(kernel, Kernel) else str(kernel.get_c_code())

    @property
    def unit(self) -> str:
        """The whole text that the compiler saw."""
        return str(self._details.get("unit", self._kernel.code))

    @property
    def target(self) -> Any:
        """What the code was compiled for: ``native``, a named level, or the ``Target`` of pystencils' kernel."""
        return getattr(self.kernel, "target", self._details.get("target", ""))

    @property
    def from_cache(self) -> bool:
        """Whether the compiled code came out of the object cache."""
        return bool(self._details.get("from_cache", False))

    @property
    def rebuilt_because(self) -> str | None:
        """Why the object cache did not have it, or None if it had."""
        reason = self._details.get("rebuilt_because")
        return None if reason is None else str(reason)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the compiler warned of."""
        return tuple(self._details.get("warnings", ()))

    @property
    def stats(self) -> dict[str, int | float]:
        """Counts: ``calls`` and, of these, ``failures`` (calls that raised)."""
        return stats_of(self)

    def info(self) -> KernelInfo:
        """Return all that is known about the kernel: what ``rekernel.info(wrapper)`` gives."""
        from rekernel.values import KernelInfo, MachineCode

        machine = self._details.get("machine")
        return KernelInfo(
            kernel_id=self._kernel.name, version=1, language=self._kernel.language, source=self._kernel.code,
            filename=None, options=MappingProxyType({}), kernels=(self._kernel,), skipped={}, code=self.unit,
            machine=() if machine is None else (MachineCode(*machine),),
            warnings=self.warnings, notes=(), error=None, build_seconds=0.0, from_cache=self.from_cache,
            rebuilt_because=self.rebuilt_because, depends_on=(), history=(),
        )  # fmt: skip

    def export(self, path: str | PathLike[str]) -> Path:
        """Write an importable extension module with this kernel, and its ``.pyi``, into the directory `path`.

        It runs in a Python of this version that has NumPy, without rekernel. Returns the module's file.
        """
        export = self._details.get("export")
        if export is None:
            raise JitError(f"{self._kernel.name}: this just-in-time compiler has no export")
        from pathlib import Path

        return Path(export(self._kernel, Path(path)))

    def __repr__(self) -> str:
        return f"<kernel {self._kernel}>"


_native.seal(KernelWrapper)
_native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


class JitBase(ABC):
    """A just-in-time compiler: kernels in, callables out."""

    @abstractmethod
    def compile(self, kernel: Any) -> KernelWrapper:
        """Compile one kernel and return its callable."""


class NoJit(JitBase):
    """Not a just-in-time compiler: says so when it is asked to compile, and lets the code be looked at.

    ``ps.CreateKernelConfig(jit=no_jit)`` is how a kernel of pystencils is made to be looked at only.
    """

    def compile(self, kernel: Any) -> NoReturn:
        """Raise `JitError`."""
        name = getattr(kernel, "name", None) or getattr(kernel, "function_name", None) or "the kernel"
        raise JitError(f"{name} cannot be compiled: just-in-time compilation is switched off (no_jit)")


no_jit = NoJit()
"""Switches just-in-time compilation off for a kernel."""
