"""Messages in the text that compilers and linkers print."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekernel.gnumessages import character_column, messages, source_lines

GCC = """In file included from a.h:1,
                 from unit.cpp:2:
heat.cpp: In function 'int f()':
heat.cpp:3:21: error: 'sr' was not declared in this scope; did you mean 'src'?
    3 |     int ü = 1; return sr + 1;
      |                       ^~
      |                       src
b.h:9:1: warning: unused [-Wunused]
b.h:9: note: here
"""
CLANG = """heat.cpp:3:12: error: use of undeclared identifier 'sr'
    return sr + 1;
           ^~
/usr/bin/ld: unit.o: in function `f':
unit.cpp:(.text+0x5): undefined reference to `g()'
ld.lld: error: undefined symbol: h()
clang: error: linker command failed with exit code 1 (use -v to see invocation)
"""


def test_messages_of_gcc() -> None:
    first, second, third = messages(GCC)
    assert (first.filename, first.line, first.severity) == ("heat.cpp", 3, "error")
    assert first.message == "'sr' was not declared in this scope; did you mean 'src'?"
    assert first.text == "    int ü = 1; return sr + 1;"
    assert (second.severity, second.line, second.column) == ("warning", 9, 1)
    assert (third.severity, third.line, third.column) == ("note", 9, None)


def test_columns_are_counted_in_characters() -> None:
    (found,) = messages("a.cpp:1:9: error: x\n    1 | ü ü = sr;\n      |       ^~\n")
    assert (found.column, found.end_column) == (7, 9)
    assert found.text is not None
    assert found.text[6:8] == "sr"


def test_messages_of_clang_and_linkers() -> None:
    found = messages(CLANG)
    assert [d.message for d in found] == [
        "use of undeclared identifier 'sr'", "undefined reference to `g()'", "undefined symbol: h()",
    ]  # fmt: skip
    assert (found[0].text, found[0].column, found[0].end_column) == ("    return sr + 1;", 12, 14)


def test_a_crash_of_the_compiler_is_a_message() -> None:
    assert messages("unit.cpp:1:1: internal compiler error: Segmentation fault\n")[0].severity == "error"


def test_lines_by_the_names_that_messages_use() -> None:
    text = 'a\n#line 7 "x \\"y.cpp"\nb\nc\n# 3\nd\n'
    lines = source_lines(text, "unit.cpp")
    name = 'x "y.cpp'
    assert lines[("unit.cpp", 1)] == "a"
    assert [lines[(name, number)] for number in (7, 8, 3)] == ["b", "c", "d"]


def test_names_that_gcc_spells_out_are_read_back():
    (found,) = messages("k:1:1: error: 'g\\U000000f6\\U0001f600d \\U00110000' was not declared\n")
    assert found.message == "'gö\U0001f600d \\U00110000' was not declared"


@given(st.text())
def test_any_output_can_be_read(text: str) -> None:
    messages(text, source_lines(text, "unit.cpp"))


def test_a_header_knows_the_lines_that_include_it_also_for_its_second_error() -> None:
    output = (
        "In file included from inc/a.h:1,\n                 from k:2:\ninc/b.h: In function 'int f()':\n"
        "inc/b.h:1:9: error: one\ninc/b.h:2:9: error: two\nk:5:1: error: three\n"
    )
    one, two, three = messages(output, {("k", 2): '#include "a.h"'})
    assert [(step.filename, step.line, step.text) for step in one.via] == [
        ("inc/a.h", 1, None), ("k", 2, '#include "a.h"'),
    ]  # fmt: skip
    assert two.via == one.via
    assert three.via == ()


def test_the_nearest_include_comes_first_for_clang_too() -> None:
    (found,) = messages("In file included from k:2:\nIn file included from inc/a.h:1:\ninc/b.h:1:9: error: one\n")
    assert [step.filename for step in found.via] == ["inc/a.h", "k"]


def test_instantiations_belong_to_the_error_below_them() -> None:
    output = (
        "v.h: In instantiation of 'T g(T)':\nv.h:8:19:   required from 'T h(T) [with T = int]'\n"
        "k:7:3:   required from here\nv.h:119:7: error: one\nv.h:3:1: error: two\n"
    )
    one, two = messages(output)
    assert [(step.filename, step.line, step.column) for step in one.via] == [("v.h", 8, 19), ("k", 7, 3)]
    assert two.via == ()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n")), st.integers(-2, 300))
def test_a_column_in_characters_never_leaves_the_line(text: str, column: int) -> None:
    assert 1 <= character_column(text, column) <= len(text) + 1


@given(st.text(st.characters(codec="utf-8")))
def test_each_characters_first_byte_is_its_column(text: str) -> None:
    starts = [len(text[:number].encode()) + 1 for number in range(len(text) + 1)]
    assert [character_column(text, start) for start in starts] == list(range(1, len(text) + 2))


def test_a_byte_that_is_no_utf8_is_one_column() -> None:
    assert character_column("\udcff\udcfe x", 4) == 4


def test_numbers_that_no_file_can_have_are_none() -> None:
    (found,) = messages(f"k:{'9' * 5000}:{'9' * 5000}: error: x\n")
    assert (found.line, found.column, found.message) == (None, None, "x")
