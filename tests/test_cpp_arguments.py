"""Arguments of C++ kernels against NumPy: any view of any memory gives the right result, or the right refusal."""

from __future__ import annotations

import cmath
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import rekernel
from jitkernels import compilers, needs_compiler
from rekernel.jit import CpuJit

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")
pytestmark = needs_compiler

ELEMENTS = {"f8": "double", "f4": "float", "i2": "int16_t", "u1": "unsigned char", "c16": "double _Complex"}
SCALARS = {
    "?": "bool", "i1": "signed char", "u1": "uint8_t", "i2": "short", "u2": "uint16_t", "i4": "int", "u4": "unsigned", "i8": "long",
    "u8": "size_t", "f2": "_Float16", "f4": "float", "f8": "double", "c8": "float _Complex", "c16": "double _Complex",
}  # fmt: skip
RANKS = range(5)
MANY = 500
"""An example takes less than a millisecond."""


def copier(code, rank):
    """The text of a kernel that copies an array with its indices, and returns the number of its elements."""
    element = ELEMENTS[code]
    indices = [f"i{axis}" for axis in range(rank)]
    loops = "".join(f"for (int64_t {i} = 0; {i} < x.shape({axis}); ++{i}) " for axis, i in enumerate(indices))
    at = ", ".join(indices)
    return (
        f"long copy_{code}_{rank}(rekernel::Array<{element}, {rank}> y, rekernel::Array<const {element}, {rank}> x) {{\n"
        f"  {loops}y({at}) = x({at});\n  return x.size();\n}}\n"
    )


TEXT = "".join(copier(code, rank) for code in ELEMENTS for rank in RANKS)
TEXT += "".join(
    f"void flat_{code}({element}* y, const {element}* x, int64_t n) {{ for (int64_t i = 0; i < n; ++i) y[i] = x[i]; }}\n"
    for code, element in ELEMENTS.items()
)
TEXT += "".join(
    f"{type_} same_{code.replace('?', 'b')}({type_} x) {{ return x; }}\n" for code, type_ in SCALARS.items()
)


@pytest.fixture(scope="module")
def kernels():
    with rekernel.KernelLoader(jit=CpuJit(compilers()[0])) as loader:
        yield loader.load(TEXT, "arguments", language="cpp", optlevel="0")


# ---- arrays ----


@dataclass(frozen=True)
class View:
    """How an array lies in memory."""

    code: str
    memory: str
    """``plain``, ``aligned record``, ``packed record``, ``unaligned`` or ``foreign`` byte order."""
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    """For each axis the step in its axis of the memory; 0 repeats one element."""
    axes: tuple[int, ...]
    """The order of the axes."""
    writeable: bool

    @property
    def extents(self):
        return tuple(
            1 if step == 0 else 1 + count * abs(step) for count, step in zip(self.shape, self.steps, strict=True)
        )

    def owner(self, fill):
        """Return memory with room for the view and more around it."""
        dtype = np.dtype(self.code)
        room = (int(np.prod(self.extents)) + 2) * 3 * dtype.itemsize + 64
        return np.resize(np.arange(fill, fill + 251, dtype="u1"), room)

    def of(self, owner):
        """Return the view in a memory."""
        dtype = np.dtype(self.code)
        count = int(np.prod(self.extents))
        start = (-owner.ctypes.data) % 16 + 16
        if self.memory == "unaligned":
            start += 1
        if "record" in self.memory:
            packed = self.memory == "packed record"
            record = np.dtype([("before", "u1"), ("value", dtype)], align=not packed)
            flat = owner[start : start + count * record.itemsize].view(record)["value"]
        else:
            flat = owner[start : start + count * dtype.itemsize].view(dtype)
        if self.memory == "foreign":
            flat = flat.view(dtype.newbyteorder())
        whole = flat.reshape(self.extents)
        for axis, (size, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            where = [slice(None)] * len(self.shape)
            if step > 0:
                where[axis] = slice(0, size * step, step)
            elif step < 0:
                where[axis] = slice(size * -step, 0, step)
            whole = whole[tuple(where)]
        shape = list(self.shape)
        strides = [0 if step == 0 else stride for step, stride in zip(self.steps, whole.strides, strict=True)]
        view = np.lib.stride_tricks.as_strided(whole, shape, strides).transpose(self.axes)
        view.flags.writeable = self.writeable
        return view

    def refused(self, view, *, written, contiguous):
        """Return the class of the refusal, or None."""
        if self.memory == "foreign" and np.dtype(self.code).itemsize > 1:
            return TypeError
        if written and not self.writeable:
            return ValueError
        if view.size == 0:
            return None
        if not view.flags.aligned or (contiguous and not view.flags.c_contiguous):
            return ValueError
        repeats = any(stride == 0 and size > 1 for stride, size in zip(view.strides, view.shape, strict=True))
        uneven = any(s % view.itemsize and size > 1 for s, size in zip(view.strides, view.shape, strict=True))
        return ValueError if uneven or (written and repeats) else None


MEMORIES = st.sampled_from(["plain"] * 4 + ["aligned record", "packed record", "unaligned", "foreign"])


@st.composite
def views(draw, code, rank, shape=None):
    """Return a view, of a shape if one is given."""
    axes = tuple(draw(st.permutations(range(rank))))
    if shape is None:
        inner = tuple(draw(st.integers(0, 4)) for _ in range(rank))
    else:
        inner = tuple(shape[axes.index(axis)] for axis in range(rank))
    steps = tuple(draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2, 0])) for _ in range(rank))
    return View(code, draw(MEMORIES), inner, steps, axes, draw(st.integers(0, 5)) > 0)


