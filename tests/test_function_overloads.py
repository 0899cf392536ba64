"""Several compiled kernels of one name: which one a call means, what it says where it means none, what it leaves."""

import array as arrays
import contextlib
import gc
import itertools
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckernels import C_TYPES, array, compiled, make, scalar
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import Cell, Function, Handle, Library, Overloads
from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel, Parameter
from test_function_dlpack import Tensor

NUMBERED = "\n".join(f"ENTRY rk_number_{i}(rk_call *call) {{ call->result->i = {i}; return 0; }}" for i in range(64))
"""Kernels that tell which of them was called."""


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


def overloads(*lists, **options):
    """Return the overloads ``axpy`` with these lists of parameters; each returns its place in the list."""
    library = Library(compiled(NUMBERED), name="axpy")
    functions = tuple(
        Function(library, f"rk_number_{i}", "axpy", rows(Kernel("axpy", tuple(parameters), "cpp"))[0], (),
                 returns="int64", **options)
        for i, parameters in enumerate(lists)
    )  # fmt: skip
    signatures = tuple(f"axpy({', '.join(map(str, parameters))})" for parameters in lists)
    return Overloads(functions, "axpy", signatures=signatures)


def of_scalars(*dtypes):
    return overloads(*([scalar("x", dtype)] for dtype in dtypes))


def of_arrays(*types):
    """Overloads of one array each, by (dtype, rank)."""
    return overloads(*([array("x", dtype, ndim)] for dtype, ndim in types))


def axpy_parameters(dtype, ndim=1):
    return array("y", dtype, ndim, written=True), array("x", dtype, ndim), scalar("a", dtype)


@pytest.fixture(scope="module")
def axpy():
    """Overload one kernel text for float32 and float64."""
    text = "for (long long i = 0; i < y_n0; ++i) y[i * y_s0] += a * x[i * x_s0];"
    types = ("float32", "float64")
    functions = tuple(make(text, *axpy_parameters(dtype), name="axpy") for dtype in types)
    signatures = tuple(f"axpy({', '.join(map(str, axpy_parameters(dtype)))})" for dtype in types)
    return Overloads(functions, "axpy", signatures=signatures)


def refusal(error, function, *args, **kwargs):
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    return caught.value


def lists_all(error, function):
    """Tell whether a message ends with all signatures, one a line."""
    head, *lines = str(error).split("\n")
    return head.endswith("; there are:") and len(lines) == len(function.functions) and all(
        line.startswith("  axpy(") for line in lines
    )  # fmt: skip


# ---- arrays ----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_of_the_arrays_type_computes(axpy, dtype):
    x = np.arange(6, dtype=dtype)[::2]
    y = np.ones(3, dtype)
    axpy(y, x, 2.5)
    axpy(a=2.5, y=y, x=x)
    axpy(y, a=-1, x=x)
    assert y.tolist() == [1, 9, 17]


def test_every_dtype_finds_its_own_kernel():
    choose = of_arrays(*((dtype, 1) for dtype in C_TYPES))
    assert [choose(np.zeros(2, dtype)) for dtype in C_TYPES] == list(range(len(C_TYPES)))
    assert choose(np.zeros(2, np.longlong)) == choose(np.zeros(2, "int64"))
    for dtype in ("longdouble", "clongdouble", "O", "U3", "m8[s]", "V8"):
        assert lists_all(refusal(ArgumentTypeError, choose, np.zeros(2, dtype)), choose)


def test_every_rank_finds_its_own_kernel():
    choose = of_arrays(*(("float64", ndim) for ndim in range(5)))
    assert [choose(np.zeros((2,) * ndim)) for ndim in range(5)] == list(range(5))
    assert "(float64[:, :, :, :, :])" in str(refusal(ArgumentTypeError, choose, np.zeros((2,) * 5)))


