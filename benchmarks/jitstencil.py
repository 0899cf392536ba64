"""The kernels of the CPU JIT's figures, as values and as text, and what NumPy says that they do.

Imports no more than a program that uses rekernel would: the time of a new process is measured with it.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rekernel import Kernel, Parameter, Slot

STENCIL = """\
extern "C" void stencil(double *__restrict dst, const double *__restrict src, double w, long long ny, long long nx,
                        long long sd, long long ss) {
    @OMP@
    for (long long y = 1; y < ny - 1; ++y)
        for (long long x = 1; x < nx - 1; ++x)
            dst[y * sd + x] = @ROOT@(w * (src[(y - 1) * ss + x] + src[(y + 1) * ss + x] + src[y * ss + x - 1]
                                          + src[y * ss + x + 1]) + @C@ * src[y * ss + x]);
}
"""
FIRST_ONLY = """\
extern "C" void first(double *dst, const double *src, double w, long long ny, long long nx, long long sd,
                      long long ss) {
    if (ny > 0 && nx > 0) dst[(ny - 1) * sd] = w * src[(ny - 1) * ss] + @C@;
}
"""
W = 0.25

#: A constant that no text had before. Its fractions are exact, as are all sums here: results are compared bit for bit.
fresh: Iterator[float] = (n / 1024 for n in itertools.count(int(time.time()) % 100_000 * 1000 + 1))


class WrongResultError(AssertionError):
    """A kernel computed something else than NumPy."""


def text(c: float, *, openmp: bool = False, cmath: bool = False) -> str:
    """Return the 5-point stencil; with `cmath`, of the square root of its square."""
    omp = "#pragma omp parallel for num_threads(2)" if openmp else ""
    return STENCIL.replace("@OMP@", omp).replace("@C@", repr(c)).replace("@ROOT@", "std::fabs" if cmath else "")


def kernel(c: float, *, openmp: bool = False, cmath: bool = False) -> Kernel:
    """Return the stencil as a value."""
    headers = ("<cmath>",) if cmath else ()
    return _value("stencil", text(c, openmp=openmp, cmath=cmath), headers=headers, openmp=openmp)


def small(c: float) -> Kernel:
    """Return a kernel of the same parameters that writes one number: nearly all of its time is the way into it."""
    return _value("first", FIRST_ONLY.replace("@C@", repr(c)))


def _value(name: str, code: str, **options: Any) -> Kernel:
    def array(name: str, written: bool = False) -> Parameter:
        return Parameter(
            name, "array", dtype="float64", ndim=2, shape=("ny", "nx"), strides=(None, 1), written=written,
            restrict=written,
        )  # fmt: skip

    slots = (
        Slot("pointer", "dst"), Slot("pointer", "src"), Slot("scalar", "w"), Slot("shape", "src", 0),
        Slot("shape", "src", 1), Slot("stride", "dst", 0), Slot("stride", "src", 0),
    )  # fmt: skip
    parameters = (array("dst", True), array("src"), Parameter("w", "scalar", dtype="float64"))
    return Kernel(name, parameters, "cpp", code=code, slots=slots, **options)


def arrays(n: int = 64) -> tuple[Any, Any]:
    """Return the output, all zero, and the input, small whole numbers."""
    return np.zeros((n, n)), np.arange(n * n, dtype=np.float64).reshape(n, n) % 97


def expected(src: Any, c: float, w: float = W) -> Any:
    """Return what the stencil gives inside of the border."""
    return w * (src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:]) + c * src[1:-1, 1:-1]


def check(found: Any, wanted: Any) -> None:
    """Compare with NumPy, bit for bit."""
    if not np.array_equal(found, wanted):
        raise WrongResultError(f"got {np.ravel(found)[:3]}..., NumPy has {np.ravel(wanted)[:3]}...")


def by_hand(library: str | os.PathLike[str]) -> Callable[[Any, Any, float], None]:
    """Return the stencil of a shared object that was compiled by hand, called through ctypes."""
    call = ctypes.CDLL(os.fspath(library)).stencil
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, *[ctypes.c_longlong] * 4]
    call.restype = None

    def stencil(dst: Any, src: Any, w: float) -> None:
        call(dst.ctypes.data, src.ctypes.data, w, *src.shape, dst.strides[0] // 8, src.strides[0] // 8)

    return stencil
