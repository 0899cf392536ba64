"""Compilers as values: flags, commands, and which compiler is the default."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from rekernel.compilerflags import absolute, compile_flags, driver_link_flags, linker_words
from rekernel.compilers import ClangInfo, Command, CompilerInfo, GccInfo, split_command
from rekernel.errors import ToolchainError

INFOS = [CompilerInfo, GccInfo, ClangInfo]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all of PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("REKERNEL_CXX", raising=False)
    return directory


def program(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("make", INFOS)
@pytest.mark.parametrize(
    ("level", "expected"),
    [("0", "-O0"), ("1", "-O1"), ("2", "-O2"), ("3", "-O3"), ("fast", "-O3"), (None, None)],
)
def test_levels(make: type[CompilerInfo], level: str | None, expected: str | None) -> None:
    flags = make(optlevel=level).cxxflags()
    assert [flag for flag in flags if flag.startswith("-O")] == ([expected] if expected else [])
    assert ("-ffast-math" in flags) == (level == "fast")
    assert "-ffp-contract=off" in flags
    assert flags.index("-ffp-contract=off") > (flags.index("-ffast-math") if level == "fast" else -1)


def test_an_unknown_level_or_target_is_refused_with_its_value() -> None:
    with pytest.raises(ValueError, match="'7'"):
        GccInfo(optlevel="7").cxxflags()
    with pytest.raises(ValueError, match="not 3"):
        GccInfo(target=3).cxxflags()


class Target(Enum):
    """As pystencils names them."""

    CurrentCPU = 1
    X86_AVX512 = 2
    CUDA = 3


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the names are those of x86")
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("native", ["-march=native"]), ("generic", ["-march=x86-64", "-mtune=generic"]),
        ("x86-64-v3", ["-march=x86-64-v3"]), (Target.CurrentCPU, ["-march=native"]),
        (Target.X86_AVX512, ["-march=x86-64-v4"]),
    ],
)  # fmt: skip
def test_targets(target: object, expected: list[str]) -> None:
    assert [flag for flag in GccInfo(target=target).cxxflags() if flag.startswith("-m")] == expected


def test_a_target_that_is_no_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match="CUDA"):
        GccInfo(target=Target.CUDA).cxxflags()


def test_openmp_is_not_among_the_flags_until_a_unit_uses_it() -> None:
    assert "-fopenmp" not in GccInfo(openmp=True).cxxflags()
    flags = GccInfo().cxxflags()
    assert "-fopenmp" in compile_flags(flags, gcc=True, native=[], openmp=True, debug=False)
    assert "-fopenmp" not in compile_flags(flags, gcc=True, native=[], openmp=True, debug=True)


def test_fields_are_assignable_and_a_copy_shares_nothing() -> None:
    info = GccInfo(extra_cxxflags=["-DA"])
    other = info.copy()
    assert other == info
    assert type(other) is GccInfo
    info.optlevel = "0"
    info.extra_cxxflags.append("-DB")
    assert other.optlevel == "3"
    assert other.extra_cxxflags == ["-DA"]
    assert GccInfo().extra_cxxflags == []


def test_extra_flags_come_last() -> None:
    assert GccInfo(extra_cxxflags=["-O1", "-ffp-contract=fast"]).cxxflags()[-2:] == ["-O1", "-ffp-contract=fast"]


@dataclass
class Own(CompilerInfo):
    """A subclass as a user of pystencils writes it."""

    def cxx(self) -> str:
        return "my-g++"

    def cxxflags(self) -> list[str]:
        return ["-std=c++11", "-Ofast", "-march=native"]

    def linker_flags(self) -> list[str]:
        return ["-shared", "-fopenmp", "-Ofast"]

    def include_flags(self, include_dirs: list[str]) -> list[str]:  # type: ignore[override]
        return [word for directory in include_dirs for word in ("-isystem", directory)]

    def restrict_qualifier(self) -> str:
        return "__restrict"


def test_a_users_subclass_gets_what_loading_needs() -> None:
    own = Own()
    flags = compile_flags(own.cxxflags(), gcc=True, native=["-march=zen3", "-mavx2"], openmp=False, debug=False)
    assert flags == [
        "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-std=c++11", "-Ofast", "-march=zen3", "-mavx2",
    ]  # fmt: skip
    assert linker_words(own.linker_flags(), own.cxxflags()) == []
    assert own.copy() == own


def test_flags_that_only_gcc_knows_are_left_out_for_clang() -> None:
    flags = compile_flags(GccInfo().cxxflags(), gcc=False, native=[], openmp=False, debug=False)
    assert "-fno-gnu-unique" not in flags
    assert "-fno-gnu-unique" not in ClangInfo().cxxflags()


def test_native_stays_where_it_could_not_be_resolved() -> None:
    flags = compile_flags(["-march=native", "-mtune=native"], gcc=True, native=[], openmp=False, debug=False)
    assert flags[-2:] == ["-march=native", "-mtune=native"]


def test_relative_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.h").touch()
    given = ["-Ix y", "-I", "z", "-isystem", "s", "-include", "a.h", "-include", "cmath", "-DA", "-I=sys"]
    at = str(tmp_path)
    assert absolute(given) == [
        f"-I{at}/x y", "-I", f"{at}/z", "-isystem", f"{at}/s", "-include", f"{at}/a.h", "-include", "cmath", "-DA",
        "-I=sys",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-shared"], []),
        (["-shared", "-Wl,-rpath,/a b", "-Xlinker", "--no-undefined"], ["-rpath", "/a b", "--no-undefined"]),
        (["-lfoo", "-L/x", "-l", "bar"], ["-lfoo", "-L/x", "-l", "bar"]),
        (["-fuse-ld=lld"], None),
        (["--whatever"], None),
    ],
)
def test_linker_flags_as_the_linker_understands_them(given: list[str], expected: list[str] | None) -> None:
    assert linker_words(given, ["-O3", "-march=native"]) == expected


@pytest.mark.parametrize("flag", ["-flto", "-fsanitize=address", "-stdlib=libc++", "-m32"])
def test_flags_that_change_linking_go_through_the_driver(flag: str) -> None:
    assert linker_words(["-shared"], [flag]) is None
    assert driver_link_flags(["-shared", "-lfoo"], ["-O3", flag]) == [flag, "-lfoo"]


@pytest.mark.parametrize("flag", ["-Ofast", "-ffast-math", "-funsafe-math-optimizations"])
def test_fast_math_never_reaches_a_link(flag: str) -> None:
    assert driver_link_flags(["-shared", flag], [flag]) == []
    assert linker_words([flag], [flag]) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g++", Command((), "g++", (), ())),
        ("ccache g++ -m64", Command(("ccache",), "g++", (), ("-m64",))),
        ("ccache distcc clang++", Command(("ccache", "distcc"), "clang++", (), ())),
        ("zig c++ -target x", Command((), "zig", ("c++",), ("-target", "x"))),
        ("python3 -m ziglang c++", Command((), "python3", ("-m", "ziglang", "c++"), ())),
        ("'/a b/g++' -DX='1 2'", Command((), "/a b/g++", (), ("-DX=1 2",))),
    ],
)
def test_commands_are_taken_apart(programs: Path, text: str, expected: Command) -> None:
    assert split_command(text) == expected


def test_a_path_with_blanks_is_one_compiler(programs: Path) -> None:
    path = str(program(programs, "my g++ 'ü'"))
    assert split_command(path) == Command((), path, (), ())


def test_the_default_is_the_first_of_the_known_names(programs: Path) -> None:
    program(programs, "clang++")
    assert CompilerInfo.get_default() == ClangInfo()
    program(programs, "g++")
    assert CompilerInfo.get_default(optlevel="1", openmp=False) == GccInfo(optlevel="1", openmp=False)


def test_cxx_and_rekernel_cxx_are_honoured(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("g++", "clang++", "ccache", "g++-13"):
        program(programs, name)
    monkeypatch.setenv("CXX", "ccache g++-13 -m64")
    assert CompilerInfo.get_default().cxx() == "ccache g++-13 -m64"
    monkeypatch.setenv("REKERNEL_CXX", "clang++")
    assert CompilerInfo.get_default() == ClangInfo()
    assert [info.cxx() for info in CompilerInfo.get_available_compilers()] == ["clang++", "ccache g++-13 -m64", "g++"]


def test_a_name_that_links_to_clang_is_clang(programs: Path) -> None:
    (programs / "c++").symlink_to(program(programs, "clang-19"))
    assert type(CompilerInfo.get_default()) is ClangInfo


def test_no_compiler_says_what_was_looked_for_and_where(programs: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        CompilerInfo.get_default()
    text = str(caught.value)
    assert all(part in text for part in ("g++, c++, clang++", str(programs), "REKERNEL_CXX", "CXX"))
    assert text.endswith("python -m rekernel doctor")
    assert CompilerInfo.get_available_compilers() == []


@pytest.mark.parametrize("variable", ["CXX", "REKERNEL_CXX"])
def test_a_variable_that_names_no_program_is_named(
    programs: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    program(programs, "g++")
    monkeypatch.setenv(variable, "/nowhere/g++ -m64")
    with pytest.raises(ToolchainError, match=rf"{variable} is set to '/nowhere/g\+\+ -m64'.*looked in /nowhere"):
        CompilerInfo.get_default()


def test_quotes_that_do_not_end_are_an_error(programs: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot be read"):
        split_command("g++ 'a")
