"""Row 43 for C++ texts: Ctrl-C during a load comes out at once; the old version serves; nothing is left behind."""

from __future__ import annotations

import os

import pytest

from cachekit import posix
from cppkit import START, left_in, needs_cpp
from support import run_python

pytestmark = [posix, needs_cpp]

RANDOM = (
    START
    + """
import random, signal, faulthandler
faulthandler.dump_traceback_later(100, exit=True)
moments = random.Random(43)
f = loader.load(answer(0), "k", optlevel="0").f
start = time.perf_counter()
loader.load(answer(1), "k")
usual = time.perf_counter() - start
value, late, interrupts = 1, [], 0
for turn in range(2, 22):
    pause, sent = moments.random() * usual, []
    def interrupt():
        time.sleep(pause)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    try:
        try:
            thread.start()
            loader.load(answer(turn), "k")
            value = turn
        finally:
            thread.join()
    except KeyboardInterrupt:
        interrupts += 1
        if sent: late.append(time.perf_counter() - sent[0])
    while True:
        try:
            time.sleep(0.01)  # one that was still on its way
            break
        except KeyboardInterrupt:
            pass
    assert f() in (value, turn), (turn, f(), value)
    loader.load(answer(-turn), "k")
    value = -turn
    assert f() == value
    assert loader.info("k").error is None
print(interrupts > 0, all(t < 1 for t in late) or late, living_children(os.getpid()))
"""
)


def test_at_twenty_random_moments_of_a_load(tmp_path):
    said = run_python(RANDOM, str(tmp_path / "cache")).stdout
    assert said == "True True []\n"
    run_python(START + "loader.load(answer(99), 'k')", str(tmp_path / "cache"))
    assert left_in(tmp_path / "cache") == []


WHILE_COMPILING = (
    START
    + """
import signal
from pathlib import Path
number = getattr(signal, sys.argv[2])
shim = Shim(Path(sys.argv[1]) / "bin")
loader = load_with(sys.argv[1] + "/cache", shim.info)
f = loader.load(answer(1), "k").f
class Stop(Exception): pass
def stop(*_): raise Stop
if number != signal.SIGINT: signal.signal(number, stop)
for turn in range(3):
    shim.close()
    def interrupt():
        shim.wait_for(2 + turn)
        os.kill(os.getpid(), number)
    thread = threading.Thread(target=interrupt)
    thread.start()
    start = time.perf_counter()
    try:
        loader.load(answer(2), "k")
        print("not interrupted")
    except (KeyboardInterrupt, Stop) as error:
        print(type(error).__name__, f(), living_children(os.getpid()))
    thread.join()
    shim.open()
loader.load(answer(3), "k")
print(f(), loader.info("k").version, loader.jit.objcache.stats.damaged)
"""
)


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGALRM"])
def test_while_the_compiler_runs(tmp_path, signal):
    done = run_python(WHILE_COMPILING, str(tmp_path), signal)
    name = "KeyboardInterrupt" if signal == "SIGINT" else "Stop"
    assert done.stdout.splitlines() == [f"{name} 1 []"] * 3 + ["3 2 0"]
    assert left_in(tmp_path / "cache") == []


def test_while_a_kernel_runs_and_when_it_is_waited_for(tmp_path):
    program = """
import signal
from pathlib import Path
shim = Shim(Path(sys.argv[1]) / "bin")
loader = load_with(sys.argv[1] + "/cache", shim.info)
f = loader.load(answer(1), "k").f
shim.close()
loader.load(answer(2), "k", background=True)
shim.wait_for(2)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try: loader.wait()
except KeyboardInterrupt: print("interrupted", f())
shim.open()
loader.wait()
print(f())
"""
    assert run_python(START + program, str(tmp_path)).stdout.splitlines() == ["interrupted 1", "2"]
    assert not os.listdir(tmp_path / "cache" / "tmp")
