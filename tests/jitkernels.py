"""Kernels that the tests of the CPU JIT share: values, and what NumPy says that they do."""

from __future__ import annotations

import functools
import os
from dataclasses import replace

import numpy as np
import pytest

from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.errors import ToolchainError
from rekernel.kernel import Kernel, Parameter, Slot
from rekernel.probe import probe
from rekernel.toolchain import openmp_works


def array(name: str, dtype: str | None = "float64", ndim: int | None = 1, **options: object) -> Parameter:
    return Parameter(name, "array", dtype=dtype, ndim=ndim, **options)  # type: ignore[arg-type]


def scalar(name: str, dtype: str = "float64") -> Parameter:
    return Parameter(name, "scalar", dtype=dtype)


def pointer(name: str, field: str = "") -> Slot:
    return Slot("pointer", name, field=field)


def extent(name: str, axis: int = 0, dtype: str = "int64") -> Slot:
    return Slot("shape", name, axis, dtype)


def stride(name: str, axis: int = 0, dtype: str = "int64") -> Slot:
    return Slot("stride", name, axis, dtype)


def value(name: str) -> Slot:
    return Slot("scalar", name)


AXPY = Kernel(
    "axpy", (array("y", shape=("n",), written=True), array("x", shape=("n",)), scalar("a")), "cpp",
    code="void axpy(double *y, const double *x, double a, long long n) {\n"
         "    for (long long i = 0; i < n; ++i) y[i] += a * x[i];\n}\n",
    slots=(pointer("y"), pointer("x"), value("a"), extent("y")), doc="y += a * x, \"in place\"\\.",
)  # fmt: skip

JACOBI = Kernel(
    "heat.jacobi",
    (array("dst", ndim=2, shape=("ny", "nx"), written=True, restrict=True), array("src", ndim=2, shape=("ny", "nx"))),
    "cpp", function="jacobi",
    code="""#include <stdint.h>
static inline double mean(double a, double b, double c, double d) { return 0.25 * (a + b + c + d); }
void jacobi(double *dst, const double *src, int64_t ny, int64_t nx,
            int64_t dy, int64_t dx, int64_t sy, int64_t sx) {
    for (int64_t y = 1; y < ny - 1; ++y)
        for (int64_t x = 1; x < nx - 1; ++x)
            dst[y * dy + x * dx] = mean(src[(y - 1) * sy + x * sx], src[(y + 1) * sy + x * sx],
                                        src[y * sy + (x - 1) * sx], src[y * sy + (x + 1) * sx]);
}
""",
    slots=(pointer("dst"), pointer("src"), extent("src", 0), extent("src", 1), stride("dst", 0), stride("dst", 1),
           stride("src", 0), stride("src", 1)),
)  # fmt: skip

TOTAL = Kernel(
    "total", (array("x", "float32", ndim=None),), "cpp", returns="float64",
    code="double total(const float *x) { double sum = 0; for (int i = 0; i < 4; ++i) sum += x[i]; return sum; }",
    slots=(pointer("x"),),
)  # fmt: skip
"""Takes an array of any rank with at least four elements."""

ROTATE = Kernel(
    "rotate", (array("z", "complex64", written=True), scalar("w", "complex128")), "cpp", returns="complex64",
    code="""#include <complex>
std::complex<float> rotate(std::complex<float> *z, std::complex<double> w, int n) {
    std::complex<float> sum = 0;
    for (int i = 0; i < n; ++i) sum += z[i] *= std::complex<float>(w);
    return sum;
}
""",
    slots=(pointer("z"), value("w"), extent("z", 0, "int32")),
)  # fmt: skip

PARTICLE = np.dtype([("id", "i4"), ("mass", "f8"), ("when", "M8[s]"), ("charge", "i1")], align=True)
KICK = Kernel(
    "kick",
    (array("p", None, written=True, itemsize=PARTICLE.itemsize, fields=tuple(
        (name, PARTICLE.fields[name][0].name, PARTICLE.fields[name][1]) for name in ("mass", "charge"))),),
    "cpp",
    code="void kick(double *mass, const signed char *charge, long long n, long long step) {\n"
         f"    for (long long i = 0; i < n; ++i) mass[i * step * {PARTICLE.itemsize // 8}] += charge[i * step * "
         f"{PARTICLE.itemsize}];\n}}\n",
    slots=(pointer("p", "mass"), pointer("p", "charge"), extent("p"), stride("p")),
)  # fmt: skip
"""Records, one field of which is of a type that no buffer can tell."""

