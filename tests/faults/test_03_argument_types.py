"""Row 3: a wrong dtype is never reinterpreted. Here: the arguments of Taichi kernels."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rekernel
from rekernel import ArgumentTypeError, ArgumentValueError
from support import START, lines_of, run_python

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "f32", "f64")
NUMPY = {"f": "float", "i": "int", "u": "uint"}


def numpy_of(name):
    return np.dtype(NUMPY[name[0]] + name[1:])


@pytest.fixture(scope="module")
def echo(ti):
    """One kernel a scalar type, which returns its argument."""
    if ti.lang.impl.get_runtime().prog is None:
        ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    text = "".join(
        f"@ti.kernel\ndef {name}(x: ti.{name}) -> ti.{name if name != 'f16' else 'f32'}:\n    return x\n"
        for name in (*INTEGERS, *FLOATS)
    )
    with rekernel.KernelLoader() as made:
        yield made.load(text, "echo")


@pytest.fixture(scope="module")
def takes(ti):
    """One kernel an element type, which takes an array of it and adds one."""
    text = "".join(
        f"@ti.kernel\ndef {name}(x: ti.types.ndarray(ti.{name}, 1)):\n    for i in x:\n        x[i] += 1\n"
        for name in ("f32", "f64", "i32", "u8")
    )
    with rekernel.KernelLoader() as made:
        yield made.load(text, "takes")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(INTEGERS),
    value=st.integers(-(2**70), 2**70),
    kind=st.sampled_from(["int", "numpy", "0-d"]),
)
def test_an_integer_arrives_as_it_is_or_is_refused(echo, name, value, kind):
    low, high = np.iinfo(numpy_of(name)).min, np.iinfo(numpy_of(name)).max
    given_value = value
    if kind != "int":
        holder = np.uint64 if 0 <= value < 2**64 else np.int64
        if not np.iinfo(holder).min <= value <= np.iinfo(holder).max:
            return
        given_value = holder(value) if kind == "numpy" else np.array(value, holder)
    if low <= value <= high:
        assert getattr(echo, name)(given_value) == value
    else:
        with pytest.raises(ArgumentValueError, match="'x'"):
            getattr(echo, name)(given_value)


@pytest.mark.parametrize("name", INTEGERS)
def test_the_ends_of_the_range(echo, name):
    limits = np.iinfo(numpy_of(name))
    kernel = getattr(echo, name)
    assert kernel(int(limits.min)) == limits.min
    assert kernel(int(limits.max)) == limits.max
    for beyond in (int(limits.min) - 1, int(limits.max) + 1):
        with pytest.raises(ArgumentValueError, match="does not fit"):
            kernel(beyond)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FLOATS), value=st.floats(width=64))
def test_a_float_arrives_rounded_or_is_refused(echo, name, value):
    with np.errstate(over="ignore"):
        rounded = numpy_of(name).type(value)
    if math.isfinite(value) and not np.isfinite(rounded):
        with pytest.raises(ArgumentValueError, match="infinite"):
            getattr(echo, name)(value)
    else:
        result = getattr(echo, name)(value)
        assert result == rounded or (math.isnan(result) and math.isnan(rounded)) or abs(rounded) < 1.2e-38


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(
    "value", [1.0, 1.5, np.float32(1), np.float64(1), np.array(1.0), math.nan, 1j, None, "1", b"1"]
)
def test_an_integer_parameter_refuses_what_is_no_integer(echo, name, value):
    with pytest.raises(ArgumentTypeError, match=re.escape("'x'")):
        getattr(echo, name)(value)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("value", [1j, np.complex64(1), None, "1", b"1", [1.0], np.ones(1), np.ones((1, 1)), {}])
def test_a_float_parameter_refuses_what_is_no_real_number(echo, name, value):
    with pytest.raises(ArgumentTypeError, match=re.escape("'x'")):
        getattr(echo, name)(value)


@pytest.mark.parametrize("value", [3, True, np.int8(3), np.uint64(3), np.bool_(True), np.float32(3), np.array(3.0)])
def test_a_float_parameter_takes_every_real_number(echo, value):
    for name in FLOATS:
        assert getattr(echo, name)(value) == float(value)


@pytest.mark.parametrize("value", [True, np.bool_(True), np.array(True), np.int8(1), np.array(1)])
def test_an_integer_parameter_takes_every_integer(echo, value):
    for name in INTEGERS:
        assert getattr(echo, name)(value) == 1


@pytest.mark.parametrize("name", ["f32", "f64", "i32", "u8"])
@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u4", "u8", "?", "c8", "O", "S4", "M8[s]"]
)
def test_an_array_of_another_type_is_refused_by_name_and_both_types(takes, name, dtype):
    array = np.zeros(3, dtype)
    wanted = {"f32": "float32", "f64": "float64", "i32": "int32", "u8": "uint8"}[name]
    if array.dtype == wanted:
        getattr(takes, name)(array)
        assert array.tolist() == [1, 1, 1]
        return
    with pytest.raises(ArgumentTypeError) as caught:
        getattr(takes, name)(array)
    assert "'x'" in str(caught.value)
    assert f"{wanted}[:]" in str(caught.value)
    assert str(array.dtype) in str(caught.value)
    assert caught.value.argument == "x"


@pytest.mark.parametrize(
    "value", [None, 1, 1.0, "text", b"bytes", np.float32(1)], ids=["None", "int", "float", "str", "bytes", "scalar"]
)
def test_an_array_parameter_refuses_what_is_no_array(takes, value):
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match="'x'"):
        takes.f32(value)


@pytest.mark.parametrize("shape", [(), (2, 2), (1, 1, 1)])
def test_an_array_of_another_rank_is_refused(takes, shape):
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match="'x'"):
        takes.f32(np.zeros(shape, np.float32))


def test_a_number_of_the_wrong_size_in_a_vector_is_refused(loader):
    text = "@ti.kernel\ndef v(x: ti.types.vector(2, ti.i32)) -> ti.i32:\n    return x[0] + x[1]\n"
    v = loader.load(text, "vector").v
    assert v([1, 2]) == 3
    for bad in ([2**40, 1], [1, -(2**31) - 1]):
        with pytest.raises(ArgumentValueError, match="does not fit int32"):
            v(bad)
    for bad in ([1], [1, 2, 3], [[1, 2]]):
        with pytest.raises(ArgumentValueError, match="expected"):
            v(bad)
    for bad in (None, 1, "ab", [1.5, 2], ["a", "b"], [None, 1]):
        with pytest.raises((TypeError, ValueError)):
            v(bad)


def test_missing_and_unknown_arguments_are_pythons_own_errors(echo):
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        echo.i32()
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 2 were given"):
        echo.i32(1, 2)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'y'"):
        echo.i32(y=1)
    with pytest.raises(TypeError, match=r"multiple values"):
        echo.i32(1, x=1)
    assert echo.i32(x=7) == 7


REFUSED = [
    "x[0] = 1.5", "x[0] = v", "x[0] = ti.Vector([1.0, 2.0])", "x[0] += v", "x[0] -= 1.5", "x[0] |= v", "x[0] &= v",
    "x[0] ^= v", "x[0] *= v", "x[0] /= 2.0", "x[0] = x[0] + v", "x[0] = ti.u1(v)", "x[0] = bool(v)",
    "x[0] = ti.cast(v, ti.u1)", "ti.atomic_mul(x[0], 2)", "ti.atomic_min(x[0], True)", "ti.atomic_max(x[0], 1)",
    "b = v > 0; b = v", "b = v > 0; b += v", "b = x[0]; b += v",
]  # fmt: skip
TAKEN = ["x[0] = v != 0", "x[0] = True", "x[0] = k", "x[0] += 1", "x[0] |= k", "x[0] = ti.cast(k, ti.u1)"]


def test_stores_at_which_llvm_would_end_the_process_are_errors():
    # All in one process: after each error the next text, and at last good ones, still work.
    program = (
        START
        + """
