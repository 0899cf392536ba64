"""Arrays of every layout into compiled kernels: the right answer, or an error that says what to do."""

import array as arrays
import ctypes
import gc
import mmap
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ckernels import C_TYPES, array, make, scalar
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel.kernel import Parameter, Slot

as_strided = np.lib.stride_tricks.as_strided


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


SUM = "double sum = 0; for (long long i = 0; i < x_n0; ++i) for (long long j = 0; j < x_n1; ++j) "
WEIGHTED = SUM + "sum += (i + 2 * j + 1) * x[i * x_s0 + j * x_s1]; result->d = sum;"


def weighted(x):
    return float((np.arange(x.shape[0])[:, None] + 2 * np.arange(x.shape[1]) + 1).ravel() @ x.ravel().astype(float))


@pytest.fixture(scope="module")
def total():
    """Add up a 2-D float64 array, each element with the weight of its place."""
    return make(WEIGHTED, array("x", ndim=2), returns="float64")


@pytest.fixture(scope="module")
def fill():
    """Write its own number into each element of a 2-D float64 array."""
    return make("for (long long i = 0; i < x_n0; ++i) for (long long j = 0; j < x_n1; ++j) "
                "x[i * x_s0 + j * x_s1] = 10 * i + j;", array("x", ndim=2, written=True))  # fmt: skip


def refusal(error, function, *args, **kwargs):
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    text = str(caught.value)
    assert text.startswith(f"step() argument '{caught.value.argument}': ")
    assert caught.value.expected
    assert caught.value.got
    return text


# ---- layouts ----


@st.composite
def views(draw, dtype="f8"):
    """Draw a view of a larger array: sliced, reversed, transposed, broadcast, read-only."""
    base = np.arange(float(np.prod(shape := draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=7)))), dtype=dtype)
    x = base.reshape(shape, order=draw(st.sampled_from("CF")))
    x = x[draw(hnp.basic_indices(shape, min_dims=2, max_dims=2, allow_newaxis=False, allow_ellipsis=False))]
    if draw(st.booleans()):
        x = x.T
    if draw(st.booleans()):
        x = np.broadcast_to(x[:1], (draw(st.integers(0, 4)) if x.shape[0] else 0, x.shape[1]))
    return x


@given(views())
def test_any_view_gives_numpys_answer(total, x):
    assert total(x) == weighted(x)


@given(views())
def test_any_view_is_written_or_refused(fill, x):
    if not x.flags.writeable:
        refusal(ArgumentValueError, fill, x)
        return
    around = x.base.copy() if x.base is not None else None
    fill(x)
    assert np.array_equal(x, 10.0 * np.arange(x.shape[0])[:, None] + np.arange(x.shape[1]))
    if around is not None:
        inside = np.isin(np.arange(around.size), [(e.__array_interface__["data"][0] - x.base.ctypes.data) // 8
                                                  for e in (x[i : i + 1, j : j + 1] for i in range(x.shape[0])
                                                            for j in range(x.shape[1]))])  # fmt: skip
        assert np.array_equal(x.base.ravel(order="K")[~inside], around.ravel(order="K")[~inside])


@pytest.mark.parametrize("dtype", list(C_TYPES))
def test_every_type_of_element_is_copied(dtype):
    copy = make("for (long long i = 0; i < dst_n0; ++i) dst[i * dst_s0] = src[i * src_s0];",
                array("dst", dtype, written=True), array("src", dtype))  # fmt: skip
    src = np.arange(8).astype(dtype)
    for view in (src, src[::2], src[::-1], np.broadcast_to(src[3:4], 5)):
        dst = np.zeros(2 * len(view), dtype)
        copy(dst[::2], view)
        assert np.array_equal(dst[::2], view)
        assert not dst[1::2].any()
    for other in C_TYPES:
        if other != dtype:
            text = refusal(ArgumentTypeError, copy, np.zeros(3, dtype), np.zeros(3, other))
            assert text.startswith(f"step() argument 'src': expected const {dtype}[:], got a")
            assert f" {other} array" in text


