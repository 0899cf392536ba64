"""Row 2 for C++ texts: a load sees every edit of a header, also where the text itself is the live one."""

from __future__ import annotations

import os
import shutil

import pytest

import rekernel
from cppkit import hits, load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp

CODE = "int answer() { return B; }\n"
WAYS = {
    "quotes": '#include "a.h"\n',
    "brackets": "#include <a.h>\n",
    "a macro": "#define NAME <a.h>\n#include NAME\n",
    "a built name": "#define TEXT(x) #x\n#define BUILT(x) TEXT(x.h)\n#include BUILT(a)\n",
    "asked for": "#if __has_include(<a.h>)\n#include <a.h>\n#endif\n",
    "a folder": "#include <sub/a.h>\n",
    "a forced header": "",
}  # fmt: skip
BESIDE = ("quotes", "a built name")
"""Ways that find a header beside the file, without include_dirs."""


@pytest.fixture
def place(tmp_path):
    """Two include directories; a.h of the second includes b.h, which says 1."""
    for name in ("first", "second/sub"):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("second", "second/sub"):
        (tmp_path / folder / "a.h").write_text('#include "b.h"\n')
        (tmp_path / folder / "b.h").write_text("#define B 1\n")
    return tmp_path


@pytest.fixture
def here(place):
    return Here(place)


class Here:
    """A loader, and what loading one text on it gives."""

    def __init__(self, place):
        self.place, self.loader = place, load_with(place / "cache")

    def load(self, text, **options):
        """Return the answer, and whether the load made a new version that was compiled."""
        before, misses = self.version(), hits(self.loader)[1]
        options.setdefault("include_dirs", [self.place / "first", self.place / "second"])
        module = self.loader.load(text, "k", language="cpp", optlevel="0", **options)
        return module.answer(), self.version() != before and hits(self.loader)[1] > misses

    def version(self):
        return self.loader.info("k").version if "k" in self.loader else 0


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_of_a_header_of_a_header_is_seen_by_a_load_of_the_live_text(place, way):
    here = Here(place)
    more = {"flags": ["-include", "a.h"]} if way == "a forced header" else {}
    text, header = WAYS[way] + CODE, place / "second" / ("sub" if way == "a folder" else "") / "b.h"
    assert here.load(text, **more) == (1, True)
    assert here.load(text, **more) == (1, False)
    header.write_text("#define B 2\n")  # one size, and perhaps one moment
    assert here.load(text, **more) == (2, True)
    assert Here(place).load(text, **more) == (2, False)
    header.write_text("#define B 1\n")
    assert here.load(text, **more) == (1, False)
    assert here.version() == 3


@pytest.mark.parametrize("way", BESIDE)
def test_headers_beside_a_file_are_seen_too(place, way):
    loader = load_with(place / "cache")
    path = place / "second" / "kernel.cpp"
    path.write_text(WAYS[way] + CODE)
    m = loader.load_file(path)
    assert m.answer() == 1
    (place / "second" / "b.h").write_text("#define B 2\n")
    assert loader.load_file(path).answer() == 2
    (place / "second" / "a.h").write_text("#define B 3\n")
    assert loader.load_file(path).answer() == 3
    assert loader.info("kernel").version == 3


def test_a_file_may_ask_whether_there_is_a_header_beside_it(place):
    text = '#if __has_include("extra.h")\nint answer() { return 7; }\n#else\nint answer() { return 0; }\n#endif\n'
    path = place / "second" / "asks.cpp"
    path.write_text(text)
    loader = load_with(place / "cache")
    assert loader.load_file(path).answer() == 0
    (place / "second" / "extra.h").write_text("")
    assert loader.load_file(path).answer() == 7
    (place / "second" / "extra.h").unlink()
    assert loader.load_file(path).answer() == 0


def test_a_new_time_and_the_old_content_compile_nothing(place, here):
    text = WAYS["quotes"] + CODE
    here.load(text)
    for path in (place / "second").rglob("*.h"):
        os.utime(path, (1, 1))
    assert here.load(text) == (1, False)
    shutil.copy(place / "second" / "b.h", place / "copy")
    os.replace(place / "copy", place / "second" / "b.h")
    assert here.load(text) == (1, False)
    assert here.version() == 1
    assert Here(place).load(text) == (1, False)


def test_the_old_time_and_a_new_content_do(place, here):
    text, header = WAYS["quotes"] + CODE, place / "second" / "b.h"
    os.utime(header, (1, 1))
    here.load(text)
    header.write_text("#define B 2\n")
    os.utime(header, (1, 1))
    assert here.load(text) == (2, True)


FLAGS = {
    "joined": "-I{first} -I{second}",
    "apart": "-I {first} -I {second}",
    "system": "-isystem {first} -isystem {second}",
    "after": "-I{first} -idirafter {second}",
}


