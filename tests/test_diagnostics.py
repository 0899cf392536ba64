"""What compilers say, as data: real runs of each that is installed, documents of others, damaged documents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.diagnostics import format_flags, parse, point, render
from rekernel.errors import Diagnostic
from rekernel.gnumessages import source_lines
from rekernel.toolchain import CompileFailed, Product, build, probe

COMPILERS = {"g++": GccInfo, "clang++": ClangInfo}
OWN = {"kernel.cpp"}

# --- real runs -----------------------------------------------------------------------------------------------

HEADERS = {
    "a.h": '\n#include "b.h"\n',
    "b.h": "int before;\nint y = nowhere;\n",
    "c.h": '#include "does_not_exist.h"\n',
    "m.h": "#define INNER(x) ((x) + nowhere)\n#define OUTER(x) INNER(x)\n",
    "t.h": "template <class T> int deep(T x) { return x.foo(); }\ntemplate <class T> int g(T x) { return deep(x); }\n",
}
LONG = "int f() { return /*" + "x" * 3000 + "*/ sr; }\n"
# name: text, line, column (None: not compared), what the message says
ERRORS: dict[str, tuple[str, int, int | None, str]] = {
    "an unknown name": ("// ü\n/* ü */\tint f() { return sr; }\n", 2, 26, "'sr'"),
    "a forgotten semicolon": ("int f() { return 1 }\n", 1, 19, "expected ';'"),
    "a wrong type": ("int *f(double ü) { return ü; }\n", 1, 27, "double"),
    "a brace that is never closed": ("int f() {\n    return 1;\n", 2, None, "expected '}'"),
    "a mistake in a header of a header": ('int x;\n#include "a.h"\n', 2, None, "in b.h:2: .*nowhere"),
    "a header that is missing": ('int x;\n#include "does_not_exist.h"\n', 2, 10, "does_not_exist.h"),
    "a header that a header misses": ('int x;\n#include "c.h"\n', 2, None, "in c.h:1: .*does_not_exist.h"),
    "a mistake in a macro": ("#define M(x) ((x) + nowhere)\nint f() { return M(2); }\n", 2, 18, "nowhere"),
    "a macro in a macro": (
        "#define A(x) x + nowhere\n#define B(x) A(x)\nint f() {\n\treturn B(2); }\n", 4, 9, "nowhere",
    ),
    "a macro of a header": ('#include "m.h"\nint f() { return OUTER(2); }\n', 2, 18, "nowhere"),
    "a template": ("template <class T> int g(T x) { return x.foo(); }\nint f() { return g(3); }\n", 1, None, "int"),
    "a template of a header": ('#include "t.h"\nint f() {\n  return g(3);\n}\n', 3, None, "in t.h:1: .*'int'"),
    "a template of the C++ library": (
        "#include <vector>\nstruct N { N(int); };\nvoid f() {\n  std::vector<N> v(3);\n}\n", 4, None, r"in .*\.h:\d+: no match",
    ),
    "#error": ('int x;\n#error "not ü"\n', 2, 2, "not (ü|\")"),  # Clang 14 leaves out what is not ASCII
    "static_assert": ('int x;\nstatic_assert(sizeof(int) == 3, "so ß");\n', 2, None, r"so (ß|\\303\\237)"),
    "a name that is not ASCII": ("int ä = fö;\n", 1, 9, "fö"),
    "lines that end in CR LF": ("int a;\r\nint f() { return sr; }\r\n", 2, 18, "'sr'"),
    "a very long line": (LONG, 1, LONG.index("sr") + 1, "'sr'"),
    "a byte of zero": ("int f() { return \0 sr; }\n", 1, 20, "'sr'"),
    "a byte that is no UTF-8": ("/* \udce4 */ int f() { return sr; }\n", 1, 26, "'sr'"),
    "a message that is no UTF-8": ("int x;\n#error \udce4\n", 2, 2, ""),
    "a quote in a literal": ('int f() { return sr["\\"\\\\"]; }\n', 1, 18, "'sr'"),
}  # fmt: skip


@pytest.fixture(params=COMPILERS)
def info(request: pytest.FixtureRequest) -> CompilerInfo:
    """One compiler after the other."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return COMPILERS[request.param](optlevel="0", target="generic")


