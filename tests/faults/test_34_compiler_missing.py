"""Row 34: no compiler, half a compiler, a strange CXX: importing works, and the error says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from jitkernels import AXPY, THREADS, compilers, constant, needs_compiler
from rekernel import probe
from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.errors import ToolchainError
from rekernel.jit import CpuJit
from support import run_python

GCC = next((info.command for info in compilers() if isinstance(info, GccInfo)), None)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    for variable in ("CXX", "REKERNEL_CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(probe, "_known", {})


def script(path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def said(info=None) -> str:
    with pytest.raises(ToolchainError) as caught:
        CpuJit(info, None).compile(AXPY)
    text = str(caught.value)
    assert text.splitlines()[-1] == "to see what is there: python -m rekernel doctor"
    return text


def test_an_empty_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    text = said()
    for words in ("g++, c++, clang++", str(tmp_path), "apt install g++", "REKERNEL_CXX"):
        assert words in text
    monkeypatch.setenv("PATH", "")
    assert "PATH (which is empty)" in said()


@pytest.mark.parametrize("info", [GccInfo(), ClangInfo(), CompilerInfo(command="no-such-compiler"), GccInfo(command="/no/such/g++")],
                         ids=lambda info: info.command)  # fmt: skip
def test_a_compiler_that_is_named_and_missing(monkeypatch, tmp_path, info):
    monkeypatch.setenv("PATH", str(tmp_path))
    text = said(info)
    assert repr(info.command) in text
    assert (os.path.dirname(info.command) or str(tmp_path)) in text


@pytest.mark.parametrize("variable", ["CXX", "REKERNEL_CXX"])
@pytest.mark.parametrize(
    "value", ["/no/such/compiler", "no-such-compiler -m64", "ccache no-such-compiler", __file__, "'unclosed"]
)
def test_a_variable_that_names_nothing(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    text = said()
    assert variable in text or "cannot be read" in text
    assert value in text or repr(value) in text


@needs_compiler
def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("CXX", "  ")
    monkeypatch.setenv("REKERNEL_CXX", "")
    assert CpuJit(objcache=None).compile(constant(2))() == 2


@needs_compiler
def test_cxx_with_a_launcher_and_flags(monkeypatch, tmp_path):
    script(tmp_path / "ccache", f'echo "$@" >> {tmp_path}/log\nexec "$@"')
    command = CompilerInfo.get_default().command
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CXX", f"ccache {command} -DFLAG=6")
    from rekernel.kernel import Kernel

    kernel = Kernel("flag", (), "cpp", code="int flag() { return FLAG; }\n", returns="int32")
    assert CpuJit(objcache=None).compile(kernel)() == 6
    assert "-DFLAG=6" in (tmp_path / "log").read_text()


BROKEN = {
    "says nothing": "exit 1",
    "is killed": "kill -9 $$",
    "is no compiler": 'echo "usage: thing [file]"; exit 2',
    "another program": "exit 0",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_program_that_is_no_compiler(tmp_path, how):
    command = script(tmp_path / "g++", BROKEN[how])
    assert command in said(GccInfo(command=command))


def test_a_file_that_cannot_be_run(tmp_path):
    path = tmp_path / "g++"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    assert str(path) in said(GccInfo(command=str(path)))


@pytest.mark.skipif(GCC is None, reason="needs g++")
def test_g_plus_plus_without_cc1plus(tmp_path):
    # As where gcc is installed and g++ is half removed: the driver looks below its own prefix only.
    real = shutil.which(GCC)
    command = script(tmp_path / "g++", f'case "$*" in *-###*) {real} "$@" 2>&1 | sed "s#[^ ]*/cc1plus#cc1plus#" >&2;; '
                     '*) echo "g++: fatal error: cannot execute \'cc1plus\': execvp: No such file or directory" >&2; exit 1;; esac')  # fmt: skip
    text = said(GccInfo(command=command))
    assert "cc1plus" in text
    assert "apt install g++" in text


@pytest.mark.skipif(GCC is None, reason="needs g++")
def test_a_compiler_that_breaks_later(tmp_path):
    real = shutil.which(GCC)
    flag = tmp_path / "broken"
    command = script(tmp_path / "g++", f'if [ -e {flag} ]; then echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; '
                     f'exit 1; fi; exec {real} "$@"')  # fmt: skip
    jit = CpuJit(GccInfo(command=command), None)
    kept = jit.compile(constant(1))
    flag.touch()
    with pytest.raises(ToolchainError, match="out of memory"):
        jit.compile(constant(2))
    assert kept() == 1
    flag.unlink()
    assert jit.compile(constant(2))() == 2


@needs_compiler
def test_a_compiler_without_openmp(tmp_path):
    info = CompilerInfo.get_default()
    real = shutil.which(info.command)
    command = script(tmp_path / "compiler", f'case "$*" in *-###*) ;; *-fopenmp*) echo "fatal error: omp.h: No such file" >&2; exit 1;; esac\n'
                     f'exec {real} "$@"')  # fmt: skip
    info.command = command
    with pytest.raises(ToolchainError, match=r"OpenMP.*openmp=False") as caught:
        CpuJit(info, None).compile(THREADS)
    assert "libomp-dev" in str(caught.value)
    assert CpuJit(info, None).compile(constant(3))() == 3


def test_importing_asks_nobody(tmp_path):
    program = """
import subprocess, shutil
def refuse(*args, **kwargs): raise AssertionError("asked")
subprocess.Popen = shutil.which = refuse
import rekernel, rekernel.jit
from rekernel.compilers import CompilerInfo, GccInfo
jit = rekernel.jit.CpuJit(GccInfo())
print(jit.compiler_info.cxxflags()[0])
"""
    assert run_python(program, PATH=str(tmp_path)).stdout == "-std=c++17\n"


@needs_compiler
def test_what_is_in_the_cache_still_needs_to_know_its_compiler(tmp_path, monkeypatch):
    # An entry is found by a key of which the compiler is a part.
    info = CompilerInfo.get_default()
    assert CpuJit(info, tmp_path / "cache").compile(AXPY)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="not found"):
        CpuJit(info, tmp_path / "cache").compile(AXPY)


@needs_compiler
def test_compilers_that_are_here_are_listed():
    listed = CompilerInfo.get_available_compilers()
    assert listed[0] == CompilerInfo.get_default()
    for info in listed:
        done = subprocess.run([info.cxx(), "--version"], capture_output=True, text=True, check=True)
        assert isinstance(info, ClangInfo) == ("clang" in done.stdout)
        assert CpuJit(info, None).compile(constant(9))() == 9
