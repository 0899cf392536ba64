"""Which types a kernel takes and returns, however they are spelled."""

from __future__ import annotations

from cpptexts import text

_SCALARS = {
    "bool": ("bool", True),
    "char": ("int8", 65),
    "signed char": ("int8", -128),
    "unsigned char": ("uint8", 255),
    "short": ("int16", -32768),
    "short int": ("int16", 32767),
    "unsigned short": ("uint16", 65535),
    "int": ("int32", -(2**31)),
    "signed": ("int32", -1),
    "unsigned": ("uint32", 2**32 - 1),
    "unsigned int": ("uint32", 7),
    "long": ("int64", -(2**63)),
    "long int": ("int64", 2**63 - 1),
    "unsigned long": ("uint64", 2**64 - 1),
    "long long": ("int64", -5),
    "unsigned long long": ("uint64", 2**64 - 1),
    "long unsigned int": ("uint64", 2**63),
    "int8_t": ("int8", 127),
    "int16_t": ("int16", -3),
    "int32_t": ("int32", 2**31 - 1),
    "int64_t": ("int64", -(2**63)),
    "uint8_t": ("uint8", 200),
    "uint16_t": ("uint16", 60000),
    "uint32_t": ("uint32", 4000000000),
    "uint64_t": ("uint64", 2**64 - 1),
    "intptr_t": ("int64", -9),
    "uintptr_t": ("uint64", 9),
    "size_t": ("uint64", 2**64 - 1),
    "ptrdiff_t": ("int64", -(2**40)),
    "float": ("float32", 0.5),
    "double": ("float64", -1.25),
    "float _Complex": ("complex64", 1 - 2j),
    "double _Complex": ("complex128", 1e100 + 2j),
}
_NAMED = {name: name.replace(" ", "_") for name in _SCALARS}


def _each(form: str) -> str:
    return "\n".join(form.replace("TYPE", name).replace("NAME", _NAMED[name]) for name in _SCALARS)


