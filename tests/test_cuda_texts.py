"""CUDA texts, good and bad, compiled by NVRTC without a device: signatures, reasons, errors at the user's line."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from rekernel import KernelLoader, KernelSourceError
from rekernel.languages import detect
from rekernel.objcache import ObjectCache

pytest.importorskip("tree_sitter_cpp", reason="CUDA texts need the reader (tree-sitter-cpp) here")
pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CUDA texts need CuPy and NVRTC here")


def _has_nvrtc() -> bool:
    from rekernel import ToolchainError
    from rekernel.cuda import nvrtc

    try:
        nvrtc.api()
    except ToolchainError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_nvrtc(), reason="NVRTC cannot be loaded here")


class Jit:
    """What a loader needs of a JIT for CUDA: a cache."""

    def __init__(self, directory: Path | None = None) -> None:
        self.objcache = ObjectCache(directory)


def load(text: str, loader: KernelLoader | None = None, **options: Any) -> Any:
    """Load a text for an H100, and return what was built."""
    loader = KernelLoader(jit=Jit()) if loader is None else loader  # one without kernels is false
    loader.load(textwrap.dedent(text), "m", language="cuda", **{"arch": "sm_90", **options})
    edition = loader._lives["m"].current
    assert edition is not None
    return edition.built


def signatures(text: str, **options: Any) -> list[str]:
    return [str(kernel) for kernel in load(text, **options).kernels]


GOOD = {
    "pointers": ("__global__ void k(float *x, const double *y) {}", ["k(x: float32*, y: const float64*)"]),
    "scalars": (
        "__global__ void k(bool a, int b, unsigned c, long long d, float e, double f, int64_t g, uint8_t h, size_t i) {}",
        ["k(a: bool, b: int32, c: uint32, d: int64, e: float32, f: float64, g: int64, h: uint8, i: uint64)"],
    ),
    "array": (
        "__global__ void k(rekernel::Array<float, 2> x, rekernel::Array<const int, 1> y) {}",
        ["k(x: float32[:, :], y: const int32[:])"],
    ),
    "array of no axes": ("__global__ void k(rekernel::Array<float, 0> x) { x() = 1; }", ["k(x: float32[])"]),
    "fixed extents": ("__global__ void k(float (*x)[3][4], int y[7]) {}", ["k(x: float32[:, 3, 4], y: int32*)"]),
    "extern C": ('extern "C" __global__ void k(float *x) {}', ["k(x: float32*)"]),
    "extern C block": ('extern "C" {\n__global__ void k(float *x) {}\n}', ["k(x: float32*)"]),
    "static": ("static __global__ void k(float *x) {}", ["k(x: float32*)"]),
    "word in the middle": ("void __global__ k(float *x) {}", ["k(x: float32*)"]),
    "launch bounds": ("__global__ void __launch_bounds__(128, 2) k(float *x) {}", ["k(x: float32*)"]),
    "launch bounds first": ("__launch_bounds__(2 * (32 + 32)) __global__ void k(float *x) {}", ["k(x: float32*)"]),
    "over lines": ("__global__\nvoid\nk(float *x,\n  int n)\n{\n}", ["k(x: float32*, n: int32)"]),
    "grid constant": ("__global__ void k(const __grid_constant__ int n) {}", ["k(n: int32)"]),
    "namespace": ("namespace a { namespace b { __global__ void k(int *x) {} } }", ["k(x: int32*)"]),
    "nested namespace": ("namespace a::b { __global__ void k(int *x) {} }", ["k(x: int32*)"]),
    "template": (
        "template <class T> __global__ void k(T *x, int n) {}\n"
        "template __global__ void k<float>(float *, int);\ntemplate __global__ void k<double>(double *, int);",
        ["k(x: float32*, n: int32)", "k(x: float64*, n: int32)"],
    ),
    "specialised template": (
        "template <class T> __global__ void k(T *x) {}\ntemplate <> __global__ void k<int>(int *x) { x[0] = 1; }",
        ["k(x: int32*)"],
    ),
    "overloads": ("__global__ void k(int *x) {}\n__global__ void k(float *x) {}", ["k(x: int32*)", "k(x: float32*)"]),
    "declared before": ("__global__ void k(int *x);\n__global__ void k(int *x) {}", ["k(x: int32*)"]),
    "device functions": (
        "__device__ float f(float x) { return x; }\n__host__ __device__ inline int g() { return 1; }\n"
        "int h() { return 2; }\ntemplate <class T> __device__ T q(T x) { return x; }\n"
        "template __device__ float q<float>(float);\n__global__ void k(float *x) { x[0] = f(1) + g() + h() + q(2.f); }",
        ["k(x: float32*)"],
    ),
    "macro of words": ("#define KERNEL __global__ void\nKERNEL k(float *x) {}", ["k(x: float32*)"]),
    "macro of kernels": (
        "#define MAKE(name, type) __global__ void name(type *x) { x[0] = 1; }\nMAKE(a, int)\nMAKE(b, float)",
        ["a(x: int32*)", "b(x: float32*)"],
    ),
    "left out": (
        "#ifdef FAST\n__global__ void a(float *x) {}\n#else\n__global__ void b(float *x) {}\n#endif", ["b(x: float32*)"]
    ),
    "comments": ("// __global__ void no(int) {}\n/* __global__ void no2() {} */ __global__ void k() {}", ["k()"]),
    "backslash at the end": ("__global__ void k(float *x) {}\n// \\", ["k(x: float32*)"]),
    "macros like our names": (
        "#define number 3\n#define part 4\n#define T 5\n#define x_ 6\n__global__ void k(float *y) {}", ["k(y: float32*)"]
    ),
    "alias of a type": ("using real = double;\ntypedef real *out;\n__global__ void k(out x, real s) {}",
                        ["k(x: float64*, s: float64)"]),
    "shared memory": (
        "__global__ void k(float *x) { extern __shared__ float s[]; __shared__ int t[32]; s[threadIdx.x] = x[0];\n"
        "t[0] = 1; __syncthreads(); x[1] = s[0] + t[0]; }", ["k(x: float32*)"],
    ),
    "standard headers": (
        "#include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include <cassert>\n#include <math.h>\n"
        '__global__ void k(std::int32_t *x) { assert(x); x[0] = std::sqrt(2.0) + M_PI; printf("%d", x[0]); }',
        ["k(x: int32*)"],
    ),
    "our header": ("#include <rekernel/array.hpp>\n__global__ void k(rekernel::Array<int, 1> x) {}", ["k(x: int32[:])"]),
    "textures": ("__global__ void k(float *x, unsigned long long t) { x[0] = tex2D<float>(t, 1.f, 2.f); }",
                 ["k(x: float32*, t: uint64)"]),
    "atomics": ("__global__ void k(int *x) { atomicAdd(x, 1); __threadfence(); x[1] = __shfl_sync(~0u, x[0], 0); }",
                ["k(x: int32*)"]),
    "default argument": ("__global__ void k(int *x, int n = 3) {}", ["k(x: int32*, n: int32)"]),
    "no name": ("__global__ void k(int *, float) {}", ["k(arg0: int32*, arg1: float32)"]),
    "windows lines": ("__global__ void k(int *x)\r\n{\r\n}\r\n", ["k(x: int32*)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_nvrtc_says_what_a_kernel_takes(name: str) -> None:
    text, expected = GOOD[name]
    assert signatures(text) == expected


REFUSED = {
    "struct": ("struct S { int a; };\n__global__ void k(S s) {}", "a class or struct cannot be passed"),
    "vector": ("__global__ void k(float4 *v) {}", r"take a float\* and use reinterpret_cast<float4 \*> in the kernel"),
    "reference": ("__global__ void k(const int &n) {}", "takes no references: pass it by value"),
    "pointer to pointer": ("__global__ void k(float **x) {}", "pointers to pointers"),
    "void pointer": ("__global__ void k(void *x) {}", r"void\* does not say what it points to"),
    "template": ("template <int N> __global__ void k(int *x) {}", r"template __global__ void k<float>"),
    "enumeration": ("enum E { a };\n__global__ void k(E e) {}", "an enumeration cannot be passed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_kernel_that_cannot_be_called_says_why(name: str) -> None:
    text, reason = REFUSED[name]
    built = load(text + "\n__global__ void other() {}")
    assert [kernel.name for kernel in built.kernels] == ["other"]
    assert len(built.skipped) == 1
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(built.skipped["k"])


BAD = {
    "unknown name": ("\n__global__ void k(float *x) {\n  x[0] = y;\n}", 3, 'identifier "y" is undefined'),
    "missing semicolon": ("__global__ void k(float *x) {\n  x[0] = 1\n}", 3, 'expected a ";"'),
    "returns": ("\n\n__global__ int k() { return 1; }", 3, "must have a void return type"),
    "host header": ("\n#include <vector>\n__global__ void k() {}", 2, "<vector> is a header of the host"),
    "complex": ("#include <complex>\n__global__ void k() {}", 1, "<cuda/std/complex>"),
    "own header": ('#include "nowhere.h"\n__global__ void k() {}', 1, "there is no header nowhere.h"),
    "host code": ("__global__ void k(float *x) {}\nint main() { cudaMalloc(0, 1); }", 2, "Python has the memory"),
    "launch": ("__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n}", 3, "Python has the memory"),
    "rank": ("__global__ void k(rekernel::Array<float, 2> x) {\n  x(1) = 2;\n}", 2, "no instance of function"),
    "bracket": ("__global__ void k(rekernel::Array<float, 2> x) {\n  x[1] = 2;\n}", 2, r"no operator \"\[\]\""),
    "const": ("__global__ void k(rekernel::Array<const float, 1> x) {\n  x(1) = 2;\n}", 2, "modifiable lvalue"),
    "nowhere defined": ("__device__ int f(int);\n__global__ void k(int *x) { x[0] = f(3); }", 1, "f is declared and nowhere"),
    "in a template": (
        "template <class T> __global__ void k(T *x) {\n  x.foo();\n}\ntemplate __global__ void k<int>(int *);", 2,
        "must have class type",
    ),
    "error directive": ("__global__ void k() {}\n#error not so", 2, "not so"),
    "member": ("struct S {\n  __global__ static void k(float *x) {}\n};", 2, "member function"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_an_error_is_at_the_line_of_the_user(name: str) -> None:
    text, line, message = BAD[name]
    with pytest.raises(KernelSourceError, match=message) as caught:
        load(text, filename="my.cu", first_line=11)
    assert caught.value.line == line + 10
    assert caught.value.filename == "my.cu"


@pytest.mark.parametrize("text", ["__global__ void k(float *x) { x[0] = 1;", "__global__ void k(float *x) { /* "])
def test_a_text_that_ends_too_soon_is_an_error(text: str) -> None:
    with pytest.raises(KernelSourceError, match=r"end of the text|comment|expected"):
        load(text)


def test_too_much_shared_memory_says_how_to_get_more() -> None:
    text = (
        "__global__ void k(double *x) { __shared__ double q[9999]; q[threadIdx.x] = x[0]; x[1] = q[threadIdx.x + 1]; }"
    )
    with pytest.raises(KernelSourceError, match=r"k.* uses too much shared data.*fourth value in the brackets"):
        load(text)


def test_an_error_in_a_header_is_shown_at_its_include(tmp_path: Path) -> None:
    (tmp_path / "mine.cuh").write_text("#pragma once\n__device__ int f() { return nothing; }\n")
    with pytest.raises(KernelSourceError, match=r'in mine\.cuh:2: identifier "nothing" is undefined') as caught:
        load('\n#include "mine.cuh"\n__global__ void k(int *x) { x[0] = f(); }', include_dirs=[tmp_path])
    assert caught.value.line == 2


def test_a_name_that_only_python_has_is_an_error_with_the_ways_to_give_it() -> None:
    text = "__global__ void k(float *x) { x[0] = gravity; }"
    ways = r'"gravity" is undefined; the text takes no names from Python: pass gravity as an argument, or write it .*'
    with pytest.raises(KernelSourceError, match=ways + r"constexpr double gravity = 9\.81;"):
        load(text, namespace={"gravity": 9.81})
    load(f"constexpr double gravity = 9.81; {text}")


def test_a_changed_header_is_compiled_again(tmp_path: Path) -> None:
    header, loader = tmp_path / "mine.cuh", KernelLoader(jit=Jit(tmp_path / "cache"))
    text = '#include "mine.cuh"\n__global__ void k(real *x) {}'
    seen = []
    for name in ("float", "double", "float"):
        header.write_text(f"typedef {name} real;\n")
        seen.append(str(load(text, loader, include_dirs=[tmp_path]).kernels[0]))
    assert seen == ["k(x: float32*)", "k(x: float64*)", "k(x: float32*)"]


def test_variables_of_a_device_are_shown_with_type_and_shape() -> None:
    built = load(
        """
        __constant__ float w[3][4], s;
        namespace a { __device__ unsigned counter = 3; }
        __device__ const int fixed = 3;
        __device__ float helper(float x) { return x; }
        __global__ void k(float *x) { x[0] = w[1][2] + s + a::counter + fixed; }
        """
    )
    assert {name: (str(v.dtype), v.shape) for name, v in built.names.items()} == {
        "w": ("float32", (3, 4)), "s": ("float32", ()), "counter": ("uint32", ())
    }  # fmt: skip


def test_names_in_the_module_are_those_of_nvrtc() -> None:
    built = load(
        """
        extern "C" __global__ void plain(int *x) {}
        namespace a { template <class T> __global__ void t(T *x) {} }
        template __global__ void a::t<float>(float *);
        """
    )
    assert [entry.symbol for entry in built.private.entries] == ["plain", "_ZN1a1tIfEEvPT_"]


def test_an_array_is_one_parameter_and_all_else_is_one_each() -> None:
    from rekernel.languages.cuda.signature import arguments

    text = "__global__ void k(float *x, rekernel::Array<int, 2> y, int n, rekernel::Array<int, 0> z) {}"
    assert arguments(load(text).kernels[0]) == (1, 5, 1, 1)


def test_overlap_is_promised_by_restrict_and_not_with_allow_alias() -> None:
    text = "__global__ void k(float *__restrict__ x, rekernel::RestrictArray<const float, 1> y) {}"
    assert [p.restrict for p in load(text).kernels[0].parameters] == [True, True]


def test_complex_and_half_numbers_of_cuda_are_those_of_numpy() -> None:
    text = """
    namespace thrust { template <class T> struct complex { T re, im; }; }
    template <class T> struct complex { T re, im; };
    struct __half { unsigned short bits; };
    __global__ void k(thrust::complex<float> *x, thrust::complex<double> y, __half *h) {}
    __global__ void mine(complex<float> *x) {}
    """
    built = load(text)
    assert [str(kernel) for kernel in built.kernels] == ["k(x: complex64*, y: complex128, h: float16*)"]
    assert "a class or struct" in built.skipped["mine"]


@pytest.mark.parametrize("flags", ["-DN=8 -std=c++20", ["-DN=8", "--std=c++20"]])
def test_flags_go_to_nvrtc(flags: Any) -> None:
    text = "static_assert(N == 8 && __cplusplus >= 202002L);\n__global__ void k(int *x) {}"
    assert signatures(text, flags=flags) == ["k(x: int32*)"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"arch": 90}, TypeError, "arch= takes a text"),
        ({"arch": "90"}, ValueError, "arch= takes a text such as 'sm_90', not '90'"),
        ({"arch": "sm_10"}, KernelSourceError, "invalid value for --gpu-architecture"),
        ({"flags": "-arch=sm_80"}, ValueError, "the architecture is that of the device"),
        ({"flags": "--nonsense"}, KernelSourceError, "unrecognized option --nonsense"),
        ({"debug": 1}, TypeError, "debug= takes True, False or None"),
        ({"include_dirs": "/nowhere/at/all"}, ValueError, "which is no directory"),
        ({"optlevel": 3}, TypeError, "unknown option 'optlevel'"),
    ],
)
def test_a_wrong_option_names_itself(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load("__global__ void k(int *x) {}", **options)


@pytest.mark.parametrize("debug", [False, True])
def test_checks_are_compiled_in_with_debug_alone(debug: bool, tmp_path: Path) -> None:
    text = "#include <cassert>\n__global__ void k(rekernel::Array<float, 2> x) { assert(x.size() > 0); x(0, threadIdx.x) = 1; }"
    loader = KernelLoader(jit=Jit(tmp_path))
    built = load(text, loader, debug=debug)
    entry = loader.jit.objcache.lookup(built.private.key, lambda _: None)
    assert (b"rekernel_failed" in entry.data) == debug
    assert (b"x.size() > 0" in entry.data) == debug


def test_the_second_process_finds_the_cubin(tmp_path: Path) -> None:
    text = "__constant__ int c[3];\n__global__ void k(rekernel::Array<float, 2> x) { x(0, 0) = c[1]; }"
    first, second = (load(text, KernelLoader(jit=Jit(tmp_path))) for _ in range(2))
    assert (first.from_cache, second.from_cache) == (False, True)
    assert first.kernels == second.kernels
    assert repr(first.names) == repr(second.names)


@pytest.mark.parametrize("change", [{"arch": "sm_80"}, {"flags": "-DX"}, {"debug": True}, {"allow_alias": True}])
def test_what_changes_the_cubin_changes_the_key(change: dict[str, Any]) -> None:
    text = "__global__ void k(float *x) {}"
    assert load(text).private.key != load(text, **change).private.key


def test_a_failed_text_changes_nothing() -> None:
    loader = KernelLoader(jit=Jit())
    load("__global__ void k(float *x) {}", loader)
    with pytest.raises(KernelSourceError, match=r"keeps running|v1"):
        load("__global__ void k(float *x) { nonsense; }", loader)
    assert loader["m"].k.version == 1


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("__global__ void k(float *x) {}", "cuda"),
        ('extern "C" __global__ void k(float *x) {}\n', "cuda"),
        ("#include <cmath>\n// for __global__ code\nvoid f(double *x) { x[0] = 1; }\n", "cpp"),
    ],
)
def test_cuda_is_told_by_its_word_outside_of_comments(text: str, language: str) -> None:
    assert detect(text).name == language


@pytest.mark.parametrize("name", ["a.cu", "b.cuh", "C.CU"])
def test_cuda_is_told_by_its_suffix(name: str) -> None:
    assert detect("void f() {}", name).name == "cuda"
