"""Row 50: arrays in foreign byte order or at odd addresses are refused by name. Here: Taichi kernels."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pytest

import rekernel

FOREIGN = ">" if sys.byteorder == "little" else "<"
NATIVE = "<" if sys.byteorder == "little" else ">"
TYPES = {"f8": "f64", "f4": "f32", "i4": "i32", "i8": "i64", "u2": "u16", "i2": "i16"}


@pytest.fixture(scope="module")
def module(ti):
    if ti.lang.impl.get_runtime().prog is None:
        ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    text = (
        "".join(
            f"@ti.kernel\ndef {name}(x: ti.types.ndarray(ti.{name}, 1)):\n    for i in x:\n        x[i] += 1\n"
            f"@ti.kernel\ndef read_{name}(x: ti.types.ndarray(ti.{name}, 1)) -> ti.{name}:\n    return x[0]\n"
            for name in TYPES.values()
        )
        + "@ti.kernel\ndef any(x: ti.types.ndarray()):\n    for I in ti.grouped(x):\n        x[I] += 1\n"
    )
    with rekernel.KernelLoader() as made:
        yield made.load(text, "order")


@pytest.mark.parametrize("dtype", TYPES)
def test_foreign_byte_order_is_a_typeerror_with_a_way_out(module, dtype):
    for kernel in (getattr(module, TYPES[dtype]), getattr(module, f"read_{TYPES[dtype]}"), module.any):
        x = np.array([1, 2], FOREIGN + dtype)
        with pytest.raises(rekernel.ArgumentTypeError, match=r"'x'.*byte") as caught:
            kernel(x)
        assert caught.value.argument == "x"
        assert x.tolist() == [1, 2]
        kernel(x.astype(x.dtype.newbyteorder("=")))


@pytest.mark.parametrize("dtype", TYPES)
def test_native_order_under_its_other_name_is_taken(module, dtype):
    x = np.array([1, 2], NATIVE + dtype)
    getattr(module, TYPES[dtype])(x)
    assert x.tolist() == [2, 3]


@pytest.mark.parametrize("dtype", TYPES)
def test_an_address_that_is_no_multiple_of_the_item_is_a_valueerror(module, dtype):
    size = np.dtype(dtype).itemsize
    buffer = np.zeros(4 * size + 8, np.uint8)
    start = (-buffer.ctypes.data) % 8
    for offset in range(1, size):
        x = np.frombuffer(buffer.data, dtype, 3, start + offset)
        assert not x.flags.aligned
        for kernel in (getattr(module, TYPES[dtype]), getattr(module, f"read_{TYPES[dtype]}"), module.any):
            with pytest.raises(rekernel.ArgumentValueError, match=r"'x'.*aligned"):
                kernel(x)
        assert not buffer.any()


def test_foreign_scalars_are_numbers(module, loader):
    f = loader.load("@ti.kernel\ndef f(x: ti.f64, n: ti.i32) -> ti.f64:\n    return x + n\n", "k").f
    assert f(np.array(1.5, FOREIGN + "f8"), np.array(2, FOREIGN + "i4")) == 3.5
    assert f(np.array([1.5], FOREIGN + "f8")[0], np.array([2], FOREIGN + "i4")[0]) == 3.5


def test_foreign_numbers_in_a_vector(loader):
    f = loader.load("@ti.kernel\ndef f(v: ti.types.vector(2, ti.f64)) -> ti.f64:\n    return v[0] + v[1]\n", "k").f
    with contextlib.suppress(TypeError, ValueError):
        assert f(np.array([1.5, 2.5], FOREIGN + "f8")) == 4


@pytest.mark.parametrize("dtype", ["V4", "O", "M8[s]", "m8[s]", "U4", "S4", [("a", "f4")], "f2", "c16"])
def test_kinds_that_taichi_has_not_are_errors(module, dtype):
    x = np.zeros(2, dtype)
    if x.dtype == np.float16:
        module.any(x)
        return
    with pytest.raises((TypeError, ValueError)):
        module.any(x)