def test_two_names_of_one_type_are_one_type():
    for dtype, codes in (("int64", "lq"), ("uint64", "LQ"), ("int32", "i")):
        function = make("", array("x", dtype))
        for code in codes:
            if np.dtype(code).itemsize == np.dtype(dtype).itemsize:
                function(np.zeros(3, code))


@pytest.mark.parametrize("dtype", ["O", "S8", "U2", "M8[s]", "m8[s]", "V8", "g", "G", [("a", "f8")], "f4"])
def test_other_dtypes_are_refused(total, dtype):
    text = refusal(ArgumentTypeError, total, np.zeros((2, 2), dtype))
    assert "expected const float64[:, :], got a" in text


def test_foreign_byte_order_is_refused(total, fill):
    x = np.zeros((2, 2), ">f8" if sys.byteorder == "little" else "<f8")
    for function in (total, fill):
        assert "foreign order; pass x.astype(x.dtype.newbyteorder('='))" in refusal(ArgumentTypeError, function, x)


def unaligned(shape, dtype="f8"):
    raw = np.zeros(int(np.prod(shape)) * 8 + 8, "u1")
    offset = 1 + (-raw.ctypes.data) % 8
    return raw[offset : offset + int(np.prod(shape)) * 8].view(dtype).reshape(shape)


def test_unaligned_arrays_are_refused(total, fill):
    x = unaligned((2, 2))
    assert "not aligned; pass an aligned array (x.copy())" in refusal(ArgumentValueError, total, x)
    assert "copy the result back" in refusal(ArgumentValueError, fill, x)
    assert total(x.copy()) == 0
    assert total(unaligned((0, 2))) == 0


def test_a_field_of_packed_records_is_refused(total):
    records = np.zeros((3, 3), [("a", "f8"), ("b", "i4")])
    text = refusal(ArgumentValueError, total, records["a"])
    assert "the stride of axis 0" not in text  # 36 bytes: the alignment is what NumPy finds first
    aligned = np.zeros((3, 3), np.dtype([("a", "f8"), ("b", "i4")], align=True))
    aligned["a"] = np.arange(9).reshape(3, 3)
    assert total(aligned["a"]) == weighted(aligned["a"])


@pytest.mark.parametrize("dtype", ["complex128", "float64", "int16"])
def test_strides_are_multiples_of_the_item_size(dtype):
    function = make("", array("x", dtype))
    size = np.dtype(dtype).itemsize
    step = size + np.dtype(dtype).alignment if dtype == "complex128" else size + 1
    x = as_strided(np.zeros(20, dtype), (3,), (step,))
    text = refusal(ArgumentValueError, function, x)
    if dtype == "complex128":
        assert "the stride of axis 0 is 24 bytes, which is not a multiple of the item size 16" in text
        assert "np.ascontiguousarray(x)" in text


def test_real_parts_are_arrays_like_others(total):
    z = np.arange(9).reshape(3, 3) * (1 + 2j)
    assert total(z.real) == weighted(z.real)
    assert total(z.imag.T) == weighted(z.imag.T)


def test_strides_of_axes_of_one_element_do_not_matter(total):
    x = np.arange(5.0)
    for strange in (3, -7, 2**40, 0):
        assert total(as_strided(x, (1, 5), (strange, 8))) == weighted(x[None])
        assert total(as_strided(x, (5, 1), (8, strange))) == weighted(x[:, None])
    fixed = make("result->d = x[0];", array("x", ndim=2, strides=(4, 1), order="C"), returns="float64")
    assert fixed(as_strided(x, (1, 5), (24, 8))) == 0


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_empty_arrays_are_fine(total, fill, shape):
    x = np.zeros(shape)
    assert total(x) == 0
    fill(x)
    fill(as_strided(x, shape, (0, 0)))
    order_c = make("result->i = x_n0 + 10 * x_n1;", array("x", ndim=2, order="C"), returns="int64")
    assert order_c(as_strided(x, shape, (3, 5))) == shape[0] + 10 * shape[1]


