"""Row 27 for C++ texts: what a call computes comes from the arguments of that call, with no memory of others."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest

from cppkit import load_with, needs_cpp

pytestmark = needs_cpp

TEXT = """
double twice(double x) { return 2 * x; }
int64_t twice(int64_t x) { return 2 * x; }
double first(rekernel::Array<const double, 1> x) { return x[0] + 100 * x.shape(0) + 100000 * x.stride(0); }
float first(rekernel::Array<const float, 1> x) { return x[0]; }
double corner(rekernel::Array<const double, 2> x) { return x(0, x.shape(1) - 1); }
double at(const double *x, int64_t i) { return x[i]; }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with load_with(tmp_path_factory.mktemp("stale") / "cache") as loader:
        yield loader.load(TEXT, "k", optlevel="0")


def test_ten_thousand_fresh_numbers(module):
    numbers = random.Random(27)
    for _ in range(5_000):
        x, n = numbers.random(), numbers.randrange(2**40)
        assert (module.twice(x), module.twice(n)) == (2 * x, 2 * n)


def test_arrays_that_take_the_place_of_others(module):
    for n in range(2_000):
        x = np.full(1 + n % 5, n, "f8" if n % 3 else "f4")  # freed at the next turn, and put where it was
        assert module.first(x) == (n + 100 * len(x) + 100_000 if n % 3 else n)
        if n % 500 == 0:
            gc.collect()


@pytest.mark.filterwarnings("ignore:Setting the (shape|strides|dtype):DeprecationWarning")
def test_an_array_that_changes_in_place(module):
    x = np.arange(12.0)
    assert module.first(x) == 1200 + 100_000
    x[0] = 5
    assert module.first(x) == 1205 + 100_000
    x.shape = (3, 4)
    assert module.corner(x) == 3
    x.shape = (4, 3)
    assert module.corner(x) == 2
    x.shape = (12,)
    x.resize(6, refcheck=False)
    assert module.first(x) == 605 + 100_000
    y = x.view()
    y.dtype = "i8"
    with pytest.raises(TypeError):
        module.first(y)


def test_a_view_of_the_same_address_with_other_strides(module):
    x = np.arange(24.0)
    assert [module.first(x[::step]) for step in (1, 2, 3, 4)] == [100 * (24 // s) + 100_000 * s for s in (1, 2, 3, 4)]
    assert [module.at(x, i) for i in range(24)] == list(range(24))
