"""Arrays that share memory where the code was promised that they do not."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckernels import array, compiled, make
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import Function, Library
from rekernel.kernel import Parameter
from test_function_dlpack import Tensor

as_strided = np.lib.stride_tricks.as_strided


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


def pair(ndim=1, *, written=(True, False), restrict=(True, True), dtypes=("float64", "float64")):
    return make("", *(array(name, dtype, ndim, written=w, restrict=r)
                      for name, dtype, w, r in zip("ab", dtypes, written, restrict, strict=True)))  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return pair()


@pytest.fixture(scope="module")
def two():
    return pair(2)


def overlaps(function, a, b):
    try:
        function(a, b)
    except ArgumentValueError as error:
        told = str(error)
    else:
        return False
    assert "it overlaps 'a'" in told
    return True


X = np.zeros(100)


def test_the_message_names_both_and_the_way_out(one):
    with pytest.raises(ArgumentValueError) as caught:
        one(X, X)
    assert str(caught.value) == (
        "step() argument 'b': it overlaps 'a', and the kernel was built for arrays that do not (restrict); pass a "
        "copy, or build the kernel with allow_alias=True"
    )
    assert (caught.value.argument, caught.value.got) == ("b", "a float64 array")


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (X, X, True),
        (X[:-1], X[1:], True),
        (X[:50], X[50:], False),
        (X[:50], X[49:], True),
        (X[::2], X[1::2], False),
        (X[::2], X[::-2], False),
        (X[::2], X[98::-2], True),
        (X[::-1], X, True),
        (X[::3], X[1::3], False),
        (X[::2], X[1::3], True),
        (X[::4], X[2::4], False),
        (X[::4], X[1::6], False),
        (X[:0], X, False),
        (X[50:50], X, False),
        (X[7:8], X[8:9], False),
        (X[7:8], as_strided(X[7:], (1,), (3,)), True),
        (X[7:8], np.broadcast_to(X[7:8], 5), True),
        (X[6:7], np.broadcast_to(X[7:8], 5), False),
    ],
)
def test_pairs_on_a_line(one, a, b, shared):
    assert overlaps(one, a, b) is shared
    assert np.shares_memory(a, b) is shared
    if b.flags.writeable:
        assert overlaps(one, b, a) is shared


M = np.zeros((40, 50))


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        (M[:, :25], M[:, 25:], False),
        (M[:, :26], M[:, 25:], True),
        (M[:, ::2], M[:, 1::2], False),
        (M[::2], M[1::2], False),
        (M[::2, ::2], M[1::2, 1::2], False),
        (M[::2, ::2], M[::2, 1::2], False),
        (M[::2, ::2].T, M[::2, ::2], True),
        (M[1:, 1:], M[:-1, :-1], True),
        (M[:20, :20], M[20:, 20:], False),
        (M[:20, 30:], M[20:, :30], False),
        (M[::3, ::-5], M[1::3, ::-5], False),
        (M[:, :1], M[:, 1:2], False),
        (M.T, M, True),
        (M[::-1, 10:20], M[:, 20:30], False),
        (M[:, 10:20].T, M[:, 19:30].T, True),
    ],
)
def test_blocks_of_a_matrix(two, a, b, shared):
    assert np.shares_memory(a, b) is shared
    assert overlaps(two, a, b) is shared
    assert overlaps(two, b, a) is shared


@pytest.mark.parametrize(
    ("written", "restrict", "checked"),
    [
        (written, restrict, any(written) and any(restrict))
        for written in itertools.product((True, False), repeat=2)
        for restrict in itertools.product((True, False), repeat=2)
    ],
)
def test_only_pairs_with_a_promise_and_a_writer_are_checked(written, restrict, checked):
    assert overlaps(pair(written=written, restrict=restrict), X, X) is checked


@st.composite
def strided(draw):
    """Draw a view of any shape, strides and offset inside one block of bytes, in bytes or in words."""
    dtype = draw(st.sampled_from(["u1", "i2", "i4", "f8"]))
    size = np.dtype(dtype).itemsize
    ndim = draw(st.integers(0, 3))
    shape = [draw(st.integers(1, 5)) for _ in range(ndim)]
    strides = [draw(st.integers(1, 12)) * size * draw(st.sampled_from([1, -1])) for _ in range(ndim)]
    low = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
    start = -low + size * draw(st.integers(0, 40 // size))
    return dtype, tuple(shape), tuple(strides), start


BLOCK = np.zeros(4096, "u1")
assert BLOCK.ctypes.data % 8 == 0
NAMES = {"u1": "uint8", "i2": "int16", "i4": "int32", "f8": "float64"}


@given(strided(), strided())
@settings(max_examples=400)
def test_any_two_views_are_decided_as_numpy_does(a, b):
    views = [as_strided(BLOCK[start : start + 8][: np.dtype(d).itemsize].view(d), shape, strides)
             for d, shape, strides, start in (a, b)]  # fmt: skip
    assert overlaps(empty(a[0], len(a[1]), b[0], len(b[1])), *views) is np.shares_memory(*views)


@functools.cache
def empty(a, rank_a, b, rank_b):
    """Return a function over any two types and ranks; its code does not look at them, so it is compiled once."""
    library = Library(compiled("ENTRY rk_step_0(rk_call *) { return 0; }"), name="step")
    parameters = tuple(
        (name, "array", NAMES[d], NAMES[d], np.dtype(d).itemsize, rank, (), (), 0, False, name == "a", True, (), 0, ())
        for name, d, rank in (("a", a, rank_a), ("b", b, rank_b))
    )
    return Function(library, "rk_step_0", "step", parameters, ())


def test_three_dimensions_with_all_steps(one):
    cube = np.zeros((12, 12, 12))
    function = pair(3)
    for offsets in itertools.product(range(2), repeat=3):
        other = cube[tuple(slice(o, None, 2) for o in offsets)]
        assert overlaps(function, cube[::2, ::2, ::2], other) is (offsets == (0, 0, 0))
        assert overlaps(function, other, cube) is True


def test_arrays_of_two_types():
    function = pair(dtypes=("float64", "int32"))
    ints = X.view("i4")
    assert overlaps(function, X[:50], ints[:100])
    assert not overlaps(function, X[:50], ints[100:])
    assert overlaps(function, X[::2], ints[1::4])
    assert not overlaps(function, X[::2], ints[2::4])


def test_parts_of_complex_numbers(one):
    z = np.zeros(20, "c16")
    assert not overlaps(one, z.real, z.imag)
    assert overlaps(one, z.real, z.real)


def test_fields_of_records_do_not_overlap_each_other():
    dtype = np.dtype([("x", "f8"), ("y", "f8")])
    x, y = (Parameter(n, "array", ndim=1, fields=((n, "float64", o),), itemsize=16, written=True, restrict=True)
            for n, o in (("x", 0), ("y", 8)))  # fmt: skip
    points = np.zeros(5, dtype)
    make("", x, y)(points, points)
    with pytest.raises(ArgumentValueError, match="it overlaps 'x'"):
        make("", x, Parameter("z", "array", ndim=1, fields=x.fields, itemsize=16, restrict=True))(points, points)


def test_all_kinds_of_arguments_are_compared(one):
    x = np.zeros(10)
    for a, b in itertools.product((x, memoryview(x), Tensor(x)), repeat=2):
        with pytest.raises(ArgumentValueError, match="it overlaps 'a'"):
            one(a, b)
    one(x[:5], memoryview(x)[5:])
    one(Tensor(x[:5]), x[5:])


def test_every_pair_of_many_is_compared():
    function = make("", *(array(f"x{i}", written=True, restrict=True) for i in range(6)))
    arrays = [X[10 * i : 10 * i + 10] for i in range(6)]
    function(*arrays)
    for i, j in itertools.combinations(range(6), 2):
        changed = [*arrays]
        changed[j] = X[10 * i + 9 : 10 * i + 11]
        with pytest.raises(ArgumentValueError, match=r"overlaps 'x\d'"):
            function(*changed)


def test_what_takes_too_long_to_decide_is_refused():
    """Forty axes of two elements and unlike strides: to decide it is to pack a knapsack."""
    steps = [int(s) * 16 for s in np.random.default_rng(3).integers(10**14, 2 * 10**14, 40)]
    x = np.zeros(1)
    a, b = (as_strided(np.ndarray(1, buffer=x), (2,) * 20, part) for part in (steps[:20], steps[20:]))
    distance = (sum(steps) // 2 - sum(steps[20:])) // 8 * 8  # in the middle; nothing is read there
    with pytest.raises(
        ArgumentValueError, match=r"may overlap 'a' \(their strides are too entangled .*allow_alias=True"
    ):
        pair(20)(a, Tensor(b, data=(x.ctypes.data + distance) % 2**64))


def test_views_that_claim_more_than_an_address_space_are_refused():
    function = pair(2)
    x = np.zeros(4)
    with pytest.raises(ArgumentValueError, match="may overlap"):
        function(as_strided(x, (2**40, 2), (2**40, 8)), x[None, 2:])
