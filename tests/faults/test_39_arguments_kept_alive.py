"""Row 39: nothing keeps a caller's arrays alive: not calls, not errors, not loads, not versions."""

from __future__ import annotations

import gc
import logging
import weakref

import numpy as np
import pytest

import rekernel
from support import START, lines_of, run_python, scale, times

LARGE = "@ti.kernel\ndef f(x: ti.types.ndarray(ndim=1), n: ti.i8):\n    x[0] = {}\n"


class Array(np.ndarray):
    """An array that can be watched."""


def watched(size=1000, dtype=float):
    made = np.zeros(size, dtype).view(Array)
    return made, weakref.ref(made)


def gone(*references):
    gc.collect()
    return all(reference() is None for reference in references)


def call(f, *more):
    x, reference = watched()
    f(x, *more)
    return reference


def refused(f, kind, *more, array=None):
    x, reference = watched() if array is None else array
    with pytest.raises(kind):
        f(x, *more)
    return reference


@pytest.fixture(autouse=True)
def silent(caplog):
    caplog.set_level(logging.CRITICAL, logger="rekernel")  # a record of the log would hold each error


def test_a_call(loader):
    f = loader.load(LARGE.format(1), "k").f
    assert gone(*[call(f, 1) for _ in range(20)])


@pytest.mark.parametrize("wrong", [1000, "1", None, 1.5])
def test_a_call_whose_other_argument_is_refused(loader, wrong):
    f = loader.load(LARGE.format(1), "k").f
    assert gone(refused(f, (TypeError, ValueError), wrong))


def test_a_call_whose_array_is_refused(loader):
    f = loader.load("@ti.kernel\ndef f(x: ti.types.ndarray(ti.f64, 1)):\n    x[0] = 1\n", "k").f
    wrong_type = watched(4, np.int16)
    strided = watched()[0][::2]
    read_only, reference = watched()
    read_only.flags.writeable = False
    assert refused(f, TypeError, array=wrong_type)
    assert refused(f, ValueError, array=(strided, weakref.ref(strided)))
    assert refused(f, ValueError, array=(read_only, reference))
    references = wrong_type[1], weakref.ref(strided), reference
    del wrong_type, strided, read_only
    assert gone(*references)


def test_a_call_that_does_not_compile(loader):
    f = loader.load(LARGE.format("nonsense"), "k", check=False).f
    assert gone(*[refused(f, rekernel.KernelSourceError, 1) for _ in range(3)])


def test_a_call_of_a_removed_kernel(loader):
    f = loader.load(LARGE.format(1), "k").f
    loader.unload("k")
    assert gone(refused(f, rekernel.KernelRemovedError, 1))


def test_check_arguments(loader):
    def load(text):
        x, reference = watched()
        loader.load(text, "k", check=(x, 1))
        return reference

    def fail():
        x, reference = watched()
        with pytest.raises(rekernel.KernelSourceError):
            loader.load(LARGE.format("nonsense"), "k", check=(x, 1))
        return reference

    assert gone(load(LARGE.format(1)), load(LARGE.format(2)), fail())


@pytest.mark.parametrize("text", ["def f(:\n", times(3) + "nonsense\n", times("nonsense"), "x = 1 / 0\n" + times(3)])
def test_a_failed_load_keeps_no_local_variable_of_its_caller(loader, text):
    loader.load(times(3), "k").f(1)

    def users_function():
        _large, reference = watched()
        with pytest.raises(rekernel.KernelSourceError):
            loader.load(text, "k")
        return reference

    reference = users_function()
    assert loader.info("k").error is not None
    assert loader.info("k").error.kernel_id == "k"
    assert gone(reference)


def test_the_parked_error_says_the_same_when_the_raised_one_is_gone(loader):
    loader.load(times(3), "k").f(1)
    try:
        loader.load(times("nonsense"), "k")
    except rekernel.KernelSourceError as error:
        said, line = str(error), error.line
    gc.collect()
    parked = loader.info("k").error
    assert (str(parked), parked.line, parked.keeps) == (said, line, 1)
    assert parked.__traceback__ is None
    with pytest.raises(rekernel.KernelSourceError, match="nonsense"):
        raise parked


def test_a_load_keeps_nothing_of_the_globals_of_its_caller(loader):
    large, reference = watched()
    program = {"loader": loader, "large": large, "text": times(3), "__name__": "users_script"}
    del large
    exec("module = loader.load(text, 'k'); module.f(1)", program)
    del program
    assert gone(reference)


def test_a_namespace_is_kept_for_the_names_that_a_text_uses_only(loader):
    large, reference = watched()
    loader.load(times("a"), "k", namespace={"a": 3, "large": large})
    del large
    # The mapping itself is asked again after the next ti.init, so it is held until the id is loaded anew.
    loader.unload("k")
    assert gone(reference)


def test_unloading_gives_the_arrays_of_a_text_back(ti, loader):
    def made(text, name):
        module = loader.load(text, "k")
        return weakref.ref(getattr(module, name))

    array = made("import numpy as np\nclass A(np.ndarray): pass\nx = np.zeros(10).view(A)\n" + scale(2), "x")
    field = made("y = ti.field(ti.f32, 10)\n" + scale(3), "y")
    loader.unload("k")
    assert gone(array, field)


def test_a_hundred_large_arrays_keep_the_memory_flat():
    program = (
        START
        + """
import gc, os
from pathlib import Path
def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
f = loader.load(scale(2), "k").f
f(np.ones(5_000_000, np.float32))
before = resident()
for n in range(100):
    x = np.ones(5_000_000, np.float32)
    f(x)
    assert x[n] == 2
    del x
print(resident() - before < 40)
"""
    )
    assert lines_of(run_python(program)) == ["True"]