def test_subclasses_of_arrays_are_arrays(total, tmp_path):
    x = np.memmap(tmp_path / "x", "f8", "w+", shape=(2, 3))
    x[:] = 4
    assert total(x) == weighted(np.asarray(x))
    assert total(x[:, ::2]) == weighted(np.asarray(x[:, ::2]))


# ---- writing ----


def test_read_only_arrays_are_read_and_not_written(total, fill):
    x = np.ones((2, 2))
    x.flags.writeable = False
    assert total(x) == weighted(x)
    text = refusal(ArgumentValueError, fill, x)
    assert "read-only and the kernel writes to it; pass a writeable array (x.copy())" in text
    assert (x == 1).all()
    refusal(ArgumentValueError, fill, np.broadcast_to(np.ones(2), (2, 2)))


def test_elements_that_share_memory_are_not_written(total, fill):
    x = as_strided(np.ones(3), (4, 3), (0, 8))
    assert total(x) == weighted(x)
    assert "a stride is 0" in refusal(ArgumentValueError, fill, x)
    fill(as_strided(np.ones(3), (1, 3), (0, 8)))


def test_a_read_only_file_map_is_not_written(total, fill, tmp_path):
    path = tmp_path / "x"
    np.zeros((2, 2)).tofile(path)
    x = np.memmap(path, "f8", "r", shape=(2, 2))
    assert total(x) == 0
    refusal(ArgumentValueError, fill, x)


# ---- ranks and extents ----


def test_the_rank_is_told(total):
    for shape in ((), (4,), (1, 2, 2)):
        text = refusal(ArgumentValueError, total, np.zeros(shape))
        plural = "" if len(shape) == 1 else "s"
        assert text.endswith(f"expected const float64[:, :], got a float64 array of {len(shape)} dimension{plural}")


def test_fixed_extents():
    function = make("", array("x", ndim=2, shape=(None, 3)))
    function(np.zeros((7, 3)))
    text = refusal(ArgumentValueError, function, np.zeros((7, 4)))
    assert text.endswith("axis 1 must have extent 3, got 4 (a float64 array of shape (7, 4))")


def test_named_extents_are_equal_everywhere():
    function = make(
        "", array("a", ndim=2, shape=("n", "m")), array("b", ndim=2, shape=("m", "n")), array("c", shape=("n",))
    )
    function(np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(2))
    text = refusal(ArgumentValueError, function, np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(3))
    assert text.endswith(
        "axis 0 has extent 3, but 'a' has extent 2 there (both are n); got a float64 array of shape (3,)"
    )
    square = make("", array("a", ndim=2, shape=("n", "n")))
    square(np.zeros((2, 2)))
    refusal(ArgumentValueError, square, np.zeros((2, 3)))
    names = [array(f"x{i}", shape=(f"n{i}",)) for i in range(40)]
    make("", *names)(*(np.zeros(i) for i in range(40)))


def test_fixed_strides_count_in_elements():
    function = make("result->d = x[1] + x[4];", array("x", ndim=2, strides=(4, 1)), returns="float64")
    x = np.arange(8.0).reshape(2, 4)
    assert function(x) == 5
    assert function(x[:, :3]) == 5
    text = refusal(ArgumentValueError, function, np.zeros((2, 5)))
    assert "the stride of axis 0 must be 4 elements, got 5" in text
    refusal(ArgumentValueError, function, x.T)


def test_contiguous_arrays_only_where_the_code_needs_them():
    function = make("result->d = x[1];", array("x", ndim=2, order="C"), returns="float64")
    x = np.arange(6.0).reshape(2, 3)
    assert function(x) == 1
    assert "pass np.ascontiguousarray(x)" in refusal(ArgumentValueError, function, x.T)
    refusal(ArgumentValueError, function, x[:, :2])
    refusal(ArgumentValueError, function, x[::-1])
    written = make("", array("x", order="C", written=True))
    assert "copy the result back" in refusal(ArgumentValueError, written, np.zeros(6)[::2])


