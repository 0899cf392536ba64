"""Which functions of a text are kernels, under which names: helpers, overloads, templates, namespaces."""

from __future__ import annotations

from cpptexts import text

ROWS = (
    text(
        "static, inline and constexpr functions are helpers",
        """static double a(double x) { return x; }
inline double b(double x) { return x; }
constexpr double c(double x) { return x; }
static inline double d(double x) { return x; }
inline static constexpr double e(double x) { return x; }
const static double g(double x) { return x; }
double f(double x) { return a(b(c(d(e(g(x)))))); }""",
        "f(x: float64) -> float64",
        calls=(("f(3)", 3.0), ("m.a(1)", AttributeError("a"))),
    ),
    text(
        "a function that is declared static before is a helper",
        "static double a(double x);\ndouble f(double x) { return a(x); }\ndouble a(double x) { return 2 * x; }",
        "f(x: float64) -> float64",
        calls=(("f(3)", 6.0),),
    ),
    text(
        "nameless namespaces hold helpers",
        "namespace { double a(double x) { return x; } namespace in { double b(double x) { return x; } } }\n"
        "double f(double x) { return a(in::b(x)); }",
        "f(x: float64) -> float64",
        calls=(("f(3)", 3.0),),
    ),
    text(
        "namespaces, nested, inline, reopened",
        """namespace heat { double a(double x) { return x; } }
namespace heat::detail { double b(double x) { return a(x); } }
namespace heat { namespace more { double c(double x) { return detail::b(x); } } }
inline namespace v1 { double d(double x) { return x; } }
namespace heat { inline namespace v2 { double e(double x) { return a(x); } } }
namespace [[deprecated]] old { double f(double x) { return x; } }
""",
        *(f"{name}(x: float64) -> float64" for name in "abcdef"),
        calls=tuple((f"{name}(3)", 3.0) for name in "abcdef"),
    ),
    text(
        "of one name in two namespaces the outer has it",
        "namespace a { int f() { return 1; } int g() { return 3; } }\nint f() { return 2; }\n"
        "namespace b { int g() { return 4; } }",
        "g() -> int32",
        "f() -> int32",
        calls=(("f()", 2), ("g()", 3)),
        skipped={"a::f": "a::f has the name of f", "b::g": "b::g has the name of a::g"},
    ),
    text(
        "overloads by dtype, rank and count are one handle",
        """using rekernel::Array;
int f(double x) { return 1; }
int f(int x) { return 2; }
int f(Array<double, 1> x) { return 3; }
int f(Array<double, 2> x) { return 4; }
int f(Array<float, 2> x) { return 5; }
int f() { return 6; }
int f(double x, double y) { return 7; }
int f(const int* x) { return 8; }""",
        "f(x: float64) -> int32",
        "f(x: int32) -> int32",
        "f(x: float64[:]) -> int32",
        "f(x: float64[:, :]) -> int32",
        "f(x: float32[:, :]) -> int32",
        "f() -> int32",
        "f(x: float64, y: float64) -> int32",
        "f(x: const int32*) -> int32",
        calls=(
            ("f(1.0)", 1),
            ("f(1)", 2),
            ("f(np.ones(1))", 3),
            ("f(np.ones((1, 1)))", 4),
            ("f(np.ones((1, 1), 'f4'))", 5),
            ("f()", 6),
            ("f(1, 2)", 7),
            ("f(np.ones(1, 'i4'))", 8),
            ("f(np.ones(1, 'u1'))", TypeError("there are:")),
            ("f(1, 2, 3)", TypeError("f")),
        ),
    ),
    text(
        "explicit instantiations are overloads",
        """template <class T> T f(T x) { return x + 1; }
template double f<double>(double);
template float f(float x);
template <typename T, int N> void scale(T* x, int n) { for (int i = 0; i < n; ++i) x[i] *= N; }
template void scale<double, 3>(double* x, int n);
template void scale<float, 2>(float*, int);""",
        "f(x: float64) -> float64",
        "f(x: float32) -> float32",
        "scale(x: float64*, n: int32)",
        "scale(x: float32*, n: int32)",
        calls=(
            ("f(1.0)", 2.0),
            ("bool(f(np.float32(0.1)) == np.float32(0.1) + np.float32(1))", True),
            ("written(scale, np.ones(2), 2)", [3, 3]),
            ("written(scale, np.ones(2, 'f4'), 2)", [2, 2]),
        ),
    ),
    text(
        "instantiations in a namespace, and from outside of it",
        """namespace a {
template <class T> T f(T x) { return x + 1; }
template double f(double);
template <class T> T g(T x) { return x; }
}
template long a::f<long>(long);
template int a::g(int);""",
        "f(x: float64) -> float64",
        "f(x: int64) -> int64",
        "g(x: int32) -> int32",
        calls=(("f(1.5)", 2.5), ("f(1)", 2), ("g(7)", 7)),
    ),
    text(
        "explicit specialisations are kernels",
        "template <class T> T f(T x) { return x; }\ntemplate <> double f<double>(double x) { return 2 * x; }\n"
        "template <> int f(int x) { return 3 * x; }",
        "f(x: float64) -> float64",
        "f(x: int32) -> int32",
        calls=(("f(1.5)", 3.0), ("f(1)", 3)),
    ),
    text(
        "a template of which no type is asked for is skipped",
        "template <class T> T f(T x) { return x; }\ntemplate <class T> static T g(T x) { return x; }\n"
        "int h(int x) { return f(g(x)); }",
        "h(x: int32) -> int32",
        calls=(("h(2)", 2),),
        skipped={"f": "template void f<float>"},
    ),
    text(
        "templates with defaults, packs and non-type parameters",
        """template <class T = double, int N = 2> T f(T x) { return N * x; }
template double f<>(double);
template <class... A> int count(A...) { return sizeof...(A); }
template int count<int, double>(int, double);
template <class F> static double apply(F f, double x) { return f(x); }
double g(double x) { return apply([](double y) { return y + 1; }, x); }""",
        "f(x: float64) -> float64",
        "count(arg0: int32, arg1: float64) -> int32",
        "g(x: float64) -> float64",
        calls=(("f(1)", 2.0), ("count(1, 2)", 2), ("g(1)", 2.0)),
    ),
    text(
        "a template and a plain function of one name",
        "template <class T> T f(T x) { return x; }\nint f(int x) { return 2 * x; }\ntemplate double f(double);",
        "f(x: int32) -> int32",
        "f(x: float64) -> float64",
        calls=(("f(2)", 4), ("f(2.5)", 2.5)),
    ),
    text(
        "an instantiation is named by its template",
        """/// Adds.
template <class T>
void add(rekernel::Array<T, 1> y, rekernel::Array<const T, 1> x) { for (int i = 0; i < x.shape(0); ++i) y[i] += x[i]; }
template void add<float>(rekernel::Array<float, 1>, rekernel::Array<const float, 1>);
template void add(rekernel::Array<double, 1>, rekernel::Array<const double, 1>);""",
        "add(y: float32[:], x: const float32[:])",
        "add(y: float64[:], x: const float64[:])",
        calls=(
            ("written(add, np.ones(2), np.arange(2.))", [1, 2]),
            ("m.add.__doc__.startswith('Adds.')", True),
        ),
    ),
    text(
        'extern "C", one and a block',
        'extern "C" int a(int x) { return x; }\nextern "C" {\nint b(int x) { return x; }\nstatic int c(int x) { return x; }\n'
        'double d(double x) { return c(1) + x; }\n}\nnamespace n { extern "C" int e() { return 5; } }',
        "a(x: int32) -> int32",
        "b(x: int32) -> int32",
        "d(x: float64) -> float64",
        "e() -> int32",
        calls=(("a(1)", 1), ("b(2)", 2), ("d(1)", 2.0), ("e()", 5)),
    ),
    text(
        "noexcept, attributes and trailing return types",
        """void a(double* x) noexcept { x[0] = 1; }
void b(double* x) noexcept(true) { x[0] = 2; }
[[nodiscard]] int c(int x) { return x; }
__attribute__((noinline)) int d(int x) { return x; }
int e [[gnu::hot]] (int x) { return x; }
auto f(int x) -> double { return x / 2.0; }
auto g(double x, [[maybe_unused]] int y) noexcept -> decltype(x) { return x; }
int __attribute__((noinline, hot)) h(int x __attribute__((unused))) { return 1; }
[[gnu::noinline]] [[nodiscard]] extern int i(int x) { return x; }
auto j(int x) -> int (*)[3] { static int a[3]; return &a; }
""",
        "a(x: float64*)",
        "b(x: float64*)",
        "c(x: int32) -> int32",
        "d(x: int32) -> int32",
        "e(x: int32) -> int32",
        "f(x: int32) -> float64",
        "g(x: float64, y: int32) -> float64",
        "h(x: int32) -> int32",
        "i(x: int32) -> int32",
        calls=(
            ("written(a, np.zeros(1))", [1]),
            ("written(b, np.zeros(1))", [2]),
            *((f"{name}(1)", 1) for name in "cdehi"),
            ("f(1)", 0.5),
            ("g(1.5, 2)", 1.5),
        ),
        skipped={"j": "returns"},
    ),
    text(
        "noexcept and overloads go together",
        "int f(int x) noexcept { return x; }\n[[nodiscard]] auto f(double x) noexcept -> int { return 2; }",
        "f(x: int32) -> int32",
        "f(x: float64) -> int32",
        calls=(("f(1)", 1), ("f(1.5)", 2)),
    ),
    text(
        "default arguments may be left out",
        "int f(int a, int b = 3, int c = 2 * 2) { return a * 100 + b * 10 + c; }\n"
        "void g(double* x, int n = 1) { x[0] = n; }\nint h(int a = 7) { return a; }",
        "f(a: int32, b: int32, c: int32) -> int32",
        "f(a: int32, b: int32) -> int32",
        "f(a: int32) -> int32",
        "g(x: float64*, n: int32)",
        "g(x: float64*)",
        "h(a: int32) -> int32",
        "h() -> int32",
        calls=(
            ("f(1, 2, 3)", 123),
            ("f(1, 2)", 124),
            ("f(1)", 134),
            ("f(b=5, a=1)", 154),
            ("written(g, np.zeros(1))", [1]),
            ("written(g, np.zeros(1), 5)", [5]),
            ("h()", 7),
            ("h(8)", 8),
            ("f()", TypeError("a")),
            ("f(1, 2, 3, 4)", TypeError("f")),
        ),
    ),
    text(
        "default arguments of overloads, templates, and types that are spelled in other ways",
        """using real = float;
int f(int a) { return 1; }
int f(int a, int b = 1) { return 2; }
template <class T> T g(T a, T b = T(7)) { return a + b; }
template int g<int>(int, int);
template double g(double, double);
namespace n { real h(rekernel::Array<real, 1> x, const real& k = 2, real* y = nullptr) noexcept { return x[0] * k; } }
struct P {};
int i(int a, P p = P()) { return a; }""",
        "f(a: int32) -> int32",
        "f(a: int32, b: int32) -> int32",
        "g(a: int32, b: int32) -> int32",
        "g(a: int32) -> int32",
        "g(a: float64, b: float64) -> float64",
        "g(a: float64) -> float64",
        "h(x: float32[:], k: float32, y: float32*) -> float32",
        "h(x: float32[:], k: float32) -> float32",
        "h(x: float32[:]) -> float32",
        "i(a: int32) -> int32",
        calls=(
            ("f(1)", 1),
            ("f(1, 2)", 2),
            ("g(1)", 8),
            ("g(1.5)", 8.5),
            ("g(1.5, 2)", 3.5),
            ("h(np.ones(1, 'f4'))", 2.0),
            ("h(np.ones(1, 'f4'), k=3)", 3.0),
            ("i(4)", 4),
        ),
    ),
    text(
        "a default argument that a function of a header makes ambiguous",
        "namespace n { using real = double; }\n#include <cmath>\n"
        "n::real pow(n::real* x, n::real k = 2) { return *x * k; }\nn::real exp(n::real a, int b = 1) { return a * b; }",
        "pow(x: float64*, k: float64) -> float64",
        "pow(x: float64*) -> float64",
        "exp(a: float64, b: int32) -> float64",
        calls=(("pow(np.ones(1))", 2.0), ("exp(2, 3)", 6.0)),
    ),
    text(
        "parameters without names, and with one name twice",
        "int f(int, double, const float*) { return 1; }\nint g(int arg1, int) { return arg1; }\nint h(void) { return 3; }\n"
        "int i(int /* unused */, int b /* used */) { return b; }",
        "f(arg0: int32, arg1: float64, arg2: const float32*) -> int32",
        "g(arg0: int32, arg1: int32) -> int32",
        "h() -> int32",
        "i(arg0: int32, b: int32) -> int32",
        calls=(("f(1, 2, np.zeros(1, 'f4'))", 1), ("h()", 3), ("g(4, 5)", 4), ("i(1, b=2)", 2)),
    ),
    text(
        "names that are Python's keywords",
        "int lambda(int from, int is) { return from + is; }\nint pass(int None) { return None; }\nint def() { return 1; }",
        "lambda(from: int32, is: int32) -> int32",
        "pass(None: int32) -> int32",
        "def() -> int32",
        calls=(
            ("getattr(m, 'lambda')(1, 2)", 3),
            ("getattr(m, 'lambda')(**{'from': 1, 'is': 2})", 3),
            ("getattr(m, 'pass')(5)", 5),
        ),
    ),
    text(
        "names that our own text has",
        """int run(int call) { return call; }
int entry(int describe) { return describe; }
int call() { return 1; }
int describe(int slot_) { return slot_; }
int kind(int part) { return part; }
int load(int x) { return x; }
int result() { return 2; }
int count(int size, int data, int shape) { return size + data + shape; }
int step(int rk_slot) { return rk_slot; }
int index(int axes) { return axes; }
int parameter() { return 9; }""",
        "run(call: int32) -> int32",
        "entry(describe: int32) -> int32",
        "call() -> int32",
        "describe(slot_: int32) -> int32",
        "kind(part: int32) -> int32",
        "load(x: int32) -> int32",
        "result() -> int32",
        "count(size: int32, data: int32, shape: int32) -> int32",
        "step(rk_slot: int32) -> int32",
        "index(axes: int32) -> int32",
        "parameter() -> int32",
        calls=(("run(1)", 1), ("count(1, 2, 3)", 6), ("parameter()", 9)),
    ),
    text(
        "names that modules and loaders have",
        "int source() { return 1; }\nint error() { return 2; }\nint wait() { return 3; }\nint kernel_id() { return 4; }\n"
        "int __name() { return 5; }\nint keys() { return 6; }\nint _hidden() { return 7; }",
        *(f"{name}() -> int32" for name in ("source", "error", "wait", "kernel_id", "__name", "keys", "_hidden")),
        calls=(("source()", 1), ("m.error()", 2), ("m.wait()", 3), ("m.kernel_id()", 4), ("m._hidden()", 7)),
    ),
    text(
        "main is no kernel",
        "int f(int x) { return x; }\nint main() { return f(0); }",
        "f(x: int32) -> int32",
        skipped={"main": "entry of a program"},
    ),
    text(
        "main with arguments, alone",
        "int main(int argc, char** argv) { return argc; }",
        skipped={"main": "entry of a program"},
    ),
    text(
        "methods, operators and friends are no kernels",
        """struct V {
  double x;
  double norm() const { return x < 0 ? -x : x; }
  double later(double k);
  static double made(double k) { return k; }
  V operator+(const V& o) const { return {x + o.x}; }
  friend V operator*(double k, const V& v) { return {k * v.x}; }
  friend double peek(const V& v) { return v.x; }
  operator double() const { return x; }
  ~V() {}
  struct In { double y(double z); };
};
double V::later(double k) { return k * x; }
double V::In::y(double z) { return z; }
V operator-(const V& a, const V& b) { return {a.x - b.x}; }
bool operator==(const V& a, const V& b) { return a.x == b.x; }
namespace n { struct W { double z(); W(); }; }
double n::W::z() { return 1; }
n::W::W() {}
double f(double x) { V v{x}, w{1}; n::W u; return (2.0 * (v + w) - w).norm() + v.later(2) + u.z(); }
""",
        "f(x: float64) -> float64",
        calls=(("f(2)", 10.0),),
    ),
    text(
        "a function defined outside of its namespace",
        "namespace a { int f(int x); namespace b { int g(); } }\nint a::f(int x) { return x; }\nint a::b::g() { return 2; }",
        "f(x: int32) -> int32",
        "g() -> int32",
        calls=(("f(3)", 3), ("g()", 2)),
    ),
    text(
        "deleted, declared and extern functions",
        "int f(int x);\nint f(double x) = delete;\nextern int g(int);\nint f(int x) { return x; }\n"
        "int unused(double);\nint h(int x) { return f(x); }",
        "f(x: int32) -> int32",
        "h(x: int32) -> int32",
        calls=(("f(1)", 1), ("h(2)", 2)),
    ),
    text(
        "functions with any number of arguments are skipped",
        "int f(int n, ...) { return n; }\nint g(int n) { return f(n, 1, 2); }",
        "g(n: int32) -> int32",
        calls=(("g(2)", 2),),
        skipped={"f": "any number of arguments"},
    ),
    text(
        "friends and templates of classes",
        """template <class T> struct Box { T v; T get() const; template <class U> U as() const { return U(v); } };
template <class T> T Box<T>::get() const { return v; }
template struct Box<double>;
double f(double x) { return Box<double>{x}.get() + Box<int>{3}.as<double>(); }""",
        "f(x: float64) -> float64",
        calls=(("f(1)", 4.0),),
    ),
    text(
        "a function in parentheses, and one that returns a pointer to a function",
        "int (f)(int x) { return x; }\nint (*g(int))(int) { return f; }\nint *h(int *x) { return x; }",
        "f(x: int32) -> int32",
        calls=(("f(1)", 1),),
        skipped={"g": "returns", "h": "returns"},
    ),
    text(
        "a declaration before the definition names nothing",
        "double f(double longer_name);\ndouble f(double x) { return x; }",
        "f(x: float64) -> float64",
        calls=(("f(x=1)", 1.0),),
    ),
    text(
        "a local function declaration and a nested lambda are no kernels",
        "int f(int x) { int g(int); auto h = [](int y) { return y; }; return h(x); }",
        "f(x: int32) -> int32",
    ),
    text(
        "using directives and namespace aliases",
        "namespace long_name { int one() { return 1; } }\nnamespace ln = long_name;\nusing namespace ln;\n"
        "using ln::one;\nint two() { return one() + ln::one(); }",
        "one() -> int32",
        "two() -> int32",
        calls=(("two()", 2),),
    ),
    text(
        "one text with 60 kernels",
        "\n".join(f"int f{n}(int x) {{ return x + {n}; }}" for n in range(60)),
        *(f"f{n}(x: int32) -> int32" for n in range(60)),
        calls=(("f59(1)", 60), ("f0(1)", 1)),
    ),
    text(
        "a kernel of 24 parameters",
        f"double f({', '.join(f'double x{n}' for n in range(12))}, {', '.join(f'const double* p{n}' for n in range(12))})"
        " { return x0 + x11 + p0[0] + p11[0]; }",
        f"f({', '.join(f'x{n}: float64' for n in range(12))}, {', '.join(f'p{n}: const float64*' for n in range(12))})"
        " -> float64",
        calls=(("f(*range(12), *np.arange(12.).reshape(12, 1))", 22.0),),
    ),
    text(
        "local kernels are found after a global variable with an initializer",
        'double table[] = {1, 2, 3}; const char* words[] = {"a{", "}b"}; struct { int a; } nameless = {1};\n'
        "enum { N = 3 }; int f(int i) { return table[i] + N + nameless.a; }",
        "f(i: int32) -> int32",
        calls=(("f(1)", 6),),
    ),
)
