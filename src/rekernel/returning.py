"""A kernel as a function of its inputs: it makes the array that the kernel writes, calls, and returns it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rekernel.errors import ArgumentTypeError, ArgumentValueError
from rekernel.handle import KernelHandle, _OnInstance
from rekernel.kernel import Kernel, Parameter

if TYPE_CHECKING:
    from rekernel.live import Edition
    from rekernel.values import Version


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one version of the kernel makes of the two names."""

    version: Version
    kernel: Kernel
    names: tuple[str, ...]
    """Of the other parameters: those that a caller passes."""
    in_c_order: bool
    """Whether `out` must be C-contiguous."""
    dtype: np.dtype[Any] | None
    """Of `out`; None where it is that of `like`."""
    overloads: Mapping[str, np.dtype[Any] | None]
    """Where the name has several kernels: the dtype of `out` for each dtype of `like`."""


@dataclass(frozen=True, repr=False)
class Returning:
    """A kernel that returns one of its arrays: what ``handle.returning("dst", like="src")`` gives.

    >>> import numpy as np, taichi as ti, rekernel
    >>> ti.init(arch=ti.cpu, log_level=ti.ERROR)  # doctest: +ELLIPSIS
    [Taichi]...
    >>> m = rekernel.KernelLoader().load('''
    ... @ti.kernel
    ... def half(dst: ti.types.ndarray(dtype=ti.f32, ndim=1), src: ti.types.ndarray(ndim=1)):
    ...     for i in src:
    ...         dst[i] = 0.5 * src[i]
    ... ''')
    >>> half = m.half.returning("dst", like="src")
    >>> half(np.arange(4))
    array([0. , 0.5, 1. , 1.5], dtype=float32)

    Called with the kernel's other arguments, it makes the array `out` of zeros, calls the kernel and returns the
    array. Shape, library and device are those of the argument `like`; so is the dtype, unless the kernel declares
    another one for `out`, and the order of the axes, unless the kernel wants C order. NumPy arrays of any class give
    a plain ``numpy.ndarray``. An array passed as ``out=`` is used instead of a new one; nothing in it is cleared.

    It follows reloads and pickles as the handle does. Raises ArgumentTypeError if `like` is no array,
    ArgumentValueError if a new version has other parameters, and what the kernel itself raises.
    """

    handle: KernelHandle
    """The kernel that is called."""
    out: str
    """The name of the array that is returned."""
    like: str
    """The name of the argument that the array is made like."""
    _plan: _Plan | None = field(default=None, init=False, compare=False)

    __doc__ = _OnInstance(lambda r: r._text(), __doc__)
    __signature__ = _OnInstance(lambda r: r._signature())
    __name__ = _OnInstance(lambda r: r.handle.__name__, "Returning")

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Make `out`, call the kernel, return `out`."""
        plan, cell = self._plan, self.handle._cell
        edition = cell.version
        if plan is None or edition is None or plan.version is not edition.version or cell.override:
            plan = self._planned()
        made = None
        if named:
            made = named.pop("out", None)
            if self.out in named or not named.keys().isdisjoint(plan.names[: len(arguments)]):
                raise self._unbound(arguments, named)
        if len(arguments) > len(plan.names):
            raise self._unbound(arguments, named)
        # By name: another thread may load a version with another order before the call begins.
        named.update(zip(plan.names, arguments))  # noqa: B905 - not all need to be there, and strict= takes time
        if made is None:
            if self.like not in named:
                raise self._unbound((), named)
            made = self._alike(plan, named[self.like])
        named[self.out] = made
        self.handle(**named)
        return made

    def checked(self) -> Returning:
        """Return this, or raise if the names do not fit the present version."""
        names: dict[str, Any] = {"out": self.out, "like": self.like}
        for word, name in names.items():
            if not isinstance(name, str):
                said = f"{self.handle._title}.returning: {word} is the name of a parameter, not a"
                raise ArgumentTypeError(f"{said} {type(name).__name__}", argument=word, expected="str")
        self._planned()
        return self

    def pinned(self) -> Returning:
        """Return the same over the present version for ever, whatever is loaded later."""
        return Returning(self.handle.pinned(), self.out, self.like).checked()

    def _planned(self) -> _Plan:
        edition = self.handle._edition
        plan = self._plan
        if plan is None or plan.version is not edition.version:
            plan = _plan(self, edition)
            object.__setattr__(self, "_plan", plan)
        return plan

    def _alike(self, plan: _Plan, like: Any) -> Any:
        """Return an array of zeros: of one version's kernel, like an argument."""
        dtype = plan.dtype
        if plan.overloads:  # "torch.float32" is float32, too
            dtype = plan.overloads.get(str(getattr(like, "dtype", "")).rpartition(".")[2])
        if isinstance(like, np.ndarray):
            dtype = dtype or like.dtype
            if plan.in_c_order or like.flags.c_contiguous:
                return np.zeros(like.shape, dtype)  # fresh pages, which the system has cleared already
            return np.zeros(like.shape, dtype, "F") if like.flags.fnc else np.zeros_like(like, dtype, subok=False)
        made = _foreign(like, dtype, plan.in_c_order)
        if made is None:
            got = f"{type(like).__module__}.{type(like).__name__}".removeprefix("builtins.")
            raise ArgumentTypeError(
                f"{plan.kernel.name}() argument {self.like!r}: expected an array to make {self.out!r} like (of NumPy "
                f"or of a library that has zeros_like), got {got}; or pass the array to write to as out=",
                argument=self.like, expected="an array", got=got,
            )  # fmt: skip
        return made

    def _unbound(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> TypeError:
        """Make the error of a call that cannot be right, in Python's wording."""
        if self.out in named and self.out != "out":
            return TypeError(f"{self.__name__}() makes {self.out!r} itself; to pass an array for it, write out=")
        try:
            inspect.signature(self).bind(*arguments, **named)
        except TypeError as error:
            return TypeError(f"{self.__name__}() {error}")
        raise AssertionError("this call is right")  # pragma: no cover - bind knows the same parameters

    def _signature(self) -> inspect.Signature:
        kernel = self._planned().kernel
        whole = kernel.signature
        others = [p for name, p in whole.parameters.items() if name != self.out]
        last = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        return whole.replace(parameters=[*others, last], return_annotation=whole.parameters[self.out].annotation)

    def _text(self) -> str:
        doc = self.handle.__doc__
        made = f"Returns {self.out!r}: zeros like {self.like!r} that the kernel has written to, or the array out=."
        return f"{inspect.cleandoc(doc)}\n\n{made}" if doc else made

    def __repr__(self) -> str:
        return f"{self.handle!r}.returning({self.out!r}, like={self.like!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unchecked: where a newer version has lost the kernel, the handle says so when it is called.
        return Returning, (self.handle, self.out, self.like)


def _plan(asked: Returning, edition: Edition) -> _Plan:
    """Return what a version makes of the names; raise ArgumentValueError if it cannot."""
    handle, out, like = asked.handle, asked.out, asked.like
    kernels = [kernel for kernel in edition.built.kernels if kernel.name == handle._name]
    if not kernels:
        raise handle._live.gone(handle._name)
    kernel = kernels[0]
    parameters = {parameter.name: parameter for parameter in kernel.parameters}

    def refuse(why: str, word: str = "out") -> ArgumentValueError:
        title = f"returning({out!r}, like={like!r}): {handle._title} v{edition.number}"
        return ArgumentValueError(f"{title} {why}", argument=word)

    for word, name, kinds in (("out", out, ("array", "pointer")), ("like", like, ("array", "pointer", "template"))):
        if name not in parameters:
            raise refuse(f"has no parameter {name!r}; its parameters: {', '.join(parameters) or 'none'}", word)
        if parameters[name].kind not in kinds:
            raise refuse(f"has {parameters[name]}, which is no array", word)
    if out == like:
        raise refuse("needs two parameters: one to return, one that it is made like", "like")
    if kernel.returns is not None:
        raise refuse(f"returns {kernel.returns} already")
    if not parameters[out].written:
        written = ", ".join(parameter.name for parameter in kernel.parameters if parameter.written)
        raise refuse(f"only reads {out!r}; it writes to {written or 'no array'}")
    if "out" in parameters and out != "out":
        raise refuse("has a parameter 'out' of its own, so that out= could mean either; rename it in the text")
    target = parameters[out]
    in_c_order = target.order == "C" or target.kind == "pointer"
    if kernel.slots and not in_c_order:  # compiled code can step along the axes whose strides it gets
        strided = {slot.axis for slot in kernel.slots if (slot.kind, slot.parameter) == ("stride", out)}
        in_c_order = target.ndim is None or len(strided) < target.ndim
    overloads = {}
    for one in kernels if len(kernels) > 1 else ():
        types = {parameter.name: _dtype(parameter) for parameter in one.parameters}
        if (dtype := types.get(like)) is not None:
            overloads[dtype.name] = types.get(out)
    return _Plan(
        edition.version, kernel, tuple(name for name in parameters if name != out), in_c_order, _dtype(target),
        overloads,
    )  # fmt: skip


def _dtype(parameter: Parameter) -> np.dtype[Any] | None:
    return None if parameter.dtype is None or parameter.fields else np.dtype(parameter.dtype)


def _foreign(like: Any, dtype: np.dtype[Any] | None, in_c_order: bool) -> Any:
    """Return zeros of the library that an array comes from, or None where there is no way."""
    library = None if isinstance(like, np.generic) else _library(like)
    if library is None:
        return None
    # One axis and back is C order in every library, whatever its word for it.
    base = like.reshape(-1) if in_c_order else like
    wanted = {} if dtype is None else {"dtype": getattr(library, dtype.name, dtype.name)}
    made = library.zeros_like(base, **wanted)
    if isinstance(made, np.ndarray):  # a user's class in a module that has taken NumPy's zeros_like
        return None
    return made.reshape(tuple(like.shape)) if in_c_order else made


def _library(like: Any) -> Any:
    """Return the module that has ``zeros_like`` for an array: by the array API, else one that its class is in."""
    space = getattr(like, "__array_namespace__", None)
    if space is not None:
        return space()
    name = type(like).__module__
    while name and not hasattr(sys.modules.get(name), "zeros_like"):
        name = name.rpartition(".")[0]
    return sys.modules.get(name)
