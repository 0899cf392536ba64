"""Row 20: another compiler, another version of it, another of ours: built anew, never taken from the old one."""

from __future__ import annotations

import os
import shutil
import stat

import pytest

from jitkernels import compilers, constant, each_compiler, needs_compiler
from rekernel import key, probe
from rekernel.compilers import CompilerInfo, GccInfo
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from rekernel.why import NEW


def wrap(path, compiler: str, version: str | None = None, extra: str = "") -> str:
    """Write a compiler that passes everything on; with `version` it says that it is another one."""
    real = shutil.which(compiler)
    said = f" 2>&1 | sed 's/version [0-9.]*/version {version}/' >&2" if version else ""
    path.write_text(
        f'#!/bin/sh\nexec 3>&1\ncase "$*" in *-###*|*--version*) {real} {extra} "$@"{said};; *) exec {real} {extra} "$@";; esac\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def reason(tmp_path, monkeypatch):
    """Why a kernel is built anew; what a process remembers of compilers is forgotten each time."""

    def ask(info=None):
        monkeypatch.setattr(probe, "_known", {})
        wrapper = CpuJit(info, ObjectCache(tmp_path / "cache")).compile(constant(4))
        assert wrapper() == 4
        return wrapper.rebuilt_because

    return ask


@each_compiler
def test_the_same_name_first_on_path_is_another_compiler(info, tmp_path, monkeypatch, reason):
    kind, command = type(info), info.command
    assert [reason(kind(command=command)) for _ in range(2)] == [NEW, None]
    (tmp_path / "bin").mkdir()
    wrap(tmp_path / "bin" / command, command)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    said = [reason(kind(command=command)) for _ in range(2)]
    assert said[0].startswith("compiler changed")
    assert said[1] is None
    (tmp_path / "bin" / command).unlink()
    assert reason(kind(command=command)) is None


@each_compiler
def test_a_new_version_in_the_same_place(info, tmp_path, reason):
    path = tmp_path / "compiler"
    said = []
    for version in ("98.1.0", "99.1.0", "98.1.0"):  # one size, and perhaps one time
        wrap(path, info.command, version)
        os.utime(path, (1, 1))
        shutil.rmtree(tmp_path / "cache" / "probes", ignore_errors=True)
        said.append(reason(type(info)(command=str(path))))
    kind = {"gcc": "g++", "clang": "clang++"}[type(info).__name__.removesuffix("Info").lower()]
    assert said == [NEW, f"compiler version changed: {kind} 98.1.0 -> {kind} 99.1.0", None]


@each_compiler
def test_a_compiler_that_is_replaced_is_asked_again(info, tmp_path, reason):
    path = tmp_path / "compiler"
    wrap(path, info.command, "98.1.0")
    assert reason(type(info)(command=str(path))) == NEW
    wrap(tmp_path / "next", info.command, "99.10.0")
    os.replace(tmp_path / "next", path)
    assert reason(type(info)(command=str(path))).startswith("compiler version changed: ")


@pytest.mark.skipif(len(compilers()) < 2, reason="needs two compilers")
def test_cxx_chooses_and_counts(monkeypatch, reason):
    monkeypatch.delenv("REKERNEL_CXX", raising=False)
    said = []
    for command in ("g++", "clang++", "g++", "clang++"):
        monkeypatch.setenv("CXX", command)
        said.append(reason())
    monkeypatch.setenv("REKERNEL_CXX", "g++")
    said.append(reason())
    assert said[0] == NEW
    assert said[1].startswith("compiler version changed: g++ ")
    assert said[2:] == [None, None, None]


@needs_compiler
@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH"])
def test_variables_that_change_what_a_compiler_finds(monkeypatch, tmp_path, variable, reason):
    monkeypatch.delenv(variable, raising=False)
    assert reason() == NEW
    monkeypatch.setenv(variable, str(tmp_path))
    assert reason().startswith(
        ("environment of the compiler changed", "files of the compiler changed", "linker changed")
    )
    monkeypatch.setenv(variable, "")
    monkeypatch.delenv(variable)
    assert reason() is None


@needs_compiler
@pytest.mark.parametrize("variable", ["LANG", "HOME", "MAKEFLAGS", "PWD", "USER", "COLUMNS"])
def test_variables_that_change_nothing(monkeypatch, tmp_path, variable, reason):
    assert reason() == NEW
    monkeypatch.setenv(variable, str(tmp_path))
    assert reason() is None


@needs_compiler
def test_a_header_found_by_cpath_is_the_right_one(monkeypatch, tmp_path):
    from rekernel.kernel import Kernel

    kernel = Kernel("found", (), "cpp", code="#include <found.h>\nint found() { return FOUND; }\n", returns="int32")
    answers = []
    for turn in (1, 2, 1):
        (tmp_path / str(turn)).mkdir(exist_ok=True)
        (tmp_path / str(turn) / "found.h").write_text(f"#define FOUND {turn}\n")
        monkeypatch.setenv("CPATH", str(tmp_path / str(turn)))
        answers.append(CpuJit(objcache=tmp_path / "cache").compile(kernel)())
    assert answers == [1, 2, 1]


@needs_compiler
def test_a_new_schema_of_ours(monkeypatch, reason):
    assert [reason(), reason()] == [NEW, None]
    monkeypatch.setattr(key, "SCHEMA", key.SCHEMA + 1)
    assert [reason(), reason()] == [NEW, None]


@needs_compiler
def test_a_launcher_and_flags_of_the_command_count(tmp_path, reason):
    ccache = tmp_path / "ccache"
    ccache.write_text('#!/bin/sh\nexec "$@"\n')
    ccache.chmod(0o755)
    plain = CompilerInfo.get_default().command
    said = [reason(CompilerInfo(command=command)) for command in (plain, f"{ccache} {plain}", f"{plain} -DX", plain)]
    assert said == [NEW, f"compiler launcher changed{said[1][25:]}", "flags changed: -DX came", None]
    assert said[1].startswith("compiler launcher changed: /")


@pytest.mark.skipif("g++" not in {info.command for info in compilers()}, reason="needs g++")
def test_one_compiler_by_two_paths_is_right_by_both(tmp_path, reason):
    (tmp_path / "g++").symlink_to(shutil.which("g++"))
    assert reason(GccInfo()) == NEW
    assert (reason(GccInfo(command=str(tmp_path / "g++"))) or "compiler changed").startswith("compiler changed")
    assert reason(GccInfo(command=str(tmp_path / "g++"))) is None
