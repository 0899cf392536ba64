"""Row 12 for C++ texts: a child that is forked after an OpenMP text has run gets an error; every other child works."""

from __future__ import annotations

import os

import pytest

from cppkit import START, needs_cpp
from jitkernels import GccInfo, needs_openmp
from support import run_python

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"), needs_cpp]

FORKS = (
    START
    + """
TEXT = '''
int threads(rekernel::Array<int, 1> x) {
    int most = 0;
    #pragma omp parallel for reduction(max : most)
    for (int64_t i = 0; i < x.size(); ++i) { x[i] += 1; most = 2; }
    return most;
}
int plain() { return 5; }
'''
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
)


def lines(program: str, directory) -> list[str]:
    needs_openmp(GccInfo())
    return run_python(FORKS + program, str(directory), timeout=60, OMP_NUM_THREADS="2").stdout.splitlines()


def test_what_a_child_may_call_depends_on_what_its_parent_has_called(tmp_path):
    program = """
m = loader.load(TEXT, "k")
child(lambda: (m.threads(x), m.plain()))                     # the parent has not run it yet
print(m.threads(x))
child(lambda: m.threads(x))
child(lambda: m.threads.pinned()(x))
child(lambda: loader.load(TEXT + "// edited", "k").threads(x))  # a new library, the same runtime
child(lambda: loader.load(TEXT, "other").threads(x))
child(lambda: m.plain())                                     # of an OpenMP text: it might
child(lambda: loader.load("int plain() { return 6; }", "k", openmp=False).plain())
child(lambda: loader.load(TEXT, "k", openmp=False).threads(x))
print(m.threads(x))
"""
    refused = "RuntimeError True True"
    assert lines(program, tmp_path) == ["-> (2, 5)", "2", *[refused] * 5, "-> 6", "-> 2", "2"]


def test_a_fork_while_other_threads_load_texts_and_build_in_the_background(tmp_path):
    program = """
stop = threading.Event()
def busy(n):
    turn = 0
    while not stop.is_set():
        turn += 1
        assert loader.load(answer(turn % 3), f"id{n}", optlevel="0").f() == turn % 3
threads = [threading.Thread(target=busy, args=(n,)) for n in range(2)]
for thread in threads: thread.start()
loader.load(answer(0), "same", optlevel="0")
for n in range(4):
    loader.load(answer(100 + n), "same", background=True)
    child(lambda: (loader.load(answer(n), "same").f(), loader.load(answer(n), f"id{n % 2}").f(), len(loader) > 0))
stop.set()
for thread in threads: thread.join()
loader.wait()
print(loader["same"].f())
"""
    assert lines(program, tmp_path) == [*(f"-> ({n}, {n}, True)" for n in range(4)), "103"]
