"""``__constant__`` and ``__device__`` variables, as a module shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rekernel.errors import ArgumentTypeError, ArgumentValueError
from rekernel.languages.cuda.signature import Global

if TYPE_CHECKING:
    from rekernel.languages.cuda.code import Code

__all__ = ["DeviceVariable"]


class DeviceVariable:
    """A variable of a CUDA text, in the memory of a device.

    Every version of the text has its own: after a reload it is what the new text says, and is to be set again.

    ``module.weights.set([0.25, 0.5, 0.25])``, then ``module.weights.get()`` gives a float32 array of these three.
    """

    def __init__(self, code: Code, known: Global) -> None:
        self._code, self._known = code, known
        self.name = known.name
        self.dtype = np.dtype(known.dtype)
        self.shape = known.shape

    def set(self, value: Any, *, device: int | None = None) -> None:
        """Write the variable, when all that was started on the device is done.

        `value`: a number or array that broadcasts to `shape`, on the host or a device, of a type that NumPy casts to
        `dtype` as the "same kind". ArgumentTypeError for another type, ArgumentValueError for another shape or a whole
        number that the type does not have. `device`: its number; the current one if None.
        """
        if hasattr(value, "__cuda_array_interface__"):
            import cupy

            value = cupy.asnumpy(cupy.asarray(value))
        given = np.asarray(value)
        whole = given.dtype.kind in "iub" and self.dtype.kind in "iu"
        if not whole and not np.can_cast(given.dtype, self.dtype, "same_kind"):
            raise ArgumentTypeError(f"{self.name} is {self.dtype}; {given.dtype} values do not fit")
        if whole and given.size and not _fits(given, self.dtype):
            raise ArgumentValueError(f"{self.name} is {self.dtype}, which does not have all of {value!r}")
        try:
            full = np.ascontiguousarray(np.broadcast_to(given, self.shape), dtype=self.dtype)
        except ValueError:
            raise ArgumentValueError(f"{self.name} has the shape {self.shape}, not {given.shape}") from None
        self._code.write(self._known.symbol, full.tobytes(), device)

    def get(self, *, device: int | None = None) -> np.ndarray[Any, Any]:
        """Return a copy of the variable on the host: an array of `shape` and `dtype`, of shape () for a number."""
        size = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        data = self._code.read(self._known.symbol, size, device)
        return np.frombuffer(bytearray(data), self.dtype).reshape(self.shape)

    @property
    def ptr(self) -> int:
        """Its address in the memory of the current device."""
        return self._code.pointer(self._known.symbol, None)

    def __repr__(self) -> str:
        return f"<device variable {self.name}: {self.dtype}{list(self.shape) or ''}>"


def _fits(given: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= int(given.min()) and int(given.max()) <= limits.max)