ROWS = (
    text(
        "every scalar type goes in and comes out whole",
        _each("TYPE f_NAME(TYPE x) { return x; }"),
        *(f"f_{_NAMED[name]}(x: {dtype}) -> {dtype}" for name, (dtype, _) in _SCALARS.items()),
        calls=tuple((f"f_{_NAMED[name]}({value!r})", value) for name, (_, value) in _SCALARS.items()),
    ),
    text(
        "every scalar type may be const, and a reference to const",
        _each("TYPE f_NAME(const TYPE a, TYPE const& b, volatile TYPE c) { return b; }"),
        *(f"f_{_NAMED[n]}(a: {dtype}, b: {dtype}, c: {dtype}) -> {dtype}" for n, (dtype, _) in _SCALARS.items()),
        calls=tuple((f"f_{_NAMED[name]}(0, {value!r}, 1)", value) for name, (_, value) in _SCALARS.items()),
    ),
    text(
        "every scalar type may be pointed to",
        _each("void f_NAME(TYPE* y, const TYPE *x, int n) { for (int i = 0; i < n; ++i) y[i] = x[i]; }"),
        *(f"f_{_NAMED[name]}(y: {dtype}*, x: const {dtype}*, n: int32)" for name, (dtype, _) in _SCALARS.items()),
        calls=tuple(
            (f"written(f_{_NAMED[name]}, np.zeros(2, '{dtype}'), np.array([{value!r}, 1], '{dtype}'), 2)", [value, 1])
            for name, (dtype, value) in _SCALARS.items()
        ),
    ),
    text(
        "every scalar type may be an element of an Array",
        _each(
            "void f_NAME(rekernel::Array<TYPE, 1> y, rekernel::Array<const TYPE, 1> x)"
            " { for (size_t i = 0; i < x.size(); ++i) y[i] = x(i); }"
        ),
        *(f"f_{_NAMED[name]}(y: {dtype}[:], x: const {dtype}[:])" for name, (dtype, _) in _SCALARS.items()),
        calls=tuple(
            (f"written(f_{_NAMED[n]}, np.zeros(2, '{dtype}'), np.array([1, {value!r}], '{dtype}')[::-1])", [value, 1])
            for n, (dtype, value) in _SCALARS.items()
        ),
    ),
    text(
        "numbers that do not fit are refused by name",
        "int f(unsigned char small, bool yes, float x) { return small + yes + (int)x; }",
        "f(small: uint8, yes: bool, x: float32) -> int32",
        calls=(
            ("f(255, True, 2)", 258),
            ("f(256, True, 2)", ValueError("small")),
            ("f(-1, True, 2)", ValueError("small")),
            ("f(1.0, True, 2)", TypeError("small")),
            ("f(1, 2, 2)", Exception("yes")),
            ("f(1, True, 1e300)", ValueError("x")),
            ("f(1, True, 1j)", TypeError("x")),
            ("f(1, None, 1)", TypeError("yes")),
            ("f(1, True)", TypeError("x")),
            ("f(1, True, 1, 1)", TypeError("f")),
        ),
    ),
    text(
        "half precision floats",
        "_Float16 f(_Float16 x) { return x * (_Float16)2; }\nvoid g(_Float16* y, const _Float16* x) { y[0] = x[0]; }",
        "f(x: float16) -> float16",
        "g(y: float16*, x: const float16*)",
        calls=(("f(1.5)", 3.0), ("written(g, np.zeros(1, 'f2'), np.array([0.25], 'f2'))", [0.25])),
    ),
    text(
        "std::complex by value, pointer, Array and result",
        """#include <complex>
std::complex<double> twice(std::complex<double> z) { return z * 2.0; }
std::complex<float> half(const std::complex<float>& z) { return z * 0.5f; }
void turn(std::complex<float>* z, int n) { for (int i = 0; i < n; ++i) z[i] *= std::complex<float>(0, 1); }
double energy(rekernel::Array<const std::complex<double>, 2> z) {
  double sum = 0;
  for (int i = 0; i < z.shape(0); ++i) for (int j = 0; j < z.shape(1); ++j) sum += std::norm(z(i, j));
  return sum;
}
""",
        "twice(z: complex128) -> complex128",
        "half(z: complex64) -> complex64",
        "turn(z: complex64*, n: int32)",
        "energy(z: const complex128[:, :]) -> float64",
        calls=(
            ("twice(1 + 2j)", 2 + 4j),
            ("twice(3)", 6),
            ("half(np.complex64(1j))", 0.5j),
            ("written(turn, np.array([1, 1j], 'c8'), 2)", [1j, -1]),
            ("energy(np.array([[1, 2j], [3, 4]]).T)", 30.0),
        ),
    ),
    text(
        "a using declaration brings complex in",
        "#include <complex>\nusing std::complex;\nusing cplx = complex<double>;\n"
        "cplx f(cplx a, complex<float> b) { return a + cplx(b); }",
        "f(a: complex128, b: complex64) -> complex128",
        calls=(("f(1, 2j)", 1 + 2j),),
    ),
    text(
        "using, typedef and macros name types",
        """using real = float;
typedef double number, *numbers;
typedef const numbers fixed;
#define INTEGER long
#define REAL_ARRAY(n) rekernel::Array<real, n>
real f(real x, number y, INTEGER z) { return x + y + z; }
void g(numbers y, fixed x) { y[0] = x[0]; }
void h(REAL_ARRAY(2) x) { x(0, 0) = 1; }
""",
        "f(x: float32, y: float64, z: int64) -> float32",
        "g(y: float64*, x: float64*)",
        "h(x: float32[:, :])",
        calls=(
            ("f(1, 2, 3)", 6.0),
            ("written(g, np.zeros(1), np.ones(1))", [1]),
            ("written(h, np.zeros((1, 1), 'f4'))", [[1]]),
        ),
    ),
    text(
        "typedefs of a header beside the file",
        '#include "types.h"\nreal first(const real* x) { return x[0]; }\nvec same(vec x) { return x; }',
        "first(x: const float32*) -> float32",
        "same(x: int16) -> int16",
        calls=(("first(np.array([2, 3], 'f4'))", 2.0), ("same(-4)", -4)),
        headers={"types.h": "#pragma once\ntypedef float real;\nusing vec = short;\n"},
    ),
    text(
        "template aliases name arrays",
        """template <class T> using Field = rekernel::Array<T, 2>;
template <class T> using Read = Field<const T>;
using rekernel::Array;
void f(Field<double> y, Read<double> x, Array<int, 1> z) { y(0, 0) = x(1, 1) + z[0]; }""",
        "f(y: float64[:, :], x: const float64[:, :], z: int32[:])",
        calls=(("written(f, np.zeros((1, 1)), np.eye(2), np.ones(1, 'i4'))", [[2]]),),
    ),
    text(
        "arrays by value, by reference to const, and const",
        """using namespace rekernel;
double a(Array<double, 1> x) { return x[0]; }
double b(const Array<double, 1>& x) { return x[0]; }
double c(const Array<double, 1> x) { return x[0]; }
double d(Array<const double, 1> x) { return x[0]; }
double e(Array<const double, 1> const& x) { return x[0]; }
double f(RestrictArray<double, 1> x, RestrictArray<const double, 1> y) { return x[0] + y[0]; }""",
        "a(x: float64[:]) -> float64",
        "b(x: float64[:]) -> float64",
        "c(x: float64[:]) -> float64",
        "d(x: const float64[:]) -> float64",
        "e(x: const float64[:]) -> float64",
        "f(x: float64[:], y: const float64[:]) -> float64",
        calls=(
            *((f"{name}(np.arange(4.)[::-1])", 3.0) for name in "abcde"),
            ("f(np.ones(1), np.ones(1))", 2.0),
            ("(lambda x: f(x, x))(np.ones(2))", ValueError("x")),
            ("(lambda x: f(x[:2], x[1:]))(np.ones(3))", ValueError("x")),
            ("(lambda x: f(x[:2], x[2:]))(np.ones(4))", 2.0),
        ),
    ),
    text(
        "arrays of every rank",
        """using rekernel::Array;
double r0(Array<const double, 0> x) { return x(); }
double r1(Array<const double, 1> x) { return x(1); }
double r2(Array<const double, 2> x) { return x(1, 0); }
double r3(Array<const double, 3> x) { return x(1, 0, 1); }
double r4(Array<const double, 4> x) { return x(1, 0, 1, 0); }
double r5(Array<const double, 5> x) { return x(1, 0, 1, 0, 1); }
long about(Array<const double, 3> x) { return x.shape(0) * 10000 + x.shape(2) * 1000 + x.stride(0) * 10 + x.size(); }
int rank(Array<const float, 2> x) { return x.rank; }
bool is_first(Array<const double, 2> x) { return x.data() == &x(0, 0); }""",
        "r0(x: const float64[]) -> float64",
        "r1(x: const float64[:]) -> float64",
        "r2(x: const float64[:, :]) -> float64",
        "r3(x: const float64[:, :, :]) -> float64",
        "r4(x: const float64[:, :, :, :]) -> float64",
        "r5(x: const float64[:, :, :, :, :]) -> float64",
        "about(x: const float64[:, :, :]) -> int64",
        "rank(x: const float32[:, :]) -> int32",
        "is_first(x: const float64[:, :]) -> bool",
        calls=(
            ("r0(np.array(3.0))", 3.0),
            ("r1(np.arange(4.)[::2])", 2.0),
            ("r2(np.arange(4.).reshape(2, 2))", 2.0),
            ("r2(np.arange(4.).reshape(2, 2).T)", 1.0),
            ("r3(np.arange(8.).reshape(2, 2, 2))", 5.0),
            ("r4(np.arange(16.).reshape(2, 2, 2, 2))", 10.0),
            ("r5(np.arange(32.).reshape(2, 2, 2, 2, 2))", 21.0),
            ("about(np.zeros((2, 3, 4)))", 24144),
            ("rank(np.zeros((2, 2), 'f4'))", 2),
            ("is_first(np.zeros((2, 2))[::-1, ::-1])", True),
            ("r1(np.zeros((2, 2)))", ValueError("x")),
            ("r1(np.zeros(2, 'f4'))", TypeError("x")),
            ("r1([1.0, 2.0])", TypeError("x")),
        ),
    ),
    text(
        "an Array goes on to where it is only read, and any integer is an index",
        """using rekernel::Array;
static double first(Array<const double, 2> x) { return x(0u, size_t(0)); }
static double sum(const Array<const double, 2>& x) { short i = 1; return first(x) + x(i, 1L) + x('\\0', true); }
double f(Array<double, 2> x) { return sum(x); }
double g(rekernel::RestrictArray<double, 2> x) { Array<double, 2> y = x; return sum(y); }
double h(Array<double, 1> x) { enum { at = 1 }; return x[at] + x[0ull]; }""",
        "f(x: float64[:, :]) -> float64",
        "g(x: float64[:, :]) -> float64",
        "h(x: float64[:]) -> float64",
        calls=(
            ("f(np.arange(4.).reshape(2, 2))", 4.0),
            ("g(np.arange(4.).reshape(2, 2))", 4.0),
            ("h(np.arange(2.))", 1.0),
        ),
    ),
    text(
        "an Array as a member, a local and a default",
        """struct Grid { rekernel::Array<double, 1> u; double operator()(int i) const { return u(i); } };
double f(rekernel::Array<double, 1> x) {
  rekernel::Array<double, 1> y;
  y = x;
  Grid grid{y};
  auto z = grid.u;
  for (auto i = z.shape(0); i-- > 0;) z[i] += 1;
  return grid(0);
}""",
        "f(x: float64[:]) -> float64",
        calls=(("f(np.ones(3))", 2.0),),
    ),
    text(
        "an Array of one's own memory",
        """double f(int n) {
  double memory[6] = {1, 2, 3, 4, 5, 6};
  const long long shape[] = {2, 3}, stride[] = {3, 1};
  rekernel::Array<double, 2> x(memory, shape, stride);
  return x(n, n);
}""",
        "f(n: int32) -> float64",
        calls=(("f(1)", 5.0),),
    ),
    text(
        "C arrays as parameters",
        """void a(double x[], const float y[3]) { x[0] = y[2]; }
double b(double x[][4], int n) { return x[n - 1][3]; }
double c(const double (*x)[4]) { return x[1][0]; }
double d(const double x[2][3][4]) { return x[1][2][3]; }
void e(int x[static_cast<int>(2)]) { x[1] = 5; }""",
        "a(x: float64*, y: const float32*)",
        "b(x: float64[:, 4], n: int32) -> float64",
        "c(x: const float64[:, 4]) -> float64",
        "d(x: const float64[:, 3, 4]) -> float64",
        "e(x: int32*)",
        calls=(
            ("written(a, np.zeros(1), np.arange(3, dtype='f4'))", [2]),
            ("b(np.arange(8.).reshape(2, 4), 2)", 7.0),
            ("c(np.arange(8.).reshape(2, 4))", 4.0),
            ("c(np.zeros((2, 3)))", ValueError("x")),
            ("c(np.zeros((2, 8))[:, ::2])", ValueError("x")),
            ("d(np.arange(24.).reshape(2, 3, 4))", 23.0),
            ("written(e, np.zeros(2, 'i4'))", [0, 5]),
        ),
    ),
    text(
        "pointers take C-contiguous arrays of any rank",
        "double f(const double* x) { return x[1]; }\nvoid g(double *const y) { *y = 2; }",
        "f(x: const float64*) -> float64",
        "g(y: float64*)",
        calls=(
            ("f(np.arange(4.))", 1.0),
            ("f(np.arange(8.).reshape(2, 2, 2))", 1.0),
            ("f(np.arange(8.)[::2])", ValueError("x")),
            ("f(np.arange(4.).reshape(2, 2).T)", ValueError("x")),
            ("written(g, np.array(1.0))", 2.0),
            ("g(3.0)", TypeError("y")),
            ("f(np.arange(4))", TypeError("x")),
            ("f(None)", TypeError("x")),
        ),
    ),
    text(
        "types that cannot be passed are named with their parameter",
        """enum Colour { RED };
enum class Kind : char { A };
struct Point { double x, y; };
union Either { int i; float f; };
typedef void (*callback)(int);
double by_enum(Colour c) { return c; }
double by_class(int n, Kind kind) { return 1; }
double by_struct(Point p) { return p.x; }
double by_struct_ref(const Point& p) { return p.x; }
double by_struct_pointer(Point* p) { return p->x; }
double by_union(Either e) { return e.f; }
double by_reference(double& r) { return r; }
double by_rvalue(double&& r) { return r; }
double by_void(void* v) { return 1; }
double by_const_void(const void* v) { return 1; }
double by_long(long double ld) { return ld; }
double by_pp(double** pp) { return **pp; }
double by_callback(callback cb) { return 1; }
double by_function(double f(double)) { return f(1); }
double by_wide(wchar_t w) { return w; }
double by_array_ref(rekernel::Array<double, 1>& a) { return a[0]; }
double by_enum_pointer(Colour* c) { return *c; }
double by_array_of_struct(rekernel::Array<Point, 1> a) { return a[0].x; }
double by_array_ref_of_c(double (&m)[3]) { return m[0]; }
double by_null(decltype(nullptr) n) { return 1; }
double by_bits(__int128 b) { return b; }
double by_member(double Point::* m) { return 1; }
double fine(double x) { return x; }
""",
        "fine(x: float64) -> float64",
        skipped={
            "by_enum": "'Colour c': an enumeration",
            "by_class": "'Kind kind': an enumeration",
            "by_struct": "'Point p': a class",
            "by_struct_ref": "'const Point& p': a class",
            "by_struct_pointer": "'Point* p': a class",
            "by_union": "'Either e': a class",
            "by_reference": "'double& r': what is written through a reference",
            "by_rvalue": "'double&& r': what is written through a reference",
            "by_void": "'void* v': void*",
            "by_const_void": "'const void* v': void*",
            "by_long": "'long double ld': NumPy",
            "by_pp": "'double** pp': pointers to pointers",
            "by_callback": "'callback cb': pointers to",
            "by_function": "'double f(double)': pointers to",
            "by_wide": "'wchar_t w': NumPy",
            "by_array_ref": "'rekernel::Array<double, 1>& a': what is written through a reference",
            "by_enum_pointer": "'Colour* c': an enumeration",
            "by_array_of_struct": "'rekernel::Array<Point, 1> a': a class",
            "by_array_ref_of_c": "'double (&m)[3]': what is written through a reference",
            "by_null": "'decltype(nullptr) n': ",
            "by_bits": "'__int128 b': NumPy",
            "by_member": "'double Point::* m': ",
        },
    ),
    text(
        "results that cannot be returned are said",
        """struct Point { double x; };
static Point here;
Point a(int) { return {1}; }
double* b(double* x) { return x; }
const char* c() { return "c"; }
long double d() { return 1; }
double& e(double* x) { return *x; }
rekernel::Array<double, 1> f(rekernel::Array<double, 1> x) { return x; }
enum E { ONE };
E g() { return ONE; }
auto h(double x) { return x; }
const double i() { return 4; }
decltype(1.0f) j() { return 5; }
""",
        "h(x: float64) -> float64",
        "i() -> float64",
        "j() -> float32",
        calls=(("h(2)", 2.0), ("i()", 4.0), ("j()", 5.0)),
        skipped={name: "what it returns" for name in "abcdefg"},
    ),
    text(
        "vectors and strings are no arrays",
        "#include <vector>\n#include <string>\nint f(std::vector<double> v) { return v.size(); }\n"
        "int g(const std::string& s) { return s.size(); }\nint h(std::vector<double>* v) { return 1; }",
        skipped={"f": "'std::vector<double> v'", "g": "'const std::string& s'", "h": "'std::vector<double>* v'"},
    ),
    text(
        "a type of the user's called complex is none",
        "template <class T> struct complex { T a, b; };\nint f(complex<double> z) { return 1; }\n"
        "namespace my { namespace std { template <class T> struct complex { T a, b; }; } }\n"
        "int g(my::std::complex<double> z) { return 1; }\nint h(int n) { return n; }",
        "h(n: int32) -> int32",
        skipped={"f": "a class", "g": "a class"},
    ),
)