@pytest.mark.parametrize("order", list(itertools.permutations([("float64", None), ("float64", 2), ("float32", None)])))
def test_a_kernel_of_any_rank_loses_against_the_exact_one(order):
    choose = of_arrays(*order)
    assert order[choose(np.zeros((2, 2)))] == ("float64", 2)
    assert order[choose(np.zeros(2))] == ("float64", None)
    assert order[choose(np.zeros((2, 2), "f4"))] == ("float32", None)


def test_ranks_outweigh_numbers():
    choose = overloads([array("x", ndim=None), scalar("k", "int64")], [array("x"), scalar("k", "complex64")])
    assert choose(np.zeros(3), np.int64(1)) == 1
    assert choose(np.zeros((3, 3)), 1) == 0


def test_axes_that_may_be_left_out_are_nearer_than_any_rank():
    optional = [array("x", ndim=2, shape=(None, 1), trailing=1)]
    choose = overloads([array("x", ndim=None)], optional, [array("x", ndim=3)])
    assert [choose(np.zeros((2, 1))), choose(np.zeros(2)), choose(np.zeros(())), choose(np.zeros((1, 1, 1)))] == [
        1, 1, 0, 2,
    ]  # fmt: skip


def test_a_written_scalar_takes_one_element_where_nothing_is_nearer():
    choose = overloads([array("x", ndim=0, written=True)], [array("x", "float32", ndim=0, written=True)])
    assert choose(np.zeros((1, 1))) == choose(np.zeros(())) == 0
    assert choose(np.zeros(1, "f4")) == 1
    assert "float64[:]" in str(refusal(ArgumentTypeError, choose, np.zeros(2)))


def test_a_scalar_array_may_be_an_array_or_a_number():
    choose = overloads([array("x", "float64", 0)], [scalar("x", "int64")], [scalar("x", "float32")])
    assert choose(np.array(1.0)) == 0
    assert choose(np.float64(1)) == 2
    assert choose(np.array(1)) == choose(1) == 1
    assert choose(np.array(1, "f4")) == 2


RECORD = np.dtype([("a", "f8"), ("b", "i4")])


def record(name, **fields):
    places = tuple((field, dtype, RECORD.fields.get(field, (0, 0))[1]) for field, dtype in fields.items())
    return Parameter(name, "array", ndim=1, fields=places, itemsize=RECORD.itemsize)


def test_records_are_known_by_their_fields():
    choose = overloads([array("x")], [record("x", b="float32")], [record("x", c="int32")], [record("x", b="int32")])
    x = np.zeros(3, RECORD)
    assert choose(x) == choose(memoryview(x)) == 3
    assert choose(np.zeros(3, [("c", "i4"), ("d", "f8")])) == 2
    assert choose(np.zeros(3)) == choose(memoryview(np.zeros(3))) == 0
    wrong = np.zeros(3, [("a", "f4")])
    for exporter in (wrong, memoryview(wrong)):
        refused = refusal(ArgumentTypeError, choose, exporter)
        assert refused.got == f"({wrong.dtype}[:])"
        assert lists_all(refused, choose)


@pytest.mark.parametrize("wrap", [memoryview, Tensor, lambda x: arrays.array("f" if x.itemsize == 4 else "d", x)])
def test_whatever_a_function_takes_for_an_array_chooses(axpy, wrap):
    for dtype in ("float32", "float64"):
        y = np.ones(3, dtype)
        axpy(y, wrap(np.arange(3, dtype=dtype)), 2)
        assert y.tolist() == [1, 3, 5]


def test_a_tensor_is_given_back_after_the_choice_and_after_the_call():
    choose = of_arrays(("float32", 1), ("float64", 1), ("float64", 2))
    good, bad = Tensor(np.zeros((2, 2))), Tensor(np.zeros(3, "i4"))
    assert choose(good) == 2
    assert good.freed(times=2)
    assert "(int32[:])" in str(refusal(ArgumentTypeError, choose, bad))
    assert bad.freed(times=1)


