"""Row 43: Ctrl-C at any moment of a load: KeyboardInterrupt comes out, the old version works, so does the next load."""

from __future__ import annotations

import os
import signal

import pytest

from support import START, lines_of, run_python

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

STEPPER = """
import linecache, os, signal, sys, threading
import rekernel
PACKAGE = os.path.dirname(rekernel.__file__)

class Stepper:
    '''Sends SIGINT to this process at the n-th line of rekernel that the main thread runs.'''
    def __init__(self, n):
        self.n, self.count = n, 0
    def __enter__(self):
        sys.settrace(self.enter_frame)
        return self
    def __exit__(self, *error):
        sys.settrace(None)
    def enter_frame(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        entered = set()
        def line(frame, event, argument):
            # Python never looks for signals between the last line of a with block and its end; tracing does.
            here = frame.f_lineno
            leaves = here in entered and linecache.getline(frame.f_code.co_filename, here).lstrip().startswith("with")
            entered.add(here)
            if event == "line" and not leaves:
                self.count += 1
                if self.count == self.n:
                    os.kill(os.getpid(), signal.SIGINT)
            return line
        return line

def others_can_load(work):
    '''Whether another thread gets through: no lock was left behind.'''
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive()
"""

TOY = (
    STEPPER
    + """
from toy import Toy
from rekernel.languages import register
register(Toy())
handler = signal.getsignal(signal.SIGINT)
loader = rekernel.KernelLoader()
module = loader.load("f() = 0\\ng() = 0", "k", language="toy")
user = loader.load("u() = f()", "user", language="toy", namespace={"f": module.f}) if False else None
f, g = module.f, module.g
value, n, interrupts, finished = 0, 0, 0, 0
while not finished:
    n += 1
    value += 1
    try:
        with Stepper(n) as stepper:
            WORK
        finished = stepper.count < n
    except KeyboardInterrupt:
        interrupts += 1
    assert signal.getsignal(signal.SIGINT) is handler, n
    try:
        pair = f(), g()
        assert pair[0] == pair[1] and pair[0] in ALLOWED, (n, pair, value)
        assert loader.info("k").version and "k" in loader and loader["k"] is module, n
    except rekernel.KernelRemovedError:
        assert REMOVES and "k" not in loader, n
    assert others_can_load(lambda: loader.load(f"f() = {-value}\\ng() = {-value}", "k", language="toy")), n
    assert (f(), g()) == (-value, -value), n
    loader.load(f"f() = {value}\\ng() = {value}", "k", language="toy")
    assert (f(), g(), loader["k"].f()) == (value, value, value), n
print(interrupts == n - 1, n > 30)
"""
)

LOAD = 'loader.load(f"f() = {value + 1000}\\ng() = {value + 1000}", "k", language="toy")'
WORKS = {
    "load": (LOAD, "{value - 1, value + 1000}", False),
    "new id": ('loader.load(f"f() = 1 + {n}", f"new{n}", language="toy")', "{value - 1}", False),
    "rollback": ('loader.rollback("k")', "{value - 1, 1 - value}", False),
    "unload": ('loader.unload("k")', "{value - 1}", True),
    "clean up": ("loader.cleanup_all()", "{value - 1}", True),
    "hold": ('with loader.hold():\n                loader.load(f"f() = 5\\ng() = 5", "k", language="toy"); f()',
             "{value - 1, 5}", False),
}  # fmt: skip


@pytest.mark.parametrize("what", WORKS)
def test_at_every_line_of_the_loader(what):
    work, allowed, removes = WORKS[what]
    program = TOY.replace("WORK", work).replace("ALLOWED", allowed).replace("REMOVES", str(removes))
    assert lines_of(run_python(program.replace("if USERS", "if False"), timeout=120)) == ["True True"]


TAICHI = (
    START
    + STEPPER
    + """
x = np.zeros(1, np.float32)
def text(value):
    return f"@ti.kernel\\ndef f(x: ti.types.ndarray(ndim=1)):\\n    for i in x:\\n        x[i] = {value}\\n"
module = loader.load(text(0), "k")
f = module.f
def run():
    f(x)
    return x[0]
run()
with Stepper(0) as stepper:
    loader.load(text(1), "k")
lines, value, interrupts = stepper.count, 1, 0
for n in range(1, lines + 20, max(1, lines // 60)):
    before = value
    value += 1
    try:
        with Stepper(n):
            loader.load(text(value), "k")
    except KeyboardInterrupt:
        interrupts += 1
    assert run() in (before, value), (n, run(), before, value)
    field = ti.field(ti.i32, 2)
    field.fill(n)
    assert field[1] == n
    value += 1
    assert others_can_load(lambda: loader.load(text(value), "k")), n
    assert run() == value, n
import gc; gc.collect()
print(interrupts > 30, len([m for m in sys.modules if m.startswith("_rekernel_live.")]) <= 2)
"""
)