import sys
text = "@ti.kernel\\ndef f(x: ti.types.ndarray(ti.u1, 1), v: ti.f32, k: ti.i32):\\n    {}\\n"
for statement in sys.argv[1].split("|||"):
    try:
        loader.load(text.format(statement), "k", check=(np.zeros(2, bool), 1.0, 1))
        print("passed:", statement)
    except rekernel.KernelSourceError as error:
        print("line", error.line)
for statement in sys.argv[2].split("|||"):
    x = np.zeros(2, bool)
    loader.load(text.format(statement), "k", check=(x, 1.0, 1)).f(x, 2.0, 1)
    print(x.tolist())
"""
    )
    printed = lines_of(run_python(program, "|||".join(REFUSED), "|||".join(TAKEN)))
    assert printed == ["line 3"] * len(REFUSED) + ["[True, False]"] * len(TAKEN)


def test_taichi_is_left_as_it_was(ti, loader):
    core = ti._lib.core
    names = ["value_cast", *(n for n in dir(core) if n.startswith("expr_atomic_"))]
    before = [getattr(core, n) for n in names]
    assign = ti.lang.expr.Expr._assign
    loader.load("@ti.kernel\ndef f():\n    a = True\n    a = 1.5\n", "k", check=False)
    with pytest.raises(rekernel.KernelSourceError):
        loader["k"].f()
    assert [getattr(core, n) for n in names] == before
    assert ti.lang.expr.Expr._assign is assign
