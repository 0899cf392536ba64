"""Reading C++ texts: names, lines, comments and conditions, from whatever somebody has typed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")

from cpptexts import broken, functions, habits, lexical, preprocessor, types
from rekernel.languages import detect, plain
from rekernel.languages.cpp import CPP, CppDraft
from rekernel.languages.cpp.macros import has_c_restrict, written_out
from rekernel.languages.cpp.reading import Reading, read
from rekernel.source import Source

GOOD = [*types.ROWS, *functions.ROWS, *preprocessor.ROWS, *lexical.ROWS, *habits.ROWS]
TEXTS = [row.code for row in (*GOOD, *broken.ROWS) if len(row.code) < 4000]


def one(text):
    """Read a text of one function."""
    (candidate,) = read(text).candidates
    return candidate


def names(text):
    return [candidate.name for candidate in read(text).candidates]


def drafted(text):
    return CppDraft(Source(text, "cpp"), "t", 1)


# ---- places and words ----


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("int f() { return 1; }", 1),
        ("\n\nint f() { return 1; }", 3),
        ("// a\n/* b\n c */\nint\nf() { return 1; }", 4),
        ("#define A 1 \\\n  + 2\nint f() { return 1; }", 3),
        ("int a = \\\n 1; int b = \\\n 2;\n\nint f() { return 1; }", 5),
        ("\r\n\r\nint f() { return 1; }\r\n", 3),
        ('const char* s = R"(\n\n)";\nint f() { return 1; }', 4),
        ("#define MAKE(n) int n() { return 1; }\n\nMAKE(f)", 3),
        ("#define MAKE(n) \\\n  int n() { \\\n    return 1; }\nMAKE(f)", 4),
        ("#if 1\n#else\n#endif\n\tint f() { return 1; }", 4),
    ],
)
def test_a_function_is_on_the_line_that_it_begins_on(text, line):
    assert one(text).line == line


@pytest.mark.parametrize(
    ("text", "doc"),
    [
        ("/// Scales.\nvoid f() {}", "Scales."),
        ("//! Scales.\n//!  Twice.\nvoid f() {}", "Scales.\n Twice."),
        ("/** Scales.\n *  Twice.\n */\nvoid f() {}", "Scales.\n Twice."),
        ("/* Scales. */\nvoid f() {}", "Scales."),
        ("// Scales.\n\nvoid f() {}", None),
        ("int a; // the number\nvoid f() {}", None),
        ("// one\n\n// two\nvoid f() {}", "two"),
        ("/// größer ☃\r\nvoid f() {}\r\n", "größer ☃"),
        ("/// Scales.\ntemplate <class T> void f(T) {}\ntemplate void f(int);", "Scales."),
        ('/// Scales.\nextern "C" void f() {}', "Scales."),
        ("#define out\n/// Fills out.\nvoid f(int* out) {}", "Fills out."),
        ("#define API static\n#undef API\n// API of heat\nvoid f() {}", "API of heat"),
        ("void f() {}", None),
        ("//\nvoid f() {}", None),
    ],
)
def test_the_comment_above_a_function_is_its_doc(text, doc):
    assert one(text).doc == doc


@pytest.mark.parametrize(
    ("parameters", "spelled"),
    [
        ("", []),
        ("void", []),
        ("double x", ["x"]),
        ("double", ["arg0"]),
        ("double *x, const float* const *y", ["x", "y"]),
        ("double x[], double y[][4], double (*z)[4]", ["x", "y", "z"]),
        ("void (*call)(int a, int b), int n", ["call", "n"]),
        ("double (&m)[3]", ["m"]),
        ("rekernel::Array<double, 2> x = {}, int n = f(1, 2)", ["x", "n"]),
        ("const std::array<double, 3>& x", ["x"]),
        ("[[maybe_unused]] int a, int b [[maybe_unused]], int c __attribute__((unused))", ["a", "b", "c"]),
        ("struct P p, enum E e, unsigned long long int n", ["p", "e", "n"]),
        ("int a /* first */, /* second */ int b // last\n", ["a", "b"]),
        ("int\\\n a", ["a"]),
        ("double* RESTRICT y, const double* MY_RESTRICT x", ["y", "x"]),
        ("double* __restrict y, double* const __restrict x, double * __restrict__ const z", ["y", "x", "z"]),
        ("float _Complex z, double _Complex *w", ["z", "w"]),
        ("ARRAY(2) x, int n", ["x", "n"]),
        ("double λ, int größe", ["λ", "größe"]),
        ("double&& a, auto* b", None),
    ],
)
def test_parameters_have_the_names_that_are_written(parameters, spelled):
    found = read(f"void f({parameters}) {{}}").candidates
    assert [argument.name for argument in found[0].arguments] == spelled if found else spelled is None


@pytest.mark.parametrize(
    ("text", "promised"),
    [
        ("void f(double* restrict x, double* y) {}", [True, False]),
        ("void f(double* __restrict x, double* __restrict__ y) {}", [True, True]),
        ("void f(double* const __restrict x, const double* y) {}", [True, False]),
        ("#define R __restrict__\nvoid f(double* R x, double* y) {}", [True, False]),
        ("#define IN const double* __restrict__\nvoid f(IN x, double* y) {}", [True, False]),
        ("typedef double* __restrict__ out;\nvoid f(out x, double* y) {}", [True, False]),
        ("using out = double* __restrict__;\nvoid f(out x, double* y) {}", [True, False]),
        ('#include "config.h"\nvoid f(double* MY_RESTRICT x, double* y) {}', [True, False]),
        ("void f(double* restricted, double* my_restrict) {}", [False, False]),
        ("template <class T> void f(T* __restrict x, T* y) {}\ntemplate void f(int*, int*);", [True, False]),
        ("void f(double* x, double* y) { double* __restrict z = x; }", [False, False]),
    ],
)
def test_restrict_is_seen_where_it_is_promised(text, promised):
    assert [argument.restrict for argument in one(text).arguments] == promised


@pytest.mark.parametrize(
    ("text", "is_c"),
    [
        ("void f(double* restrict x) {}", True),
        ("void f(double *restrict x, double*restrict y) {}", True),
        ("void f(double* const restrict x) {}", True),
        ("void f(double * restrict, int n) {}", True),
        ("double restrict(double x) { return 2 * restrict(x); }", False),
        ("double f() { double restrict = 1; return 2 * restrict; }", False),
        ("void f(double* __restrict x) {}", False),
        ("int f() { return 1; }", False),
    ],
)
def test_restrict_may_be_a_name(text, is_c):
    assert has_c_restrict(text) is is_c


def test_conditions_are_those_that_hold_after_the_text():
    text = (
        "#ifdef A\n#if B > 1 && \\\n  C\nvoid f() {}\n#elif D // or so\nvoid g() {}\n#else\nvoid h() {}\n#endif\n"
        "#else\nvoid i() {}\n#endif\nvoid j() {}\n"
    )
    conditions = {candidate.name: candidate.conditions for candidate in read(text).candidates}
    assert conditions["f"] == ("#ifdef A", "#if B > 1 &&   C")
    assert conditions["g"] == ("#ifdef A", "#if B > 1 &&   C", "#elif D // or so")
    assert conditions["h"] == (*conditions["g"], "#else")
    assert conditions["i"] == ("#ifdef A", "#else")
    assert conditions["j"] == ()


@pytest.mark.parametrize(
    "text",
    [
        "#ifndef GUARD\n#define GUARD\nvoid f() {}\n#endif",
        "#define A 1\n#if A\nvoid f() {}\n#endif\n#undef A",
        "#if A\n#else\nvoid f() {}\n#endif\n#define A 1",
    ],
)
def test_a_condition_whose_macro_changes_is_not_asked_again(text):
    assert one(text).conditions == ()


def test_an_outer_guard_does_not_hide_an_inner_condition():
    text = "#ifndef GUARD\n#define GUARD\n#ifdef FAST\nvoid f() {}\n#endif\n#endif"
    assert one(text).conditions == ("#ifdef FAST",)


# ---- what is found ----


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("void f() {} void g() {}", ["f", "g"]),
        ("void f();", []),
        ("static void f(); void f() {}", []),
        ("static void f(int); void f() {}", ["f"]),
        ("inline void f(); void g() {}", ["g"]),
        ("namespace { void f() {} }", []),
        ("struct S { void f() {} }; void S::g() {}", []),
        ("void f() {} int g", ["f"]),
        ("void f() { if (1) { } void g() {}", None),
        ("#define FIELD(T, N) rekernel::Array<T, N>\nvoid f(FIELD(double, 2) u, FIELD(const float, 1) v) {}", ["f"]),
        ("#if 0\n}}} ((\n#endif\nvoid f() {}", ["f"]),
        ("#define API\nAPI void f() {}\nAPI static void g() {}", ["f"]),
        ("#define LOCAL static inline\nLOCAL void f() {}\nvoid g() {}", ["g"]),
        ('#define KERNEL extern "C" __attribute__((visibility("default")))\nKERNEL void f() {}', ["f"]),
        ("#define MAKE(n, T) T n(T x) { return x; }\nMAKE(f, int)\nMAKE(g, double);\nvoid h() {}", ["f", "g", "h"]),
        ("#define MAKE(T) void f_##T(T x) {}\nMAKE(int)\nMAKE(float)", ["f_int", "f_float"]),
        ("#define BOTH(n) MAKE(n, int)\n#define MAKE(n, T) T n(T x) { return x; }\nBOTH(f)", []),
        ("#define MAKE(n, ...) void n(__VA_ARGS__) {}\nMAKE(f, int a, int b)", ["f"]),
        ("#define F(x) x\nvoid f() {}\nF(1)", ["f"]),
        ("#define LOOP(x) LOOP(x) {\nLOOP(1)\nvoid f() {}", None),
        ("", []),
        ("\ufeff", []),
        ("\0", []),
    ],
)
def test_functions_are_found_among_other_things(text, found):
    assert found is None or names(text) == found


def test_only_defaults_at_the_end_are_calls_with_fewer_arguments():
    found = read("void f(int a, int b = 1, int c = 2) {}").candidates
    assert [(len(candidate.arguments), candidate.fewer) for candidate in found] == [(3, False), (2, True), (1, True)]
    assert [len(candidate.arguments) for candidate in read("void f(int a = 1, int b) {}").candidates] == [2]


def test_a_draft_names_what_a_text_may_be_called_after():
    draft = drafted("template <class T> T f(T x) { return x; }\nint main() { return 0; }")
    assert draft.kernels == ()
    assert draft.titles == ("f", "main")
    assert [kernel.name for kernel in drafted("int f() { return 1; }\nint g() { return 1; }").values()] == ["f", "g"]


# ---- whatever has been typed ----

_PIECES = st.sampled_from(
    [
        "{", "}", "(", ")", "<", ">", "[", "]", ";", ",", "=", "*", "&", "::", "...", "//", "/*", "*/", '"', "'", 'R"(',
        ')"', "\\", "\\\n", "\n", "\r\n", "#", "#if 1\n", "#else\n", "#endif\n", "#define A(x) x {\n", "A(1)\n", "auto ",
        "template <class T> ", "template ", "operator", "static ", "namespace a ", 'extern "C" ', "struct S ", "void ",
        "restrict ", "typedef ", "~", "\ufeff", "\0", "é", "\ud800", "default", " = 1", "noexcept",
    ]
)  # fmt: skip


@st.composite
def mutated(draw):
    """A text of the suite with parts taken out, doubled, or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        middle = draw(st.one_of(st.just(""), _PIECES, st.text(max_size=3), st.just(text[start:end] * 2)))
        text = text[:start] + middle + text[end:]
    return text


