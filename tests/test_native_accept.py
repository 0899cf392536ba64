"""Arguments against the rows of a guard: arity, integers, floats, arrays and the messages about them."""

import enum
import fractions
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_rows import (
    F32_LIMIT,
    WrongTypeError,
    WrongValueError,
    array,
    float32,
    guard,
    int32,
    message,
    one,
    row,
)
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import ARRAY, CHECK, FLOAT, INT


@pytest.fixture(autouse=True)
def _own_exceptions():
    _native.configure(argument_type_error=WrongTypeError, argument_value_error=WrongValueError)
    yield
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


# ---- arity ----


def test_keywords_are_put_in_order():
    g = guard(row("a"), row("b"), row("c"))
    assert g(1, c=3, b=2) == (1, 2, 3)
    assert g(**{"".join(["c"]): 3, "".join("b"): 2, "a": 1}) == (1, 2, 3)
    assert guard()() == ()


@pytest.mark.parametrize("count", [16, 17, 300])
def test_many_arguments(count):
    g = guard(*(row(f"a{i}") for i in range(count)))
    assert g(*range(count)) == tuple(range(count))
    assert g(*range(5), **{f"a{i}": i for i in range(count - 1, 4, -1)}) == tuple(range(count))


def python_words(names, args, kwargs):
    namespace = {}
    exec(f"def step({', '.join(names)}): pass", namespace)
    with pytest.raises(TypeError) as caught:
        namespace["step"](*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize(
    ("names", "args", "kwargs"),
    [
        ("n", (), {}),
        ("ab", (), {}),
        ("abc", (), {}),
        ("abcd", (), {"b": 1}),
        ("ab", (1, 2, 3), {}),
        ("a", (1, 2), {}),
        ("", (1,), {}),
        ("", (1, 2), {}),
        ("ab", (1,), {"zz": 2}),
        ("ab", (1, 2), {"a": 2}),
        ("ab", (1, 2, 3), {"zz": 2}),
        ("ü", (), {}),
    ],
)
def test_arity_errors_read_like_those_of_python(names, args, kwargs):
    with pytest.raises(TypeError) as caught:
        guard(*map(row, names))(*args, **kwargs)
    assert type(caught.value) is TypeError
    assert str(caught.value) == python_words(names, args, kwargs)


# ---- integers ----


class Level(enum.IntEnum):
    HIGH = 3


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.mark.parametrize("value", [0, -(2**31), 2**31 - 1, True, Level.HIGH, np.int8(3), np.uint64(7)])
def test_integers_in_range_are_passed_on_as_they_are(value):
    assert one(int32(), value) is value


@pytest.mark.parametrize("value", [np.True_, np.array(3), np.array(True), np.array(3, ">i2"), Index(3)])
def test_other_integers_become_python_ints(value):
    received = one(int32(), value)
    assert type(received) is int
    assert received in (1, 3)


@given(value=st.integers(-(2**65), 2**65), ends=st.tuples(*[st.integers(-(2**63), 2**64 - 1)] * 2))
def test_the_range_is_exact(value, ends):
    low, high = sorted(ends)
    g = guard(row("n", INT, low, high, expected="some"))
    for given_value in (value, low, high, low - 1, high + 1):
        if low <= given_value <= high:
            assert g(given_value) == (given_value,)
        else:
            with pytest.raises(ValueError, match="does not fit some"):
                g(given_value)


@pytest.mark.parametrize(
    "value",
    [
        *(1.0, 1j, "1", b"1", None, [], np.float64(1), np.array(1.0), np.array([1]), np.array([[1]])),
        *(
            np.timedelta64(1, "s"),
            np.datetime64(1, "s"),
            np.array(1, "m8[s]"),
            np.str_("1"),
            fractions.Fraction(1),
        ),
    ],
)
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(WrongTypeError) as caught:
        one(int32(), value)
    assert (caught.value.argument, caught.value.expected) == ("n", "int32")
    assert str(caught.value) == f"step() argument 'n': expected int32, got {caught.value.got}"


def test_an_exception_of_index_comes_through():
    with pytest.raises(LookupError, match="mine"):
        one(int32(), Index(LookupError("mine")))
    with pytest.raises(TypeError, match="non-int"):
        one(int32(), Index("x"))


def test_messages_of_integers():
    bounds = "(-2147483648 to 2147483647)"
    assert message(int32(), 2**40) == f"step() argument 'n': 1099511627776 does not fit int32 {bounds}"
    assert message(int32(), np.int64(2**40)) == message(int32(), np.array(2**40)) == message(int32(), 2**40)
    assert "more than 256 bits does not fit int32" in message(int32(), 10**5000)
    assert message(int32(), 2.5) == "step() argument 'n': expected int32, got float"
    assert message(int32(), None) == "step() argument 'n': expected int32, got None"
    wide = row("n", INT, 0, 2**64 - 1, expected="uint64")
    assert message(wide, -1) == "step() argument 'n': -1 does not fit uint64 (0 to 18446744073709551615)"


# ---- floats ----


@pytest.mark.parametrize("value", [0, True, 2**64, 1.5, np.float64(1.5), float("inf"), float("nan"), 3.4028235e38])
def test_python_numbers_are_passed_on_as_they_are(value):
    assert one(float32(), value) is value


@pytest.mark.parametrize(
    "value",
    [
        *(np.float32(1.5), np.float16(1.5), np.longdouble(1.5), np.array(1.5), np.array(1.5, ">f4")),
        *(np.int8(1), np.uint64(2**63), np.True_, np.array(2), np.array(True), np.longdouble("inf")),
    ],
)
def test_numpy_numbers_become_python_floats(value):
    received = one(float32(), value)
    assert type(received) is float
    assert received == value


@pytest.mark.parametrize(
    "value",
    [
        1j,
        "1",
        b"1",
        None,
        [],
        np.complex64(1),
        np.array(1j),
        np.array([1.0]),
        fractions.Fraction(1),
        np.timedelta64(1, "s"),
    ],
)
def test_what_is_no_real_number_is_refused(value):
    with pytest.raises(WrongTypeError, match="expected float32, got"):
        one(float32(), value)


@pytest.mark.parametrize("value", [F32_LIMIT, -F32_LIMIT, 1e300, 10**38 * 4, 10**400, np.float64(1e39), np.array(1e39)])
def test_finite_numbers_that_would_become_infinite_are_refused(value):
    assert "does not fit float32 (it would become infinite)" in message(float32(), value)


def test_a_float64_takes_every_double_and_no_more():
    double = row("k", FLOAT, expected="float64")
    assert one(double, sys.float_info.max) == sys.float_info.max
    assert "would become infinite" in message(double, 10**309)
    huge = np.nextafter(np.longdouble(sys.float_info.max), np.longdouble("inf")) * 2
    if np.isfinite(huge):  # where long double is wider than double
        assert "would become infinite" in message(double, huge)
        assert "would become infinite" in message(double, np.array(huge))


# ---- arrays ----


def read_only(x):
    x.flags.writeable = False
    return x


@pytest.mark.parametrize(
    "value",
    [
        *(np.zeros(5, "f4"), np.zeros(0, "f4"), np.zeros((5, 7), "f4")[2:3, 0], np.zeros((3, 1), "f4")[:, 0]),
        *(read_only(np.zeros(3, "f4")), np.ma.zeros(3, "f4"), np.broadcast_to(np.float32(1), (1,))),
    ],
)
def test_matching_arrays_are_passed_on_as_they_are(value):
    assert one(array(), value) is value


def test_both_memory_orders_and_both_names_of_a_type_are_taken():
    fortran = np.zeros((3, 4), "f4", order="F")
    assert one(array(ndim=2), fortran) is fortran
    same = np.zeros(3, np.longlong)
    assert one(array(dtype=np.int64), same) is same
    anything = np.zeros((2, 2), "U3")
    assert one(row("x", ARRAY), anything) is anything


@pytest.mark.parametrize("value", [object(), [1.0], memoryview(b"abcd"), types.SimpleNamespace(shape=(3,))])
def test_arrays_of_others_are_passed_on(value):
    assert one(array(), value) is value


@pytest.mark.parametrize("value", [None, 1, True, 1.5, 1j, "x", b"x", np.float32(1), np.str_("x"), np.void(b"x")])
def test_scalars_and_text_are_no_arrays(value):
    with pytest.raises(WrongTypeError, match=r"expected float32\[:\], got"):
        one(array(), value)


def test_messages_of_arrays():
    start = "step() argument 'x': "
    assert message(array(), np.zeros(3)) == start + "expected float32[:], got a float64 array"
    assert message(array(), np.zeros(3, int)) == start + "expected float32[:], got an int64 array"
    assert message(array(), np.zeros((3, 2), "f4")) == start + "expected float32[:], got a 2-dimensional float32 array"
    assert message(array(), np.zeros(3, ">f4")) == (
        start + "the bytes of the array are in foreign order; pass x.astype(x.dtype.newbyteorder('='))"
    )
    assert message(array(), np.zeros(13, "u1")[1:].view("f4")) == (
        start + "the array is not aligned; pass an aligned array (x.copy())"
    )
    assert message(array(), np.zeros(6, "f4")[::2]) == (
        start + "the array is not contiguous; pass np.ascontiguousarray(x)"
    )
    assert message(array(written=True), np.zeros(6, "f4")[::-1]) == (
        start + "the array is not contiguous and the kernel writes to it; "
        "pass a contiguous array and copy the result back"
    )
    assert message(array(written=True), read_only(np.zeros(3, "f4"))) == (
        start + "the array is read-only and the kernel writes to it; pass a writeable array (x.copy())"
    )


@pytest.mark.parametrize(
    ("value", "error", "got"),
    [
        (np.zeros(3), WrongTypeError, "a float64 array"),
        (np.zeros(3, "M8[s]"), WrongTypeError, "a datetime64[s] array"),
        (np.zeros(3, object), WrongTypeError, "an object array"),
        (np.zeros(3, [("a", "f4")]), WrongTypeError, "a [('a', '<f4')] array"),
        (np.zeros(3, ">f4"), WrongTypeError, "a byte-swapped >f4 array"),
        (np.zeros((), "f4"), WrongValueError, "a 0-dimensional float32 array"),
        (np.zeros(6, "f4")[::2], WrongValueError, "a non-contiguous float32 array"),
        (np.zeros((3, 4), "f4")[:, 1], WrongValueError, "a non-contiguous float32 array"),
        (np.broadcast_to(np.float32(1), (3,)), WrongValueError, "a non-contiguous float32 array"),
        (np.zeros(13, "u1")[1:].view("f4"), WrongValueError, "an unaligned float32 array"),
    ],
)
def test_exceptions_of_arrays_carry_their_data(value, error, got):
    with pytest.raises(error) as caught:
        one(array(), value)
    assert (caught.value.argument, caught.value.expected, caught.value.got) == ("x", "float32[:]", got)


def test_an_array_changed_in_place_is_judged_anew():
    g, x = guard(array()), np.zeros(4, "f4")
    assert g(x)[0] is x
    x.resize((2, 2), refcheck=False)
    with pytest.raises(WrongValueError, match="2-dimensional"):
        g(x)


def test_a_check_replaces_the_value():
    g = guard(row("x", CHECK, check=lambda value: value * 2), row("y"))
    assert g(4, 5) == (8, 5)
    with pytest.raises(TypeError, match="unsupported operand"):
        g(None, 5)