@pytest.fixture
def make(info: CompilerInfo, tmp_path: Path) -> Callable[..., Product]:
    """Build a text that says what its own name is, with headers beside it."""
    for name, text in HEADERS.items():
        (tmp_path / name).write_text(text)

    def made(text: str, name: str = "kernel.cpp", **options: Any) -> Product:
        options = {"workdir": tmp_path / "work", "include_dirs": [tmp_path], **options}
        return build(options.pop("toolchain", probe(info)), info, f'int glue;\n#line 1 "{name}"\n{text}', **options)

    return made


def failure(make: Callable[..., Product], text: str, **options: Any) -> CompileFailed:
    with pytest.raises(CompileFailed) as caught:
        make(text, **options)
    return caught.value


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_at_the_users_line(make: Callable[..., Product], name: str) -> None:
    import re

    text, line, column, said = ERRORS[name]
    error = failure(make, text)
    found = point(error.diagnostics, OWN)
    assert (found.filename, found.line, found.severity) == ("kernel.cpp", line, "error")
    assert re.search(said, found.message)
    assert "\n" not in found.message
    if column is not None:
        assert found.column == column
    if found.text is not None:
        assert found.text == text.split("\n")[line - 1].removesuffix("\r")
    assert found.end_column is None or (found.column is not None and found.column < found.end_column)
    assert "error: " in error.output
    assert '"kind"' not in error.output
    assert not any(word.startswith("-fdiagnostics-format") for word in error.command)


def test_a_redefinition_names_the_first_one(make: Callable[..., Product]) -> None:
    error = failure(make, "int f() { return 1; }\n\nint f() { return 2; }\n")
    first, note = error.diagnostics
    assert (first.severity, first.line, first.column) == ("error", 3, 5)
    assert (note.severity, note.line, note.column) == ("note", 1, 5)
    assert note.message.startswith(("previous definition", "'int f()' previously defined"))
    assert error.output.index(":3:5: error: ") < error.output.index(":1:5: note: ")


def test_all_errors_are_there_in_order(make: Callable[..., Product]) -> None:
    error = failure(make, "int a = x1;\nint b = x2;\nint c = x3;\n")
    assert [(d.line, d.column) for d in error.diagnostics] == [(1, 9), (2, 9), (3, 9)]
    assert all("x" in d.message and d.severity == "error" for d in error.diagnostics)


def test_the_output_is_for_people(make: Callable[..., Product]) -> None:
    output = failure(make, "int a;\n\tint f(int ü) { return sr; }\n").output
    lines = output.split("\n")
    number = next(number for number, line in enumerate(lines) if line.startswith("kernel.cpp:2:"))
    assert "int f(int ü) { return sr; }" in lines[number + 1]
    assert lines[number + 2].strip(" |\t").startswith("^")


@pytest.mark.parametrize("name", ["a b.cpp", 'ü"\\\\.cpp', "%41.cpp", "/no/where/k.cpp"])
def test_the_name_of_a_text_may_be_anything(make: Callable[..., Product], name: str) -> None:
    escaped = name.replace("\\\\", "\\").replace("\\", "\\\\").replace('"', '\\"')
    found = point(failure(make, "\nint a = x1;\n", name=escaped).diagnostics, {name.replace("\\\\", "\\")})
    assert (found.line, found.column, found.text) == (2, 9, "int a = x1;")


def test_a_file_on_disk_of_that_name_changes_nothing(make: Callable[..., Product], tmp_path: Path) -> None:
    path = tmp_path / "disk.cpp"
    path.write_text("ääääää\nääääää\n")
    found = point(failure(make, "// ö\n/* ü */ int a = x1;\n", name=str(path)).diagnostics, {str(path)})
    assert (found.line, found.column, found.text) == (2, 17, "/* ü */ int a = x1;")