def check(text):
    """Reading, recognising and detecting a text end, and say something that fits it."""
    reading = read(text)
    assert isinstance(reading, Reading)
    lines = text.count("\n") + 1
    assert all(1 <= candidate.line <= lines for candidate in reading.candidates)
    assert all(candidate.name and candidate.name not in reading.skipped for candidate in reading.candidates)
    assert reading.wrong_line is None or 1 <= reading.wrong_line <= lines
    mark = CPP.recognise(text)
    assert mark is None or mark
    try:
        found = detect(text).name
    except ValueError as error:
        found = str(error)
    assert found == "cpp" if mark and "more than one" not in found else found


@given(mutated())
@example("int a::(int x) { return x; }")
@example("template <class T> T f(T x) { return x; }>(doubl::(int x) { return 3 * x; }")
@example("int f(" * 30)
@example("template <>")
@example("template void;")
@example("void f(int = ")
@example('extern "C"')
@example("namespace a::b::c")
@example("#if\n#elif\n#else\n#endif\nvoid f() {}")
@example("void operator()() {}")
@example("#define A(\nA()\n")
def test_no_text_is_too_wrong_to_read(text):
    check(text)


@given(st.text(max_size=300))
def test_any_characters_can_be_read(text):
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 100_000, "x\n" * 100_000, "int f(a)\n" * 10_000, "int f(" * 10_000, "a<" * 20_000, "a<\n" * 20_000, "/*" * 50_000,
        '"' * 20_001, "'" * 20_001, 'R"(' * 20_000, "\\ " * 50_000, "\\\n" * 20_000, "{" * 20_000, "(" * 20_000,
        "namespace a {" * 2_000 + "}" * 2_000, "void f() {}\n" * 3_000, "void f(int a = " + "(" * 3_000 + "1" + ")" * 3_000 + ") {}",
        "#define A(x) x {\n" * 500 + "A(1)\n" * 500, "int f(int x) { return x" + " + 1" * 50_000 + "; }",
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
@pytest.mark.timeout(60)
def test_long_texts_take_no_endless_time(text):
    assert isinstance(read(text), Reading)
    assert CPP.recognise(text) is None or len(text) > 0


@pytest.mark.parametrize(
    "text",
    [
        "import taichi as ti\n\n@ti.kernel\ndef f(x: ti.f32) -> ti.f32:\n    table = {1: 2}\n    return x\n",
        "def f(a):\n    raise ValueError('x')\n\ndef g(b):\n    return {b: 1}\n",
        'def f():\n    """Runs the text.\n\n    int f(int x) { return x; }\n    """\n',
        "with open(name) as f:\n    x = y(f)\n\nz = {}\n",
        "print (x)\n{1: 2}\n",
        "# int f(int x)\n{}\n",
        "yield live\n\nreturn\n\ndef names(lives: Iterable[Live]) -> set[str]:\n    return {one.name for one in lives}\n",
        "extern __global__ void f(float* x) { x[0] = 1; }",
        "u = ps.fields('u: double[2D]')\nps.Assignment(u[0, 0], 1)",
    ],
)
def test_other_languages_are_not_taken_for_cpp(text):
    assert CPP.recognise(plain(text)) is None


def test_written_out_texts_have_as_many_lines():
    for text in TEXTS:
        assert written_out(text).count("\n") == text.count("\n"), text
