"""Row 58: a call through a handle asks no file system, makes no Python frame, and notices every reload."""

from __future__ import annotations

import os
import sys

import rekernel
from rekernel import KernelLoader
from rekernel.languages import register, unregister
from support import START, lines_of, run_python, times
from toy import Toy

QUIET = """
import os, sys
import rekernel
events, watching = [], False
def watch(event, arguments):
    if watching:
        events.append((event, str(arguments)[:200]))
sys.addaudithook(watch)
for name in ("stat", "lstat", "listdir", "scandir", "open", "access", "readlink"):
    original = getattr(os, name)
    def counted(*arguments, original=original, name=name, **named):
        if watching:
            events.append((name, str(arguments)[:200]))
        return original(*arguments, **named)
    setattr(os, name, counted)
"""


def test_a_thousand_calls_of_a_taichi_kernel_touch_no_file():
    program = (
        QUIET
        + START
        + """
f = loader.load(scale(1), "k").f
g = loader.load("import taichi\\n" + times(1), "g").f
x = np.ones(3, np.float32)
f(x), g(1)
watching = True
for _ in range(1000):
    f(x)
    g(1)
    loader["k"].f
    loader["k"].f(x)
watching = False
events = [event for event in events if event[0] != "builtins.id"]  # Taichi asks for it
print(sorted({event[0] for event in events}), events[:3])
"""
    )
    assert lines_of(run_python(program)) == ["[] []"]


def test_a_thousand_loads_of_the_same_text_touch_no_file():
    program = (
        QUIET
        + START
        + """
loader.load(scale(1), "k")
loader.load(times(1))
watching = True
for _ in range(1000):
    loader.load(scale(1), "k")
    loader.load(times(1))
watching = False
print(sorted({event[0] for event in events} - {"sys._getframe"}), loader.stats().unchanged)
"""
    )
    assert lines_of(run_python(program)) == ["[] 2000"]


def frames(work):
    """Return the files of all Python frames that `work` enters below itself.

    ``materialize`` is a step of Taichi's own, which is only looked in on.
    """
    files = []

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_name != "materialize":
            files.append(frame.f_code.co_filename)

    work()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return files


def test_a_call_adds_no_python_frame(loader):
    f = loader.load(times(1), "k").f
    pinned = f.pinned()
    package = os.path.dirname(rekernel.__file__)
    entered = [file for call in (lambda: f(1), lambda: pinned(1), lambda: f(n=1)) for file in frames(call)]
    assert [file for file in entered if file.startswith(package)] == []
    assert len(entered) > 3


def test_a_call_of_another_language_enters_the_kernel_at_once():
    language = Toy()
    register(language)
    try:
        with KernelLoader() as loader:
            f = loader.load("f(x) = x + 1", "k", language="toy").f
            entered = frames(lambda: f(1))
            assert entered[0] == __file__  # the lambda itself
            assert not any(file.endswith(("handle.py", "live.py", "loader.py")) for file in entered)
    finally:
        unregister(language.name)


def test_one_bound_object_notices_every_reload(loader):
    import functools

    module = loader.load(times(0), "k")
    f = module.f
    bound = [f, functools.partial(f), f.__call__, {"f": f}["f"], (lambda g=f: lambda n: g(n))()]
    for factor in range(1, 5):
        loader.load(times(factor), "k")
        assert [call(2) for call in bound] == [2 * factor] * len(bound)
    assert f is module.f is loader["k"].f


def test_ten_thousand_calls_count_exactly(loader):
    f = loader.load("@ti.kernel\ndef f(a: ti.i32, b: ti.i32, c: ti.i32) -> ti.i32:\n    return a + b + c\n", "k").f
    assert sum(f(n, 1, b) for n in range(100) for b in range(10)) == 10 * sum(range(100)) + 1000 + 100 * sum(range(10))
    assert f.stats == {"calls": 1000, "failures": 0}