def test_warnings_have_places_and_options(make: Callable[..., Product], info: CompilerInfo) -> None:
    info.extra_cxxflags = ["-Wall"]
    product = make("/* ü */ int f() {\n\tint ü = 1;\n\treturn 0;\n}\n")
    (warning,) = product.warnings
    assert (warning.severity, warning.filename, warning.line, warning.column) == ("warning", "kernel.cpp", 2, 6)
    assert "'ü'" in warning.message
    assert warning.message.endswith("[-Wunused-variable]")
    assert "kernel.cpp:2:" in product.output
    assert "warning: " in product.output


def test_without_messages_there_is_no_output(make: Callable[..., Product]) -> None:
    product = make("int f() { return 0; }\n")
    assert (product.output, product.warnings) == ("", ())


def test_an_error_next_to_warnings(make: Callable[..., Product], info: CompilerInfo) -> None:
    info.extra_cxxflags = ["-Wall", "-Werror=unused-variable"]
    found = failure(make, "int f() {\n  int u;\n  int v = 1;\n  v == 2;\n  return v;\n}\n").diagnostics
    assert ("error", 2) in [(d.severity, d.line) for d in found]
    assert ("warning", 4) in [(d.severity, d.line) for d in found]


def test_the_linker_speaks_text(make: Callable[..., Product]) -> None:
    error = failure(make, "int other();\nint f() { return other(); }\n")
    assert "undefined reference to" in point(error.diagnostics, OWN).message
    assert "undefined reference to" in error.output


def test_a_driver_that_does_not_know_the_format_is_asked_again(
    make: Callable[..., Product], info: CompilerInfo, tmp_path: Path
) -> None:
    known = probe(info)
    fake = tmp_path / "driver"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *-fdiagnostics-format*)\n'
        "echo 'g++: error: unrecognized command-line option'; exit 1;; esac\n"
        f'exec {known.driver} "$@"\n'
    )
    fake.chmod(0o755)
    toolchain = replace(known, driver=str(fake))
    assert make("int f() { return 0; }\n", toolchain=toolchain).data
    assert point(failure(make, "int a = x1;\n", toolchain=toolchain).diagnostics, OWN).column == 9


def test_a_compiler_that_dies_in_the_middle_of_a_document(
    make: Callable[..., Product], info: CompilerInfo, tmp_path: Path
) -> None:
    fake = tmp_path / "driver"
    fake.write_text('#!/bin/sh\nprintf \'[{"kind": "error", "mess\'; exit 1\n')
    fake.chmod(0o755)
    error = failure(make, "int a;\n", toolchain=replace(probe(info), driver=str(fake)))
    assert point(error.diagnostics, OWN).severity == "error"
    assert '"kind"' in error.output


# --- the format of each compiler -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("gcc", "gcc version 8.5.0", []),
        ("gcc", "gcc version 9.1.0 (Debian 9.1.0-2)", ["-fdiagnostics-format=json"]),
        ("gcc", "gcc version 14.2.0", ["-fdiagnostics-format=json"]),
        ("gcc", "gcc version 15.1.0", ["-fdiagnostics-format=sarif-stderr"]),
        ("gcc", "a gcc of our own", []),
        ("clang", "clang version 14.0.6", []),
        ("clang", "clang version 22.1.8", []),
    ],
)
def test_the_format_that_a_compiler_is_asked_for(kind: str, version: str, expected: list[str]) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    assert format_flags(replace(probe(GccInfo()), kind=kind, version=version)) == expected


# --- documents -----------------------------------------------------------------------------------------------

TEXT = '// heat\n#include "a.h"\n/* ü */ int f() { return sr; }\nint g() { return M(2); }\n'
SOURCE = source_lines('#line 1 "kernel.cpp"\n' + TEXT, "unit.cpp")


def region(line: int, start: int, end: int, file: str, **more: Any) -> dict[str, Any]:
    """A location as SARIF writes it."""
    where = {"startLine": line, "startColumn": start, "endColumn": end}
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": where, **more}}


def sarif(name: str, *results: dict[str, Any], **more: Any) -> str:
    run = {"tool": {"driver": {"name": name, "rules": []}}, "columnKind": "unicodeCodePoints", **more}
    document = {
        "$schema": "https://docs.oasis-open.org/sarif",
        "version": "2.1.0",
        "runs": [{**run, "results": results}],
    }
    return json.dumps(document, indent=2)