def test_a_buffer_is_free_again_after_a_call():
    choose = of_arrays(("uint8", 1), ("float64", 1))
    x = bytearray(8)
    assert choose(x) == 0
    x.append(1)
    assert choose(b"abc") == 0
    assert "(uint8[:])" in str(refusal(ArgumentTypeError, of_arrays(("int8", 1), ("float64", 1)), x))
    x.append(1)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.zeros(4, ">f8"), ArgumentTypeError, "the bytes of the array are in foreign order"),
        (np.zeros(8)[::2], ArgumentValueError, "the array is not C-contiguous"),
        (np.broadcast_to(np.zeros(1), 1), ArgumentValueError, "the array is read-only"),
        (memoryview(bytes(16)).cast("d"), ArgumentValueError, "the array is read-only"),
        (np.zeros(33, "u1")[1:].view("f8"), ArgumentValueError, "the array is not aligned"),
        (Tensor(np.zeros(4), flags=2), ArgumentValueError, "hands out a copy only"),
        (np.zeros(5), ArgumentValueError, "axis 0 must have extent 4"),
    ],
)
def test_the_nearest_kernel_refuses_in_its_own_words(x, error, words):
    lists = [[array("x", dtype, written=True, shape=(4,))] for dtype in ("float32", "float64")]
    choose = overloads(*lists)
    if words != "axis 0 must have extent 4":
        choose = overloads(*([array("x", p.dtype, written=True)] for (p,) in lists))
    refused = refusal(error, choose, x)
    assert str(refused).startswith("axpy() argument 'x': ")
    assert words in str(refused)
    assert refused.argument == "x"
    assert (choose.functions[0].calls, choose.functions[1].calls, choose.functions[1].failures) == (0, 1, 1)


def test_what_cannot_be_opened_is_told_by_a_kernel():
    choose = of_arrays(("float32", 1), ("float64", 1))
    assert "on a CUDA device" in str(refusal(ArgumentTypeError, choose, Tensor(np.zeros(3), device=(2, 0))))
    released = memoryview(b"")
    released.release()
    assert "no access to its buffer" in str(refusal(ArgumentTypeError, choose, released))


def test_a_request_to_stop_is_not_held_back():
    class Stop(Tensor):
        def __dlpack__(self, **keywords):
            raise KeyboardInterrupt

    class StopNumber:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        of_arrays(("float32", 1), ("float64", 1))(Stop(np.zeros(3)))
    with pytest.raises(KeyboardInterrupt):
        of_scalars("int32", "int64")(StopNumber())


# ---- numbers ----


@pytest.mark.parametrize("dtype", C_TYPES)
def test_a_numpy_number_finds_its_own_type(dtype):
    for types in (list(C_TYPES), list(C_TYPES)[::-1]):
        choose = of_scalars(*types)
        assert types[choose(np.dtype(dtype).type(1))] == types[choose(np.array(1, dtype))] == dtype
        assert types[choose(np.array(1, np.dtype(dtype).newbyteorder()))] == dtype


