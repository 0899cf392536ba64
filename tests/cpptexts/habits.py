"""What people write without thinking: the standard library, OpenMP, restrict, statics, exceptions."""

from __future__ import annotations

from cpptexts import text

ROWS = (
    text(
        "sqrtf of a float array",
        "#include <math.h>\nvoid roots(float* x, int n) {\n  for (int i = 0; i < n; i++)\n    x[i] = sqrtf(x[i]);\n}\n",
        "roots(x: float32*, n: int32)",
        calls=(("written(roots, np.array([4, 9], 'f4'), 2)", [2, 3]),),
    ),
    text(
        "std::sqrt, std::abs and std::pow after <cmath>",
        "#include <cmath>\ndouble f(double x) { return std::sqrt(x) + std::abs(-x) + std::pow(x, 2) + M_PI; }",
        "f(x: float64) -> float64",
        calls=(("abs(f(4) - 22 - np.pi) < 1e-12", True),),
    ),
    text(
        "std::min, std::max, std::swap, std::sort",
        "#include <algorithm>\nint f(int a, int b) { return std::max(std::min(a, b), 3); }\n"
        "void sorted(double* x, int n) { std::sort(x, x + n, [](double a, double b) { return a > b; }); }",
        "f(a: int32, b: int32) -> int32",
        "sorted(x: float64*, n: int32)",
        calls=(("f(9, 5)", 5), ("written(sorted, np.array([1., 3, 2]), 3)", [3, 2, 1])),
    ),
    text(
        "using namespace std with names like std's",
        "#include <algorithm>\n#include <cmath>\nusing namespace std;\nint count(int n) { return max(n, 2); }\n"
        "double distance(double a, double b) { return fabs(a - b); }",
        "count(n: int32) -> int32",
        "distance(a: float64, b: float64) -> float64",
        calls=(("count(1)", 2), ("distance(1, 3)", 2.0)),
    ),
    text(
        "names of <cmath> for one's own functions",
        "#include <cmath>\ndouble norm(double x) { return std::fabs(x); }\nfloat abs(float* x) { return x[0]; }\n"
        "double exp(double a, double b) { return a + b; }",
        "norm(x: float64) -> float64",
        "abs(x: float32*) -> float32",
        "exp(a: float64, b: float64) -> float64",
        calls=(("norm(-1)", 1.0), ("abs(np.ones(1, 'f4'))", 1.0), ("exp(1, 2)", 3.0)),
    ),
    text(
        "std::array, std::vector, std::string inside",
        "#include <array>\n#include <vector>\n#include <string>\n#include <numeric>\ndouble f(const double* x, int n) {\n"
        '  std::array<double, 3> a{{1, 2, 3}};\n  std::vector<double> v(x, x + n);\n  std::string s("abc");\n'
        "  return std::accumulate(v.begin(), v.end(), a[1]) + s.size();\n}",
        "f(x: const float64*, n: int32) -> float64",
        calls=(("f(np.arange(4.), 4)", 11.0),),
    ),
    text(
        "lambdas, auto, range for, structured bindings",
        "#include <utility>\nint f(int n) {\n  auto add = [&](auto a) { return a + n; };\n  int sum = 0, list[] = {1, 2, 3};\n"
        "  for (auto v : list) sum += add(v);\n  auto [a, b] = std::pair<int, int>{4, 5};\n  if (int c = a; c > 0) sum += b;\n"
        "  return sum;\n}",
        "f(n: int32) -> int32",
        calls=(("f(10)", 41),),
    ),
    text(
        "constexpr tables and if constexpr",
        "constexpr int N = 4;\nconstexpr double W[N] = {1, 2, 3, 4};\nconstexpr int square(int n) { return n * n; }\n"
        "template <int n> static int pick() { if constexpr (n > 3) return n; else return 0; }\n"
        'double f(double x) { static_assert(square(2) == 4, ""); return W[N - 1] * x + pick<5>(); }',
        "f(x: float64) -> float64",
        calls=(("f(2)", 13.0),),
    ),
    text(
        "restrict spelled three ways",
        "void a(double* restrict y, const double* restrict x) { y[0] = x[0]; }\n"
        "void b(double* __restrict y, const double* __restrict__ x) { y[0] = x[0]; }\n"
        "void c(double *__restrict__ const y, double const* x) { y[0] = x[0]; }\n"
        "void d(double* y, const double* x) { y[0] = x[0]; }",
        *(f"{name}(y: float64*, x: const float64*)" for name in "abcd"),
        calls=(
            *((f"written({name}, np.zeros(1), np.ones(1))", [1]) for name in "abcd"),
            ("(lambda x: a(x, x))(np.ones(1))", ValueError("x")),
            ("(lambda x: b(x, x))(np.ones(1))", ValueError("x")),
            ("(lambda x: c(x, x))(np.ones(1))", ValueError("x")),
            ("(lambda x: d(x, x))(np.ones(1))", None),
        ),
    ),
    text(
        "restrict behind const, on an alias and by a macro",
        "typedef double* __restrict__ out;\n#define IN const double* __restrict__\nvoid a(out y, IN x) { y[0] = x[0]; }\n"
        "void b(double* const __restrict y, const double* const restrict x) { y[0] = x[0]; }",
        "a(y: float64*, x: const float64*)",
        "b(y: float64*, x: const float64*)",
        calls=(
            ("written(a, np.zeros(1), np.ones(1))", [1]),
            ("(lambda x: a(x, x))(np.ones(1))", ValueError("x")),
            ("(lambda x: b(x, x))(np.ones(1))", ValueError("x")),
        ),
    ),
    text(
        "a macro for restrict",
        "#define RESTRICT __restrict__\nvoid a(double* RESTRICT y, const double* RESTRICT x) { y[0] = x[0]; }\n"
        "template <class T> void b(T* RESTRICT y, const T* RESTRICT x) { y[0] = x[0]; }\n"
        "template void b(float*, const float*);",
        "a(y: float64*, x: const float64*)",
        "b(y: float32*, x: const float32*)",
        calls=(
            ("(lambda x: a(x, x))(np.ones(1))", ValueError("x")),
            ("(lambda x: b(x, x))(np.ones(1, 'f4'))", ValueError("x")),
        ),
    ),
    text(
        "a function that is called restrict",
        "double restrict(double x) { return x / 2; }\ndouble f(double x) { return 2 * restrict(x); }\n"
        "struct Grid { double restrict = 1; };",
        "restrict(x: float64) -> float64",
        "f(x: float64) -> float64",
        calls=(("restrict(4)", 2.0), ("f(4)", 4.0)),
    ),
    text(
        "allow_alias takes restrict away",
        "void a(double* restrict y, const double* __restrict x) { y[0] = x[0] + 1; }\n"
        "void b(rekernel::RestrictArray<double, 1> y, rekernel::RestrictArray<const double, 1> x) { y[0] = x[0] + 1; }",
        "a(y: float64*, x: const float64*)",
        "b(y: float64[:], x: const float64[:])",
        calls=(("(lambda x: (a(x, x), b(x, x), float(x[0]))[2])(np.ones(1))", 3.0),),
        allow_alias=True,
    ),
    text(
        "omp parallel for, with reduction and simd",
        """double total(rekernel::Array<const double, 1> x) {
  double sum = 0;
  #pragma omp parallel for reduction(+ : sum)
  for (int64_t i = 0; i < x.shape(0); ++i) sum += x[i];
  return sum;
}
void twice(double* x, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i) x[i] *= 2;
}
void count(int* hits, const int* bin, int n) {
  _Pragma("omp parallel for")
  for (int i = 0; i < n; ++i) {
#pragma omp atomic
    hits[bin[i]]++;
  }
}
""",
        "total(x: const float64[:]) -> float64",
        "twice(x: float64*, n: int32)",
        "count(hits: int32*, bin: const int32*, n: int32)",
        calls=(
            ("total(np.arange(1000.))", 499500.0),
            ("written(twice, np.ones(2), 2)", [2, 2]),
            ("written(count, np.zeros(2, 'i4'), np.arange(100, dtype='i4') % 2, 100)", [50, 50]),
        ),
    ),
    text(
        "omp.h asks for OpenMP",
        "#include <omp.h>\nint threads() {\n  int n = 0;\n  #pragma omp parallel\n  {\n    #pragma omp single\n"
        "    n = omp_get_num_threads();\n  }\n  return n;\n}",
        "threads() -> int32",
        calls=(("threads() >= 1", True),),
    ),
    text(
        "openmp=False leaves the pragmas out",
        "int f(int n) {\n  int sum = 0;\n  #pragma omp parallel for reduction(+:sum)\n  for (int i = 0; i < n; ++i) sum += i;\n"
        "#ifdef _OPENMP\n  return -1;\n#endif\n  return sum;\n}",
        "f(n: int32) -> int32",
        calls=(("f(4)", 6),),
        openmp=False,
    ),
    text(
        "statics keep their state, in files and functions",
        "static int total = 0;\nint add(int n) { return total += n; }\nint calls() { static int n; return ++n; }\n"
        "thread_local int mine = 5;\nint next() { return ++mine; }",
        "add(n: int32) -> int32",
        "calls() -> int32",
        "next() -> int32",
        calls=(("add(2)", 2), ("add(3)", 5), ("calls()", 1), ("calls()", 2), ("next()", 6), ("next()", 7)),
    ),
    text(
        "statics with constructors and destructors",
        "struct Kept { int* p; Kept() : p(new int(7)) {} ~Kept() { delete p; } };\nstatic Kept kept;\n"
        "int f() { static Kept inner; thread_local Kept own; return *kept.p + *inner.p + *own.p; }",
        "f() -> int32",
        calls=(("f()", 21), ("f()", 21)),
    ),
    text(
        "exceptions become Python's",
        """#include <stdexcept>
#include <new>
#include <string>
int range(int n) { throw std::out_of_range("no room for " + std::to_string(n)); }
int run(int n) { if (n < 0) throw std::runtime_error("negative: größer"); return n; }
int number(int n) { throw n; }
int words(int n) { throw "words"; }
struct Mine : std::exception { const char* what() const noexcept override { return "my own"; } };
int mine(int n) { throw Mine(); }
int memory(int n) { throw std::bad_alloc(); }
int argument(int n) { throw std::invalid_argument("n"); }
int caught(int n) { try { throw n; } catch (int k) { return k + 1; } }""",
        *(
            f"{name}(n: int32) -> int32"
            for name in ("range", "run", "number", "words", "mine", "memory", "argument", "caught")
        ),
        calls=(
            ("m.range(3)", Exception("no room for 3")),
            ("run(-1)", RuntimeError("negative: größer")),
            ("run(2)", 2),
            ("number(1)", Exception("number")),
            ("words(1)", Exception("words")),
            ("mine(1)", RuntimeError("my own")),
            ("memory(1)", RuntimeError("bad_alloc")),
            ("argument(1)", Exception("n")),
            ("caught(1)", 2),
        ),
    ),
    text(
        "assert has no effect without debug",
        "#include <cassert>\nint f(int n) { assert(n > 0); return n; }",
        "f(n: int32) -> int32",
        calls=(("f(-1)", -1),),
    ),
    text(
        "assert has an effect with debug",
        "#include <cassert>\nint f(int n) {\n  assert(n > 0);\n  return n;\n}",
        "f(n: int32) -> int32",
        calls=(("f(1)", 1), ("f(-1)", Exception("n > 0"))),
        debug=True,
    ),
    text(
        "C++20 by its flag",
        """#include <concepts>
template <std::floating_point T> T twice(T x) { return 2 * x; }
template double twice(double);
template <class T> requires (sizeof(T) == 4) T half(T x) { return x / 2; }
template float half<float>(float);
consteval int five() { return 5; }
auto add(std::integral auto a, int b) { return a + b; }
int f(int n) { return five() + add(n, 1); }""",
        "twice(x: float64) -> float64",
        "half(x: float32) -> float32",
        "f(n: int32) -> int32",
        calls=(("twice(1.5)", 3.0), ("half(3)", 1.5), ("f(1)", 7)),
        skipped={"add": "is a template"},
        flags="-std=c++20",
    ),
    text(
        "C++14 by its flag",
        "#if __cplusplus < 201703L\nint f(rekernel::Array<int, 2> x) { return x(0, 1); }\n#endif",
        "f(x: int32[:, :]) -> int32",
        calls=(("f(np.arange(4, dtype='i4').reshape(2, 2))", 1),),
        flags="-std=c++14",
    ),
    text(
        "structs, enums and classes used inside",
        """struct Particle { float x, v; };
enum class Side { left, right };
class Counter { int n = 0; public: void up() { ++n; } int get() const { return n; } };
static Side side(Particle p) { return p.x < 0 ? Side::left : Side::right; }
int f(const float* x, int n) {
  Counter c;
  for (int i = 0; i < n; ++i) { Particle p{x[i], 0}; if (side(p) == Side::right) c.up(); }
  return c.get();
}
""",
        "f(x: const float32*, n: int32) -> int32",
        calls=(("f(np.array([-1, 1, 2], 'f4'), 3)", 2),),
    ),
    text(
        "a stencil with pointers",
        """void jacobi(double *dst, const double *src, int h, int w)
{
    int y, x;
    for (y = 1; y < h - 1; y++)
        for (x = 1; x < w - 1; x++)
            dst[y*w + x] = 0.25 * (src[(y-1)*w + x] + src[(y+1)*w + x] + src[y*w + x-1] + src[y*w + x+1]);
}
""",
        "jacobi(dst: float64*, src: const float64*, h: int32, w: int32)",
        calls=(("float(written(jacobi, np.zeros((3, 3)), np.arange(9.).reshape(3, 3), 3, 3)[1, 1])", 4.0),),
    ),
    text(
        "unsigned, size_t and long in loops",
        "unsigned sum(const unsigned *x, size_t n)\n{\n  unsigned s = 0;\n  for (size_t i = 0; i < n; i++) s += x[i];\n  return s;\n}\n"
        "long big(long n) { return n * n; }\nunsigned char wrap(unsigned char c) { return c + 1; }",
        "sum(x: const uint32*, n: uint64) -> uint32",
        "big(n: int64) -> int64",
        "wrap(c: uint8) -> uint8",
        calls=(("sum(np.arange(5, dtype='u4'), 5)", 10), ("big(2**31)", 2**62), ("wrap(255)", 0)),
    ),
    text(
        "printing and memory of C",
        '#include <cstdio>\n#include <cstdlib>\n#include <cstring>\nint f(int n) {\n  char s[16];\n  snprintf(s, sizeof s, "%d", n);\n'
        "  char* p = (char*)malloc(16);\n  strcpy(p, s);\n  int r = atoi(p);\n  free(p);\n  return r;\n}",
        "f(n: int32) -> int32",
        calls=(("f(123)", 123),),
    ),
    text(
        "random numbers, atomics, threads and clocks of the library",
        "#include <random>\n#include <atomic>\n#include <thread>\n#include <chrono>\nint f(int seed) {\n  std::mt19937 g(seed);\n"
        "  std::atomic<int> n{0};\n  std::thread t([&] { n += 2; });\n  t.join();\n  return n + (g() >= 0);\n}",
        "f(seed: int32) -> int32",
        calls=(("f(1)", 3),),
    ),
    text(
        "NaN and infinity stay what they are",
        "#include <cmath>\nbool nan(double x) { return std::isnan(x); }\nbool inf(double x) { return std::isinf(x); }\n"
        "double over(double x) { return 1 / x; }",
        "nan(x: float64) -> bool",
        "inf(x: float64) -> bool",
        "over(x: float64) -> float64",
        calls=(("nan(np.nan)", True), ("inf(np.inf)", True), ("over(0.0)", float("inf"))),
        optlevel="3",
    ),
    text(
        "goto, switch, do and the comma",
        "int f(int n) {\n  int s = 0;\nagain:\n  switch (n) { case 0: return s; case 1: s++; [[fallthrough]]; default: n--, s += 2; }\n"
        "  do { s++; } while (s < 0);\n  goto again;\n}",
        "f(n: int32) -> int32",
        calls=(("f(2)", 7),),
    ),
    text(
        "vector extensions and builtins of the compilers",
        "typedef float v4 __attribute__((vector_size(16)));\nfloat f(float x) { v4 v = {x, x, x, x}; v += v; return v[3]; }\n"
        "int bits(unsigned x) { return __builtin_popcount(x); }\nint g(v4 v) { return v[0]; }",
        "f(x: float32) -> float32",
        "bits(x: uint32) -> int32",
        calls=(("f(1.5)", 3.0), ("bits(7)", 3)),
        skipped={"g": "'v4 v'"},
    ),
    text(
        "inline assembly",
        '#if defined(__x86_64__)\nint f(int x) { int y; __asm__("movl %1, %0" : "=r"(y) : "r"(x)); return y; }\n'
        "#else\nint f(int x) { return x; }\n#endif",
        "f(x: int32) -> int32",
        calls=(("f(5)", 5),),
    ),
    text(
        "a program of C with a struct and a typedef",
        """#include <stdio.h>
#include <math.h>
#define N 16
#define SQ(x) ((x) * (x))
typedef struct { double x, y; } point_t;
static double dist(point_t a, point_t b) { return sqrt(SQ(a.x - b.x) + SQ(a.y - b.y)); }
void distances(const double p[][2], double *out, int n) {
    int i;
    for (i = 0; i < n; i++) {
        point_t a = { p[i][0], p[i][1] }, b = { 0, 0 };
        out[i] = dist(a, b);
    }
}
int main(void) { printf("%d\\n", N); return 0; }
""",
        "distances(p: const float64[:, 2], out: float64*, n: int32)",
        calls=(
            (
                "(lambda out: (distances(np.array([[3., 4], [6, 8]]), out, 2), out.tolist())[1])(np.zeros(2))",
                [5.0, 10.0],
            ),
        ),
        skipped={"main": "entry of a program"},
    ),
)
