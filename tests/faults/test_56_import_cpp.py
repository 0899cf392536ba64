"""Row 56 for C++ texts: nothing of C++ is imported, written or started before a text needs it."""

from __future__ import annotations

from cppkit import START, answer, needs_cpp
from support import run_python

WATCHED = """
import os, sys
events = []
def watch(event, arguments):
    started = event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "_thread.start_new_thread", "os.mkdir", "os.rename")
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if started or writes:
        events.append((event, str(arguments)[:100]))
import numpy
sys.addaudithook(watch)
"""
LAZY = ("tree_sitter", "tree_sitter_cpp", "subprocess", "rekernel.toolchain", "taichi")


def test_importing_and_making_a_loader_does_nothing(tmp_path):
    program = f"""
import rekernel
from rekernel.jit import CpuJit, GccInfo
loader = rekernel.KernelLoader(jit=CpuJit(GccInfo(), {str(tmp_path / "cache")!r}))
repr(loader), rekernel.KernelLoader().jit
print(events, [name for name in {LAZY!r} if name in sys.modules])
"""
    assert run_python(WATCHED + program, HOME=str(tmp_path)).stdout == "[] []\n"
    assert not list(tmp_path.iterdir())


@needs_cpp
def test_a_text_out_of_the_cache_starts_nothing_and_imports_no_reader(tmp_path):
    text = "#include <cmath>\nvoid f(rekernel::Array<double, 1> x) { x[0] = std::sqrt(x[0]); }\n" + answer(1, "g")
    program = f"""
import numpy as np, rekernel
from rekernel.jit import CpuJit, GccInfo
loader = rekernel.KernelLoader(jit=CpuJit(GccInfo(), {str(tmp_path / "cache")!r}))
m = loader.load({text!r}, "k")
m.f(np.ones(3))
print([e for e in events if "Popen" in e[0] or "thread" in e[0] or "fork" in e[0]],
      [name for name in {LAZY!r} if name in sys.modules], m.g(), loader.info("k").from_cache)
"""
    first = run_python(WATCHED + program).stdout
    assert "g++" in first
    assert first.endswith("1 False\n")
    assert run_python(WATCHED + program).stdout == "[] [] 1 True\n"


@needs_cpp
def test_nothing_that_a_load_makes_is_in_the_users_way(tmp_path):
    program = """
before = set(sys.path), os.getcwd(), set(os.environ), os.umask(0o22)
loader.load(answer(1), "k")
try: loader.load("int f() { return nonsense; }", "k")
except rekernel.KernelSourceError: pass
after = set(sys.path), os.getcwd(), set(os.environ), os.umask(0o22)
print(before == after, threading.active_count(), os.listdir("."))
"""
    (tmp_path / "empty").mkdir()
    said = run_python(START + program, str(tmp_path / "cache"), cwd=tmp_path / "empty").stdout
    assert said == "True 1 []\n"