# Written by hand after the SARIF standard and the tests that come with GCC 15: no run of that compiler.
GCC_15 = sarif(
    "GNU C++17",
    {
        "ruleId": "error", "level": "error", "message": {"text": "'sr' was not declared in this scope"},
        "locations": [region(3, 27, 29, "kernel.cpp")],  # bytes: GCC could not read the line
    },
    {
        "ruleId": "-Wfpermissive", "level": "warning", "message": {"text": "in a header"},
        "locations": [
            {"id": 0, **region(1, 5, 6, "inc/b%20c.h", contextRegion={"startLine": 1, "snippet": {"text": "int y;\n"}})}
        ],
        "relatedLocations": [
            {"id": 3, "message": {"text": "previous declaration"}, **region(7, 5, 6, "inc/d.h")},
            {"id": 1, "relationships": [{"target": 0, "kinds": ["includes"]}], **region(2, 2, 3, "kernel.cpp")},
        ],
    },
    {
        "ruleId": "error", "level": "error", "message": {"text": "a line that GCC could read"},
        "locations": [region(3, 26, 28, "kernel.cpp", contextRegion={"startLine": 3, "snippet": {"text": "..."}})],
        "relatedLocations": [{"id": 0, **region(4, 1, 2, "kernel.cpp")}],  # only a second place, not a way
    },
    invocations=[{"toolExecutionNotifications": []}],
)  # fmt: skip
# The same for Clang, after runs of Clang 16 to 22: ranges first, the place itself last and without width.
CLANG_19 = sarif(
    "clang",
    {
        "ruleId": "4965", "level": "error", "message": {"text": "use of undeclared identifier 'sr'"},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"index": 1}, "region": {
                "startLine": 3, "endLine": 3, "startColumn": 26, "endColumn": 28}}},
            {"physicalLocation": {"artifactLocation": {"index": 1}, "region": {
                "startLine": 3, "startColumn": 26, "endColumn": 26}}},
        ],
    },
    {
        "ruleId": "1", "level": "error", "message": {"text": "member reference"}, "locations": [
            region(7, 37, 38, "file:///x/a%20b.h"), region(7, 39, 42, "file:///x/a%20b.h"),
            region(7, 38, 38, "file:///x/a%20b.h"),
        ],
    },
    {
        "ruleId": "2", "level": "note", "message": {"text": "in instantiation of 'g<int>' requested here"},
        "locations": [region(4, 18, 18, "kernel.cpp")],
    },
    artifacts=[{"location": {"uri": "other.h"}}, {"location": {"uri": "kernel.cpp"}}],
)  # fmt: skip
# GCC 10: columns are bytes and have no other name.
GCC_10 = json.dumps(
    [
        {
            "kind": "fatal error", "message": "bad", "option": "-Wx", "locations": [
                {"caret": {"file": "kernel.cpp", "line": 3, "column": 27}, "finish": {
                    "file": "kernel.cpp", "line": 3, "column": 28}},
            ],
            "children": [{"kind": "note", "message": "see here", "locations": [
                {"caret": {"file": "kernel.cpp", "line": 1, "column": 1}}]}],
        },
    ]
)  # fmt: skip


def test_sarif_of_gcc() -> None:
    one, two, note, three = parse("cc1plus: error: first\n" + GCC_15 + "\n", SOURCE)[1:]
    assert (one.filename, one.line, one.column, one.end_column) == ("kernel.cpp", 3, 26, 28)
    assert one.text == "/* ü */ int f() { return sr; }"
    assert one.message == "'sr' was not declared in this scope"
    assert (two.message, two.severity, two.filename) == ("in a header [-Wfpermissive]", "warning", "inc/b c.h")
    assert [(step.filename, step.line, step.text) for step in two.via] == [("kernel.cpp", 2, '#include "a.h"')]
    assert (note.severity, note.line, note.message) == ("note", 7, "previous declaration")
    assert (three.column, three.end_column, three.via) == (26, 28, ())


def test_sarif_of_clang() -> None:
    one, two, note = parse("\n" + CLANG_19 + "\n\n1 error generated.\n", SOURCE)
    assert (one.filename, one.line, one.column, one.end_column) == ("kernel.cpp", 3, 26, 28)
    assert (two.filename, two.column, two.end_column) == ("/x/a b.h", 38, None)
    assert two.via == (note,)
    assert point([two], OWN).line == 4


