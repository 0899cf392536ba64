"""Row 44 for C++ texts: blanks, quotes, other scripts and long names in every path that a load sees."""

from __future__ import annotations

import os

import pytest

import rekernel
from cppkit import GccInfo, load_with, needs_cpp
from jitkernels import each_compiler
from rekernel.compilers import ClangInfo

pytestmark = needs_cpp

NAMES = {
    "blank": "a b",
    "quotes": 'it\'s "quoted"',
    "umlaut": "ü\"'$x",
    "dollar": "$HOME ${x} `ls`",
    "han": "内核",
    "long": "x" * 200,
    "hash": "a#b",
    "percent": "%s {}",
    "leading dash": "-rf",
    "backslash": "back\\slash",
    "colon": "a:b",
    "newline": "two\nlines",
}
TEXT = '#include "x.h"\n#include <y.h>\nint f() { return X + Y; }\n'


@pytest.fixture(params=NAMES)
def odd(request, tmp_path):
    folder = tmp_path / NAMES[request.param]
    folder.mkdir()
    (folder / "include").mkdir()
    (folder / "x.h").write_text("#define X 1\n")
    (folder / "include" / "y.h").write_text("#define Y 10\n")
    return folder


@each_compiler
def test_cache_file_include_directory_and_current_directory(odd, monkeypatch, info):
    monkeypatch.chdir(odd)
    path = odd / f"{odd.name[:100]}.cpp"
    path.write_text(TEXT)
    for include in (odd / "include", "include"):
        loader = load_with(odd / "cache", info)
        module = loader.load_file(path, "k", include_dirs=[include], optlevel="0")
        assert module.f() == 11
        again = load_with(odd / "cache", info)
        again.load_file(path, "k", include_dirs=[include], optlevel="0")
        # No compiler can tell of a header with a newline in its path, nor Clang of a backslash: it is built each time.
        told = "\n" not in odd.name and not ("\\" in odd.name and isinstance(info, ClangInfo))
        assert again.info("k").from_cache == told
        (odd / "x.h").write_text("#define X 2\n")
        assert loader.load_file(path, "k").f() == 12
        (odd / "x.h").write_text("#define X 1\n")
        assert loader.load_file(path, "k").f() == 11


@each_compiler
def test_an_error_names_the_file_as_it_is(odd, info):
    path = odd / f"{odd.name[:100]}.cpp"
    path.write_text(TEXT + "\nint g() { return nonsense; }\n")
    loader = load_with(None, info)
    with pytest.raises(rekernel.KernelSourceError, match="nonsense") as caught:
        loader.load_file(path, "k", include_dirs=[odd / "include"])
    assert (caught.value.filename, caught.value.line) == (str(path), 5)
    assert "kernel.cpp" not in caught.value.output
    (odd / "x.h").write_text("int broken() { return nothing_here; }\n")
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load_file(path, "k", include_dirs=[odd / "include"])
    assert caught.value.line == 1


@pytest.mark.parametrize("odd", ["quotes", "umlaut", "long", "newline"], indirect=True)
def test_flags_and_definitions_with_such_a_path(odd):
    with load_with(None) as loader:
        text = "#include <y.h>\n#include <cstring>\nint f() { return Y + int(std::strlen(NAME)); }\n"
        quoted = odd.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        module = loader.load(text, "k", flags=["-I", str(odd / "include"), f'-DNAME="{quoted}"'])
        assert module.f() == 10 + len(odd.name.encode())


@pytest.mark.parametrize("odd", ["blank", "umlaut", "backslash", "newline", "leading dash"], indirect=True)
def test_debug_builds_and_kept_files(odd, monkeypatch):
    path = odd / "kernel of mine.cpp"
    path.write_text("double f(rekernel::Array<double, 1> x, int64_t i) {\n    return x(i);\n}\n")
    with load_with(odd / "cache", GccInfo()) as loader:
        module = loader.load_file(path, "k", debug=True)
        import numpy as np

        with pytest.raises(IndexError, match=r":2: index 3") as caught:
            module.f(np.ones(3), 3)
        assert path.name in str(caught.value)
        monkeypatch.setenv("REKERNEL_KEEP", str(odd / "kept"))
        loader.load("int g() { return 3; }\n", "odd: id/with\nall")
        assert loader["odd: id/with\nall"].g() == 3
    assert os.listdir(odd / "kept")
