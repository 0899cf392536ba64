"""Reading what compilers print."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekernel.gnutext import (
    LinkLine,
    commands,
    dependencies,
    link_line,
    messages,
    native_flags,
    needs,
    source_lines,
    undefined_symbols,
)

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


@given(st.text())
def test_any_output_can_be_read(text: str) -> None:
    messages(text)
    commands(text)
    dependencies(text)


def test_dependencies_with_blanks_and_signs() -> None:
    text = "unit.o: unit.cpp a\\ b/x.h \\\n c\\#1.h d$$e.h \\\n  ü\"'.h\n"
    assert dependencies(text) == ["unit.cpp", "a b/x.h", "c#1.h", "d$e.h", "ü\"'.h"]
    assert dependencies("") == []
    assert dependencies("unit.o:\n") == []


def test_native_flags() -> None:
    gcc = ["cc1plus", "-quiet", "-march=znver3", "-mno-sse4a", "--param", "l1-cache-size=32", "-mtune=znver3", "-O3"]
    assert native_flags(gcc) == ("-march=znver3", "-mno-sse4a", "--param", "l1-cache-size=32", "-mtune=znver3")
    clang = [
        "clang",
        "-cc1",
        "-triple",
        "x86_64-linux-gnu",
        "-mrelocation-model",
        "pic",
        "-target-cpu",
        "znver3",
        "-target-feature",
        "+avx",
    ]
    assert native_flags(clang) == (
        "-march=znver3", "-Xclang", "-target-feature", "-Xclang", "+avx",
    )  # fmt: skip


LINK = [
    "collect2", "-plugin", "lto.so", "-plugin-opt=x", "--build-id", "-m", "elf_x86_64", "-shared", "-o", "unit.so",
    "/l/crti.o", "/l/crtbeginS.o", "/l/crtoffloadbegin.o", "/l/crtfastmath.o", "-L/l", "/t m p/cc1.o", "-lstdc++",
    "-lm", "-lgcc_s", "-lc", "/l/crtendS.o", "/l/crtn.o", "/l/crtoffloadend.o",
]  # fmt: skip


def test_a_link_line_is_taken_apart_and_put_together() -> None:
    line = link_line(LINK, "/t m p", "/bin/ld")
    assert line == LinkLine(
        ("/bin/ld", "--eh-frame-hdr", "-m", "elf_x86_64", "-shared", "/l/crti.o", "/l/crtbeginS.o", "-L/l"),
        ("-lm", "-lgcc_s", "-lc"), ("-lstdc++",), ("/l/crtendS.o", "/l/crtn.o"),
    )  # fmt: skip
    assert line is not None
    assert line.render("o", ["a.o"], libraries=False, cxx=False)[-7:] == [
        "-z", "defs", "-o", "o", "a.o", "/l/crtendS.o", "/l/crtn.o",
    ]  # fmt: skip
    assert "-z" not in line.render("o", ["a.o"], allow_undefined=True)


@pytest.mark.parametrize("without", ["/t m p/cc1.o", "/l/crtbeginS.o", "-shared"])
def test_a_link_line_that_is_not_understood_is_none(without: str) -> None:
    assert link_line([word for word in LINK if word != without], "/t m p", "ld") is None


@pytest.mark.parametrize(
    ("symbols", "expected"),
    [
        (frozenset[str](), (False, False, False)),
        ({"_GLOBAL_OFFSET_TABLE_"}, (False, False, False)),
        ({"sin", "_ZGVdN4v_sin"}, (True, False, False)),
        ({"__cxa_atexit", "__dso_handle"}, (True, False, False)),
        ({"__cxa_throw"}, (True, True, False)),
        ({"_Znwm"}, (True, True, False)),
        ({"__gxx_personality_v0"}, (True, True, False)),
        ({"GOMP_parallel"}, (True, False, True)),
        ({"__kmpc_fork_call", "_ZSt4cout"}, (True, True, True)),
        (None, (True, True, True)),
    ],
)
def test_needs(symbols: frozenset[str] | None, expected: tuple[bool, bool, bool]) -> None:
    assert needs(symbols) == expected


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_undefined_symbols(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("void there(void); int here(void) { there(); return 1; }")
    subprocess.run(["cc", "-c", "-fPIC", "a.c"], cwd=tmp_path, check=True)
    data = (tmp_path / "a.o").read_bytes()
    found = undefined_symbols(data)
    assert found is not None
    assert "there" in found
    assert "here" not in found
    for cut in range(0, len(data), 7):
        undefined_symbols(data[:cut])
    assert undefined_symbols(b"") is None
    assert undefined_symbols(b"\xcf\xfa\xed\xfe" + bytes(100)) is None


def test_names_that_gcc_spells_out_are_read_back():
    (found,) = messages("k:1:1: error: 'g\\U000000f6\\U0001f600d \\U00110000' was not declared\n")
    assert found.message == "'gö\U0001f600d \\U00110000' was not declared"
