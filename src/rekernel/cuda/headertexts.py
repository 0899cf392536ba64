"""Headers that NVRTC lacks, as short texts: what device code can use of the C and C++ headers of a host. Pure.

NVRTC has the mathematical functions, ``printf``, ``assert`` and CUDA's own types without any header, but texts that are
compiled by nvcc, too, include the usual ones. Headers that are not here are those of CUDA itself (``cuda_fp16.h``,
``cuda/std/complex``, ``cub/cub.cuh``), which are looked for on the disk, and those that a device cannot have
(``<iostream>``, ``<thread>``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ["HEADERS", "instead_of"]

_ONCE = "#pragma once\n"
_INTEGER_MACROS = """
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define INT8_MIN (-INT8_MAX - 1)
#define INT16_MIN (-INT16_MAX - 1)
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX UINT64_MAX
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define INT32_C(c) c
#define UINT32_C(c) c##U
#define INT64_C(c) c##LL
#define UINT64_C(c) c##ULL
"""
_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
#define LONG_MAX static_cast<long>(~0UL >> 1)
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (~0UL)
"""
_FLOATS = """
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN 1.17549435e-38f
#define FLT_MAX 3.40282347e+38f
#define FLT_EPSILON 1.19209290e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATH = """
#define NAN (__int_as_float(0x7fffffff))
#define INFINITY (__int_as_float(0x7f800000))
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000LL))
#define HUGE_VALF INFINITY
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
"""
_ALGORITHM = """
namespace std {
template <class T> __host__ __device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class T> __host__ __device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T> __host__ __device__ constexpr const T &clamp(const T &x, const T &low, const T &high) {
    return x < low ? low : high < x ? high : x;
}
template <class T> __host__ __device__ void swap(T &a, T &b) {
    T c = static_cast<T &&>(a);
    a = static_cast<T &&>(b);
    b = static_cast<T &&>(c);
}
}
"""


def _words(text: str) -> list[str]:
    return text.split()


_OF_ONE = _words(
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor lgamma log log10 log1p log2 "
    "nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_OF_TWO = _words("atan2 copysign fmax fmin fmod hypot pow")
_OTHERS = _words(
    "abs fabs fdim fma frexp ilogb isfinite isinf isnan ldexp llrint llround logb lrint lround modf nan nextafter "
    "remainder remquo scalbln scalbn signbit"
)
_SIZES = {8: "char", 16: "short", 32: "int", 64: "long long"}
_WORDS = ("", "_least", "_fast")


def _definitions(text: str) -> str:
    """Return definitions that give way to those of CUDA's own headers, which may be read before."""
    return _ONCE + re.sub(r"^#define (\w+)(.*)$", r"#ifndef \1\n#define \1\2\n#endif", text.strip(), flags=re.M) + "\n"


def _integers() -> str:
    # int64_t is long long, as in <cuda/std/cstdint>: a text may include both.
    lines = [
        f"typedef signed {kind} int{word}{bits}_t; typedef unsigned {kind} uint{word}{bits}_t;\n"
        for bits, kind in _SIZES.items()
        for word in _WORDS
    ]
    lines += [f"typedef {u}int64_t {u}int{word}_t;\n" for word in ("max", "ptr") for u in ("", "u")]
    return "".join(lines)


def _in_std(header: str, names: Iterable[str], more: str = "") -> str:
    usings = "".join(f"using ::{name};\n" for name in names)
    return f"{_ONCE}#include <{header}>\nnamespace std {{\n{usings}{more}}}\n"


def _of_integers() -> str:
    """Return overloads for integers, which C++ has: without them ``std::sqrt(2)`` is ambiguous."""
    kinds = [
        f"{sign}{kind}" for kind in ("char", "short", "int", "long", "long long") for sign in ("signed ", "unsigned ")
    ]
    kind = "template <class T> struct __rekernel_real {};\n" + "".join(
        f"template <> struct __rekernel_real<{name}> {{ typedef double type; }};\n" for name in ("bool", "char", *kinds)
    )
    start = "__host__ __device__ typename __rekernel_real<T>::type"
    ones = "".join(f"template <class T> {start} {name}(T x) {{ return ::{name}(double(x)); }}\n" for name in _OF_ONE)
    twos = "".join(
        f"template <class T> {start} {name}(T x, T y) {{ return ::{name}(double(x), double(y)); }}\n"
        for name in _OF_TWO
    )
    return kind + ones + twos


HEADERS: Mapping[str, str] = {
    "stdint.h": _definitions(_INTEGER_MACROS) + _integers(),
    "cstdint": _in_std(
        "stdint.h",
        [f"{u}int{word}{bits}_t" for u in ("", "u") for word in _WORDS for bits in _SIZES]
        + ["intmax_t", "uintmax_t", "intptr_t", "uintptr_t"],
    ),
    "stddef.h": _ONCE,
    "cstddef": _in_std("stddef.h", ["size_t", "ptrdiff_t"], "typedef decltype(nullptr) nullptr_t;\n"),
    "math.h": _definitions(_MATH),
    "cmath": _in_std("math.h", [*_OF_ONE, *_OF_TWO, *_OTHERS], _of_integers()),
    "stdio.h": _ONCE,
    "cstdio": _in_std("stdio.h", ["printf"]),
    "assert.h": _ONCE,
    "cassert": _ONCE,
    "stdlib.h": _ONCE,
    "cstdlib": _in_std("stdlib.h", ["malloc", "free", "abs", "labs", "llabs"]),
    "string.h": _ONCE,
    "cstring": _in_std("string.h", ["memcpy", "memset"]),
    "limits.h": _definitions(_LIMITS),
    "climits": f"{_ONCE}#include <limits.h>\n",
    "float.h": _definitions(_FLOATS),
    "cfloat": f"{_ONCE}#include <float.h>\n",
    "algorithm": _ONCE + _ALGORITHM,
    "cuda.h": _ONCE,
    "cuda_runtime.h": _ONCE,
    "cuda_runtime_api.h": _ONCE,
    "device_launch_parameters.h": _ONCE,
}
"""The headers, by the name in their ``#include``."""

_IN_CUDA_STD = _words(
    "array atomic bit chrono complex concepts expected functional initializer_list iterator limits mdspan numbers "
    "numeric optional ratio span tuple type_traits utility variant version"
)
_HOST = _words(
    "deque exception filesystem fstream future iomanip iosfwd iostream istream list map memory mutex new ostream queue "
    "random regex set sstream stack stdexcept string string_view system_error thread unordered_map unordered_set "
    "vector unistd.h omp.h immintrin.h x86intrin.h"
)
_OF_CUDA = re.compile(r"cuda|cub/|thrust/|nv/|cooperative_groups|mma\.h|vector_types|math_constants|cuComplex")


def instead_of(header: str) -> str | None:
    """Return what to do about a header that is not found, or None where nothing is known of it.

    >>> instead_of("complex")
    'device code has it as <cuda/std/complex> and cuda::std'
    """
    if header in _IN_CUDA_STD:
        return f"device code has it as <cuda/std/{header}> and cuda::std"
    if header in _HOST:
        return f"<{header}> is a header of the host; device code cannot use it"
    if _OF_CUDA.match(header):
        return "CUDA's headers come with NVRTC 13.3 or later, or with the CUDA toolkit (set CUDA_PATH)"
    if header.startswith("curand"):
        return "it is part of the CUDA toolkit (set CUDA_PATH)"
    return None
