"""The texts of the figures of C++ text, and the same kernel for the peers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

POINTERS = """\
void stencil(double *__restrict dst, const double *__restrict src, double w, long long ny, long long nx) {
    for (long long y = 1; y < ny - 1; ++y)
        for (long long x = 1; x < nx - 1; ++x)
            dst[y * nx + x] = @ROOT@(w * (src[(y - 1) * nx + x] + src[(y + 1) * nx + x] + src[y * nx + x - 1]
                                          + src[y * nx + x + 1]) + @C@ * src[y * nx + x]);
}
"""
ARRAYS = """\
void stencil(rekernel::Array<double, 2> dst, rekernel::Array<const double, 2> src, double w) {
    for (int64_t y = 1; y < src.shape(0) - 1; ++y)
        for (int64_t x = 1; x < src.shape(1) - 1; ++x)
            dst(y, x) = w * (src(y - 1, x) + src(y + 1, x) + src(y, x - 1) + src(y, x + 1)) + @C@ * src(y, x);
}
"""
STEP = """
void step@N@(rekernel::Array<double, 2> dst, rekernel::Array<const double, 2> src, double w) {
    for (int64_t y = 1; y < src.shape(0) - 1; ++y)
        for (int64_t x = 1; x < src.shape(1) - 1; ++x) {
            double near = src(y - 1, x) + src(y + 1, x) + src(y, x - 1) + src(y, x + 1);
            double far = src(y - 1, x - 1) + src(y + 1, x + 1);
            double value = w * near + 0.5 * w * far + @C@ * src(y, x);
            if (value > 1.0 + @N@)
                value = 1.0 + @N@;
            dst(y, x) = value;
        }
}
"""


def pointers(c: float, *, cmath: bool = False) -> str:
    """Return the 5-point stencil on raw pointers; with `cmath`, of the square root of its square."""
    text = POINTERS.replace("@C@", repr(c)).replace("@ROOT@", "std::fabs" if cmath else "")
    return "#include <cmath>\n" * cmath + text


def arrays(c: float) -> str:
    """Return the same on `rekernel::Array`."""
    return ARRAYS.replace("@C@", repr(c))


def long_text(c: float) -> str:
    """Return a text of 300 lines: the stencil, and 24 more kernels."""
    text = arrays(c) + "".join(STEP.replace("@N@", str(n)).replace("@C@", repr(c)) for n in range(24))
    return text + "// the end\n" * (300 - text.count("\n"))


def numba_stencil(c: float) -> Callable[..., Any]:
    """Compile the stencil with numba."""
    import numba

    scope: dict[str, Any] = {}
    exec(
        "def stencil(dst, src, w):\n"
        "    for y in range(1, src.shape[0] - 1):\n"
        "        for x in range(1, src.shape[1] - 1):\n"
        f"            dst[y, x] = w * (src[y-1, x] + src[y+1, x] + src[y, x-1] + src[y, x+1]) + {c!r} * src[y, x]\n",
        scope,
    )
    made: Callable[..., Any] = numba.njit(scope["stencil"])
    return made


def cppyy_stencil(c: float, number: int) -> Callable[..., Any]:
    """Compile the stencil with cppyy."""
    import cppyy

    cppyy.cppdef(pointers(c).replace("stencil", f"stencil{number}"))
    function = getattr(cppyy.gbl, f"stencil{number}")
    return lambda dst, src, w: function(dst.ravel(), src.ravel(), w, *src.shape)


def load_inline_stencil(c: float, number: int, directory: str) -> Callable[..., Any]:
    """Compile the stencil with PyTorch's load_inline."""
    import torch
    from torch.utils.cpp_extension import load_inline

    text = pointers(c) + (
        "void run(torch::Tensor dst, torch::Tensor src, double w) {\n"
        "    stencil(dst.data_ptr<double>(), src.data_ptr<double>(), w, src.size(0), src.size(1));\n}\n"
    )
    made = load_inline(f"stencil{number}", text, functions=["run"], build_directory=directory, extra_cflags=["-O3"])
    return lambda dst, src, w: made.run(torch.from_numpy(dst), torch.from_numpy(src), w)


def installed(*names: str) -> bool:
    """Return whether all these packages are here."""
    return all(importlib.util.find_spec(name) is not None for name in names)
