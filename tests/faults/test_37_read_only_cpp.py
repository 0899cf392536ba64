"""Row 37 for C++ texts: what a text may write must be writable; what it declares const need not be."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from rekernel import ArgumentValueError

pytestmark = needs_cpp

TEXT = """
using rekernel::Array;
using rekernel::RestrictArray;
void pointer(double *x) { x[0] += 1; }
void array(Array<double, 1> x) { x[0] += 1; }
void reference(const Array<double, 1> &x) { x(0) += 1; }
void promised(RestrictArray<double, 1> x) { x(0) += 1; }
void writes_nothing(double *x) { (void)x; }
double read_pointer(const double *x) { return x[0]; }
double read_array(Array<const double, 1> x) { return x[0]; }
double read_reference(const Array<const double, 1> &x) { return x[0]; }
double read_promised(RestrictArray<const double, 1> x) { return x[0]; }
double both(Array<double, 1> y, Array<const double, 1> x) { return y[0] = x[0]; }
"""
WRITE = ["pointer", "array", "reference", "promised", "writes_nothing"]
READ = ["read_pointer", "read_array", "read_reference", "read_promised"]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with load_with(tmp_path_factory.mktemp("readonly") / "cache") as loader:
        yield loader.load(TEXT, "k", optlevel="0")


def frozen(_path):
    x = np.full(4, 7.0)
    x.setflags(write=False)
    return x


def mapped(path):
    path.write_bytes(np.full(4, 7.0).tobytes())
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


KINDS = {
    "frozen": frozen,
    "a mapped file": mapped,  # writing would be a SIGSEGV
    "memmap": lambda path: (
        np.memmap(path, "f8", "w+", shape=4).__setitem__(slice(None), 7.0) or np.memmap(path, "f8", "r")
    ),
    "bytes": lambda _: np.frombuffer(np.full(4, 7.0).tobytes()),
    "a view of a frozen one": lambda path: frozen(path)[1:],
    "broadcast": lambda _: np.broadcast_to(7.0, 4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_written_and_const_is_enough_to_read(module, tmp_path, kind):
    x = KINDS[kind](tmp_path / "file")
    for name in WRITE:
        with pytest.raises(ArgumentValueError, match=rf"{name}.*'x'.*(read-only|not C-contiguous)"):
            getattr(module, name)(x)
        assert x.tolist() == [7.0] * x.size
    for name in READ:
        if x.strides == (8,) or name != "read_pointer":
            assert getattr(module, name)(x) == 7.0
    y = np.zeros(4)
    assert module.both(y, x) == 7.0
    with pytest.raises(ArgumentValueError, match="'y'"):
        module.both(x, y)