@st.composite
def pairs(draw, ranks=RANKS):
    """Return an output and an input of one element type and shape."""
    code, rank = draw(st.sampled_from(sorted(ELEMENTS))), draw(st.sampled_from(ranks))
    x = draw(views(code, rank))
    shape = tuple(x.shape[axis] for axis in x.axes)
    return draw(views(code, rank, shape)), x


def same_bytes(a, b):
    assert a.tobytes() == b.tobytes()


def check_call(call, pair, *, contiguous):
    """Call with views of two memories, and compare both memories with what NumPy makes of them."""
    out, source = pair
    memory_y, memory_x = out.owner(3), source.owner(101)
    y, x = out.of(memory_y), source.of(memory_x)
    before_y, before_x = memory_y.copy(), memory_x.copy()
    refusals = {
        "y": out.refused(y, written=True, contiguous=contiguous),
        "x": source.refused(x, written=False, contiguous=contiguous),
    }
    if any(refusals.values()):
        event("refused")
        with pytest.raises((TypeError, ValueError)) as caught:
            call(y, x)
        name = re.search(r"argument '(\w)'", str(caught.value))[1]
        assert refusals[name] is not None
        assert isinstance(caught.value, refusals[name])
        same_bytes(memory_y, before_y)
    else:
        event("called")
        call(y, x)
        wanted = before_y.copy()
        if y.size:
            copy = np.ndarray(y.shape, y.dtype, wanted, y.ctypes.data - memory_y.ctypes.data, y.strides)
            copy[...] = x
        same_bytes(memory_y, wanted)
    same_bytes(memory_x, before_x)


@settings(max_examples=MANY)
@given(pairs())
def test_arrays_of_any_strides_are_read_and_written_as_numpy_does(kernels, pair):
    out, _source = pair
    kernel = getattr(kernels, f"copy_{out.code}_{len(out.shape)}")

    def call(y, x):
        assert kernel(y, x) == x.size

    check_call(call, pair, contiguous=False)


@settings(max_examples=MANY)
@given(pairs())
def test_pointers_take_contiguous_arrays_of_any_rank(kernels, pair):
    kernel = getattr(kernels, f"flat_{pair[0].code}")
    check_call(lambda y, x: kernel(y, x, x.size), pair, contiguous=True)


@given(st.sampled_from(sorted(ELEMENTS)), st.sampled_from(RANKS), st.sampled_from(sorted(ELEMENTS)), st.integers(0, 6))
def test_another_dtype_or_rank_is_refused_by_name(kernels, code, rank, given_code, given_rank):
    kernel = getattr(kernels, f"copy_{code}_{rank}")
    right, x = np.zeros((2,) * rank, code), np.ones((2,) * given_rank, given_code)
    if (code, rank) == (given_code, given_rank):
        assert kernel(right, x) == x.size
        return
    for arguments in ({"y": right, "x": x}, {"y": x, "x": right}):
        wrong = "x" if arguments["x"] is x else "y"
        with pytest.raises(TypeError if code != given_code else ValueError, match=f"argument '{wrong}'"):
            kernel(**arguments)
    assert not right.any()