def test_a_raw_pointer_takes_any_rank():
    function = make("result->d = x[0];", Parameter("x", "pointer", dtype="float64"), returns="float64")
    for shape in ((), (1,), (2, 2), (1,) * 20):
        assert function(np.ones(shape)) == 1
    refusal(ArgumentValueError, function, np.ones((4, 4))[:, 1])
    refusal(ArgumentTypeError, function, 5)


def test_trailing_axes_of_one_element_may_be_left_out():
    x = array("x", ndim=3, shape=(None, 1, 1), trailing=2)
    function = make("result->i = x_n0 * 10000 + x_n1 * 1000 + x_n2 * 100 + x_s1 * 10 + x_s2;", x, returns="int64")
    for shape in ((4, 1, 1), (4, 1), (4,)):
        assert function(np.zeros(shape)) == 41111
    refusal(ArgumentValueError, function, np.zeros(()))
    refusal(ArgumentValueError, function, np.zeros((4, 2)))
    refusal(ArgumentValueError, function, np.zeros((4, 1, 1, 1)))
    longer = make("", array("x", ndim=2, shape=(None, 3), trailing=1))
    longer(np.zeros((2, 3)))
    refusal(ArgumentValueError, longer, np.zeros(2))


def test_an_output_of_one_element():
    function = make("*out = 7;", array("out", ndim=0, written=True))
    for shape in ((), (1,), (1, 1, 1)):
        out = np.zeros(shape)
        function(out)
        assert out == 7
    for shape in ((2,), (0,), (1, 2)):
        refusal(ArgumentValueError, function, np.zeros(shape))
    for value in (1.0, np.float64(1), None):
        refusal(ArgumentTypeError, function, value)
    read = make("result->d = *x;", array("x", ndim=0), returns="float64")
    assert read(np.array(3.0)) == 3
    refusal(ArgumentValueError, read, np.zeros(1))


@pytest.mark.parametrize(("dtype", "limit"), [("int32", 2**31), ("uint32", 2**32), ("int16", 2**15), ("uint8", 2**8)])
def test_extents_beyond_the_index_type_are_refused(dtype, limit):
    x = array("x", "int8", strides=(0,))
    shape = make("result->i = s[1].i;", x, slots=(Slot("pointer", "x"), Slot("shape", "x", 0, dtype)), returns="int64")
    assert shape(np.broadcast_to(np.int8(0), limit - 1)) == limit - 1
    text = refusal(ArgumentValueError, shape, np.broadcast_to(np.int8(0), limit))
    assert f"the extent of axis 0 is {limit}, which does not fit the {dtype} of the kernel" in text


def test_strides_beyond_the_index_type_are_refused():
    x = array("x", "float64")
    slots = (Slot("pointer", "x"), Slot("stride", "x", 0, "uint32"))
    stride = make("result->i = s[1].i;", x, slots=slots, returns="int64")
    assert stride(np.zeros(6)[::2]) == 2
    assert "the stride of axis 0 is -1" in refusal(ArgumentValueError, stride, np.zeros(6)[::-1])
    assert stride(np.zeros(1)[::-1]) == 1  # of one element nobody uses the stride


# ---- records ----

POINT = np.dtype([("x", "i4"), ("value", "f8")], align=True)
PARAMETER = Parameter(
    "p",
    "array",
    ndim=1,
    fields=(("x", "int32", 0), ("value", "float64", 8)),
    itemsize=16,
    written=True,
    type="points[:]",
)


@pytest.fixture(scope="module")
def move():
    """Each record's value grows by its x."""
    return make("for (long long i = 0; i < p_n0; ++i) *(double *)((char *)p_value + 16 * i * p_s0) += "
                "*(int *)((char *)p_x + 16 * i * p_s0);", PARAMETER)  # fmt: skip


@pytest.mark.parametrize("view", [slice(None), slice(None, None, 2), slice(None, None, -1), slice(0, 0)])
def test_records_are_read_by_their_fields(move, view):
    points = np.zeros(6, POINT)
    points["x"] = np.arange(6)
    move(points[view])
    wanted = np.zeros(6)
    wanted[view] += np.arange(6)[view]
    assert np.array_equal(points["value"], wanted)


