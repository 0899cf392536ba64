"""Row 4: an array whose elements do not lie side by side is never read as if they did. Here: Taichi kernels."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import rekernel
from rekernel import ArgumentTypeError, ArgumentValueError

TEXT = """
@ti.kernel
def total(x: ti.types.ndarray(ti.f64, 2)) -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i, j in x:
        s += x[i, j] * (10 * i + j + 1)
    return s

@ti.kernel
def line(x: ti.types.ndarray(ti.f64, 1)) -> ti.f64:
    s = ti.cast(0.0, ti.f64)
    for i in x:
        s += x[i] * (i + 1)
    return s

@ti.kernel
def double(x: ti.types.ndarray(ti.f64, 2)):
    for i, j in x:
        x[i, j] *= 2
"""


@pytest.fixture(scope="module")
def module(ti):
    if ti.lang.impl.get_runtime().prog is None:
        ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    with rekernel.KernelLoader() as made:
        yield made.load(TEXT, "layout")


def grid(rows=6, columns=8):
    return np.arange(rows * columns, dtype=float).reshape(rows, columns)


def expected(x):
    rows, columns = np.indices(x.shape)
    return float((x * (10 * rows + columns + 1)).sum())


VIEWS = {
    "every second row": lambda a: a[::2],
    "every second column": lambda a: a[:, ::2],
    "rows reversed": lambda a: a[::-1],
    "both reversed": lambda a: a[::-1, ::-1],
    "transposed": lambda a: a.T,
    "first columns": lambda a: a[:, :3],
    "middle": lambda a: a[1:-1, 1:-1],
    "first rows": lambda a: a[:3],
    "one row": lambda a: a[2:3],
    "one column": lambda a: a[:, 2:3],
    "broadcast": lambda a: np.broadcast_to(a[0], (5, 8)),
    "broadcast column": lambda a: np.broadcast_to(a[:, :1], (6, 4)),
    "overlapping windows": lambda a: as_strided(a, (4, 3), (8, 8)),
    "real part": lambda a: (a + 1j * a).real,
    "imaginary part": lambda a: (a + 2j * a).imag,
    "field of a record": lambda a: _record(a)["v"],
    "Fortran order": np.asfortranarray,
    "odd strides of length one": lambda a: as_strided(a, (1, 8), (3, 8)),
    "empty": lambda a: a[:0],
    "empty columns": lambda a: a[:, :0],
    "C order": lambda a: a,
}


def _record(a):
    made = np.zeros(a.shape, [("tag", "i1"), ("v", "f8")])
    made["v"] = a
    return made


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_gives_the_right_answer_or_a_valueerror(module, view):
    x = VIEWS[view](grid())
    try:
        result = module.total(x)
    except ArgumentValueError:
        assert not (x.flags.c_contiguous and x.flags.aligned)
    else:
        assert result == expected(x)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_that_is_written_to_changes_exactly_itself_or_nothing(module, view):
    x = VIEWS[view](grid())
    before = x.copy()
    base = x if x.base is None else x.base
    whole = base.copy() if isinstance(base, np.ndarray) else None
    try:
        module.double(x)
    except ArgumentValueError:
        assert np.array_equal(x, before)
        assert whole is None or np.array_equal(base, whole)
    else:
        assert np.array_equal(x, 2 * before)


slices = st.tuples(st.integers(-7, 7), st.integers(-7, 7), st.integers(-3, 3).filter(bool)).map(lambda t: slice(*t))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=slices, columns=slices, turned=st.booleans(), order=st.sampled_from("CF"))
def test_any_slice_gives_the_right_answer_or_a_valueerror(module, rows, columns, turned, order):
    x = np.array(grid(), order=order)[rows, columns]
    x = x.T if turned else x
    try:
        result = module.total(x)
    except ArgumentValueError:
        assert not x.flags.c_contiguous
    else:
        assert result == expected(x)


@pytest.mark.parametrize("offset", range(1, 8))
def test_strides_or_starts_that_are_no_multiple_of_the_item_are_refused(module, offset):
    buffer = np.zeros(8 * 12 + 8, np.uint8)
    shifted = np.frombuffer(buffer.data, np.float64, 12, offset)
    with pytest.raises(ArgumentValueError, match="aligned"):
        module.line(shifted)
    packed = as_strided(buffer[:8].view(np.float64), (4,), (8 + offset,))
    with pytest.raises(ArgumentValueError, match=r"aligned|contiguous"):
        module.line(packed)


def test_subclasses_of_arrays_count_as_what_they_are(module, tmp_path):
    matrix = np.memmap(tmp_path / "x", np.float64, "w+", shape=(6, 8))
    matrix[:] = grid()
    assert module.total(matrix) == expected(grid())
    with pytest.raises(ArgumentValueError, match="contiguous"):
        module.total(matrix[:, ::2])
    masked = np.ma.masked_array(grid(), grid() > 3)
    with contextlib.suppress(ArgumentTypeError, ArgumentValueError):  # or it is taken, without the mask
        assert module.total(masked) == expected(grid())
