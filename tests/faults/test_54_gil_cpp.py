"""Row 54 for C++ texts: other threads run while a kernel of real work or a compiler runs; `nogil=` decides otherwise."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from cppkit import Shim, answer, load_with, needs_cpp, until

pytestmark = needs_cpp

TEXT = """
using rekernel::Array;
static int64_t wait(int *flags, int64_t turns) {
    __atomic_store_n(&flags[0], 1, __ATOMIC_SEQ_CST);
    for (int64_t i = 0; i < turns; ++i)
        if (__atomic_load_n(&flags[1], __ATOMIC_SEQ_CST)) return 1;
    return 0;
}
int64_t waits(Array<int, 1> flags, int64_t turns) { return wait(flags.data(), turns); }
int64_t raw(int *flags, int64_t turns) { return wait(flags, turns); }
int64_t many(Array<int, 1> flags, int64_t turns) { return wait(flags.data(), turns); }
int64_t many(Array<double, 1> flags, int64_t turns) { return 0 * turns; }
"""
PATIENT, IMPATIENT = 3 * 10**10, 3 * 10**7


@pytest.fixture
def load(tmp_path):
    with load_with(None) as loader:
        yield lambda **options: loader.load(TEXT, "k", **options)


def answered(kernel, size: int, turns: int) -> int:
    """Call the kernel while another thread wants to answer it, and return whether it could."""
    flags = np.zeros(size, "i4")

    def reply():
        while not flags[0]:
            pass
        flags[1] = 1

    thread = threading.Thread(target=reply)
    thread.start()
    result = kernel(flags, turns)
    thread.join()
    return result


@pytest.mark.parametrize("name", ["waits", "raw", "many"])
def test_real_work_lets_others_run_and_small_work_does_not(load, name):
    kernel = getattr(load(), name)
    assert answered(kernel, 20_000, PATIENT) == 1
    assert answered(kernel, 100, IMPATIENT) == 0  # nobody could answer


def test_nogil_is_an_option_of_the_load_and_stays_with_its_id(load):
    kernel = load(nogil=False).waits
    assert answered(kernel, 20_000, IMPATIENT) == 0
    load(nogil=True)
    assert answered(kernel, 2, PATIENT) == 1
    load()
    assert answered(kernel, 2, PATIENT) == 1
    load(nogil=None)
    assert answered(kernel, 100, IMPATIENT) == 0


def test_a_kernel_that_is_replaced_unloaded_and_dropped_during_a_call_runs_to_its_end(tmp_path):
    with load_with(None) as loader:
        waits = loader.load(TEXT, "k").waits
        holder, results = [np.zeros(20_000, "i4")], []
        view, alive = holder[0][:2], weakref.ref(holder[0])
        thread = threading.Thread(target=lambda: results.append(waits(holder.pop(), PATIENT)))
        thread.start()
        while not view[0]:
            pass
        for number in range(3):
            loader.load(answer(number), "k")
        loader.unload("k")
        gc.collect()
        assert not holder
        assert alive() is not None
        view[1] = 1
        thread.join()
    assert results == [1]


def test_the_compiler_lets_others_run(tmp_path):
    shim = Shim(tmp_path / "bin")
    with load_with(tmp_path / "cache", shim.info) as loader:
        shim.close()
        results = []
        thread = threading.Thread(target=lambda: results.append(loader.load(answer(5), "k").f()))
        thread.start()
        shim.wait_for(1)
        assert not results  # this thread runs while the compiler waits
        shim.open()
        until(lambda: results)
        thread.join()
        assert results == [5]
