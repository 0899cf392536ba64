"""Row 58 for C++ texts: a call asks no file system and runs no Python; it needs neither cache nor compiler."""

from __future__ import annotations

import shutil

import numpy as np

from cppkit import START, answer, load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp

TEXT = """
using rekernel::Array;
void none() {}
void three(Array<double, 1> a, Array<double, 2> b, double *c) { a[0] += 1; (void)b; (void)c; }
void ten(double *a, double *b, double *c, double *d, double *e, double *f, double *g, double *h, double *i, double *j) { *a += 1; }
double either(double x) { return x; }
int either(Array<int, 1> x) { return x[0]; }
"""


def test_a_thousand_calls_make_no_event_and_no_frame(tmp_path):
    program = f"""
text = {TEXT!r}
m = loader.load(text, "k", optlevel="1")
x, y, z = np.ones(3), np.ones((2, 2)), np.ones(3, "i4")
none, three, ten, either, pinned = m.none, m.three, m.ten, m.either, m.three.pinned()
events, watching = [], False
def watch(event, arguments):
    if watching: events.append(event)
sys.addaudithook(watch)
def calls():
    for _ in range(1000):
        none(), three(x, y, x), ten(*[x] * 10), either(1.0), either(z), three(a=x, b=y, c=x), pinned(x, y, x)
frames = []
def profile(frame, event, argument):
    if event == "call" and frame.f_code is not calls.__code__: frames.append(frame.f_code.co_name)
calls()
for name in ("stat", "lstat", "open", "listdir", "scandir", "access"):
    def counted(*arguments, original=getattr(os, name), name=name, **more):
        if watching: events.append(name)
        return original(*arguments, **more)
    setattr(os, name, counted)
watching = True
calls()
watching = False
sys.setprofile(profile)
calls()
sys.setprofile(None)
print(sorted(set(events)), sorted(set(frames)), x[0] > 2000)
"""
    assert run_python(START + program, str(tmp_path / "cache")).stdout == "[] [] True\n"


def test_calls_and_unchanged_loads_do_not_need_the_cache_or_the_compiler(tmp_path, monkeypatch):
    with load_with(tmp_path / "cache") as loader:
        m = loader.load(TEXT, "k", optlevel="0")
        shutil.rmtree(tmp_path / "cache")
        monkeypatch.setenv("PATH", "")
        x = np.zeros(3)
        for _ in range(3):
            loader.load(TEXT, "k")
            m.three(x, np.ones((2, 2)), x)
            m.three.pinned()(x, np.ones((2, 2)), x)
        assert (x[0], m.either(3.0), loader.info("k").version) == (6, 3.0, 1)
        assert not (tmp_path / "cache").exists()


def test_a_bound_call_notices_every_reload(tmp_path):
    with load_with(tmp_path / "cache") as loader:
        f = loader.load(answer(0), "k", optlevel="0").f
        bound = f.__call__
        said = []
        for number in (1, 2, 1, 2):
            loader.load(answer(number), "k")
            said.append((f(), bound(), loader["k"].f()))
        assert said == [(n, n, n) for n in (1, 2, 1, 2)]