@pytest.mark.parametrize(
    "thing", [None, 1, 1.5, "text", [1.0, 2.0], (1.0,), {"a": 1}, object(), np.float64(1), memoryview(b"x")]
)
@pytest.mark.parametrize("kernel", ["copy_f8_1", "flat_f8"])
def test_what_is_no_array_is_refused_by_name(kernels, kernel, thing):
    extra = (2,) if kernel == "flat_f8" else ()
    with pytest.raises(TypeError, match="argument 'x'"):
        getattr(kernels, kernel)(np.zeros(2), thing, *extra)


def test_arrays_of_objects_texts_and_records_are_refused_by_name(kernels):
    for dtype in (object, "S8", "U2", "M8[s]", "m8[s]", [("a", "f8")], "V8", np.longdouble):
        with pytest.raises(TypeError, match="argument 'x'"):
            kernels.copy_f8_1(np.zeros(2), np.zeros(2, dtype))


@given(st.integers(0, 3), st.integers(1, 3))
def test_an_array_of_many_bytes_but_few_elements_in_memory_is_not_read_beyond_it(kernels, start, step):
    memory = np.arange(12.0)
    x = np.lib.stride_tricks.as_strided(memory[start:], (3, 3), (8 * step, 8))  # rows overlap: only read
    y = np.zeros((3, 3))
    assert kernels.copy_f8_2(y, x) == 9
    np.testing.assert_array_equal(y, x)


# ---- scalars ----

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-300, 300),
    st.sampled_from([2**bits + delta for bits in (7, 8, 15, 16, 31, 32, 63, 64) for delta in (-1, 0, 1)]),
    st.sampled_from([-(2**bits) + delta for bits in (7, 15, 31, 63) for delta in (-1, 0, 1)]),
    st.booleans(),
    st.floats(),
    st.sampled_from([65504.0, 65519.99, 65520.0, 3.4028235e38, 3.4028236e38, 1e39, 5e-324, -0.0]),
    st.complex_numbers(),
)
RANK_OF_KIND = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def wrapped(number, how):
    """Return a number as a Python one, a NumPy scalar, or an array of rank 0."""
    if how == "python":
        return number
    try:
        made = np.asarray(number)
    except OverflowError:
        return number
    return number if made.dtype == object else made if how == "array" else made[()]


def outcome(dtype, number):
    """Return what a kernel of this type makes of a number: the value, or the class of the refusal."""
    kind = "b" if isinstance(number, bool) else {int: "i", float: "f", complex: "c"}[type(number)]
    if RANK_OF_KIND[kind] > max(1, RANK_OF_KIND[dtype.kind]):
        return TypeError
    if dtype.kind in "bui":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return dtype.type(number) if low <= number <= high else ValueError
    with np.errstate(all="ignore"):
        value = dtype.type(number)
    parts = [(number.real, value.real), (number.imag, value.imag)]
    lost = any(cmath.isfinite(given) and not np.isfinite(kept) for given, kept in parts)
    return ValueError if lost else value


@settings(max_examples=MANY)
@given(st.sampled_from(sorted(SCALARS)), NUMBERS, st.sampled_from(["python", "scalar", "array"]))
def test_numbers_go_in_and_out_whole_or_are_refused_by_name(kernels, code, number, how):
    kernel = getattr(kernels, f"same_{code.replace('?', 'b')}")
    wanted = outcome(np.dtype(code), number)
    if isinstance(wanted, type):
        with pytest.raises(wanted, match="argument 'x'"):
            kernel(wrapped(number, how))
        return
    got = kernel(wrapped(number, how))
    assert type(got) is type(wanted.item())
    same_bytes(np.array(got, code), np.array(wanted, code)) if got == got else np.testing.assert_equal(
        got, wanted.item()
    )
