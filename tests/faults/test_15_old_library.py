"""Row 15: new code is what runs, however often it is replaced, and old code goes when nobody has it any more."""

from __future__ import annotations

import gc
import os
from dataclasses import replace

import numpy as np
import pytest

from jitkernels import THREADS, constant, each_compiler, needs_compiler, needs_openmp, state
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from support import run_python

linux = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")


@needs_compiler
@pytest.mark.parametrize("cached", [True, False], ids=["cached", "built"])
def test_fifty_times_back_and_forth(tmp_path, cached):
    jit = CpuJit(objcache=ObjectCache(tmp_path) if cached else None)
    answers = []
    for turn in range(50 if cached else 12):
        wrapper = jit.compile(constant(2 if turn % 2 else 5))
        answers.append(wrapper())
    assert answers == [5, 2] * (len(answers) // 2)


@each_compiler
@pytest.mark.parametrize("keep", [True, False], ids=["old ones kept", "old ones dropped"])
def test_statics_thread_locals_and_inline_statics_begin_anew(info, tmp_path, keep):
    # GCC would make the inline statics of all versions one, and keep the first library for ever.
    jit, kept = CpuJit(info, tmp_path), []
    for turn in range(50):
        first = 2 if turn % 2 else 5
        wrapper = jit.compile(state(first))
        assert [wrapper(), wrapper()] == [first * 1000000 + 1001, (first + 1) * 1000000 + 2002]
        if keep:
            kept.append(wrapper)
    assert [wrapper() // 1000000 for wrapper in kept] == [7 if turn % 2 == 0 else 4 for turn in range(len(kept))]


@each_compiler
def test_openmp_fifty_times(info, tmp_path):
    needs_openmp(info)
    jit = CpuJit(info, tmp_path)
    kernels = [replace(THREADS, code=THREADS.code.replace("+= 1", f"+= {n}")) for n in (2, 5)]
    for turn in range(50):
        x = np.zeros(300, "i4")
        jit.compile(kernels[turn % 2])(x)
        assert (x == (2, 5)[turn % 2]).all()


@needs_compiler
def test_fifty_versions_alive_at_once(tmp_path):
    # One name, one symbol, fifty codes.
    jit = CpuJit(objcache=tmp_path)
    wrappers = [jit.compile(constant(n)) for n in range(50)]
    assert [wrapper() for wrapper in wrappers] == list(range(50))
    assert [wrapper() for wrapper in reversed(wrappers)] == list(reversed(range(50)))
    del wrappers[::2]
    gc.collect()
    assert [wrapper() for wrapper in wrappers] == list(range(1, 50, 2))


@needs_compiler
def test_the_same_bytes_twice_are_two_libraries(tmp_path):
    jit = CpuJit(objcache=tmp_path)
    one, two = jit.compile(state(1)), jit.compile(state(1))
    assert two.from_cache
    assert [one(), one(), two()] == [1001001, 2002002, 1001001]


COUNT = """
import sys
import numpy as np
from jitkernels import *
from support import held
from rekernel.jit import CpuJit
jit = CpuJit(info, sys.argv[1])

def once(n):
    for kernel in kernels(n):
        wrapper = jit.compile(kernel)
        if kernel.parameters:
            wrapper(*arguments)
        else:
            wrapper()

for n in range(3):
    once(n)
jit.precompiled().wait()  # a slow machine: <stdexcept> is worth it
before = held()
for n in range(60):
    once(n % 3)
print({what: (before[what], count) for what, count in held().items() if before[what] != count})
"""
KINDS = {
    "constants": "kernels, arguments = lambda n: [constant(n)], ()",
    "all kinds of state": "kernels, arguments = lambda n: [state(n)], ()",
    "exceptions": "kernels, arguments = lambda n: [replace(THROWS, code=THROWS.code + f'// {n}\\n')], (9,)",
    "OpenMP": "kernels, arguments = lambda n: [replace(THREADS, code=THREADS.code + f'// {n}\\n')], (np.zeros(99, 'i4'),)",
}


@linux
@each_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_old_libraries_leave_the_process(info, tmp_path, kind):
    if kind == "OpenMP":
        needs_openmp(info)
    lines = (
        f"from dataclasses import replace\nfrom jitkernels import *\ninfo = {type(info).__name__}()\n{KINDS[kind]}\n"
    )
    assert run_python(lines + COUNT, str(tmp_path)).stdout == "{}\n"


@each_compiler
def test_a_process_with_many_versions_ends_well(info, tmp_path):
    program = f"""
import sys, threading
from jitkernels import *
from rekernel.jit import CpuJit
jit = CpuJit({type(info).__name__}(), sys.argv[1])
kept = [jit.compile(state(n)) for n in range(5)]
threads = [threading.Thread(target=lambda w=w: [w() for _ in range(100)]) for w in kept]
[t.start() for t in threads]
[t.join() for t in threads]
del kept[::2]
print([w() // 1000000 for w in kept], jit.compile(THROWS)(4))
"""
    assert run_python(program, str(tmp_path)).stdout == "[101, 103] 5\n"


@needs_compiler
def test_a_thread_outlives_the_kernel_that_has_thread_locals(tmp_path):
    import threading

    jit, ready, go, seen = CpuJit(objcache=tmp_path), threading.Event(), threading.Event(), []
    holder = [jit.compile(state(3))]

    def work():
        seen.append(holder[0]())
        ready.set()
        go.wait(60)
        seen.append(jit.compile(state(4))())

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(60)
    holder.clear()
    gc.collect()
    go.set()
    thread.join(60)
    assert seen == [3001001, 4001001]
