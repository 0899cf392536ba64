"""Row 44: blanks, quotes, other scripts and long names in the places that a compiler sees."""

from __future__ import annotations

import os
import shutil

import pytest

from jitkernels import WAVE, compilers, constant, each_compiler, needs_compiler
from rekernel.compilers import CompilerInfo
from rekernel.jit import CpuJit
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder
from support import run_python

NAMES = {
    "blank": "a b",
    "quotes": 'it\'s "quoted"',
    "dollar": "$HOME ${x} `ls` $(ls)",
    "umlaut": "ü\"'$x",
    "han": "内核",
    "long": "x" * 200,
    "hash": "a#b",
    "percent": "%s %d {}",
    "leading dash": "-rf",
    "backslash": "back\\slash",
    "trailing blank": "end ",
    "semicolon": "a;b&c|d",
    "equals": "a=b,c",
    "at": "@file",
    "star": "*?[a]",
    "newline": "two\nlines",
}


@pytest.fixture(params=NAMES)
def odd(request, tmp_path):
    folder = tmp_path / NAMES[request.param]
    folder.mkdir()
    return folder


def builder(*directories):
    class Builder(LibraryBuilder):
        @staticmethod
        def include_dirs():
            return [str(directory) for directory in directories]

    return Builder()


@needs_compiler
def test_cache_include_directory_and_working_directory(odd, monkeypatch):
    monkeypatch.chdir(odd)
    (odd / "include here").mkdir()
    header = odd / "include here" / "x.h"
    header.write_text("#define X 1\n")
    kernel = Kernel("x", (), "cpp", code="int x() { return X; }\n", headers=('"x.h"',), returns="int32")
    for directory in (odd / "include here", "include here"):
        jit = CpuJit(objcache=odd / "cache", module_builder=builder(directory))
        first, again = jit.compile(kernel), jit.compile(kernel)
        # No compiler can tell of a header with a newline in its path: it is built each time.
        assert (first(), again(), again.from_cache) == (1, 1, "\n" not in odd.name)
    header.write_text("#define X 2\n")
    changed = jit.compile(kernel)
    assert (changed(), changed.from_cache) == (2, False)
    assert set(os.listdir(odd)) == {"include here", "cache"}


@needs_compiler
def test_the_place_of_temporary_files(odd, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(odd))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert CpuJit(objcache=None).compile(constant(7))() == 7
    assert os.listdir(odd) == []


@each_compiler
def test_the_path_of_the_compiler(info, odd):
    real = shutil.which(info.command)
    path = odd / info.command
    path.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    path.chmod(0o755)
    info.command = str(path)
    assert CpuJit(info, odd / "cache").compile(WAVE).rebuilt_because == "not seen before"
    assert CpuJit(info, odd / "cache").compile(WAVE).from_cache


@needs_compiler
def test_a_flag_with_a_path(odd):
    (odd / "forced.h").write_text("#define FORCED 8\n")
    kernel = Kernel("forced", (), "cpp", code="int forced() { return FORCED; }\n", returns="int32")
    for flags in (["-include", str(odd / "forced.h")], [f"-I{odd}", "-include", "forced.h"], ["-DFORCED=8"]):
        assert CpuJit(CompilerInfo.get_default(extra_cxxflags=flags), None).compile(kernel)() == 8


@needs_compiler
@pytest.mark.parametrize("odd", ["quotes", "umlaut", "newline"], indirect=True)
def test_exported_modules(odd):
    path = CpuJit(objcache=odd / "cache").compile(constant(6)).export(odd / "made here")
    program = "import sys\nsys.path.insert(0, sys.argv[1])\nimport constant\nprint(constant.constant())\n"
    assert run_python(program, str(path.parent)).stdout == "6\n"


@pytest.mark.skipif(not compilers(), reason="there is no C++ compiler")
def test_a_home_of_that_name(odd):
    program = "from jitkernels import constant\nfrom rekernel.jit import CpuJit\nw = CpuJit().compile(constant(5))\nprint(w(), w.from_cache)\n"
    places = {"HOME": str(odd), "REKERNEL_CACHE_DIR": "", "XDG_CACHE_HOME": ""}
    assert [run_python(program, **places).stdout for _ in range(2)] == ["5 False\n", "5 True\n"]


@needs_compiler
def test_a_macro_with_quotes_and_blanks():
    info = CompilerInfo.get_default(extra_cxxflags=['-DTEXT="a b\'c\\\\d"'])
    kernel = Kernel("length", (), "cpp", code="int length() { return sizeof(TEXT) - 1; }\n", returns="int32")
    assert CpuJit(info, None).compile(kernel)() == 7
