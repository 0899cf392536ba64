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
    native_flags,
    needs,
    undefined_symbols,
)


@given(st.text())
def test_any_output_can_be_read(text: str) -> None:
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