@pytest.mark.parametrize(
    "dtype",
    ["f8", [("x", "i4"), ("value", "f8")], np.dtype([("x", "i4"), ("other", "f8")], align=True), "c16",
     np.dtype([("x", "f4"), ("value", "f8")], align=True), [("value", "f8"), ("x", "i4"), ("pad", "i4")],
     np.dtype([("x", ">i4"), ("value", "f8")], align=True), "V16",
     np.dtype([("x", "i4"), ("value", "f8", (1,))], align=True)],
)  # fmt: skip
def test_records_of_another_kind_are_refused(move, dtype):
    refusal(ArgumentTypeError, move, np.zeros(3, dtype))


def test_records_between_other_data_are_steps_of_whole_records(move):
    outer = np.dtype({"names": ["p"], "formats": [POINT], "offsets": [0], "itemsize": 32})
    points = np.zeros(4, outer)
    points["p"]["x"] = 3
    move(points["p"])
    assert (points["p"]["value"] == 3).all()
    odd = np.zeros(4, np.dtype({"names": ["p"], "formats": [POINT], "offsets": [0], "itemsize": 24}))
    assert "not a multiple of the item size 16" in refusal(ArgumentValueError, move, odd["p"])


def test_unaligned_fields_are_refused():
    packed = Parameter("p", "array", ndim=1, fields=(("v", "float64", 4),), itemsize=12)
    function = make("", packed)
    assert "not aligned" in refusal(ArgumentValueError, function, np.zeros(3, [("i", "i4"), ("v", "f8")]))
    bytes_only = Parameter("p", "array", ndim=1, fields=(("v", "uint8", 4),), itemsize=5)
    make("", bytes_only)(np.zeros(3, [("i", "i4"), ("v", "u1")]))


def test_records_by_the_buffer_protocol(move):
    points = np.zeros(3, POINT)
    points["x"] = 2
    move(memoryview(points))
    assert (points["value"] == 2).all()
    refusal(ArgumentTypeError, move, memoryview(np.zeros(3)))
    refusal(ArgumentTypeError, move, b"0" * 48)


# ---- the buffer protocol ----


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_arrays_of_the_standard_library(code):
    x = arrays.array(code, [1, 2, 3])
    dtype = np.frombuffer(x, code).dtype.name
    function = make(
        "for (long long i = 0; i < x_n0; ++i) x[i * x_s0] = x[i * x_s0] * 2;", array("x", dtype, written=True)
    )
    function(x)
    assert list(x) == [2, 4, 6]
    function(memoryview(x)[::2])
    assert list(x) == [4, 4, 12]
    x.append(1)  # no buffer is open any more
    text = refusal(ArgumentTypeError, function, arrays.array("f" if code == "d" else "d", [1]))
    assert "array.array of float" in text


@pytest.mark.parametrize("prefix", ["", "@", "=", "<"])
def test_native_formats_of_buffers(prefix):
    if sys.byteorder == "big" and prefix == "<":
        pytest.skip("foreign here")
    function = make("result->i = x[1];", array("x", "int32"), returns="int64")
    assert function(exported(np.array([1, 2], "i4"), f"{prefix}i")) == 2


@pytest.mark.parametrize("mark", ["<", "=", "@"])
def test_every_format_has_its_type(mark):
    for code, dtype in zip("?bhiqBHIQefd", C_TYPES, strict=False):
        make("", array("x", dtype))(exported(np.zeros(2, dtype), mark + code))
    for code, dtype in (("Zf", "complex64"), ("Zd", "complex128")):
        make("", array("x", dtype))(exported(np.zeros(2, dtype), mark + code))


class _Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_void_p)]  # fmt: skip