def test_json_of_old_gcc() -> None:
    one, note = parse(GCC_10, SOURCE)
    assert (one.severity, one.column, one.end_column, one.message) == ("error", 26, 28, "bad [-Wx]")
    assert (note.severity, note.line, note.end_column) == ("note", 1, 2)


def test_a_crash_in_a_document() -> None:
    said = {"message": {"text": "Segmentation fault"}, "locations": [region(3, 1, 2, "kernel.cpp")]}
    (found,) = parse(sarif("GNU C++17", invocations=[{"toolExecutionNotifications": [said]}]), SOURCE)
    assert (found.severity, found.line) == ("error", 3)
    crash = [{"kind": "internal compiler error", "message": "in f, at g.cc:1", "locations": []}]
    (found,) = parse(json.dumps(crash), SOURCE)
    assert (found.severity, found.message) == ("error", "internal compiler error: in f, at g.cc:1")


def test_text_around_documents_is_kept_as_it_is() -> None:
    before, between, after = "g++: warning: w\n", "ld: error: no\n", "compilation terminated.\r\n"
    output = before + GCC_10 + "\n" + between + "[]\n" + after
    shown = render(output, SOURCE)
    assert shown.startswith(before + "kernel.cpp:3:26: error: bad [-Wx]\n    3 | /* ü */ int f() { return sr; }\n")
    assert shown.endswith("see here\n    1 | // heat\n      | ^\n" + between + after)
    assert [found.message for found in parse(output, SOURCE)] == ["bad [-Wx]", "see here", "no"]


@pytest.mark.parametrize("line", ["[] { return sr; };", "[]() mutable {};", '{"runs"};', "[[nodiscard]] int f();"])
def test_a_quoted_line_that_begins_like_a_document_stays(line: str) -> None:
    output = f"kernel.cpp:1:2: error: bad\n{line}\n ^~\n1 error generated.\n"
    assert render(output, {}) == output
    (found,) = parse(output, {})
    assert (found.text, found.column, found.end_column) == (line, 2, 4)


def test_what_is_rendered_says_the_same() -> None:
    for document in (GCC_15, CLANG_19, GCC_10):
        places = [(d.filename, d.line, d.severity, d.message) for d in parse(document, SOURCE)]
        again = parse(render(document, SOURCE), {})
        assert [(d.filename, d.line, d.severity, d.message) for d in again] == places


@pytest.mark.parametrize(
    "output",
    [
        "", "[]", "{}", "[1]", "[null]", "null", '{"runs": 3}', '{"runs": [3]}', '[{"kind": 1, "message": 2}]', "[" * 90_000,
        '[{"kind": "error", "message": "x", "children": ' * 500 + "[]" + "}]" * 500,
    ],
    ids=range(11),
)  # fmt: skip
def test_other_documents_are_text(output: str) -> None:
    assert parse("a:1:2: error: there\n" + output, SOURCE)[0].message == "there"
    assert render(output, SOURCE) in (output, "") or "error: x" in render(output, SOURCE)


@pytest.mark.parametrize("document", [GCC_15, CLANG_19, GCC_10], ids=["GCC 15", "Clang 19", "GCC 10"])
def test_a_document_that_was_cut_off_is_shown_as_it_is(document: str) -> None:
    for end in range(1, len(document), 7):
        assert render(document[:end], SOURCE) == document[:end]
        assert parse("a:1:2: error: there\n" + document[:end], SOURCE)[0].message == "there"


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for key, item in items for path in paths(item, (*here, key)))]


ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()) | st.sampled_from(
    ["[]", "{}", "[[]]", "[null]", "[{}]", '{"text": null}']
).map(json.loads)


