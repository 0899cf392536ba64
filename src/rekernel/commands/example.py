"""Arguments for a kernel, made from its signature alone. What could read or write beyond an array is never guessed.

A raw pointer has no size, and an integer may be an index or an extent: a wrong guess would not be an error but
somebody else's memory. Floating-point values and arrays that carry their extents are safe.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import Any

from rekernel.kernel import Parameter

__all__ = ["CannotGuessError", "example", "rank", "refuse_too_much"]


class CannotGuessError(Exception):
    """A parameter for which there is no safe argument; the text says why."""


def rank(parameter: Parameter) -> int | None:
    """Return how many axes an array has, or None where it has no extents of its own: a raw pointer.

    >>> rank(Parameter("x", "array", "float32[:, :]")), rank(Parameter("x", "array", dtype="float64"))
    (2, None)
    """
    if parameter.ndim is not None:
        return parameter.ndim
    inside = parameter.type.rpartition("[")[2].removesuffix("]") if parameter.type.endswith("]") else ""
    return inside.count(",") + 1 if inside else None


def example(parameter: Parameter, n: int, *, careful: bool = True, xp: Any = None) -> Any:
    """Return an argument for a parameter: an array whose free extents are `n`, or a number.

    `xp` is the library that makes arrays, NumPy if not given. With `careful` False an integer is 1 and nobody must call
    the kernel with it. CannotGuessError where there is none.
    """
    import numpy as np

    if parameter.kind == "scalar":
        return _scalar(parameter, careful)
    if parameter.kind in ("template", "other") or (parameter.dtype is None and not parameter.fields):
        raise CannotGuessError(f"{parameter}: its type alone does not tell what to pass")
    axes = rank(parameter)
    if axes is None:
        raise CannotGuessError(f"{parameter}: a raw pointer has no size, so what the kernel touches is unknown")
    shape = [n] * axes
    for axis, fixed in enumerate(parameter.shape[:axes]):
        if isinstance(fixed, int):
            shape[axis] = fixed
    refuse_too_much(math.prod(shape) * _dtype(parameter, np).itemsize)
    made = _filled(_dtype(parameter, np), tuple(shape), np)
    return made if xp is None or xp is np else xp.asarray(made)


def refuse_too_much(size: int) -> None:
    """Raise MemoryError for bytes that would not fit, before the machine begins to swap, or to kill processes."""
    free = _free()
    if free is not None and size > free:
        raise MemoryError(f"{size:,} bytes are needed, and {free:,} are free")


def _free() -> int | None:
    """Return the bytes that a process may still take; on Linux with what the system has cached of files."""
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith("MemAvailable:")).split()[1])
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _scalar(parameter: Parameter, careful: bool) -> Any:
    dtype = parameter.dtype or ""
    if dtype == "bool":
        return True
    if dtype.startswith(("float", "complex")):
        return 0.5
    if careful or "int" not in dtype:
        raise CannotGuessError(f"{parameter}: a number that may be an extent or an index is not guessed")
    return 1


def _dtype(parameter: Parameter, np: Any) -> Any:
    if not parameter.fields:
        return np.dtype(parameter.dtype)
    names, formats, offsets = zip(*parameter.fields, strict=True)
    fields = {"names": names, "formats": formats, "offsets": offsets}
    return np.dtype({**fields, "itemsize": parameter.itemsize} if parameter.itemsize else fields)


def _filled(dtype: Any, shape: tuple[int, ...], np: Any) -> Any:
    """Return an array of values between 0 and 1; integers, which may be indices, are 0."""
    made = np.zeros(shape, dtype)
    if dtype.names:
        for name in dtype.names:
            made[name] = _filled(dtype[name], shape, np)
    elif dtype.kind in "fc":
        made[...] = np.random.default_rng(1).random(shape, np.float32)
    return made
