"""``handle.returning`` of Taichi kernels: dtypes of the annotations, NumPy arrays, Taichi's own arrays as out=."""

from __future__ import annotations

import numpy as np
import pytest

from rekernel import ArgumentTypeError, ArgumentValueError

STEP = """
@ti.kernel
def step(dst: ti.types.ndarray({dst}ndim=1), src: ti.types.ndarray(ndim=1), k: ti.f32):
    for i in range(1, src.shape[0] - 1):
        dst[i] = k * (src[i - 1] + src[i + 1])
"""


@pytest.mark.parametrize(
    ("declared", "dtype"), [("dtype=ti.f32, ", "float32"), ("dtype=ti.i32, ", "int32"), ("", "float64")]
)
def test_the_array_has_the_dtype_of_the_annotation_or_else_of_the_argument(loader, declared, dtype):
    smooth = loader.load(STEP.format(dst=declared)).step.returning("dst", like="src")
    made = smooth(np.arange(5.0), k=2)
    assert (made.dtype, made.tolist()) == (dtype, [0, 4, 8, 12, 0])


def test_a_reload_gives_the_new_dtype(loader):
    smooth = loader.load(STEP.format(dst="dtype=ti.f32, "), "heat").step.returning("dst", like="src")
    smooth(np.arange(5.0), 1)
    loader.load(STEP.format(dst="dtype=ti.f64, "), "heat", check=False)
    assert smooth(np.arange(5.0), 1).dtype == np.float64


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_of_an_array_work(loader, order):
    smooth = loader.load("""
@ti.kernel
def turn(dst: ti.types.ndarray(dtype=ti.f32, ndim=2), src: ti.types.ndarray(dtype=ti.f32, ndim=2)):
    for i, j in src:
        dst[i, j] = 10 * src[i, j] + i
""").turn.returning("dst", like="src")
    like = np.asarray(np.arange(6, dtype=np.float32).reshape(2, 3), order=order)
    made = smooth(like)
    assert made.strides == like.strides
    assert np.array_equal(made, 10 * like + [[0], [1]])


def test_taichis_own_arrays_can_be_passed_as_out(loader, ti):
    smooth = loader.load(STEP.format(dst="dtype=ti.f32, ")).step.returning("dst", like="src")
    src, dst = ti.ndarray(ti.f32, 5), ti.ndarray(ti.f32, 5)
    src.fill(1)
    assert smooth(src, 0.5, out=dst) is dst
    assert dst.to_numpy().tolist() == [0, 1, 1, 1, 0]
    with pytest.raises(ArgumentTypeError, match=r"argument 'src': expected an array .*ScalarNdarray; or pass .* out="):
        smooth(src, 0.5)


def test_a_kernel_that_writes_to_a_field_or_returns_a_number_is_refused(loader):
    m = loader.load("""
@ti.kernel
def fill(dst: ti.template(), src: ti.types.ndarray()):
    for i in src:
        dst[i] = src[i]

@ti.kernel
def total(dst: ti.types.ndarray(), src: ti.types.ndarray()) -> ti.f32:
    dst[0] = src[0]
    return src[0]
""")
    with pytest.raises(ArgumentValueError, match="has dst: template, which is no array"):
        m.fill.returning("dst", like="src")
    with pytest.raises(ArgumentValueError, match="returns float32 already"):
        m.total.returning("dst", like="src")


def test_the_parameters_tell_their_dtype(loader):
    step = loader.load(STEP.format(dst="dtype=ti.f32, ")).step
    assert [parameter.dtype for parameter in step.parameters] == ["float32", None, "float32"]
