"""How a text is written down: line ends, comments, strings, characters beyond ASCII."""

from __future__ import annotations

from cpptexts import text

_PLAIN = "// scales\nvoid f(double* x,\n       int n) {\n\tfor (int i = 0; i < n; ++i)\n\t\tx[i] *= 2;\n}\n"
_F = "f(x: float64*, n: int32)"
_CALLS = (("written(f, np.ones(2), 2)", [2, 2]),)

ROWS = (
    text("lines end in CR LF", _PLAIN.replace("\n", "\r\n"), _F, calls=_CALLS),
    text("no newline at the end", _PLAIN.rstrip("\n"), _F, calls=_CALLS),
    text("many blank lines and spaces around", "\n \t\n\f\n" + _PLAIN + "\n\n  \n", _F, calls=_CALLS),
    text("all of it indented", "\n".join("    " + line for line in _PLAIN.split("\n")), _F, calls=_CALLS),
    text("all of it on one line", "int f(int x){return x;}int g(int x){return f(x);}", "f(x: int32) -> int32",
         "g(x: int32) -> int32", calls=(("g(1)", 1),)),
    text("a byte-order mark in front", "\ufeff" + _PLAIN, _F, calls=_CALLS),
    text("a byte-order mark in front of a directive", "\ufeff#include <cmath>\n" + _PLAIN, _F, calls=_CALLS),
    text("a comment at the end", _PLAIN + "// the end", _F, calls=_CALLS),
    text("a comment at the end with a backslash", _PLAIN + "// the end \\", _F, calls=_CALLS),
    text("a backslash at the very end", _PLAIN + "\\", _F, calls=_CALLS),
    text("a backslash and blanks at the very end", _PLAIN + "// c \\  ", _F, calls=_CALLS),
    text("a directive at the end", _PLAIN + "#define LAST 1", _F, calls=_CALLS),
    text("a directive at the end with a backslash", _PLAIN + "#define LAST 1 \\", _F, calls=_CALLS),
    text("a pragma at the end", _PLAIN + "#pragma GCC diagnostic pop", _F, calls=_CALLS),
    text("a block comment at the end", _PLAIN + "/* the\nend */", _F, calls=_CALLS),
    text("a comment that a backslash makes longer", "// hidden \\\nint g(int) { return 0; }\n" + _PLAIN, _F, calls=_CALLS),
    text("code in comments and strings", '/* int a() { return 1; } */ // int b() {\nconst char* s = "int c() { /*";\n'
         + _PLAIN + 'const char* t = "*/ // }";', _F, calls=_CALLS),
    text("code behind #if 0 and quotes in comments", "// don't\n/* \" */\n" + _PLAIN + "// it's\n", _F, calls=_CALLS),
    text("raw strings with braces", 'static const char* s = R"(int a() { ")";\nstatic const char* t = R"x(}} )" )x";\n'
         'int f() { return s[0] + (t[0] == \'}\') + sizeof(R"({{{\n)"); }', "f() -> int32", calls=(("f()", 111),)),
    text("character literals of all kinds", "int f() { return '\"' + '\\'' + '{' + '\\\\' + u'}' + U'(' + L')' + u8'a'; }",
         "f() -> int32", calls=(("f()", sum(map(ord, "\"'{\\}()a"))),)),
    text("digit separators and literals", "long f() { return 1'000'000 + 0b1010 + 0x1p3 + 1e3 + 017 + 0xFFul; }",
         "f() -> int64", calls=(("f()", 1000000 + 10 + 8 + 1000 + 15 + 255),)),
    text("line splices inside of names", "int lo\\\nng_name(int x) { ret\\\nurn x; }", "long_name(x: int32) -> int32",
         calls=(("long_name(1)", 1),)),
    text("line splices between words", "int \\\nf \\\n(int \\\n x) \\\n{ return \\\n x; }", "f(x: int32) -> int32",
         calls=(("f(1)", 1),)),
    text("line splices of CR LF", "int \\\r\nf(int x)\\\r\n{ return x; } // a \\\r\n b\r\n", "f(x: int32) -> int32",
         calls=(("f(1)", 1),)),
    text("comments in every place", "/*a*/int/*b*/f/*c*/(/*d*/int/*e*/x/*f*/,/*g*/double*/*h*/y//i\n)/*j*/{/*k*/return x;}//l",
         "f(x: int32, y: float64*) -> int32", calls=(("f(1, np.ones(1))", 1),)),
    text("comments in the heads of overloads", "int f(int /* a */ x) /* b */ { return 1; }\n"
         "int f(double // c\n  x) { return 2; }\nint f(/* none */) { return 3; }",
         "f(x: int32) -> int32", "f(x: float64) -> int32", "f() -> int32",
         calls=(("f(1)", 1), ("f(1.5)", 2), ("f()", 3))),
    text("UTF-8 in comments and strings", "// größer ☃ 🐍\nconst char* s = \"日本語\";\n" + _PLAIN, _F, calls=_CALLS),
    text("UTF-8 in names", "double größe(double λ, double Δx) { return λ * Δx; }",
         "größe(λ: float64, Δx: float64) -> float64", calls=(("größe(2, Δx=3)", 6.0),)),
    text("UTF-8 names of overloads and namespaces", "namespace физика { double сила(double м) { return м; }\n"
         "double сила(int м) { return 2 * м; } }", "сила(м: float64) -> float64", "сила(м: int32) -> float64",
         calls=(("сила(1.5)", 1.5), ("сила(1)", 2.0))),
    text("names with $", "int a$b(int x) { return x; }",
         "a$b(x: int32) -> int32", calls=(("getattr(m, 'a$b')(1)", 1),)),
    text("alternative words for operators", "bool f(int a, int b) { return a not_eq b and not (a bitand b) or false; }",
         "f(a: int32, b: int32) -> bool", calls=(("f(1, 2)", True), ("f(1, 1)", False))),
    text("form feeds and vertical tabs", "int\ff(int\vx) { return x; }\f\n\vint g() { return 1; }\n", "f(x: int32) -> int32",
         "g() -> int32", calls=(("f(1)", 1),)),
    text("an empty text", "", calls=()),
    text("a text of blanks", " \n\t\n", calls=()),
    text("a text of one comment", "// nothing yet", calls=()),
    text("a text of one block comment", "/* nothing\n yet */\n", calls=()),
    text("a text of types and variables only", "struct P { int x; };\nstatic int n = 3;\nint v;\nusing real = float;\n", calls=()),
    text("a text of helpers only", "static inline int help(int x) { return x; }\n", calls=()),
    text("a stray semicolon after a function", "int f(int x) { return x; };\n;;\nnamespace a { int g() { return 1; }; };\n",
         "f(x: int32) -> int32", "g() -> int32", calls=(("g()", 1),)),
    text("a module of 300 lines", "#include <cmath>\n" + "".join(
        f"/// Step {n}.\nvoid step{n}(rekernel::Array<double, 2> u, double k) {{\n  for (int i = 0; i < u.shape(0); ++i)\n"
        f"    for (int j = 0; j < u.shape(1); ++j)\n      u(i, j) += k * std::sqrt({n}.0);\n}}\n\nstatic double help{n}(double x) {{\n"
        f"  return x * {n};\n}}\n\ndouble use{n}(double x) {{ return help{n}(x); }}\n\n" for n in range(22)),
        *(row for n in range(22) for row in (f"step{n}(u: float64[:, :], k: float64)", f"use{n}(x: float64) -> float64")),
        calls=(("written(step4, np.ones((1, 2)), 1)", [[3, 3]]), ("use21(2)", 42.0))),
    text("a nul-free text with a very long line", f"int f(int x) {{ return x{' + 1' * 3000}; }}", "f(x: int32) -> int32",
         calls=(("f(1)", 3001),)),
)  # fmt: skip