COUNT = Kernel(
    "count", (array("out", "int64", ndim=0, written=True), array("mask", "bool", ndim=2, order="C", trailing=1,
                                                                 shape=(None, 1))), "cpp",
    code="void count(long long *out, const bool *mask, unsigned n) { for (unsigned i = 0; i < n; ++i) *out += mask[i]; }",
    slots=(pointer("out"), pointer("mask"), extent("mask", 0, "uint32")),
)  # fmt: skip

THREADS = Kernel(
    "threads", (array("x", "int32", written=True, order="C"),), "cpp", openmp=True, returns="int32",
    code="""#include <omp.h>
int threads(int *x, long long n) {
    int most = 0;
    #pragma omp parallel for reduction(max : most)
    for (long long i = 0; i < n; ++i) { x[i] += 1; most = omp_get_num_threads(); }
    return most;
}
""",
    slots=(pointer("x"), extent("x")),
)  # fmt: skip

WAVE = Kernel(
    "wave", (array("x", written=True), scalar("k", "float32")), "cpp", headers=("<cmath>",),
    code="void wave(double *x, float k, long long n, long long s) {\n"
         "    for (long long i = 0; i < n; ++i) x[i * s] = std::sin(double(k) * x[i * s]);\n}\n",
    slots=(pointer("x"), value("k"), extent("x"), stride("x")),
)  # fmt: skip

THROWS = Kernel(
    "throws", (scalar("how", "int32"),), "cpp", returns="int32",
    code="""#include <stdexcept>
#include <string>
#include <vector>
struct Odd {};
int throws(int how) {
    std::vector<int> some(10);
    try { some.at(99); } catch (const std::out_of_range &) { ++how; }
    if (how == 1) throw std::runtime_error("too " + std::string("hot: \\xc3\\xbc"));
    if (how == 2) throw "just text";
    if (how == 3) throw Odd();
    return how;
}
""",
    slots=(value("how"),),
)  # fmt: skip

STATE = Kernel(
    "state", (), "cpp", returns="int64",
    code="""#include <vector>
template <class T> struct Counted { static inline std::vector<T> all; };
inline int &number() { static int n = FIRST; return n; }
static thread_local long per_thread = 0;
long long state() {
    Counted<int>::all.push_back(1);
    ++per_thread;
    return number()++ * 1000000LL + (long long)Counted<int>::all.size() * 1000 + per_thread;
}
""",
)  # fmt: skip
"""State of all kinds that unloading has to take away; FIRST is to be defined."""


def state(first: int) -> Kernel:
    return replace(STATE, code=f"#define FIRST {first}\n{STATE.code}")


def constant(number: int, name: str = "constant", **options: object) -> Kernel:
    """A kernel that returns a number."""
    return Kernel(name, (), "cpp", code=f"int {name}() {{ return {number}; }}\n", returns="int32", **options)  # type: ignore[arg-type]


ECHO_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned", "uint64": "unsigned long long",
    "float16": "unsigned short", "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip


def echo(dtype: str) -> Kernel:
    """Return the kernel that gives a scalar of a type back."""
    kind = ECHO_TYPES[dtype]
    return Kernel(
        f"echo_{dtype}", (scalar("x", dtype),), "cpp", code=f"{kind} echo_{dtype}({kind} x) {{ return x; }}\n",
        returns=dtype, slots=(value("x"),),
    )  # fmt: skip


ECHOES = tuple(map(echo, ECHO_TYPES))
PLAIN = (AXPY, JACOBI, TOTAL, ROTATE, KICK, COUNT, WAVE, THROWS, state(1), *ECHOES)
"""All that need nothing but a compiler."""


def jacobi(src: np.ndarray) -> np.ndarray:
    """What JACOBI writes inside of the border."""
    return 0.25 * (src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:])


@functools.cache
def compilers() -> list[CompilerInfo]:
    """Return the compilers that are here and work."""
    found = []
    for info in (GccInfo(), ClangInfo()):
        try:
            probe(info)
        except ToolchainError:
            continue
        found.append(info)
    return found


def each_compiler(test):
    """Run a test with each compiler; `info` is its own to change."""

    @functools.wraps(test)
    def fresh(*args, info, **more):
        return test(*args, info=info.copy(), **more)

    return pytest.mark.parametrize("info", compilers(), ids=lambda info: info.command)(fresh)


needs_compiler = pytest.mark.skipif(not compilers(), reason="there is no C++ compiler")


def needs_openmp(info: CompilerInfo) -> None:
    """Skip the test where a compiler has no OpenMP."""
    if not openmp_works(probe(info)):
        pytest.skip(f"{info.command} has no OpenMP")


def without_compilers(directory: os.PathLike[str] | str) -> dict[str, str]:
    """Return an environment in which there is no compiler."""
    return {"PATH": str(directory), "CXX": "", "REKERNEL_CXX": ""}
