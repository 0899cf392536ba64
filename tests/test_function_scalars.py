"""Numbers of every type into compiled kernels and back."""

import decimal
import fractions
import math
import struct
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckernels import C_TYPES, entry, make, scalar, slots_of
from ckernels import compiled as compile_text
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import Function, Library
from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel

INTEGERS = [name for name in C_TYPES if "int" in name]
FLOATS = ["float16", "float32", "float64"]
COMPLEXES = ["complex64", "complex128"]


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


@pytest.fixture(scope="module")
def echo():
    """One kernel a type, which returns its argument."""
    kernels = [
        Kernel(f"echo_{dtype}", (scalar("x", dtype),), "cpp", slots=slots_of(scalar("x", dtype))) for dtype in C_TYPES
    ]
    library = Library(compile_text("".join(entry(k, "(void)x; *result = s[0];") for k in kernels)), name="echo")
    return {
        dtype: Function(library, f"rk_{k.name}_0", "echo", *rows(k), returns=dtype)
        for dtype, k in zip(C_TYPES, kernels, strict=True)
    }


def same(a, b):
    return type(a) is type(b) and (a == b or (a != a and b != b)) and math.copysign(1, a) == math.copysign(1, b)


# ---- integers ----


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_fit_exactly_their_range(echo, dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max, 0, 1, int(info.max) // 2):
        assert same(echo[dtype](int(value)), int(value))
        assert echo[dtype](np.dtype(dtype).type(value)) == value
        assert echo[dtype](np.array(value, dtype)) == value
    for value in (int(info.min) - 1, int(info.max) + 1, 2**70, -(2**70), 10**5000):
        with pytest.raises(
            ArgumentValueError, match=rf"^echo\(\) argument 'x': .* does not fit {dtype} \({info.min} to"
        ):
            echo[dtype](value)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize(
    "value",
    [1.0, np.float64(1), 1j, None, "1", b"1", np.array([1]), np.array(1.0), [1], decimal.Decimal(1), np.str_("1"),
     np.timedelta64(1), fractions.Fraction(1), np.complex64(1)],
)  # fmt: skip
def test_what_is_no_integer_is_no_integer(echo, dtype, value):
    with pytest.raises(ArgumentTypeError, match=rf"^echo\(\) argument 'x': expected {dtype}, got ") as caught:
        echo[dtype](value)
    assert (caught.value.argument, caught.value.expected) == ("x", dtype)
    assert caught.value.got in str(caught.value)


@given(st.integers(-(2**65), 2**65))
def test_any_integer_fits_or_raises(echo, value):
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        if info.min <= value <= info.max:
            assert echo[dtype](value) == value
        else:
            with pytest.raises(ArgumentValueError):
                echo[dtype](value)


def test_bools_and_objects_with_an_index_are_integers(echo):
    class Five:
        def __index__(self):
            return 5

    assert [same(echo["int8"](value), 1) for value in (True, np.True_, np.array(True))] == [True] * 3
    assert echo["uint16"](Five()) == 5


def test_bool_takes_only_zero_and_one(echo):
    for value in (True, 1, np.True_, np.int8(1), np.array(True), np.array(1)):
        assert echo["bool"](value) is True
    for value in (False, 0, np.False_):
        assert echo["bool"](value) is False
    for value in (2, -1, 2**64):
        with pytest.raises(ArgumentValueError, match=r"does not fit bool \(0 to 1\)"):
            echo["bool"](value)


# ---- floats ----


@pytest.mark.parametrize("dtype", FLOATS)
@given(value=st.floats(width=64))
def test_a_float_is_rounded_as_numpy_does(echo, dtype, value):
    with np.errstate(over="ignore"):
        wanted = float(np.dtype(dtype).type(value))
    if math.isfinite(value) and not math.isfinite(wanted):
        for same_value in (value, np.float64(value), np.array(value)):
            with pytest.raises(ArgumentValueError, match=rf"does not fit {dtype} \(it would become infinite\)"):
                echo[dtype](same_value)
    else:
        for same_value in (value, np.float64(value), np.array(value)):
            assert same(echo[dtype](same_value), wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_value_of_a_shorter_type_comes_back(echo, dtype):
    bits = np.arange(2**16, dtype=np.uint16)
    values = bits.view(np.float16) if dtype == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)
    for value in values[:: 7 if dtype != "float16" else 1]:
        assert same(echo[dtype](value), float(value))
        assert same(echo[dtype](float(value)), float(value))


def test_halves_between_two_values_go_to_the_even_one(echo):
    for bits in [*range(0, 0x7BFF, 97), 0, 1, 0x3FF, 0x400, 0x7BFE]:
        low, high = (struct.unpack("<e", struct.pack("<H", b))[0] for b in (bits, bits + 1))
        middle = (low + high) / 2
        assert echo["float16"](middle) == (low if bits % 2 == 0 else high)
        assert echo["float16"](math.nextafter(middle, math.inf)) == high
        assert echo["float16"](-math.nextafter(middle, 0)) == -low


@pytest.mark.parametrize(("dtype", "limit"), [("float16", 65520.0), ("float32", float(2**128 - 2**103))])
def test_the_largest_value_and_the_first_that_is_too_large(echo, dtype, limit):
    assert echo[dtype](math.nextafter(limit, 0)) == float(np.finfo(dtype).max)
    assert echo[dtype](-math.nextafter(limit, 0)) == -float(np.finfo(dtype).max)
    for value in (limit, -limit, int(limit), 10**400):
        with pytest.raises(ArgumentValueError, match="would become infinite"):
            echo[dtype](value)
    for value in (math.inf, -math.inf):
        assert echo[dtype](value) == value


@pytest.mark.parametrize("dtype", FLOATS)
def test_all_real_numbers_are_floats(echo, dtype):
    values = [1, True, np.True_, np.int8(1), np.uint64(1), np.float16(1), np.float32(1), np.longdouble(1), np.array(1),
              np.array(1, ">f8"), np.array(1, "f2"), np.array(True), type("Mine", (float,), {})(1)]  # fmt: skip
    for value in values:
        assert same(echo[dtype](value), 1.0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "value", [1j, np.complex64(1), np.array(1j), None, "1", b"1", np.array([1.0]), [1.0], np.timedelta64(1)]
)
def test_what_is_no_real_number_is_refused(echo, dtype, value):
    with pytest.raises(ArgumentTypeError, match=rf"^echo\(\) argument 'x': expected {dtype}, got "):
        echo[dtype](value)


def test_a_long_double_beyond_a_double_is_refused(echo):
    if np.finfo(np.longdouble).max <= sys.float_info.max:
        pytest.skip("long double is double here")
    with pytest.raises(ArgumentValueError, match="would become infinite"):
        echo["float64"](np.longdouble("1e4000"))
    assert echo["float64"](np.longdouble("inf")) == math.inf


# ---- complex ----


@pytest.mark.parametrize("dtype", COMPLEXES)
@given(
    value=st.complex_numbers(max_magnitude=1e38) | st.sampled_from([complex(math.inf, -0.0), complex(-0.0, math.nan)])
)
def test_complex_numbers_are_rounded_as_numpy_does(echo, dtype, value):
    wanted = complex(np.dtype(dtype).type(value))
    for same_value in (value, np.complex128(value), np.array(value)):
        got = echo[dtype](same_value)
        assert type(got) is complex
        assert same(got.real, wanted.real)
        assert same(got.imag, wanted.imag)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_all_numbers_are_complex(echo, dtype):
    for value in (2, 2.0, True, np.int16(2), np.float32(2), np.complex64(2), np.array(2), np.array(2 + 0j, ">c16")):
        assert echo[dtype](value) == complex(value)
    for value in (None, "1j", [1j], np.array([1j]), b"1"):
        with pytest.raises(ArgumentTypeError, match=rf"expected {dtype}, got "):
            echo[dtype](value)


def test_a_complex_part_must_not_become_infinite(echo):
    for value in (1e39, 1e39j, complex(0, -1e300), np.complex128(1e39), np.array(1e39j), 10**39, 10**400):
        with pytest.raises(ArgumentValueError, match="does not fit complex64"):
            echo["complex64"](value)
    with pytest.raises(ArgumentValueError, match="does not fit complex128"):
        echo["complex128"](10**400)


# ---- all ----


def test_an_error_in_a_number_is_the_users(echo):
    class Broken:
        def __index__(self):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        echo["int32"](Broken())


def test_ten_thousand_fresh_values_each_arrive(echo):
    function = echo["float64"]
    assert all(function(n * 0.1) == n * 0.1 for n in range(10_000))


def test_the_value_reaches_the_code_in_its_c_type():
    parameters = [scalar(f"a{i}", dtype) for i, dtype in enumerate(C_TYPES) if dtype not in ("float16", *COMPLEXES)]
    total = make(f"result->d = {' + '.join(f'(double){p.name}' for p in parameters)};", *parameters, returns="float64")
    values = [1, -2, -300, -70000, -(2**40), 200, 60000, 2**32 - 1, 2**50, 0.5, 0.25]
    assert total(*values) == sum(values)
    product = make(
        "float _Complex r = x * x; *(float _Complex *)result = r;", scalar("x", "complex64"), returns="complex64"
    )
    assert product(1 + 2j) == (1 + 2j) ** 2


def test_an_unsigned_result_stays_unsigned(echo):
    assert make("result->u = ~0ull;", returns="uint64")() == 2**64 - 1
    assert make("result->i = -1;", returns="int8")() == -1
    assert make("result->i = 1;", returns="bool")() is True
    assert make("result->i = 1;")() is None
