"""Row 3 for C++ texts: what a text declares decides; values are converted where they fit, and refused otherwise."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from rekernel import ArgumentTypeError, ArgumentValueError

pytestmark = needs_cpp

TEXT = """
#include <complex>
using real = float;
double take(real *a, real s, int n, signed char c, bool b, unsigned u, unsigned char h) {
    return double(a[0]) + s + n + c + b + u + h;
}
char letter(char c) { return c; }
float single(float x) { return x; }
int64_t wide(int64_t x) { return x; }
size_t size(size_t n) { return n; }
std::complex<float> turned(std::complex<float> z) { return z * std::complex<float>(0, 1); }
"""
GOOD = {"a": np.ones(1, "f4"), "s": 1.0, "n": 1, "c": 1, "b": True, "u": 1, "h": 1}


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with load_with(tmp_path_factory.mktemp("types") / "cache") as loader:
        yield loader.load(TEXT, "types", optlevel="0")


ACCEPTED = {
    "s": [3, 3.0, np.float32(3), np.float64(3), np.int64(3), np.array(3.0), np.array(3, "i2"), True, np.uint8(3)],
    "n": [3, np.int8(3), np.uint64(3), np.array(3), 2**31 - 8, True, np.bool_(True)],
    "c": [-128, 119, np.int64(-3)],
    "b": [True, False, np.True_, 1, 0],
    "u": [0, 2**32 - 1, np.int64(7)],
    "h": [0, 255, np.int32(7)],
}
REFUSED = {
    "a": [None, 1.0, np.ones(1), np.ones(1, "i4"), np.ones(1, "f2"), np.ones(1, "c8"), np.ones(1, ">f4"), [1.0], "a", b"a",
          np.ones(1, "u4"), np.array(["a"]), np.array([None]), np.zeros(1, "M8[s]")],
    "s": [None, "3", 3j, np.complex64(3), [3.0], 1e39, np.float64(-1e39), 10**60, decimal.Decimal(3), fractions.Fraction(3),
          np.ones(1)],
    "n": [None, 3.0, np.float32(3), 2**31, -(2**31) - 1, 2**40, 2**64, np.uint64(2**63), "3", 3j, np.array(3.0)],
    "c": [128, -129, 300, 1.5, "a"],
    "b": [2, -1, 1.0, None, "yes"],
    "u": [-1, 2**32, np.int64(-1), 1.0],
    "h": [-1, 256, 2.0],
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_value_that_fits_is_taken_as_it_is(module, name):
    for value in ACCEPTED[name]:
        given = {**GOOD, name: value}
        wanted = sum(float(np.asarray(v).ravel()[0]) for v in given.values())
        assert module.take(**given) == wanted, (name, value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_does_not_fit_is_refused_by_its_name(module, name):
    for value in REFUSED[name]:
        with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
            module.take(**{**GOOD, name: value})
        assert caught.value.argument == name, value
        assert name in str(caught.value)
        assert "take" in str(caught.value)


def test_an_array_of_another_type_names_both_types(module):
    with pytest.raises(ArgumentTypeError, match=r"(?s)a.*float32.*float64"):
        module.take(**{**GOOD, "a": np.ones(1)})


def test_the_ends_of_each_type_and_nothing_beyond(module):
    ends = {
        module.wide: (-(2**63), 2**63 - 1),
        module.size: (0, 2**64 - 1),
        module.letter: (np.iinfo(np.byte).min, np.iinfo(np.byte).max),
    }
    for kernel, (low, high) in ends.items():
        assert (kernel(low), kernel(high)) == (low, high)
        for value in (low - 1, high + 1, 2**70, -(2**70)):
            with pytest.raises((ArgumentTypeError, ArgumentValueError, OverflowError)):
                kernel(value)


def test_floats_are_rounded_to_the_declared_type_and_infinity_stays(module):
    assert module.single(0.1) == float(np.float32(0.1))
    assert module.single(float("inf")) == float("inf")
    assert module.single(np.finfo("f4").max) == np.finfo("f4").max
    assert np.isnan(module.single(float("nan")))
    assert module.single(2**24 + 1) == 2**24


def test_complex_numbers_take_real_ones_and_are_no_real_ones(module):
    assert [module.turned(z) for z in (1, 1.0, 1j, np.complex128(1))] == [1j, 1j, -1, 1j]
    with pytest.raises(ArgumentTypeError):
        module.single(1j)


def test_missing_and_unknown_arguments_are_told_as_python_does(module):
    with pytest.raises(TypeError, match=r"missing 1 required .*'h'"):
        module.take(**{k: v for k, v in GOOD.items() if k != "h"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
        module.take(**GOOD, q=1)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        module.wide(1, 2)