@pytest.mark.parametrize(
    ("value", "types", "wanted"),
    [
        (1, C_TYPES, "int64"),
        (2**63, C_TYPES, "uint64"),
        (-1, ("uint64", "int8", "int16"), "int16"),
        (5, ("uint64", "int64"), "int64"),
        (5, ("int32", "uint64"), "uint64"),
        (200, ("int8", "uint8", "float32"), "uint8"),
        (300, ("int8", "uint8", "float32"), "float32"),
        (2**64, C_TYPES, "float64"),
        (70000, ("float16", "int16", "complex64"), "complex64"),
        (5, ("bool", "float16", "float32"), "float32"),
        (1, ("bool", "complex64"), "complex64"),
        (True, C_TYPES, "bool"),
        (True, ("float64", "int8", "uint16"), "uint16"),
        (True, ("complex64", "float16"), "float16"),
        (1.0, C_TYPES, "float64"),
        (1.0, ("float16", "int64", "float32"), "float32"),
        (1.0, ("complex64", "int64", "complex128"), "complex128"),
        (1e30, ("float16", "complex64"), "complex64"),
        (1j, C_TYPES, "complex128"),
        (1j, ("float64", "complex64"), "complex64"),
        (np.uint8(1), ("int64", "uint64", "int8"), "uint64"),
        (np.int8(1), ("uint64", "int64", "bool"), "int64"),
        (np.float32(1), ("float16", "float64"), "float64"),
        (np.float16(1), ("float64", "float32", "int8"), "float64"),
        (np.float64(1), ("float16", "float32"), "float32"),
        (np.longdouble(1), C_TYPES, "float64"),
        (np.complex64(1), ("float64", "complex128"), "complex128"),
        (np.True_, ("int8", "float64"), "int8"),
        (type("Mine", (int,), {})(3), C_TYPES, "int64"),
        (type("Mine", (float,), {})(3), C_TYPES, "float64"),
        (type("Mine", (complex,), {})(3), C_TYPES, "complex128"),
        (type("Five", (), {"__index__": lambda self: 5})(), ("float64", "int8", "int16"), "int16"),
        (type("Wide", (), {"__index__": lambda self: 500})(), ("int16", "uint8"), "int16"),
    ],
)
def test_numbers_find_the_nearest_type_in_any_order(value, types, wanted):
    types = tuple(types)
    for order in (types, types[::-1]):
        assert order[of_scalars(*order)(value)] == wanted


EVERY_NUMBER = st.one_of(
    st.integers(-(2**66), 2**66), st.integers(-300, 300), st.booleans(), st.floats(width=64), st.complex_numbers(),
    st.sampled_from([None, "1", 10**39, 10**400, np.longdouble(1), np.timedelta64(1, "s"), np.str_("1"), np.array([1])]),
    st.builds(lambda kind, value, wrap: wrap(np.dtype(kind).type(value)), st.sampled_from(list(C_TYPES)),
              st.sampled_from([0, 1, 100]), st.sampled_from([lambda x: x, np.array])),
)  # fmt: skip


@given(value=EVERY_NUMBER, types=st.lists(st.sampled_from(list(C_TYPES)), min_size=1, max_size=6, unique=True))
def test_overloads_take_a_number_exactly_where_one_of_them_would(value, types):
    choose = of_scalars(*types)

    def takes(function):
        try:
            function(value)
        except (ArgumentTypeError, ArgumentValueError):
            return False
        return True

    assert takes(choose) == any(map(takes, choose.functions))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.5, "float"), (None, "None"), ("1", "str"), (1j, "complex"), (np.float32(1), "float32"), (b"1", "bytes"),
     (np.complex64(1), "complex64"), ([1], "list"), (np.array(1.5), "float64[]"), (np.array([1]), "int64[:]"),
     (np.datetime64(1, "s"), "datetime64[s]"), (np.clongdouble(1), str(np.dtype("G"))), (object(), "object")],
)  # fmt: skip
def test_what_no_integer_takes_lists_all(value, shown):
    choose = of_scalars("int32", "uint8", "bool")
    refused = refusal(ArgumentTypeError, choose, value)
    assert str(refused) == (
        f"axpy: no overload takes ({shown}); there are:\n  axpy(x: int32)\n  axpy(x: uint8)\n  axpy(x: bool)"
    )
    assert (refused.argument, refused.got) == (None, f"({shown})")
    assert refused.expected == "axpy(x: int32)\n  axpy(x: uint8)\n  axpy(x: bool)"


def test_a_number_that_fits_nowhere_is_refused_by_the_widest():
    choose = of_scalars("int8", "int16", "uint8")
    assert "70000 does not fit int16" in str(refusal(ArgumentValueError, choose, 70000))
    assert "does not fit float32" in str(refusal(ArgumentValueError, of_scalars("float16", "float32"), 1e300))
    assert "more than 256 bits" in str(refusal(ArgumentValueError, of_scalars(*C_TYPES), 10**5000))


