"""Row 12: a forked child of a process that has run OpenMP kernels gets an error, and never hangs."""

from __future__ import annotations

import os

import pytest

from jitkernels import each_compiler, needs_openmp
from support import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

START = """
import os, sys, threading
import numpy as np
from jitkernels import *
from rekernel.jit import CpuJit
cache = sys.argv[1]
jit = CpuJit({info}(), cache)
threads, axpy = jit.compile(THREADS), jit.compile(AXPY)
x = np.zeros(1000, "i4")

def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            print("->", work(), flush=True)
        except RuntimeError as error:
            print("RuntimeError", "forked" in str(error), "spawn" in str(error), flush=True)
        except BaseException as error:
            print("other", type(error).__name__, error, flush=True)
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def lines(info, program: str, directory, **more: str) -> list[str]:
    needs_openmp(info)
    done = run_python(
        START.format(info=type(info).__name__) + program, str(directory), timeout=60, OMP_NUM_THREADS="2", **more
    )
    return done.stdout.splitlines()


@each_compiler
def test_a_child_is_refused_after_its_parent_has_run_openmp(info, tmp_path):
    program = """
print(threads(x))
child(lambda: threads(x))
child(lambda: jit.compile(THREADS)(x))
child(lambda: [axpy(np.ones(3), np.ones(3), 1), jit.compile(constant(5))()])
print(threads(x))
"""
    assert lines(info, program, tmp_path) == [
        "2",
        "RuntimeError True True",
        "RuntimeError True True",
        "-> [None, 5]",
        "2",
    ]


@each_compiler
def test_a_child_is_free_where_its_parent_has_not(info, tmp_path):
    program = """
child(lambda: threads(x))
child(lambda: [threads(x), threads(x)])
print(threads(x))
"""
    assert lines(info, program, tmp_path) == ["-> 2", "-> [2, 2]", "2"]


@each_compiler
def test_a_grandchild(info, tmp_path):
    program = """
child(lambda: child(lambda: threads(x)))
threads(x)
child(lambda: child(lambda: threads(x)))
child(lambda: (threads(x), child(lambda: threads(x))))
"""
    said = lines(info, program, tmp_path)
    assert said == ["-> 2", "-> None", "RuntimeError True True", "-> None", "RuntimeError True True"]


@each_compiler
def test_pools_of_forked_and_of_spawned_processes(info, tmp_path):
    (tmp_path / "work.py").write_text(f"""
import numpy as np
from jitkernels import *
from rekernel.jit import CpuJit
def work(n):
    return CpuJit({type(info).__name__}(), {str(tmp_path)!r}).compile(THREADS)(np.zeros(100 * n, "i4"))
""")
    program = f"""
sys.path.insert(0, {str(tmp_path)!r})
import multiprocessing
from work import work
if __name__ == "__main__":
    threads(x)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        try:
            print(pool.map_async(work, [1, 2, 3]).get(timeout=30))
        except RuntimeError as error:
            print("spawn" in str(error))
"""
    tests = os.path.dirname(os.path.dirname(__file__))
    assert lines(info, program, tmp_path, PYTHONPATH=f"{tests}{os.pathsep}{tmp_path}") == ["[2, 2, 2]", "True"]


@each_compiler
def test_a_fork_while_another_thread_compiles_and_calls(info, tmp_path):
    program = """
stop = threading.Event()

def busy():
    n = 0
    while not stop.is_set():
        n += 1
        assert jit.compile(constant(n % 5))() == n % 5
        axpy(np.ones(20000), np.ones(20000), 1)

workers = [threading.Thread(target=busy) for _ in range(2)]
for worker in workers:
    worker.start()
for n in range(10):
    child(lambda: [jit.compile(constant(n))(), jit.compile(AXPY)(np.ones(9), np.ones(9), 1)])
stop.set()
for worker in workers:
    worker.join()
"""
    assert lines(info, program, tmp_path) == [f"-> [{n}, None]" for n in range(10)]


@each_compiler
def test_kernels_loaded_before_a_fork_serve_both(info, tmp_path):
    program = """
made = jit.compile(state(1))
print(made())
child(lambda: [made(), made()])
print(made())
"""
    assert lines(info, program, tmp_path) == ["1001001", "-> [2002002, 3003003]", "2002002"]
