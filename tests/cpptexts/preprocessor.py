"""What the preprocessor does to a text: conditions, macros, includes."""

from __future__ import annotations

from cpptexts import text

_HOSTILE = "T N run call describe size data shape stride index value code part parameter slot error frame kind count f_"

ROWS = (
    text(
        "#ifdef chooses among functions, taken",
        "#define FAST\n#ifdef FAST\nint f(int x) { return 1; }\n#else\nint f(double x) { return 2; }\n#endif\n",
        "f(x: int32) -> int32",
        calls=(("f(0)", 1),),
    ),
    text(
        "#ifdef chooses among functions, not taken",
        "#ifdef FAST\nint f(int x) { return 1; }\nint only() { return 1; }\n#else\nint f(double x) { return 2; }\n#endif\n",
        "f(x: float64) -> int32",
        calls=(("f(0)", 2),),
    ),
    text(
        "#ifdef looks at the flags of the load",
        "#ifdef FAST\nint f(int x) { return 1; }\n#else\nint f(double x) { return 2; }\n#endif\n",
        "f(x: int32) -> int32",
        calls=(("f(0)", 1),),
        flags="-DFAST",
    ),
    text(
        "#if, #elif, #elifdef-free chains and #else",
        "#define WAY 2\n#if WAY == 1\nint a() { return 1; }\n#elif WAY == 2\nint b() { return 2; }\n"
        "#elif WAY == 3\nint c() { return 3; }\n#else\nint d() { return 4; }\n#endif\n"
        "#if WAY > 5 || defined(NEVER)\nint e() { return 5; }\n#else\nint g() { return 6; }\n#endif\n",
        "b() -> int32",
        "g() -> int32",
        calls=(("b()", 2), ("g()", 6)),
    ),
    text(
        "conditions in conditions, with comments and splices",
        "#define A 1 /* one */\n#if A // really\n#  if \\\n  defined(B)\nint f() { return 1; }\n#  else /* else */\n"
        "int f() { return 2; }\n#  endif\n#else\nint f() { return 3; }\n#endif // A\nint g() { return f(); }",
        "f() -> int32",
        "g() -> int32",
        calls=(("g()", 2),),
    ),
    text(
        "#if 0 hides what does not parse",
        "#if 0\nthis is { not C++ ((\nint f(int) { }\n#endif\nint g() { return 1; }\n",
        "g() -> int32",
        calls=(("g()", 1),),
    ),
    text(
        "an include guard around everything",
        "#ifndef HEAT_H\n#define HEAT_H\nint f() { return 1; }\n#endif\n",
        "f() -> int32",
        calls=(("f()", 1),),
    ),
    text(
        "#pragma once in the text",
        "#pragma once\nint f() { return 1; }\n",
        "f() -> int32",
    ),
    text(
        "the familiar guard of C and C++",
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int x) { return x; }\n#ifdef __cplusplus\n}\n#endif\n',
        "f(x: int32) -> int32",
        calls=(("f(1)", 1),),
    ),
    text(
        "a macro that a condition asks for is undefined later",
        "#define FAST 1\n#if FAST\nint f(int x) { return 1; }\n#endif\n#undef FAST\nint g() { return 2; }\n",
        "f(x: int32) -> int32",
        "g() -> int32",
        calls=(("f(0)", 1),),
    ),
    text(
        "#ifdef inside of a function and in its head",
        "int f(int x\n#ifdef MORE\n  , int y\n#endif\n) {\n#ifdef MORE\n  return y;\n#else\n  return x;\n#endif\n}\n"
        "int g() { return 4; }",
        "f(arg0: int32) -> int32",
        "g() -> int32",
        calls=(("f(3)", 3), ("g()", 4)),
    ),
    text(
        "two heads, one body",
        "#ifdef DOUBLE\ndouble f(double x)\n#else\nfloat f(float x)\n#endif\n{\n  return 2 * x;\n}\nint g() { return 1; }",
        "f(x: float32) -> float32",
        "g() -> int32",
        calls=(("f(1.5)", 3.0), ("g()", 1)),
    ),
    text(
        "a macro as a function's mark",
        '#define KERNEL\n#define API __attribute__((visibility("default")))\n#define FORCE inline __attribute__((always_inline))\n'
        "KERNEL int f(int x) { return x; }\nAPI int g(int x) { return x; }\nFORCE int h(int x) { return x; }\n"
        "KERNEL void i(double* x) { x[0] = h(2); }",
        "f(x: int32) -> int32",
        "g(x: int32) -> int32",
        "i(x: float64*)",
        calls=(("f(1)", 1), ("g(2)", 2), ("written(i, np.zeros(1))", [2])),
    ),
    text(
        "functions that a macro makes",
        "#define MAKE(name, type) type name(type x) { return x; }\nMAKE(f, double)\nMAKE(g, int)\nint h(int x) { return g(x); }",
        "f(x: float64) -> float64",
        "g(x: int32) -> int32",
        "h(x: int32) -> int32",
        calls=(("f(1.5)", 1.5), ("g(2)", 2), ("h(3)", 3)),
    ),
    text(
        "a macro names a function",
        "#define NAME(x) x##_double\n#define step step_v2\nint step(int x) { return x; }\nint g() { return step(2); }",
        "step(x: int32) -> int32",
        "g() -> int32",
        calls=(("step(1)", 1), ("g()", 2)),
    ),
    text(
        "a function-like macro with the name of a kernel",
        "int f(int x) { return x; }\n#define f(x) (2 * (x))\nint g(int x) { return f(x); }\nstatic int max_of(int a) { return a; }",
        "f(x: int32) -> int32",
        "g(x: int32) -> int32",
        calls=(("f(1)", 1), ("g(1)", 2)),
    ),
    text(
        "macros with the names of our own text",
        "".join(f"#define {name} @\n" for name in _HOSTILE.split()) + "double f(double* x) { return x[0]; }",
        "f(x: float64*) -> float64",
        calls=(("f(np.ones(1))", 1.0),),
    ),
    text(
        "macros with the names of keywords of the entry",
        "#define int64 @\n#define step_ @\n#define slot_ @\n#define from_ @\n#define REKERNEL @\n#define OWN @\n"
        "int f(rekernel::Array<float, 2> x) { return x.size(); }\n#define f2 @\n#define size @\n",
        "f(x: float32[:, :]) -> int32",
        calls=(("f(np.ones((2, 3), 'f4'))", 6),),
    ),
    text(
        "macros given as flags",
        "int f(void) { return N * T(3); }",
        "f() -> int32",
        calls=(("f()", 24),),
        flags=["-DN=8", "-DT=int", "-Dn=7", "-Dx=x"],
    ),
    text(
        "a #define after its use, and one over many lines",
        "int f(int x) { return x; }\n#define x 7\n#define TWICE(a) \\\n  ((a) + \\\n   (a))\nint g(int y) { return TWICE(y) + x; }",
        "f(x: int32) -> int32",
        "g(y: int32) -> int32",
        calls=(("g(1)", 9), ("f(2)", 2)),
    ),
    text(
        "system headers in any order",
        "#include <vector>\n#include <cstdint>\n#include <cmath>\n#include <cstddef>\n#include <stdint.h>\n#include <stdlib.h>\n"
        "#include <cstring>\n#include <stddef.h>\n#include <math.h>\nusing namespace std;\n"
        "int64_t f(uint8_t a, size_t b, std::int32_t c) { return a + b + c; }\ndouble g(double x) { return sqrt(x); }",
        "f(a: uint8, b: uint64, c: int32) -> int64",
        "g(x: float64) -> float64",
        calls=(("f(1, 2, 3)", 6), ("g(4)", 2.0)),
    ),
    text(
        "<cstdint> is not needed and does not disturb",
        "uint16_t f(int_fast8_t a, uint_least64_t b) { return a + b + UINT8_MAX; }\n",
        "f(a: int8, b: uint64) -> uint16",
        calls=(("f(1, 2)", 258),),
        flags="-include cstdint",
    ),
    text(
        "#include after a function",
        "int f(int x) { return x; }\n#include <cmath>\ndouble g(double x) { return std::floor(x); }",
        "f(x: int32) -> int32",
        "g(x: float64) -> float64",
        calls=(("g(1.5)", 1.0),),
    ),
    text(
        "__has_include",
        '#if __has_include(<cmath>) && !__has_include("never.h")\n#include <cmath>\ndouble f(double x) { return std::sqrt(x); }\n'
        "#else\ndouble g(double x) { return x; }\n#endif",
        "f(x: float64) -> float64",
        calls=(("f(4)", 2.0),),
    ),
    text(
        "the macros that say what a compiler is",
        "#if defined(REKERNEL) && defined(NDEBUG) && __cplusplus >= 201703L\nint f() { return 1; }\n#endif\n"
        "#ifdef REKERNEL_DEBUG\nint g() { return 2; }\n#endif\nint line() { return __LINE__; }",
        "f() -> int32",
        "line() -> int32",
        calls=(("line()", 7),),
    ),
    text(
        "#line and #pragma lines of all kinds",
        '#pragma GCC optimize("O1")\n#pragma STDC FP_CONTRACT OFF\n#pragma unknown thing\n#pragma GCC diagnostic push\n'
        "int f(int x) { return x; }\n#pragma GCC diagnostic pop\n#\n# pragma message_free\n",
        "f(x: int32) -> int32",
    ),
    text(
        "a helper header in a folder of include_dirs-free texts",
        '#include "sub/help.h"\nint f(int x) { return help(x); }\n',
        "f(x: int32) -> int32",
        calls=(("f(2)", 5),),
        headers={
            "sub/help.h": '#pragma once\n#include "more.h"\ninline int help(int x) { return more(x) + 1; }\n',
            "sub/more.h": "inline int more(int x) { return 2 * x; }\n",
        },
    ),
    text(
        "an X macro",
        "#define EACH(X) X(1) X(2) X(3)\n#define ADD(n) + n\nint f() { return 0 EACH(ADD); }",
        "f() -> int32",
        calls=(("f()", 6),),
    ),
    text(
        "variadic macros and stringification",
        "#define SUM(...) sum_of({__VA_ARGS__})\n#define TEXT(x) #x\nstruct L { int a, b; };\n"
        "static int sum_of(L l) { return l.a + l.b; }\nint f() { return SUM(1, 2) + sizeof(TEXT({)); }",
        "f() -> int32",
        calls=(("f()", 5),),
    ),
    text(
        "a static function made by a macro, called by a kernel",
        "#define CLAMP(type) static type clamp(type x) { return x < 0 ? 0 : x; }\nCLAMP(double)\nCLAMP(int)\n"
        "double f(double x) { return clamp(x) + clamp(-1); }",
        "f(x: float64) -> float64",
        calls=(("f(-2)", 0.0), ("f(2)", 2.0)),
    ),
    text(
        "a typedef under a condition",
        "#ifdef USE_DOUBLE\ntypedef double real;\n#else\ntypedef float real;\n#endif\nreal f(real x) { return x; }",
        "f(x: float64) -> float64",
        flags=["-D", "USE_DOUBLE"],
    ),
)