def exported(x, fmt):
    """Return a memoryview of the array that claims another format: no Python class can export one."""
    view = memoryview(x)
    buffer = _Buffer.from_address(id(view) + MEMORYVIEW_BUFFER)
    assert (buffer.buf, buffer.itemsize) == (x.ctypes.data, x.itemsize)
    text = ctypes.create_string_buffer(fmt.encode())
    KEPT.append((x, text))
    buffer.format = ctypes.addressof(text)
    return view


KEPT = []
# PyObject_VAR_HEAD, managed buffer, hash, flags, exports: then the Py_buffer.
MEMORYVIEW_BUFFER = object.__basicsize__ + 8 + 8 + 8 + 8 + 8


@pytest.mark.parametrize("fmt", [">d", "!d"])
def test_foreign_order_in_a_buffer_is_refused(fmt):
    function = make("", array("x"))
    assert "foreign order" in refusal(ArgumentTypeError, function, exported(np.zeros(3), fmt))
    make("", array("x", "uint8"))(exported(np.zeros(3, "u1"), ">B"))


@pytest.mark.parametrize("fmt", ["2i", "", "c", "ii", "T{d:x:}", "Q", "P", "^d", "Zf", "x", "dd", "Zi"])
def test_other_formats_are_refused(fmt):
    refusal(ArgumentTypeError, make("", array("x")), exported(np.zeros(3), fmt))


def test_bytes_and_maps_are_read():
    total = make("long long sum = 0; for (long long i = 0; i < x_n0; ++i) sum += x[i * x_s0]; result->i = sum;",
                 array("x", "uint8"), returns="int64")  # fmt: skip
    assert total(b"\1\2\3") == total(bytearray(b"\1\2\3")) == total(memoryview(b"\3\0\2\0\1")[::-2]) == 6
    with mmap.mmap(-1, 4096) as memory:
        memory[0] = 9
        assert total(memory) == 9


def test_read_only_buffers_are_not_written(tmp_path):
    clear = make("for (long long i = 0; i < x_n0; ++i) x[i * x_s0] = 0;", array("x", "uint8", written=True))
    data = bytearray(b"abc")
    clear(data)
    assert data == b"\0\0\0"
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        for x in (b"abc", memoryview(b"abc"), memory):
            assert "read-only" in refusal(ArgumentValueError, clear, x)
    assert path.read_bytes() == b"abc"


def test_ctypes_arrays_have_no_strides(total):
    x = ((ctypes.c_double * 3) * 2)((1, 2, 3), (4, 5, 6))
    assert total(x) == weighted(np.array(x))
    assert make("result->d = *x;", array("x", ndim=0), returns="float64")(ctypes.c_double(4)) == 4


def test_a_released_buffer_is_the_cause(total):
    view = memoryview(np.zeros((2, 2)))
    view.release()
    with pytest.raises(ArgumentTypeError, match="gives no access to its buffer") as caught:
        total(view)
    assert isinstance(caught.value.__cause__, ValueError)


# ---- what is no array ----


@pytest.mark.parametrize(
    "value", [None, 1, 1.0, 1j, True, "text", np.float64(1), [[1.0]], ((1.0,),), object(), {}, range(3)]
)
def test_what_is_no_array_is_refused(total, value):
    text = refusal(ArgumentTypeError, total, value)
    assert "expected const float64[:, :], got " in text
    assert ("np.asarray(x)" in text) is isinstance(value, (list, tuple))


def test_an_array_is_no_scalar():
    function = make("", scalar("k"))
    for value in (np.zeros(1), memoryview(b"1"), b"12345678", np.zeros((1, 1))):
        with pytest.raises(ArgumentTypeError):
            function(value)


def test_ten_thousand_bad_calls_keep_nothing(total):
    x = np.zeros((2, 3), "f4")
    view = memoryview(x)
    before = sys.getrefcount(x), sys.getrefcount(view), sys.getrefcount(x.dtype)
    for _ in range(5000):
        for value in (x, view):
            with pytest.raises(ArgumentTypeError):
                total(value)
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(view), sys.getrefcount(x.dtype)
    assert all(abs(a - b) < 10 for a, b in zip(after, before, strict=True))
    view.release()