def test_an_error_in_a_number_is_the_users():
    class Broken:
        def __index__(self):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        of_scalars("int8", "int64")(Broken())
    assert overloads([scalar("x", "int8")], [array("x")])(np.zeros(3)) == 1


def test_the_sum_of_all_arguments_counts():
    pair = ("int64", "float64")
    choose = overloads(*([scalar("a", a), scalar("b", b)] for a in pair for b in pair))
    assert [choose(a, b) for a in (1, 1.0) for b in (1, 1.0)] == [0, 1, 2, 3]
    halves = overloads([scalar("a", "int64"), scalar("b", "float64")], [scalar("a", "float64"), scalar("b", "int64")])
    assert halves(1, 1) == 0
    assert halves(1.0, 1) == 1


def test_equals_go_to_the_first():
    choose = overloads([scalar("x")], [scalar("x")], [array("x", written=True)], [array("x")])
    assert choose(1.0) == 0
    assert choose(np.zeros(3)) == 2


# ---- counts and names ----


def test_counts_choose():
    choose = overloads([], [scalar("a")], [scalar("a"), scalar("b")], [array("a"), scalar("b"), scalar("c")])
    assert [choose(), choose(1), choose(1, 2), choose(np.zeros(1), 2, 3)] == [0, 1, 2, 3]
    assert [choose(a=1), choose(b=1, a=2), choose(1, b=2), choose(c=1, b=2, a=np.zeros(1))] == [1, 2, 2, 3]


def test_names_choose():
    choose = overloads([scalar("a"), scalar("b")], [scalar("b"), scalar("c")], [scalar("c"), scalar("a")])
    assert [choose(a=1, b=1), choose(c=1, b=1), choose(a=1, c=1), choose(1, 1), choose(1, c=1)] == [0, 1, 2, 0, 1]
    refused = refusal(TypeError, choose, 1.0, x=np.zeros((2, 2), "f4"))
    assert str(refused).startswith("axpy: no overload takes (float, x=float32[:, :]); there are:\n  axpy(a")


@pytest.mark.parametrize("names", list(itertools.permutations(("y", "x", "a"))))
@pytest.mark.parametrize("positional", range(4))
def test_keywords_in_any_order(names, positional):
    choose = overloads(axpy_parameters("float32"), axpy_parameters("float64"))
    x = np.zeros(3)
    values = {"y": x, "x": x, "a": 1.0}
    args = [values[name] for name in ("y", "x", "a")[:positional]]
    kwargs = {name: values[name] for name in names if name not in ("y", "x", "a")[:positional]}
    assert choose(*args, **kwargs) == 1


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"a": 1}), ((1,), {"c": 2}), ((), {"b": 1}), ((1, 2, 3), {"b": 1})],
)  # fmt: skip
def test_one_count_and_one_set_of_names_are_told_in_pythons_words(args, kwargs):
    def axpy(a, b):
        """Stand for the kernel."""

    choose = overloads([scalar("a"), scalar("b", "int8")], [scalar("a", "int32"), scalar("b")])
    words = str(refusal(TypeError, axpy, *args, **kwargs)).replace(f"{axpy.__qualname__}()", "axpy()")
    assert str(refusal(TypeError, choose, *args, **kwargs)) == words


def test_several_counts_list_all():
    choose = overloads([scalar("a")], [scalar("a"), scalar("b")])
    for args, kwargs, shown in [((), {}, "()"), ((1, 2.0, np.zeros(3)), {}, "(int, float, float64[:])"),
                                ((1,), {"c": 2}, "(int, c=int)"), ((1,), {"a": 2}, "(int, a=int)")]:  # fmt: skip
        refused = refusal(TypeError, choose, *args, **kwargs)
        assert str(refused).startswith(f"axpy: no overload takes {shown}; there are:\n")
        assert lists_all(refused, choose)


