"""Row 27: nothing is cached by the identity of an argument: every call uses the values of its own arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

ADD = "@ti.kernel\ndef f(x: ti.types.ndarray(ti.f64, 1), a: ti.f64, n: ti.i64) -> ti.f64:\n    return x[0] + a + n\n"


def test_ten_thousand_calls_with_fresh_numbers_and_fresh_arrays(loader):
    f = loader.load(ADD, "k").f
    for n in range(10_000):
        assert f(np.full(1, n * 0.5), n * 0.25, n) == n * 1.75


def test_one_array_whose_content_shape_and_memory_change_in_place(loader):
    text = (
        "@ti.kernel\ndef f(x: ti.types.ndarray(ti.f64)) -> ti.f64:\n    s = 0.0\n"
        "    for I in ti.grouped(x):\n        s += ti.cast(x[I], ti.f32)\n    return s\n"
    )
    f = loader.load(text, "k").f
    x = np.arange(6.0)
    assert f(x) == 15
    x[:] = 1
    assert f(x) == 6
    x.resize((2, 2), refcheck=False)
    assert f(x) == 4
    x.resize((50,), refcheck=False)
    assert f(x) == 4
    x.resize((1, 1, 1), refcheck=False)
    assert f(x) == 1


def test_one_array_whose_dtype_is_replaced_in_place_is_checked_again(loader):
    f = loader.load(ADD, "k").f
    x = np.zeros(2)
    assert f(x, 0, 0) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # NumPy may do away with it
        x.dtype = np.int64
    with pytest.raises(TypeError, match="'x'"):
        f(x, 0, 0)


def test_one_array_that_becomes_read_only_or_strided_in_place(loader):
    f = loader.load("@ti.kernel\ndef f(x: ti.types.ndarray(ti.f64, 1)):\n    x[0] = 5\n", "k").f
    x = np.zeros(4)
    f(x)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(x)
    x.flags.writeable = True
    f(x)
    assert x[0] == 5


def test_templates_of_fresh_values(loader):
    f = loader.load("@ti.kernel\ndef f(n: ti.template()) -> ti.f64:\n    return n\n", "k").f
    for n in range(20):
        assert f(n) == n
        assert f(n + 0.5) == n + 0.5


def test_templates_of_fresh_fields(ti, loader):
    f = loader.load("@ti.kernel\ndef f(x: ti.template()) -> ti.i32:\n    return x[0]\n", "k").f
    for n in range(8):
        x = ti.field(ti.i32, 1)
        x[0] = n
        assert f(x) == n
        del x


def test_numbers_in_a_namespace_that_is_loaded_again(loader):
    text = "@ti.kernel\ndef f() -> ti.f64:\n    return a\n"
    for n in range(5):
        assert loader.load(text, "k", namespace={"a": n * 1000.5}).f() == n * 1000.5


def test_matrices_of_fresh_values(loader):
    text = "@ti.kernel\ndef f(v: ti.types.vector(2, ti.f64)) -> ti.f64:\n    return v[0] + 10 * v[1]\n"
    f = loader.load(text, "k").f
    for n in range(100):
        assert f([n, n + 1]) == n + 10 * (n + 1)
        assert f(np.array([n, n + 1], float)) == n + 10 * (n + 1)
