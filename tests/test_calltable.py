"""The tables of compiled kernels, made from values."""

import pytest

from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel, Parameter, Slot

DST = Parameter("dst", "array", dtype="float64", ndim=2, written=True, shape=("n", 3))
POINTS = Parameter(
    "p", "array", ndim=1, fields=(("x", "float64", 0), ("id", "int32", 8)), itemsize=16, type="const point[:]"
)


def kernel(*parameters, slots=()):
    return Kernel("step", parameters, "cpp", slots=tuple(slots))


def one(**options):
    """Return the row of one array of float64."""
    slots = options.pop("slots", ())
    parameter = Parameter(**{"name": "x", "kind": "array", "dtype": "float64", "ndim": 2, **options})
    return rows(kernel(parameter, slots=slots))[0][0]


def contiguous(**options):
    return one(**options)[9]


STRIDES = (Slot("stride", "x", 0), Slot("stride", "x", 1))


def test_a_scalar_is_a_row_of_four():
    parameters, slots = rows(kernel(Parameter("k", "scalar", dtype="float32"), slots=[Slot("scalar", "k")]))
    assert parameters == (("k", "scalar", "float32", "float32"),)
    assert slots == (("scalar", 0, 0, 0, "float32"),)


def test_an_array_says_all_that_is_checked():
    slots = [
        Slot("pointer", "dst"),
        Slot("shape", "dst", 0, "int32"),
        Slot("stride", "dst", 0),
        Slot("stride", "dst", 1),
    ]
    parameters, made = rows(kernel(DST, slots=slots))
    assert parameters == (
        ("dst", "array", "float64[n, 3]", "float64", 8, 2, ("n", 3), (), 0, False, True, False, (), 0, ()),
    )  # fmt: skip
    assert made == (
        ("pointer", 0, 0, 0, "float64"),
        ("shape", 0, 0, 0, "int32"),
        ("stride", 0, 0, 0, "int64"),
        ("stride", 0, 1, 0, "int64"),
    )


def test_a_pointer_to_a_field_has_its_offset():
    parameters, slots = rows(kernel(POINTS, slots=[Slot("pointer", "p", field="id"), Slot("stride", "p", 0)]))
    assert parameters[0][3:6] == ("", 16, 1)
    assert parameters[0][12] == POINTS.fields
    assert slots[0] == ("pointer", 0, 0, 8, "")


def test_strides_that_the_code_cannot_know_mean_contiguous():
    assert not contiguous(slots=STRIDES)
    assert contiguous(slots=STRIDES[:1])
    assert not contiguous(slots=STRIDES[:1], strides=(None, 1))
    assert not contiguous(slots=STRIDES[:1], shape=(None, 1), trailing=1)
    assert contiguous(slots=STRIDES, order="C")
    assert contiguous(slots=STRIDES, kind="pointer")
    assert contiguous(ndim=None)
    assert not contiguous(ndim=0)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (
            Parameter("x", "scalar", dtype="longdouble"),
            r"parameter 'x' has the unknown dtype 'longdouble'; known are bool",
        ),
        (Parameter("x", "scalar"), "parameter 'x' has the unknown dtype None"),
        (Parameter("x", "array", dtype="float", ndim=1), "parameter 'x' has the unknown dtype 'float'"),
        (Parameter("x", "array", ndim=1), "parameter 'x' has the unknown dtype None"),
        (Parameter("x", "template"), "parameter 'x' is of the kind 'template'"),
        (Parameter("x", "array", dtype="int8", ndim=1, order="F"), "parameter 'x' has the unknown order 'F'"),
        (Parameter("x", "array", dtype="int8", ndim=1, shape=(1, 2)), "parameter 'x' has 2 items in shape, but 1 dim"),
        (Parameter("x", "array", dtype="int8", ndim=1, strides=(1, 2)), "parameter 'x' has 2 items in strides"),
        (Parameter("x", "array", dtype="int8", ndim=1, trailing=2), "parameter 'x' has 2 trailing axes"),
        (Parameter("x", "array", dtype="int8", ndim=1, trailing=1), "the trailing axis 0 must have a fixed extent"),
        (Parameter("x", "array", ndim=1, fields=(("f", "int3", 0),), itemsize=4), "field 'f' of parameter 'x' has the"),
        (Parameter("x", "array", ndim=1, fields=(("f", "int32", 2),), itemsize=4), "'f' of parameter 'x' lies outside"),
    ],
)
def test_a_parameter_that_contradicts_itself_is_named(parameter, words):
    with pytest.raises(ValueError, match=words) as caught:
        rows(kernel(parameter))
    assert str(caught.value).startswith("kernel step: ")


@pytest.mark.parametrize(
    ("slot", "words"),
    [
        (Slot("pointer", "q"), "unknown parameter 'q'"),
        (Slot("shape", "dst", 2), "shape slot of 'dst': axis 2 is out of range for 2 dimensions"),
        (Slot("stride", "dst", -1), "stride slot of 'dst': axis -1 is out of range"),
        (Slot("shape", "any", 0), "shape slot of 'any': axis 0 is out of range for None dimensions"),
        (Slot("shape", "dst", 0, "float64"), "shape slot of 'dst' has the unknown dtype 'float64'"),
        (Slot("size", "dst"), "size slot of 'dst': unknown kind 'size'"),
        (Slot("scalar", "dst"), "scalar slot of 'dst': the parameter is of the kind 'array'"),
        (Slot("pointer", "k"), "pointer slot of 'k': the parameter is of the kind 'scalar'"),
        (Slot("pointer", "dst", field="y"), "pointer slot of 'dst': unknown field 'y'"),
    ],
)
def test_a_slot_that_contradicts_its_parameter_is_named(slot, words):
    parameters = (DST, Parameter("k", "scalar", dtype="int8"), Parameter("any", "pointer", dtype="int8"))
    with pytest.raises(ValueError, match=words):
        rows(kernel(*parameters, slots=[slot]))


def test_two_parameters_of_one_name_are_refused():
    with pytest.raises(ValueError, match="same name"):
        rows(kernel(DST, DST))
