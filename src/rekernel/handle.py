"""The callable that a module gives out: follows its id, or is pinned to one version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from rekernel import _native
from rekernel.callstats import stats_of
from rekernel.errors import ArgumentTypeError, ArgumentValueError
from rekernel.kernel import Kernel, Parameter

if TYPE_CHECKING:
    from rekernel.live import Edition, Live
    from rekernel.returning import Returning


class _OnInstance:
    """A property that the class itself does not have, so that ``help(KernelHandle)`` keeps its own text."""

    def __init__(self, read: Callable[[Any], Any], of_class: Any = None) -> None:
        self.read = read
        self.of_class = of_class

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is not None:
            return self.read(instance)
        if self.of_class is None:
            raise AttributeError
        return self.of_class


class KernelHandle(_native.Handle):
    """A kernel of a loaded text.

    Calling it runs the current version of its id: one native step, no Python frame. It may be kept anywhere
    (imported name, dict, ``functools.partial``, default argument) and follows every reload; `pinned` gives one
    that never changes. Every keyword belongs to the kernel. A GPU kernel takes its grid in brackets:
    ``handle[grid, block](x)``, ``handle[LaunchGrid.cover(x.shape)](x)``.

    Wrong arguments raise TypeError and ValueError (`ArgumentTypeError`, `ArgumentValueError`), a kernel that is gone
    `KernelRemovedError`. A handle pickles with its text, and is built again where it is unpickled.

    >>> import numpy as np, rekernel
    >>> loader = rekernel.KernelLoader()
    >>> text = "void fill(rekernel::Array<double, 1> x) { for (int64_t i = 0; i < x.shape(0); ++i) x[i] = 1; }"
    >>> fill = loader.load(text).fill
    >>> x = np.zeros(2)
    >>> fill(x); x
    array([1., 1.])
    >>> _ = loader.load(text.replace("= 1;", "= 2;"))
    >>> fill(x); x, fill.version
    (array([2., 2.]), 2)
    """

    __slots__ = ("_live", "_pin")
    _live: Live
    _pin: Edition | None

    __doc__ = _OnInstance(lambda h: h._value.doc, __doc__)
    __signature__ = _OnInstance(lambda h: h._value.signature)
    __name__ = _OnInstance(lambda h: h._name, "KernelHandle")
    __text_signature__ = None

    @classmethod
    def following(cls, live: Live, name: str) -> KernelHandle:
        """Make the handle of a kernel that follows its id."""
        index = live.order.setdefault(name, len(live.order))
        made = cls(live.cell, index, name)
        made._live, made._pin = live, None
        made._timed = live.loader()._timed
        return made

    @classmethod
    def fixed(cls, live: Live, edition: Edition, name: str) -> KernelHandle:
        """Make a handle of one version for ever: its own cell is never swapped."""
        cell = _native.Cell()
        _native.swap([(cell, (edition.built.entries[name],), edition)])
        made = cls(cell, 0, name)
        made._live, made._pin = live, edition
        made._timed = live.loader()._timed
        live.pins.add(made)
        return made

    def _refuse_launch(self) -> NoReturn:
        """Raise: what the handle leads to takes no launch grid in brackets. Called by ``_native.Handle``."""
        refuse = getattr(self._edition.built.entries.get(self._name), "refuse", None)
        if refuse is not None:
            refuse()
        raise TypeError(f"{self._title} is a {self.language} kernel and takes no launch grid; call it: {self._value}")

    def __getattr__(self, name: str) -> Any:
        # What the language itself reads from a kernel: Taichi's grad, _primal, _adjoint.
        if name == "__qualname__":
            return self._name
        if name.startswith("__") and name != "__wrapped__":  # the user's function, for inspect.getsource
            raise AttributeError(name)
        edition = self._edition
        original = edition.built.originals.get(self._name)
        if original is None:
            raise AttributeError(f"{self._title} has no attribute {name!r}")
        return getattr(original, name)

    @property
    def kernel_id(self) -> str:
        """The id that the kernel belongs to."""
        return self._live.kernel_id

    @property
    def version(self) -> int:
        """The number of the version that a call would run now."""
        return self._edition.number

    @property
    def language(self) -> str:
        """The language of that version."""
        return self._edition.source.language

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The kernel's parameters, in the order of a positional call."""
        return self._value.parameters

    @property
    def code(self) -> str:
        """The text that was compiled."""
        return self._value.code

    @property
    def stats(self) -> dict[str, int | float]:
        """Counts of this handle: ``calls`` and, of these, ``failures`` (calls that raised).

        After ``loader.timing()`` also ``timed`` (calls that were timed and returned) and of these, in seconds, the sum
        ``seconds``, and ``mean``, ``min``, ``p50``, ``p95``, ``p99``, ``max``. A percentile is off by at most 3 %. The
        time is that of the call with its checks, from Python's side; of a GPU kernel, that of the launch alone.
        """
        return stats_of(self)

    def pinned(self) -> KernelHandle:
        """Return a handle of the present version for ever, whatever is loaded later or unloaded."""
        if self._pin is not None:
            return self
        edition = self._edition
        if self._name not in edition.built.entries:
            raise self._live.gone(self._name)
        return KernelHandle.fixed(self._live, edition, self._name)

    def returning(self, out: str, *, like: str) -> Returning:
        """Return a callable that makes the array `out`, calls this kernel with it and returns it.

        ``smooth = heat.step.returning("dst", like="src")``; then ``smooth(src, k=0.5)`` takes the other arguments.
        The array is new for each call and begins as zeros, so that what the kernel does not write (a border) is
        zero. It has the shape of the argument `like` and the dtype that the kernel declares for `out`, else that of
        `like`. ``smooth(src, k=0.5, out=array)`` writes to that array and returns it.

        Raises ArgumentValueError, a ValueError, if the kernel has no such parameters, does not write to `out`, or
        returns something already.
        """
        from rekernel.returning import Returning

        return Returning(self, out, like).checked()

    @property
    def _edition(self) -> Edition:
        return self._pin if self._pin is not None else self._live.must_see()

    @property
    def _value(self) -> Kernel:
        for kernel in self._edition.built.kernels:
            if kernel.name == self._name:
                return kernel
        raise self._live.gone(self._name)

    @property
    def _title(self) -> str:
        return f"{self.kernel_id}.{self._name}"

    def __repr__(self) -> str:
        from rekernel.show import handle_line

        return handle_line(self)

    def _repr_html_(self) -> str:
        from rekernel.show import handle_html

        return handle_html(self)

    def __copy__(self) -> KernelHandle:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> KernelHandle:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from rekernel.pickling import reduce_handle

        return reduce_handle(self)


_native.seal(KernelHandle)
_native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)