def test_the_only_one_that_can_be_bound_speaks_for_itself():
    choose = overloads(axpy_parameters("float32"), [array("y")])
    assert "argument 'y': expected float32[:], got a float64 array" in str(
        refusal(ArgumentTypeError, choose, np.zeros(3), np.zeros(3), 1)
    )
    assert "argument 'y': expected const float64[:], got None" in str(refusal(ArgumentTypeError, choose, None))


def test_kernels_that_take_keywords_only():
    choose = overloads([scalar("a", "int64")], [scalar("a", "float64")], [scalar("b")], policy="pystencils")
    assert [choose(a=1), choose(a=1.0), choose(b=1, other=2)] == [0, 1, 2]
    assert "takes keyword arguments only" in str(refusal(TypeError, choose, 1))
    assert lists_all(refusal(TypeError, choose, c=1), choose)
    with pytest.raises(KeyError, match="misses the keyword argument 'a'"):
        overloads([scalar("a", "int64")], [scalar("a")], policy="pystencils")()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_any_number_of_arguments(count):
    names = [f"a{i}" for i in range(count)]
    choose = overloads([scalar(name, "int64") for name in names], [scalar(name) for name in names])
    values = dict.fromkeys(names, 1)
    assert choose(*values.values()) == choose(**values) == 0
    values[names[-1]] = 0.5
    assert choose(*values.values()) == choose(**dict(reversed(values.items()))) == 1


def test_fifty_kernels():
    types = [(dtype, ndim) for ndim in (1, 2, 3, 4) for dtype in C_TYPES][:50]
    choose = of_arrays(*types)
    assert [choose(np.zeros((1,) * ndim, dtype)) for dtype, ndim in types] == list(range(50))
    assert lists_all(refusal(ArgumentTypeError, choose, None), choose)


# ---- making one ----


def test_overloads_tell_what_they_are(axpy):
    assert (axpy.name, axpy.__name__, len(axpy.functions)) == ("axpy", "axpy", 2)
    assert repr(axpy) == "<overloads of compiled kernel 'axpy': 2>"
    with pytest.raises(TypeError):
        type("Sub", (Overloads,), {})
    with pytest.raises(AttributeError):
        axpy.functions = ()


def test_bad_lists_are_refused(axpy):
    (f, g), text = axpy.functions, ("axpy()", "axpy()")
    for functions, signatures in [((), ()), ((f,), ()), ((f,), text), ((), text)]:
        with pytest.raises(ValueError, match="one or more functions and a signature for each"):
            Overloads(functions, "axpy", signatures=signatures)
    for functions, name, signatures in [
        ((f, None), "axpy", text), ((f, axpy), "axpy", text), ((f, g), "axpy", ("axpy()", 1)), ([f, g], "axpy", text),
        ((f, g), "axpy", list(text)), ((f, g), None, text),
    ]:  # fmt: skip
        with pytest.raises(TypeError):
            Overloads(functions, name, signatures=signatures)
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'signatures'"):
        Overloads((f,), "axpy")


def test_one_kernel_alone_is_just_called():
    choose = overloads([array("x")])
    assert choose(np.zeros(3)) == 0
    assert "argument 'x': expected const float64[:], got a float32 array" in str(
        refusal(ArgumentTypeError, choose, np.zeros(3, "f4"))
    )
    assert "missing 1 required positional argument: 'x'" in str(refusal(TypeError, choose))


def test_calls_and_failures_are_counted():
    choose = of_scalars("int64", "float64")
    for value in (1, 1.0, None, 1j, 2.0, 10**400):
        with contextlib.suppress(ArgumentTypeError, ArgumentValueError):
            choose(value)
    assert (choose.calls, choose.failures) == (6, 3)
    assert [(f.calls, f.failures) for f in choose.functions] == [(2, 1), (2, 0)]


def test_without_configured_classes_it_is_a_type_error():
    choose = of_scalars("int64", "int32")
    _native.configure()
    assert type(refusal(TypeError, choose, None)) is TypeError


