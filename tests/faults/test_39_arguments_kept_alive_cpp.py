"""Row 39 for C++ texts: no call keeps its arguments, whether it succeeds, fails, chooses an overload or throws."""

from __future__ import annotations

import contextlib
import gc
import weakref

import numpy as np
import pytest

from cppkit import linux, load_with, needs_cpp

pytestmark = needs_cpp

TEXT = """
#include <stdexcept>
using rekernel::Array;
double sum(Array<const double, 1> x) { return x[0]; }
double many(Array<const double, 1> x, int n) { return x[0] * n; }
double many(Array<const float, 1> x, int n) { return x[0] * n; }
double throws(Array<const double, 1> x) { throw std::runtime_error("no"); return x[0]; }
void copy(rekernel::RestrictArray<double, 1> y, const double *x) { y[0] = x[0]; }
"""


@pytest.fixture(scope="module", params=[False, True], ids=["release", "debug"])
def module(tmp_path_factory, request):
    with load_with(tmp_path_factory.mktemp("kept") / "cache") as loader:
        yield loader.load(TEXT, "k", debug=request.param)


CALLS = {
    "works": lambda m, x: m.sum(x),
    "chooses": lambda m, x: m.many(x, n=2),
    "throws": lambda m, x: m.throws(x),
    "wrong number": lambda m, x: m.sum(x, x),
    "wrong type": lambda m, x: m.sum(x.astype("i4").view("i4"), *[x] * 0) or m.many(x, "two"),
    "no overload": lambda m, x: m.many(x, x),
    "overlap": lambda m, x: m.copy(x, x),
    "returning": lambda m, x: m.copy.returning("y", like="x")(x),
    "pinned": lambda m, x: m.sum.pinned()(x=x),
}


@pytest.mark.parametrize("call", CALLS)
def test_each_array_dies_with_its_last_reference(module, call):
    alive = []
    for _ in range(20):
        x = np.ones(1000)
        with contextlib.suppress(Exception):
            CALLS[call](module, x)
        alive.append(weakref.ref(x))
        del x
    gc.collect()
    assert [reference() for reference in alive] == [None] * 20


@linux
def test_memory_is_flat_over_arrays_of_50_megabytes(module):
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    def use(n: int) -> None:
        x = np.full(6_250_000, float(n))
        assert module.sum(x) == n
        with contextlib.suppress(Exception):
            module.throws(x)

    use(0)
    before = resident()
    for n in range(8):
        use(n)
    assert (resident() - before) * 4096 < 60e6
