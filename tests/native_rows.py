"""Rows and guards that the tests of the native extension are made of."""

import numpy as np
import pytest

from rekernel._native import ANY, ARRAY, FLOAT, INT, Guard

F32_LIMIT = float(2**128 - 2**103)


class ArgumentError(Exception):
    def __init__(self, message, *, argument, expected, got):
        super().__init__(message)
        self.argument, self.expected, self.got = argument, expected, got


class WrongTypeError(ArgumentError, TypeError):
    pass


class WrongValueError(ArgumentError, ValueError):
    pass


def row(name="x", kind=ANY, low=None, high=None, typenum=-1, ndim=-1, written=False, expected="any", check=None):
    return (name, kind, low, high, typenum, ndim, written, expected, check)


def int32(name="n"):
    return row(name, INT, -(2**31), 2**31 - 1, expected="int32")


def float32(name="k"):
    return row(name, FLOAT, None, F32_LIMIT, expected="float32")


def array(name="x", dtype="f4", ndim=1, *, written=False, expected="float32[:]"):
    return row(name, ARRAY, typenum=np.dtype(dtype).num, ndim=ndim, written=written, expected=expected)


def echo(*args):
    return args


def guard(*rows, call=echo, **options):
    return Guard(call, "step", rows, **options)


def one(parameter, value):
    """Return what the kernel receives for the value."""
    (received,) = guard(parameter)(value)
    return received


def message(parameter, value):
    with pytest.raises(ArgumentError) as caught:
        one(parameter, value)
    return str(caught.value)