def test_a_handle_calls_overloads():
    cell = Cell()
    handle = Handle(cell, 0, "axpy")
    _native.swap([(cell, (of_scalars("int64", "float64"),), None)])
    assert [handle(1), handle(x=1.0)] == [0, 1]
    assert lists_all(refusal(ArgumentTypeError, handle, None), cell.table[0])


# ---- nothing is kept ----


class Held(np.ndarray):
    pass


def calls(choose, x, k):
    """Make good and bad calls of every kind."""
    tensor = Tensor(x)
    for args, kwargs in [
        ((x, k), {}), ((), {"x": x, "k": k}), ((memoryview(x), k), {}), ((tensor, k), {}), ((x,), {}), ((k, k), {}),
        ((x, None), {}), ((x.astype("i8"), k), {}), ((memoryview(x.astype("i8")), k), {"z": 1}), ((x, 10**400), {}),
        ((memoryview(x.astype("i8")), k), {}), ((x.astype(">f8"), k), {}), ((x.astype("O"), k), {}),
        ((x.view(RECORD), k), {}), ((memoryview(x.view(RECORD)), k), {}), ((x, np.array(1.5)), {}), ((x,), {"k": 1j}),
        ((x, np.float32(1)), {}), ((Tensor(x, device=(2, 0)), k), {}),
    ]:  # fmt: skip
        with contextlib.suppress(TypeError, ValueError):
            choose(*args, **kwargs)


@pytest.fixture
def mixed():
    return overloads(*([array("x", dtype), scalar("k", dtype)] for dtype in ("float32", "float64")),
                     [record("x", a="int64"), scalar("k")], [array("x")])  # fmt: skip


def test_reference_counts_stay_flat(mixed):
    x, k = np.zeros(6), 1.5
    names = [mixed, *mixed.functions, x, k, x.dtype, RECORD, np.dtype("O"), None, "x", "k", mixed.functions[0].library]
    calls(mixed, x, k)
    gc.collect()
    before = [sys.getrefcount(name) for name in names]
    for _ in range(500):
        calls(mixed, x, k)
    gc.collect()
    after = [sys.getrefcount(name) for name in names]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True)), (before, after)


def test_no_argument_outlives_its_call(mixed):
    seen = []
    for _ in range(20):
        x = np.zeros(6).view(Held)
        seen.append(weakref.ref(x))
        calls(mixed, x, 1.5)
        del x
    gc.collect()
    assert [ref() for ref in seen] == [None] * 20


def test_overloads_go_with_their_last_reference(mixed):
    library = weakref.ref(mixed.functions[0])
    gone = weakref.ref(mixed)
    assert gc.is_tracked(mixed)
    assert any(referent is mixed.functions for referent in gc.get_referents(mixed))
    alone = overloads([scalar("x")], [array("x")])
    gone, function = weakref.ref(alone), weakref.ref(alone.functions[0])
    del alone
    assert (gone(), function()) == (None, None)
    assert library() is not None


def test_an_array_that_changes_while_others_are_looked_at_is_judged_anew():
    x = np.zeros(4)

    class Changing:
        def __index__(self):
            x.dtype = np.int64
            return 1

    choose = overloads(*([array("x", dtype), scalar("n", "int32")] for dtype in ("float32", "float64")))
    refused = refusal(ArgumentTypeError, choose, x, Changing())
    assert "expected const float64[:], got an int64 array" in str(refused)


def test_many_threads_each_get_their_own_kernel(mixed):
    failures = []
    barrier = threading.Barrier(6)

    def work(number):
        x = np.zeros(50_000 if number % 2 else 5, ("float32", "float64")[number % 2])
        barrier.wait()
        for _ in range(1000):
            if mixed(x, k=1.5) != number % 2 or mixed(memoryview(x), 1) != number % 2:
                failures.append(number)
            with contextlib.suppress(ArgumentTypeError):
                failures.append(mixed(x, None))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert mixed.calls == 6 * 3000
    assert mixed.failures == 6 * 1000
