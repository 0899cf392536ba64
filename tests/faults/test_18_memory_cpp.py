"""Row 18 for C++ texts: a thousand reloads, failing ones, and unloading leave nothing but what is live."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import rekernel
from cppkit import START, answer, linux, load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp

PROGRAM = (
    START
    + """
import ctypes, linecache, tempfile
from pathlib import Path
from support import held
directory, distinct, reloads = Path(sys.argv[1]), 40, 1000
def text(n):
    return (f"static double table[2000]; static thread_local int mine;\\n"
            f"int f(rekernel::Array<double, 1> x) {{ mine = table[{n}] = x[0]; return {n}; }}\\n"
            f"int g(int n) {{ return n + {n}; }}\\nint g(double x) {{ return int(x) + {n}; }}\\n")
def all_held():
    counted = held()
    ctypes.CDLL(None).malloc_trim(0)
    files = [str(p) for place in (directory, Path(tempfile.gettempdir())) for p in place.rglob("*")
             if "objects" not in p.parts]
    status = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
    return {**counted, "files": sorted(files), "modules": len(sys.modules), "lines": len(linecache.cache)}, int(status) / 1024
x, y = np.ones(3), np.ones(3, "f4")
def reload(n):
    m = loader.load(text(n % distinct), f"id{n % 3}", optlevel="0")
    assert (m.f(x), m.g(1), m.g(1.0)) == (n % distinct, n % distinct + 1, n % distinct + 1)
    if n % 7 == 0:
        try: m.f(y)
        except TypeError: pass
    if n % 10 == 9: loader.unload(f"id{n % 3}")
    if n % 50 == 0:
        try: loader.load(text("nonsense"), "id0")
        except rekernel.KernelSourceError: pass
for n in range(200): reload(n)
before, resident = all_held()
for n in range(200, 200 + reloads): reload(n)
after, now = all_held()
print({k: (before[k], after[k]) for k in before if before[k] != after[k]}, now - resident < 6 or now - resident,
      loader.jit.objcache.stats.published)
"""
)


@linux
def test_a_thousand_reloads_leave_nothing(tmp_path):
    (tmp_path / "tmp").mkdir()
    said = run_python(PROGRAM, str(tmp_path / "cache"), TMPDIR=str(tmp_path / "tmp")).stdout
    assert said == "{} True 40\n"


WAYS = {
    "replace": lambda loader, n: loader.load(answer(n), "k"),
    "to and fro": lambda loader, n: loader.load(answer(n % 2), "k"),
    "roll back": lambda loader, n: (loader.load(answer(n), "k"), loader.load(answer(-n), "k"), loader.rollback("k")),
    "unload": lambda loader, n: (loader.load(answer(n), f"id{n}").f(), loader.unload(f"id{n}")),
    "a new name each time": lambda loader, n: loader.load(answer(n, f"f{n}"), "k"),
    "fail": lambda loader, n: fails(loader, answer(f"nonsense{n}")),
    "pinned": lambda loader, n: loader.load(answer(n), "k").f.pinned()(),
    "in the background": lambda loader, n: (loader.load(answer(n), "k", background=True), loader.wait()),
}


def fails(loader, text):
    with pytest.raises(rekernel.KernelSourceError):
        loader.load(text, "k")


def native(kind):
    gc.collect()
    return sum(1 for one in gc.get_objects() if type(one).__name__ == kind)


@pytest.mark.parametrize("way", WAYS)
def test_no_function_stays_that_nobody_can_reach(tmp_path, way):
    with load_with(tmp_path / "cache") as loader:
        loader.load(answer(1000), "k", optlevel="0")
        counts = []
        for n in range(8):
            WAYS[way](loader, n)
            counts.append((native("Function"), native("Library"), native("Edition"), native("Built")))
        assert counts[3:] == [counts[3]] * 5


def test_arguments_and_results_are_let_go(tmp_path):
    with load_with(tmp_path / "cache") as loader:
        m = loader.load("void f(rekernel::Array<double, 1> x) { x[0] = 1; }\nvoid p(double *x) { x[0] = 1; }\n", "k")
        alive = []
        for kernel in (m.f, m.p, m.f.pinned()):
            x = np.zeros(1000)
            kernel(x)
            alive.append(weakref.ref(x))
            del x
        gc.collect()
        assert [reference() for reference in alive] == [None] * 3
