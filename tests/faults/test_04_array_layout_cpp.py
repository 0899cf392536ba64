"""Row 4 for C++ texts: `Array` sees every layout as NumPy does; a pointer takes C order and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from rekernel import ArgumentTypeError, ArgumentValueError

pytestmark = needs_cpp

TEXT = """
using rekernel::Array;
template <class T> static void copy(Array<T, 1> out, Array<const T, 1> x) {
    for (int64_t i = 0; i < x.shape(0); ++i) out[i] = 2 * x(i);
}
void twice1(Array<double, 1> out, Array<const double, 1> x) { copy(out, x); }
void twice2(Array<double, 2> out, const Array<const double, 2> &x) {
    for (int64_t i = 0; i < x.shape(0); ++i)
        for (int64_t j = 0; j < x.shape(1); ++j) out(i, j) = 2 * x(i, j);
}
void twice3(Array<double, 3> out, Array<const double, 3> x) {
    for (int64_t i = 0; i < x.shape(0); ++i)
        for (int64_t j = 0; j < x.shape(1); ++j)
            for (int64_t k = 0; k < x.shape(2); ++k) out(i, j, k) = 2 * x(i, j, k);
}
int64_t stride(Array<const double, 2> x, int d) { return x.stride(d); }
int64_t count(Array<const double, 2> x) { return x.size(); }
double flat(const double *x, int64_t n) { double s = 0; for (int64_t i = 0; i < n; ++i) s += (i + 1) * x[i]; return s; }
"""

BASE = np.arange(1.0, 121.0)
RECORDS = np.zeros(6, [("a", "i4"), ("x", "f8"), ("b", "i4")])
RECORDS["x"] = BASE[:6]
VIEWS = {
    "plain": BASE[:8],
    "every second": BASE[:16:2],
    "reversed": BASE[7::-1],
    "every third from behind": BASE[20::-3],
    "a column": BASE.reshape(10, 12)[:, 5],
    "real parts": (BASE[:6] + 1j).real,
    "imaginary parts": (BASE[:6] * 1j).imag,
    "broadcast": np.broadcast_to(BASE[3], 7),
    "empty": BASE[:0],
    "empty and strided": BASE[0:0:3],
    "two dimensions": BASE.reshape(10, 12),
    "transposed": BASE.reshape(10, 12).T,
    "first columns": BASE.reshape(10, 12)[:, :5],
    "both ways reversed": BASE.reshape(10, 12)[::-1, ::-2],
    "Fortran order": np.asfortranarray(BASE.reshape(10, 12)),
    "rows broadcast": np.broadcast_to(BASE[:5], (4, 5)),
    "overlapping windows": np.lib.stride_tricks.sliding_window_view(BASE[:10], 4),
    "one row of odd strides": np.lib.stride_tricks.as_strided(BASE, (1, 5), (12345 * 8, 8)),
    "one column": BASE.reshape(12, 10)[:, 3:4],
    "no columns": BASE.reshape(12, 10)[:, :0],
    "three dimensions turned": BASE.reshape(4, 5, 6).transpose(2, 0, 1)[::-1],
    "diagonals": np.lib.stride_tricks.as_strided(BASE, (3, 4, 2), (8, 8, 80)),
}
ODD = {
    "unaligned": np.frombuffer(bytearray(8 * 9), "i1")[1:65].view("f8"),
    "a packed field": RECORDS["x"],
    "a field of five bytes more": np.zeros(4, [("x", "f8"), ("b", "u1", 5)])["x"],
}  # strides or addresses that are no multiples of the type's


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with load_with(tmp_path_factory.mktemp("layout") / "cache") as loader:
        yield loader.load(TEXT, "layout", optlevel="1")


def twice(module, x):
    return getattr(module, f"twice{x.ndim}")


@pytest.mark.parametrize("view", VIEWS)
def test_an_array_is_read_by_its_own_strides(module, view):
    x = VIEWS[view]
    out = np.zeros(x.shape)
    twice(module, x)(out, x)
    assert out.tolist() == (2 * x).tolist()


def places(x):
    """Return how many places in memory the indices of a view lead to."""
    return len({sum(i * s for i, s in zip(index, x.strides, strict=True)) for index in np.ndindex(x.shape)})


@pytest.mark.parametrize("view", [view for view, x in VIEWS.items() if x.ndim < 3 and places(x) == x.size > 0])
def test_an_array_is_written_by_its_own_strides_and_nothing_beside_it_is_touched(module, view):
    x = VIEWS[view]
    memory = np.full(4000, -1.0)
    out = np.lib.stride_tricks.as_strided(memory[2000:], x.shape, x.strides)
    twice(module, x)(out, np.ascontiguousarray(x))
    assert out.tolist() == (2 * x).tolist()
    assert np.count_nonzero(memory != -1) == x.size


@pytest.mark.parametrize("view", ODD)
def test_an_address_or_a_stride_that_is_no_multiple_is_refused(module, view):
    x = ODD[view]
    with pytest.raises(ArgumentValueError, match="x"):
        twice(module, x)(np.zeros(x.shape), x)


@pytest.mark.parametrize("view", [view for view in VIEWS if VIEWS[view].size])
def test_a_pointer_takes_c_order_and_refuses_every_other(module, view):
    x = VIEWS[view]
    if x.flags.c_contiguous and x.flags.aligned:
        assert module.flat(x, x.size) == ((np.arange(x.size) + 1) * x.ravel()).sum()
    else:
        with pytest.raises(ArgumentValueError, match="x"):
            module.flat(x, x.size)


def test_strides_count_elements_and_may_be_negative(module):
    x = BASE.reshape(10, 12)
    assert [module.stride(x[::-1, ::3], d) for d in (0, 1)] == [-12, 3]
    assert module.stride(np.broadcast_to(1.0, (3, 4)), 0) == 0
    assert module.count(x[::3, ::5]) == 4 * 3


def test_another_rank_is_refused(module):
    for x in (BASE[:4].reshape(2, 2), np.array(1.0), BASE[:8].reshape(2, 2, 2)):
        with pytest.raises((ArgumentTypeError, ArgumentValueError), match="x"):
            module.twice1(np.zeros(4), x)


def test_the_shape_of_an_array_that_changes_in_place_is_always_the_present_one(module):
    x, out = BASE[:12].copy(), np.zeros((12, 12))
    seen = []
    for shape in ((3, 4), (4, 3), (2, 6), (12, 1)):
        y = x.reshape(shape)
        o = out[: shape[0], : shape[1]]
        module.twice2(o, y)
        seen.append(o.tolist() == (2 * y).tolist())
    assert seen == [True] * 4
