"""Row 38: arrays that overlap. Taichi promises its compiler nothing about them, so a kernel may be given them.

Checks of overlap concern parameters that a C++ or CUDA text marks restrict, and stencils; they have their own tests.
"""

from __future__ import annotations

import numpy as np
import pytest

TEXT = """
@ti.kernel
def shift(dst: ti.types.ndarray(ti.f64, 1), src: ti.types.ndarray(ti.f64, 1)):
    ti.loop_config(serialize=True)
    for i in range(dst.shape[0]):
        dst[i] = src[i] + 1
"""


@pytest.mark.parametrize(
    ("dst", "src"),
    [(slice(None), slice(None)), (slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))],
)
def test_overlapping_arrays_give_what_the_loop_says(loader, dst, src):
    shift = loader.load(TEXT, "k").shift
    x = np.arange(2000.0)
    expected = x.copy()
    for i in range(len(expected[dst])):
        expected[dst][i] = expected[src][i] + 1
    shift(x[dst], x[src])
    assert np.array_equal(x, expected)


def test_one_field_given_twice(ti, loader):
    text = "@ti.kernel\ndef f(a: ti.template(), b: ti.template()):\n    for i in a:\n        a[i] = b[i] + 1\n"
    f = loader.load(text, "k").f
    x = ti.field(ti.i32, 4)
    f(x, x)
    assert x.to_numpy().tolist() == [1] * 4


def test_an_ndarray_and_a_numpy_array_given_twice(ti, loader):
    shift = loader.load(TEXT, "k").shift
    x = ti.ndarray(ti.f64, 3)
    shift(x, x)
    assert x.to_numpy().tolist() == [1] * 3
    y = np.zeros(3)
    shift(y, y)
    assert y.tolist() == [1] * 3