@given(st.sampled_from([GCC_15, CLANG_19, GCC_10]), st.data())
def test_a_document_with_anything_in_it_never_raises(document: str, data: st.DataObject) -> None:
    value = json.loads(document)
    for _ in range(data.draw(st.integers(1, 4))):
        *parents, last = data.draw(st.sampled_from(paths(value)[1:]))
        holder = value
        for key in parents:
            holder = holder[key]
        if data.draw(st.booleans()):
            holder[last] = data.draw(ANYTHING)
        else:
            del holder[last]
        if not value:
            break
    output = json.dumps(value)
    found = parse(output, SOURCE)
    render(output, SOURCE)
    for message in found:
        assert isinstance(message.message, str)
        assert message.severity in ("error", "warning", "note")
        assert message.line is None or message.line > 0
        assert message.end_column is None or (message.column is not None and message.column < message.end_column)
    if found:
        point(found, OWN)


@given(st.sampled_from([GCC_15, CLANG_19, GCC_10]), st.integers(0, 5000), st.text(max_size=3))
def test_a_document_with_anything_written_over_it_never_raises(document: str, place: int, text: str) -> None:
    place %= len(document)
    output = document[:place] + text + document[place + len(text) :]
    parse(output, SOURCE)
    render(output, SOURCE)


def test_a_byte_that_is_no_utf8_does_not_spoil_a_document() -> None:
    (found,) = parse('[{"kind": "error", "message": "a\\xe4 \\\\x \\"q\\"", "locations": []}]\nrest \\xe4\n', SOURCE)
    assert found.message == 'a\\xe4 \\x "q"'


# --- the user's line -----------------------------------------------------------------------------------------

INCLUDE = Diagnostic("included from here", 2, 2, filename="kernel.cpp", severity="note")
USE = Diagnostic("in expansion of macro 'M'", 4, 18, 19, "int g() { return M(2); }", "kernel.cpp", "note")
DEEP = Diagnostic("required from 'f'", 9, 1, filename="t.h", severity="note")
HERE = Diagnostic("required from here", 3, 5, filename="kernel.cpp", severity="note")


@pytest.mark.parametrize(
    ("error", "line", "message"),
    [
        (Diagnostic("e", 3, filename="kernel.cpp"), 3, "e"),
        (Diagnostic("e", 3, filename="kernel.cpp", via=(HERE, INCLUDE)), 3, "e"),
        (Diagnostic("e", 7, filename="x/b.h", via=(INCLUDE,)), 2, "in b.h:7: e"),
        (Diagnostic("e", 7, filename="x/t.h", via=(DEEP, HERE, INCLUDE)), 3, "in t.h:7: e"),
        (Diagnostic("e", 1, filename="kernel.cpp", via=(USE,)), 4, "e"),
        (Diagnostic("e", 7, filename="m.h", via=(replace(USE, filename="m.h"), USE, INCLUDE)), 4, "e"),
        (Diagnostic("e", 7, filename="other.h", via=(DEEP,)), 7, "e"),
        (Diagnostic("e"), None, "e"),
    ],
)
def test_the_users_line_for_an_error(error: Diagnostic, line: int | None, message: str) -> None:
    found = point([Diagnostic("w", 1, filename="kernel.cpp", severity="warning"), error], OWN)
    assert (found.line, found.message, found.severity) == (line, message, "error")


def test_an_error_at_a_line_of_the_user_comes_before_one_without() -> None:
    errors = [Diagnostic("a", 7, filename="other.h"), Diagnostic("b", 3, filename="kernel.cpp")]
    assert point(errors, OWN).message == "b"
    assert point(errors, ()).message == "a"


def test_warnings_alone_are_pointed_at_too() -> None:
    warning = Diagnostic("w", 7, filename="b.h", severity="warning", via=(INCLUDE,))
    assert (point([warning], OWN).line, point([warning], OWN).severity) == (2, "warning")
    with pytest.raises(ValueError, match="no diagnostic"):
        point([], OWN)


def test_a_crash_is_told_in_its_own_words() -> None:
    output = (
        "kernel.cpp: In function 'f':\nkernel.cpp:3:1: internal compiler error: Segmentation fault\n"
        "0x7f00 crash\n\t../sysdeps/x.c:1\nPlease submit a full bug report, with preprocessed source.\n"
    )
    assert "internal compiler error: Segmentation fault" in point(parse(output, SOURCE), OWN).message
    assert render(output, SOURCE) == output
