"""Files for debuggers and profilers: gdb stops at the user's line, and what was written for it goes away."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rekernel
from jitkernels import each_compiler, needs_compiler
from rekernel.errors import JitError, KernelSourceError
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from support import lines_of, run_python

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")
pytestmark = needs_compiler

TEXT = """#include <cmath>
void step(rekernel::Array<double, 2> u, double k) {
    for (int64_t i = 1; i < u.shape(0); ++i) {
        double left = u(i - 1, 0) + k;
        double twice = 2 * left;
        u(i, 0) = std::sqrt(twice);
    }
}
"""
RUN = """
import sys, numpy as np, rekernel
loader = rekernel.KernelLoader()
source, kernel_id = sys.argv[1:]
m = loader.load_file(source, debug=True) if source.endswith(".cpp") else loader.load(source, kernel_id, debug=True)
m.step(np.full((3, 2), 7.0), 1.25)
"""


@pytest.fixture
def gdb():
    """Run a program under gdb, with commands, and return what gdb says."""
    program = shutil.which("gdb")
    if program is None:
        pytest.skip("gdb is not installed")

    def run(commands, *command, **env):
        given = ["set debuginfod enabled off", "set auto-load off", "set breakpoint pending on", *commands]
        words = [program, "-nx", "-batch", *(w for one in given for w in ("-ex", one)), "--args", *command]
        done = subprocess.run(
            words, env={**os.environ, **env}, timeout=120, capture_output=True, text=True, encoding="utf-8",
            errors="replace", check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        said = done.stdout + done.stderr
        if "ptrace" in said and "not permitted" in said:
            pytest.skip("gdb may not trace a process here")
        return said

    return run


def user_line(number):
    return f"{number}\t{TEXT.splitlines()[number - 1]}"


@each_compiler
@pytest.mark.parametrize("origin", ["file", "text"])
def test_gdb_stops_at_a_line_of_the_users_and_knows_the_variables(info, origin, gdb, tmp_path):
    path = tmp_path / "heat.cpp"
    path.write_text(TEXT)
    name, given = ("heat.cpp", str(path)) if origin == "file" else ("mine_1.cpp", TEXT)
    commands = [f"break {name}:5", "run", "print left", "print k", "print i", "info source", "next", "print twice"]
    cache = str(tmp_path / "cache")
    said = gdb(
        [*commands, "kill"], sys.executable, "-c", RUN, given, "mine/1", REKERNEL_CXX=info.command,
        REKERNEL_CACHE_DIR=cache,
    )  # fmt: skip
    assert f"at {name}:5\n{user_line(5)}\n$1 = 8.25\n$2 = 1.25\n$3 = 1\n" in said, said
    assert f"{user_line(6)}\n$4 = 16.5\n" in said, said
    located = re.search(r"^Located in (.*)$", said, re.M)
    assert located, said
    place = Path(located[1])
    assert place == path if origin == "file" else str(place).startswith(cache)


@each_compiler
def test_files_of_debug_builds_go_with_their_version(info, tmp_path):
    loader = rekernel.KernelLoader(jit=CpuJit(info, ObjectCache(tmp_path / "cache")))
    place = tmp_path / "cache" / "tmp"
    loader.load(TEXT, "a/../b \0 c", debug=True)
    (directory,) = place.iterdir()
    assert sorted(path.suffix for path in directory.iterdir()) == [".cpp", ".so"]
    (text,) = directory.glob("*.cpp")
    assert text.read_text() == TEXT
    for number in range(3):
        loader.load(f"{TEXT}// {number}\n", "a/../b \0 c")
    assert len(list(place.iterdir())) == 2, "the live version and the one before"
    loader.load(TEXT, "a/../b \0 c", debug=False)
    loader.load(f"{TEXT}//\n", "a/../b \0 c")
    assert list(place.iterdir()) == []
    loader.load(TEXT, "c", debug=True)
    loader.unload("c")
    assert list(place.iterdir()) == []


@each_compiler
def test_a_failed_debug_load_leaves_no_files(info, tmp_path, monkeypatch):
    loader = rekernel.KernelLoader(jit=CpuJit(info, ObjectCache(tmp_path / "cache")))
    with pytest.raises(KernelSourceError, match="line 1, column"):
        loader.load("void f(int x) { y = x; }\n", "a", debug=True)
    assert list((tmp_path / "cache" / "tmp").iterdir()) == []
    monkeypatch.setenv("REKERNEL_KEEP", str(tmp_path / "kept"))
    with pytest.raises(KernelSourceError):
        loader.load("void f(int x) { y = x; }\n", "a")
    assert list((tmp_path / "kept").iterdir()) == []


@each_compiler
@pytest.mark.parametrize("end", ["", "import os; os._exit(0)"], ids=["end", "killed"])
def test_files_of_debug_builds_go_with_their_process(info, tmp_path, end):
    code = f"import rekernel, sys\nloader = rekernel.KernelLoader()\nm = loader.load(sys.argv[1], 'a', debug=True)\n{end}\n"
    env = {"REKERNEL_CXX": info.command, "REKERNEL_CACHE_DIR": str(tmp_path)}
    process = run_python(code, TEXT, **env)
    assert process.stderr == ""
    left = list((tmp_path / "tmp").iterdir())
    if end:
        assert len(left) == 1
        run_python("import rekernel, sys\nrekernel.KernelLoader().load(sys.argv[1], 'b')\n", TEXT, **env)
        left = list((tmp_path / "tmp").iterdir())
    assert left == []


@each_compiler
def test_kept_files_have_the_text_and_its_lines_and_stay(info, tmp_path):
    keep = tmp_path / "some" / "kept"
    code = """
        import numpy as np, rekernel, sys
        loader = rekernel.KernelLoader()
        u = np.full((3, 2), 8.0)
        m = loader.load(sys.argv[1], "heat")
        m.step(u, 0.0)
        print(u[1, 0], rekernel.info(m).from_cache)
        loader.load(sys.argv[1] + "// more", "heat", debug=True)
        loader.unload("heat")
    """
    env = {"REKERNEL_CXX": info.command, "REKERNEL_CACHE_DIR": str(tmp_path / "cache"), "REKERNEL_KEEP": str(keep)}
    for _ in range(2):
        assert lines_of(run_python(code, TEXT, **env)) == ["4.0 False"]
    kept = sorted(keep.iterdir())
    assert [re.sub(r"-[^-]+$", "", path.name) for path in kept] == ["heat-v1"] * 2 + ["heat-v2"] * 2
    for path in kept:
        assert sorted(one.name for one in path.iterdir()) == ["heat.cpp", "heat.so"]
        assert (path / "heat.cpp").read_text() == TEXT + ("// more" if "-v2-" in path.name else "")
        assert os.fsencode(path) in (path / "heat.so").read_bytes(), "where the text is"
    assert sorted((tmp_path / "cache" / "tmp").iterdir()) == []


@each_compiler
def test_gdb_finds_the_lines_of_a_kept_release_build(info, gdb, tmp_path, monkeypatch):
    monkeypatch.setenv("REKERNEL_KEEP", str(tmp_path / "kept"))
    path = tmp_path / "heat.cpp"
    path.write_text(TEXT)
    m = rekernel.KernelLoader(jit=CpuJit(info, None)).load_file(path)
    u = np.full((3, 2), 8.0)
    m.step(u, 0.0)
    assert u[1, 0] == 4
    (library,) = (tmp_path / "kept").glob("*/*.so")
    said = gdb(["info line heat.cpp:4", "info source"], str(library))
    assert re.search(r'^Line 4 of "[^"]*heat\.cpp" ', said, re.M), said


def test_a_directory_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REKERNEL_KEEP", str(tmp_path / "file"))
    loader = rekernel.KernelLoader(jit=CpuJit(objcache=None))
    with pytest.raises(JitError, match=rf"^REKERNEL_KEEP={re.escape(str(tmp_path / 'file'))}: no directory for heat "):
        loader.load(TEXT, "heat")
