"""Row 54: Taichi holds the GIL while it compiles and launches; nothing pretends otherwise. C++ has its own tests."""

from __future__ import annotations

import threading

import pytest

import rekernel
from support import times


def test_a_background_load_is_refused_and_says_why(loader):
    module = loader.load(times(3), "k")
    with pytest.raises(ValueError, match="GIL"):
        loader.load(times(4), "k", background=True)
    assert module.f(1) == 3
    assert loader.info("k").version == 1
    loader.wait("k")
    loader.wait()


def test_a_background_load_of_a_new_id_leaves_no_id(loader):
    with pytest.raises(ValueError, match="taichi"):
        loader.load(times(4), "new", background=True)
    assert "new" not in loader
    with pytest.raises(rekernel.KernelNotFoundError):
        loader["new"]


def test_a_broken_text_in_the_background_still_gets_its_own_error(loader):
    with pytest.raises(rekernel.KernelSourceError):
        loader.load("@ti.kernel\ndef f(:\n", "k", background=True)


def test_other_threads_call_while_one_loads(loader):
    # They take turns: nobody is locked out, and nobody sees half a version.
    f = loader.load(times(0), "k").f
    f(1)
    stop, seen = threading.Event(), []

    def call():
        while not stop.is_set():
            seen.append(f(1))

    thread = threading.Thread(target=call)
    thread.start()
    for factor in range(1, 6):
        loader.load(times(factor), "k")
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert seen == sorted(seen)
    assert set(seen) <= set(range(6))


def test_arguments_stay_referenced_during_a_call(loader):
    import numpy as np

    f = loader.load("@ti.kernel\ndef f(x: ti.types.ndarray(ti.f64, 1)) -> ti.f64:\n    return x[999]\n", "k").f
    assert [f(np.full(1000, n, float)) for n in range(50)] == list(range(50))
