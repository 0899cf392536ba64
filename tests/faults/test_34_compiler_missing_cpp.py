"""Row 34 for C++ texts: without a compiler or a part of it, the error says what to do, and nothing else is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rekernel
from cppkit import CpuJit, KernelLoader, ObjectCache, answer, load_with, needs_cpp
from jitkernels import needs_compiler, without_compilers
from rekernel import ToolchainError, probe
from rekernel.compilers import CompilerInfo, GccInfo
from support import run_python

PROGRAM = """
import sys
import rekernel
loader = rekernel.KernelLoader()
for _ in range(2):
    try:
        loader.load("int f() { return 1; }\\n", "k")
    except rekernel.ToolchainError as error:
        print(error)
print(len(loader), repr(loader), rekernel.parse("int f() { return 1; }\\n")[0].name)
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    for variable in ("CXX", "REKERNEL_CXX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(probe, "_known", {})


def test_no_compiler_at_all(tmp_path):
    said = run_python(PROGRAM, REKERNEL_CACHE_DIR=str(tmp_path / "cache"), **without_compilers(tmp_path)).stdout
    for words in ("g++, c++, clang++", str(tmp_path), "apt install g++", "REKERNEL_CXX", "python -m rekernel doctor"):
        assert said.count(words) >= 2, words
    assert said.splitlines()[-1] == "0 <KernelLoader: 0 ids> f"


@needs_cpp
def test_a_compiler_that_vanishes_leaves_the_old_version_and_what_is_in_the_cache(tmp_path, monkeypatch):
    loader = load_with(tmp_path / "cache")
    f = loader.load(answer(1), "k").f
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(probe, "_known", {})
    with pytest.raises(ToolchainError, match="g\\+\\+"):
        loader.load(answer(2), "k")
    assert f() == 1
    assert loader.load(answer(1), "k").f() == 1
    assert isinstance(loader.info("k").error, ToolchainError | None)
    monkeypatch.undo()
    assert loader.load(answer(2), "k").f() == 2


STRANGE = {
    "no such program": ("CXX", "/no/such/g++ -O2", "/no/such/g\\+\\+"),
    "a directory": ("REKERNEL_CXX", "/tmp", "/tmp"),
    "no compiler": ("CXX", "/bin/true", "/bin/true"),
    "an open quote": ("CXX", "g++ 'x", "cannot be read"),
}


@needs_compiler
@pytest.mark.parametrize("case", STRANGE)
def test_a_variable_that_names_no_compiler_is_named_in_the_error(monkeypatch, case):
    variable, value, match = STRANGE[case]
    monkeypatch.setenv(variable, value)
    with pytest.raises(ToolchainError, match=match):
        KernelLoader(jit=CpuJit(None, None)).load(answer(1), "k")


@needs_cpp
@pytest.mark.parametrize("value", ["g++ -m64", "env g++", "g++ -DINNER=3 -O1"])
def test_a_variable_with_words_works(monkeypatch, value):
    monkeypatch.setenv("CXX", value)
    assert KernelLoader(jit=CpuJit(None, None)).load(answer(4), "k").f() == 4


@needs_cpp
@pytest.mark.parametrize(
    ("said", "match"),
    [
        ("g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory", "cc1plus"),
        ("collect2: fatal error: cannot find 'ld'", "broken"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1234 bytes", "out of memory"),
    ],
)
def test_half_a_compiler_is_not_the_users_fault(tmp_path, said, match):
    path = tmp_path / "g++"
    path.write_text(f'#!/bin/sh\ncase "$*" in *" -c kernel.cpp "*) echo "{said}" >&2; exit 1;; esac\nexec g++ "$@"\n')
    path.chmod(0o755)
    with pytest.raises(ToolchainError, match=match):
        KernelLoader(jit=CpuJit(GccInfo(command=str(path)), None)).load(answer(1), "k")


@needs_cpp
def test_a_loader_with_another_jit_says_so():
    loader = KernelLoader(jit=rekernel.jit.no_jit)
    with pytest.raises(rekernel.jit.JitError, match="CpuJit"):
        loader.load(answer(1), "k")


@needs_cpp
def test_a_warm_start_works_without_the_reader_which_is_only_needed_where_something_is_compiled(tmp_path):
    load_with(tmp_path / "cache").load(answer(1), "k")
    hidden = (
        "import sys\nsys.modules['tree_sitter'] = sys.modules['tree_sitter_cpp'] = None\n"
        "import rekernel\nfrom cppkit import *\nloader = load_with(sys.argv[1])\n"
        "print(loader.load(answer(1), 'k').f())\n"
    )
    assert run_python(hidden, str(tmp_path / "cache")).stdout == "1\n"


def test_compiler_info_that_names_nothing_is_an_error_of_the_load_alone(tmp_path):
    loader = KernelLoader(jit=CpuJit(CompilerInfo(command="no-such-compiler"), ObjectCache(tmp_path / "cache")))
    with pytest.raises(ToolchainError, match="no-such-compiler"):
        loader.load(answer(1), "k")
    assert len(loader) == 0


def test_the_command_line_goes_on_without_a_compiler(tmp_path):
    env = {**os.environ, **without_compilers(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "rekernel", "doctor"], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