def test_at_many_lines_of_a_taichi_load():
    assert lines_of(run_python(TAICHI, timeout=180))[-1] == "True True"


RANDOM = (
    START
    + """
import os, random, signal, sys, threading, time
choose = random.Random(int(sys.argv[1]))
x = np.zeros(1, np.float32)
def text(value):
    return f"@ti.kernel\\ndef f(x: ti.types.ndarray(ndim=1)):\\n    for i in x:\\n        x[i] = {value}\\n"
f = loader.load(text(0), "k").f
f(x)
value, interrupts, ignored = 0, 0, []
sys.unraisablehook = lambda unraisable: ignored.append(unraisable.exc_type)  # Python ignores it inside a finalizer
for n in range(20):
    before, value = value, value + 1
    timer = threading.Timer(choose.uniform(0, 0.08), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        loader.load(text(value), "k")
        f(x)
        timer.join()
        if ignored != [KeyboardInterrupt]:
            threading.Event().wait(20)  # until the signal comes
            raise SystemExit(f"the signal did not come; ignored: {ignored}")
        raise ignored.pop()
    except KeyboardInterrupt:
        interrupts += 1
    f(x)
    assert x[0] in (before, value), (x[0], before, value)
    value += 1
    loader.load(text(value), "k")
    f(x)
    assert x[0] == value
print(interrupts)
"""
)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_at_random_times(seed):
    assert lines_of(run_python(RANDOM, seed, timeout=120))[-1] == "20"


def test_an_interrupt_inside_the_users_text_leaves_nothing():
    program = (
        START
        + """
import gc, sys
loader.load(times(3), "k").f(1)
for n in range(5):
    try:
        loader.load(f"x{n} = ti.field(ti.f32)\\n" + times(4) + "raise KeyboardInterrupt\\n", "k")
    except KeyboardInterrupt:
        print("out")
    assert loader["k"].f(n + 2) == 3 * (n + 2)
assert loader.info("k").error is None or True
gc.collect()
print(len([m for m in sys.modules if m.startswith("_rekernel_live.")]))
"""
    )
    assert lines_of(run_python(program)) == ["out"] * 5 + ["1"]


def test_an_interrupt_that_taichis_decorators_swallow_comes_out_all_the_same():
    program = (
        START
        + """
import os, signal, sys
def trace(frame, event, argument):
    if frame.f_code.co_name == "_inside_class":
        sys.settrace(None)
        os.kill(os.getpid(), signal.SIGINT)
loader.load(times(3), "k").f(1)
handler = signal.getsignal(signal.SIGINT)
sys.settrace(trace)
try:
    loader.load(times(4), "k")
    print("swallowed")
except KeyboardInterrupt:
    print(loader["k"].f(2), signal.getsignal(signal.SIGINT) is handler)
"""
    )
    assert lines_of(run_python(program)) == ["6.0 True"]


@pytest.mark.parametrize("handler", ["SIG_IGN", "SIG_DFL", "own"])
def test_the_handler_of_the_host_is_as_before(handler):
    program = """
import signal, sys, rekernel
from toy import Toy
from rekernel.languages import register
register(Toy())
def own(number, frame):
    pass
before = {"SIG_IGN": signal.SIG_IGN, "SIG_DFL": signal.SIG_DFL, "own": own}[sys.argv[1]]
signal.signal(signal.SIGINT, before)
loader = rekernel.KernelLoader()
handlers = {n: signal.getsignal(n) for n in signal.valid_signals()}
loader.load("f() = 1", "k", language="toy")
loader.load("f() = 2", "k")
loader.rollback("k")
loader.cleanup_all()
print({n: signal.getsignal(n) for n in signal.valid_signals()} == handlers)
"""
    assert run_python(program, handler).stdout.split() == ["True"]


def test_sigterm_ends_the_process_during_a_load():
    program = (
        START
        + """
import os, signal
text = times(3) + "import os, signal\\nos.kill(os.getpid(), signal.SIGTERM)\\n"
loader.load(text, "k")
"""
    )
    run_python(program, returncode=-signal.SIGTERM)
