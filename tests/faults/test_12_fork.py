"""Row 12: a forked child that uses its parent's kernels gets an error at once, and never hangs."""

from __future__ import annotations

import os

import pytest

from support import START, lines_of, run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CHILD = (
    START
    + """
import os, sys, threading, time
x = np.ones(1000, np.float32)
module = loader.load(scale(2), "k")
module.f(x)
pinned = module.f.pinned()

def child(work):
    '''Run work in a forked child and print what came of it; a child that hangs ends by the parent's time limit.'''
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            result = work()
            print("->", result, flush=True)
        except RuntimeError as error:
            print("RuntimeError", "forked child" in str(error), "spawn" in str(error), flush=True)
        except BaseException as error:
            print("other", type(error).__name__, error, flush=True)
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""
)

REFUSED = {
    "a call": "module.f(x)",
    "a call of a pinned kernel": "pinned(x)",
    "a call after a load of the same text": "loader.load(scale(2), 'k').f(x)",
    "a load of a new text": "loader.load(scale(3), 'k')",
    "a load without check": "loader.load(scale(3), 'k', check=False).f(x)",
    "a load of a new id": "loader.load(scale(3), 'other')",
    "a load in a new loader": "rekernel.KernelLoader().load(scale(3), 'k')",
    "a rollback to a version that has to be built": "loader.rollback('many', 1)",
    "an unpickled kernel": "pickled(x)",
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_child_is_refused(what):
    program = (
        CHILD
        + f"""
import pickle
for factor in range(2, 6):
    loader.load(scale(factor), "many")
pickled = pickle.loads(pickle.dumps(module.f))
child(lambda: {REFUSED[what]})
module.f(x)
print("parent", x[0])
"""
    )
    assert lines_of(run_python(program, timeout=60)) == ["RuntimeError True True", "parent 4.0"]


def test_a_child_may_look_unload_and_end():
    program = (
        CHILD
        + """
child(lambda: [repr(loader)[:13], loader.info("k").version, "k" in loader, len(loader.history("k"))])
child(lambda: loader.unload("k"))
child(lambda: loader.cleanup_all())
child(lambda: loader.cleanup_all(reset_taichi=True))
print("parent", module.f(x), x[0])
"""
    )
    expected = ["-> ['<KernelLoader', 1, True, 1]", "-> None", "-> None", "-> None", "parent None 4.0"]
    assert lines_of(run_python(program, timeout=60)) == expected


def test_a_child_that_starts_a_program_of_its_own_works():
    program = (
        CHILD
        + """
def work():
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    module.f(x)
    loader.load(scale(5), "k")
    module.f(x)
    rekernel.KernelLoader().load(scale(7), "k").f(x)
    return x[0]
child(work)
"""
    )
    assert lines_of(run_python(program, timeout=60)) == ["-> 140.0"]


def test_a_fork_before_the_first_load_counts():
    program = """
import os, numpy as np, taichi as ti, rekernel
from support import *
ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
pid = os.fork()
if pid == 0:
    try:
        rekernel.KernelLoader().load(times(3), "k").f(1)
        print("ran", flush=True)
    except RuntimeError as error:
        print("forked child" in str(error), flush=True)
    finally:
        os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    assert lines_of(run_python(program, timeout=60)) == ["True"]


def test_a_fork_before_ti_init_is_no_trouble():
    program = """
import os, numpy as np, taichi as ti, rekernel
from support import *
loader = rekernel.KernelLoader()
pid = os.fork()
if pid == 0:
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    print(loader.load(times(3), "k").f(2), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    assert lines_of(run_python(program, timeout=60)) == ["6.0"]


def test_a_fork_while_another_thread_loads_calls_and_holds():
    program = (
        CHILD
        + """
stop = threading.Event()

def busy():
    y, n = np.ones(10, np.float64), 0
    while not stop.is_set():
        n += 1
        loader.load(scale(n), "busy", check=(y,)).f(y)
        with loader.hold():
            module.f(y)

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(15):
    child(lambda: module.f(x))
    child(lambda: loader.load(scale(-1), "busy"))
    child(lambda: (loader.unload("k"), repr(loader))[0])
stop.set()
for thread in threads:
    thread.join()
"""
    )
    printed = lines_of(run_python(program, timeout=100))
    assert printed == ["RuntimeError True True", "RuntimeError True True", "-> None"] * 15


def test_a_pool_of_forked_workers_reports_the_error():
    program = (
        CHILD
        + """
import multiprocessing

def work(n):
    module.f(np.ones(n, np.float32))

with multiprocessing.get_context("fork").Pool(2) as pool:
    result = pool.map_async(work, [1, 2, 3])
    try:
        result.get(timeout=30)
    except RuntimeError as error:
        print("forked child" in str(error))
"""
    )
    assert lines_of(run_python(program, timeout=60)) == ["True"]


def test_a_child_can_use_other_languages():
    program = """
import os, rekernel
from toy import Toy
from rekernel.languages import register
register(Toy())
loader = rekernel.KernelLoader()
module = loader.load("f() = 3", "k", language="toy")
pid = os.fork()
if pid == 0:
    loader.load("f() = 4", "k")
    print(module.f(), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(module.f())
"""
    assert lines_of(run_python(program, timeout=60)) == ["4", "3"]