@pytest.mark.parametrize("how", FLAGS)
def test_directories_of_flags_are_as_good_as_include_dirs(place, how):
    here, text = Here(place), WAYS["brackets"] + CODE
    more = {"flags": FLAGS[how].format(first=place / "first", second=place / "second"), "include_dirs": []}
    assert here.load(text, **more) == (1, True)
    (place / "first" / "a.h").write_text("#define B 7\n")
    assert here.load(text, **more) == (7, True)
    (place / "first" / "a.h").unlink()
    assert here.load(text, **more) == (1, False)


@pytest.mark.parametrize("way", ["brackets", "a folder"])
def test_a_header_that_comes_before_another_is_seen(place, here, way):
    text, new = WAYS[way] + CODE, place / "first" / ("sub/a.h" if way == "a folder" else "a.h")
    assert here.load(text) == (1, True)
    new.parent.mkdir(exist_ok=True)
    new.write_text("#define B 7\n")
    assert here.load(text) == (7, True)
    new.unlink()
    if way == "a folder":
        new.parent.rmdir()
    assert here.load(text) == (1, False)


def test_a_header_that_comes_before_one_of_the_system_is_seen(place, here):
    text = "#include <limits.h>\n#ifndef B\n#define B 1\n#endif\n" + CODE
    assert here.load(text) == (1, True)
    (place / "first" / "limits.h").write_text("#define B 5\n")
    assert here.load(text) == (5, True)
    (place / "first" / "limits.h").unlink()
    assert here.load(text) == (1, False)


def test_a_header_that_a_text_asks_for_comes_and_goes(place, here):
    text = "#if __has_include(<extra.h>)\n#include <extra.h>\n#else\n#define B 4\n#endif\n" + CODE
    assert here.load(text) == (4, True)
    (place / "second" / "extra.h").write_text("#define B 6\n")
    assert here.load(text) == (6, True)
    (place / "second" / "extra.h").unlink()
    assert here.load(text) == (4, False)


def test_a_deleted_header_is_an_error_and_the_old_version_stays(place, here):
    text = WAYS["quotes"] + CODE
    here.load(text)
    (place / "second" / "b.h").unlink()
    for _ in range(2):
        with pytest.raises(rekernel.KernelSourceError, match=r"b\.h"):
            here.load(text)
        assert here.loader["k"].answer() == 1
    (place / "second" / "b.h").write_text("#define B 1\n")
    assert here.load(text) == (1, False)


def test_files_that_nobody_includes_do_not_matter(place, here):
    text = WAYS["brackets"] + CODE
    here.load(text)
    for name in ("notes.md", "x.o", ".hidden", "other.h"):
        (place / "first" / name).write_text("")
    assert here.load(text) == (1, False)
    assert here.version() == 1


def test_a_header_that_is_written_while_the_compiler_runs_is_read_again_at_the_next_load(place):
    shim = place / "bin" / "g++"
    shim.parent.mkdir()
    header = place / "second" / "b.h"
    save = f'case "$*" in *" -c "*) [ -e "{place}/once" ] || {{ touch "{place}/once"; echo "#define B 9" > "{header}"; }};; esac'
    shim.write_text(
        f'#!/bin/sh\ncase "$*" in *-###*|*--version*) exec g++ "$@";; esac\ng++ "$@"; code=$?\n{save}\nexit $code\n'
    )
    shim.chmod(0o755)
    here = Here(place)
    here.loader = load_with(place / "cache", rekernel.GccInfo(command=str(shim)))
    text = WAYS["quotes"] + CODE
    assert here.load(text)[0] == 1
    assert here.load(text) == (9, True)
    assert here.load(text) == (9, False)


def test_relative_include_directories_and_files_are_those_of_the_current_directory(place, monkeypatch):
    loader = load_with(place / "cache")
    for number, name in enumerate("xy"):
        (place / name / "inc").mkdir(parents=True)
        (place / name / "inc" / "a.h").write_text(f"#define B {number}\n")
        (place / name / "file.cpp").write_text('#include "inc/a.h"\n' + CODE)
    said = []
    for name in "xyx":
        monkeypatch.chdir(place / name)
        said.append(
            (loader.load(WAYS["brackets"] + CODE, "k", language="cpp", include_dirs=["inc"]).answer(),
             loader.load_file("file.cpp").answer())
        )  # fmt: skip
    assert said == [(0, 0), (1, 1), (0, 0)]


def test_a_new_process_sees_the_change(place):
    program = """
import sys
from pathlib import Path
from faults_headers_cpp import WAYS, CODE, Here
print(*Here(Path(sys.argv[1])).load(WAYS["quotes"] + CODE))
"""
    shutil.copy(__file__, place / "faults_headers_cpp.py")
    env = {"PYTHONPATH": f"{place}{os.pathsep}{os.path.dirname(os.path.dirname(__file__))}"}
    said = [run_python(program, str(place), **env).stdout for _ in range(2)]
    (place / "second" / "b.h").write_text("#define B 9\n")
    said.append(run_python(program, str(place), **env).stdout)
    assert said == ["1 True\n", "1 False\n", "9 True\n"]
