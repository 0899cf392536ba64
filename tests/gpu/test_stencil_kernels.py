"""Each kind of kernel that pystencils generates for CUDA, on a device, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpukit import QUIET, cupy, library, new_loader
from rekernel import ArgumentTypeError, JitError, ToolchainError
from rekernel.jit import CupyKernelWrapper
from rekernel.jit.gpu import CupyJit
from stencilkit import numbers, ps, sp

pytestmark = QUIET

JIT = CupyJit(objcache=None)
"""Its kernels are really compiled: nothing is kept in files."""

f, g = ps.fields("f, g: double[2D]")
FIVE_POINTS = f[1, 0] + f[-1, 0] + f[0, 1] + f[0, -1] - 4 * f[0, 0]
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
TEXT = """
u, v = ps.fields("u, v: double[2D]")
k = ps.TypedSymbol("k", "float64")
heat = ps.Assignment(v.center, u.center + k * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u.center))
config = ps.CreateKernelConfig(target=ps.Target.CUDA)
"""


def build(assignments: Any, *, scheme: str | None = None, manual: bool = False, **options: Any) -> Any:
    """Generate a kernel and compile it with our JIT, as a user of pystencils does."""
    config = ps.CreateKernelConfig(target=ps.Target.CUDA, jit=JIT)
    if scheme is not None:
        config.gpu.indexing_scheme = ps.codegen.config.GpuIndexingScheme[scheme]
    if manual:
        config.gpu.manual_launch_grid = True
    for name, value in options.items():
        setattr(config, name, value)
    return ps.create_kernel(assignments, config).compile()


def five_points(a: np.ndarray) -> np.ndarray:
    return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]


def called(kernel: Any, out: str, **arguments: Any) -> np.ndarray:
    """Call a kernel with NumPy's arrays moved to the device, and return the one called `out`, moved back."""
    there = {name: cupy.asarray(a) if isinstance(a, np.ndarray) else a for name, a in arguments.items()}
    kernel(**there)
    return cupy.asnumpy(there[out])


# ---- dense ----


def test_a_kernel_is_called_without_brackets() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    assert isinstance(kernel, CupyKernelWrapper)
    a = numbers(67, 45)
    b = called(kernel, "g", f=a, g=np.zeros_like(a))
    np.testing.assert_array_equal(b[1:-1, 1:-1], five_points(a))
    assert b.sum() == b[1:-1, 1:-1].sum()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_ghost_layers_and_iteration_slices(rank: int) -> None:
    x, y = ps.fields(f"x, y: double[{rank}D]")
    a = numbers(*[9] * rank)

    def everywhere(part: slice) -> Any:
        return ps.make_slice[(part,) * rank] if rank > 1 else part

    for options, inner in (
        ({}, slice(None)),
        ({"ghost_layers": 0}, slice(None)),
        ({"ghost_layers": 2}, slice(2, -2)),
        ({"iteration_slice": everywhere(slice(1, -2))}, slice(1, -2)),
        ({"iteration_slice": everywhere(slice(0, 8, 3))}, slice(0, 8, 3)),
    ):
        b = called(build(ps.Assignment(y.center, x.center * 3), **options), "y", x=a, y=np.zeros_like(a))
        expected = np.zeros_like(a)
        expected[(inner,) * rank] = 3 * a[(inner,) * rank]
        np.testing.assert_array_equal(b, expected, err_msg=str(options))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_neighbours_along_every_axis(rank: int) -> None:
    x, y = ps.fields(f"x, y: double[{rank}D]")
    steps = [tuple(int(i == axis) for i in range(rank)) for axis in range(rank)]
    term = sum((axis + 1) * (x[step] - x[tuple(-s for s in step)]) for axis, step in enumerate(steps))
    shape = (70, 33, 19)[:rank]
    a = numbers(*shape)
    b = called(build(ps.Assignment(y.center, term)), "y", x=a, y=np.zeros_like(a))
    expected = sum((axis + 1) * (np.roll(a, -1, axis) - np.roll(a, 1, axis)) for axis in range(rank))
    inner = (slice(1, -1),) * rank
    np.testing.assert_array_equal(b[inner], expected[inner])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("layout", ["c", "f", "numpy", "fzyx", "zyxf"])
def test_every_layout_of_field_and_array(layout: str, order: Any) -> None:
    x, y = ps.fields("x, y: double[2D]", layout=layout)
    kernel = build(ps.Assignment(y.center, x[1, 0] - x[0, -1]))
    a = numbers(35, 47)
    there, out = cupy.asarray(a, order=order), cupy.zeros((47, 35)).T
    kernel(x=there, y=out)
    np.testing.assert_array_equal(cupy.asnumpy(out)[1:-1, 1:-1], a[2:, 1:-1] - a[1:-1, :-2])


def test_views_keep_their_strides() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    a = numbers(60, 80)
    base, out = cupy.asarray(a), cupy.zeros((60, 80))
    for view in (lambda x: x[::2, ::3], lambda x: x[::-1, ::-2], lambda x: x.T, lambda x: x[5:50, 7:8]):
        out.fill(0)
        kernel(f=view(base), g=view(out))
        expected = np.zeros_like(a)
        view(expected)[1:-1, 1:-1] = five_points(view(a))
        np.testing.assert_array_equal(cupy.asnumpy(out), expected)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_field_and_number(dtype: str) -> None:
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    kernel = build(ps.Assignment(y.center, x.center * ps.TypedSymbol("k", dtype) + x[0, 1]), default_dtype=dtype)
    a, k = numbers(34, 35, dtype=dtype), np.dtype(dtype).type(3)
    b = called(kernel, "y", x=a, y=np.zeros_like(a), k=k)
    np.testing.assert_array_equal(b[1:-1, 1:-1], a[1:-1, 1:-1] * k + a[1:-1, 2:])
    b = called(kernel, "y", x=a, y=np.zeros_like(a), k=2)
    np.testing.assert_array_equal(b[1:-1, 1:-1], a[1:-1, 1:-1] * np.dtype(dtype).type(2) + a[1:-1, 2:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_device(dtype: str) -> None:
    x, y = ps.fields(f"x, y: {dtype}[1D]")
    c = x.center
    term = sp.sqrt(c) + sp.exp(-c) * sp.sin(c) + sp.Max(c, 2) + sp.Min(c, 3) + sp.Abs(c - 3) + sp.floor(c) + c**5
    a = numbers(400, dtype=dtype) * 3
    b = called(build(ps.Assignment(y.center, term), default_dtype=dtype), "y", x=a, y=np.zeros_like(a))
    steps = (
        np.sqrt(a) + np.exp(-a) * np.sin(a) + np.maximum(a, 2) + np.minimum(a, 3) + np.abs(a - 3) + np.floor(a) + a**5
    )
    np.testing.assert_allclose(b, steps, rtol=1e-5 if dtype == "float32" else 1e-13)


def test_spatial_counters_and_conditions() -> None:
    x, y = (ps.tcast(symbol, "float64") for symbol in (ps.x_, ps.y_))
    kernel = build(ps.Assignment(g.center, sp.Piecewise((f.center, f.center > x), (x + 10 * y, True))), ghost_layers=0)
    a = numbers(13, 40) * 8
    b = called(kernel, "g", f=a, g=np.zeros_like(a))
    row, column = np.indices(a.shape)
    np.testing.assert_array_equal(b, np.where(a > row, a, row + 10 * column))


def test_fresh_numbers_count_in_every_call() -> None:
    kernel = build(ps.Assignment(g.center, ps.TypedSymbol("k", "float64") * f.center))
    a, out = cupy.ones((5, 7)), cupy.zeros((5, 7))
    for number in np.random.default_rng(1).random(200):
        kernel(f=a, g=out, k=float(number))
        assert float(out[4, 6]) == number


def test_a_kernel_that_works_in_place() -> None:
    a = numbers(50, 60)
    kernel = build(ps.Assignment(f.center, 2 * f.center + 1))
    np.testing.assert_array_equal(called(kernel, "f", f=a), 2 * a + 1)
    pointwise, both = build(ps.Assignment(g.center, 3 * f.center)), cupy.asarray(a)
    pointwise(f=both, g=both)
    np.testing.assert_array_equal(cupy.asnumpy(both), 3 * a)
    with pytest.raises(ValueError, match="overlap"):
        build(ps.Assignment(g.center, FIVE_POINTS))(f=both, g=both)


def test_100_double_steps_there_and_back() -> None:
    u, v = f, g
    k = ps.TypedSymbol("k", "float64")
    step = build(ps.Assignment(v.center, u.center + k * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u.center)))
    a = numbers(80, 90)
    b = a.copy()
    here, there = cupy.asarray(a), cupy.asarray(b)
    for _ in range(100):
        step(f=here, g=there, k=0.125)
        step(f=there, g=here, k=0.125)
        b[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.125 * five_points(a)
        a[1:-1, 1:-1] = b[1:-1, 1:-1] + 0.125 * five_points(b)
    np.testing.assert_allclose(cupy.asnumpy(here), a, rtol=1e-12)
    np.testing.assert_allclose(cupy.asnumpy(there), b, rtol=1e-12)


# ---- shapes ----


def test_one_kernel_takes_every_shape() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    for shape in ((3, 3), (3, 500), (500, 3), (129, 257), (1000, 33)):
        a = numbers(*shape)
        b = called(kernel, "g", f=a, g=np.zeros_like(a))
        np.testing.assert_array_equal(b[1:-1, 1:-1], five_points(a))


@pytest.mark.parametrize("shape", [(0, 0), (0, 9), (9, 0), (2, 2), (2, 50), (1, 3)])
def test_an_empty_iteration_space_changes_nothing(shape: tuple[int, int]) -> None:
    a = numbers(*shape)
    b = called(build(ps.Assignment(g.center, FIVE_POINTS)), "g", f=a, g=np.full(shape, 7.0))
    assert (b == 7).all()


def test_fixed_shapes_and_strides_are_required() -> None:
    x, y = ps.fields("x, y: float32[16, 32, 8]")
    kernel = build(ps.Assignment(y.center, x.center + 1))
    a = numbers(16, 32, 8, dtype="float32")
    np.testing.assert_array_equal(called(kernel, "y", x=a, y=np.zeros_like(a)), a + 1)
    with pytest.raises(ValueError, match="axis 0 must have extent 16, got 15"):
        called(kernel, "y", x=a[:15], y=a[:15].copy())
    with pytest.raises(ValueError, match=r"'y'.*stride of axis"):
        kernel(x=cupy.asarray(a), y=cupy.zeros((16, 32, 8), "float32", order="F"))


def test_values_with_indices() -> None:
    v, m = ps.fields("v(3), m(2, 2): double[2D]")
    kernel = build(ps.Assignment(g.center, v.center(0) + v.center(2) * m.center(0, 1)))
    a, b = numbers(20, 35, 3), numbers(20, 35, 2, 2, seed=2)
    out = called(kernel, "g", v=a, m=b, g=np.zeros((20, 35)))
    np.testing.assert_array_equal(out, a[..., 0] + a[..., 2] * b[..., 0, 1])
    with pytest.raises(ValueError, match="'v'"):
        called(kernel, "g", v=a[..., :2], m=b, g=np.zeros((20, 35)))


@pytest.mark.parametrize("index_dtype", ["int32", "int64", "uint64"])
def test_indices_of_another_type(index_dtype: str) -> None:
    a = numbers(40, 50)
    b = called(build(ps.Assignment(g.center, f.center), index_dtype=index_dtype), "g", f=a, g=np.zeros_like(a))
    np.testing.assert_array_equal(b, a)


def test_numbers_that_only_the_grid_needs() -> None:
    low, high = ps.TypedSymbol("low", "int64"), ps.TypedSymbol("high", "int64")
    kernel = build(ps.Assignment(g.center, f.center), iteration_slice=ps.make_slice[low:high, 2:5])
    a = numbers(600, 30)
    for first, end in ((3, 595), (3, 4), (3, 3), (0, 600)):
        expected = np.zeros_like(a)
        expected[first:end, 2:5] = a[first:end, 2:5]
        b = called(kernel, "g", f=a, g=np.zeros_like(a), low=first, high=end)
        np.testing.assert_array_equal(b, expected)


# ---- grids ----


@pytest.mark.parametrize("scheme", ["Linear1D", "Linear3D", "Blockwise4D"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_scheme_of_indices(scheme: str, rank: int) -> None:
    x, y = ps.fields(f"x, y: double[{rank}D]")
    kernel = build(ps.Assignment(y.center, x.center + 1), scheme=scheme)
    a = numbers(*(37, 41, 43)[:rank])
    np.testing.assert_array_equal(called(kernel, "y", x=a, y=np.zeros_like(a)), a + 1)


def test_other_blocks_give_the_same() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    a = numbers(100, 70)
    config = kernel.launch_config
    for change in (
        lambda: None,
        lambda: config.trim_block_size((128, 2, 1)),
        lambda: config.fit_block_size((8, 8, 4)),
        lambda: config.fit_block_size((32, 32, 1)),
    ):
        change()
        b = called(kernel, "g", f=a, g=np.zeros_like(a))
        np.testing.assert_array_equal(b[1:-1, 1:-1], five_points(a))


def test_a_grid_by_hand() -> None:
    kernel = build(ps.Assignment(g.center, f.center + 1), manual=True)
    a = numbers(9, 100)
    with pytest.raises(JitError, match=r"no launch grid.*launch_config\.block_size"):
        called(kernel, "g", f=a, g=np.zeros_like(a))
    kernel.launch_config.block_size, kernel.launch_config.grid_size = (64, 1, 1), (2, 9, 1)
    np.testing.assert_array_equal(called(kernel, "g", f=a, g=np.zeros_like(a)), a + 1)
    out = called(kernel[(1, 9), 32], "g", f=a, g=np.zeros_like(a))
    np.testing.assert_array_equal(out[:, :32], a[:, :32] + 1)
    assert not out[:, 32:].any()


# ---- lists, buffers, custom fields, staggered ones ----

RECORDS = [
    np.dtype([("x", "i8"), ("y", "i8"), ("value", "f8")], align=True),
    np.dtype([("dir", "i1"), ("value", "f8"), ("x", "i8"), ("flag", "?"), ("y", "i8")], align=True),
    np.dtype([("x", "i4"), ("y", "i4"), ("value", "f4"), ("dir", "i4")], align=True),
]


class Records:
    """An array of records on the device, known by its interface only."""

    def __init__(self, points: np.ndarray) -> None:
        self.bytes = cupy.asarray(np.frombuffer(points.tobytes(), "u1"))
        self.__cuda_array_interface__ = {
            "shape": points.shape, "typestr": points.dtype.str, "descr": points.dtype.descr, "strides": None,
            "data": (self.bytes.data.ptr, False), "stream": None, "version": 3,
        }  # fmt: skip


def cupys(points: np.ndarray) -> Any:
    try:
        return cupy.asarray(points)
    except (TypeError, ValueError) as error:
        pytest.skip(f"CuPy {cupy.__version__} has no arrays of records: {error}")


@pytest.mark.parametrize("kind", [cupys, Records])
@pytest.mark.parametrize("record", RECORDS, ids=["plain", "with holes", "int32"])
def test_lists_of_records(record: np.dtype, kind: Any) -> None:
    index = ps.Field.create_generic("index", 1, dtype=record, field_type=ps.FieldType.INDEXED)
    value = ps.tcast(index("value"), "float64")
    kernel = build(ps.Assignment(g[0, 0], value + f[1, 0]), index_field=index, index_dtype=record["x"])
    points = np.zeros(700, record)
    places = np.random.default_rng(1).permutation(40 * 50)[:700]
    points["x"], points["y"], points["value"] = places // 50, places % 50, numbers(700)
    a, expected = numbers(41, 50), np.zeros((41, 50))
    expected[points["x"], points["y"]] = points["value"] + a[points["x"] + 1, points["y"]]
    np.testing.assert_array_equal(called(kernel, "g", f=a, g=np.zeros_like(a), index=kind(points)), expected)
    assert not called(kernel, "g", f=a, g=np.zeros_like(a), index=kind(points[:0])).any()


def test_records_that_lie_otherwise_are_refused() -> None:
    index = ps.Field.create_generic("index", 1, dtype=RECORDS[1], field_type=ps.FieldType.INDEXED)
    kernel = build(ps.Assignment(g[0, 0], index("value")), index_field=index)
    for wrong in (Records(np.zeros(3, RECORDS[0])), cupy.zeros(3)):
        with pytest.raises(TypeError, match="'index'"):
            kernel(g=cupy.zeros((4, 4)), index=wrong)


@pytest.mark.parametrize("values", [1, 3])
def test_buffers_are_filled_and_emptied(values: int) -> None:
    v = ps.fields(f"v({values}): double[2D]")
    buffer = ps.Field.create_generic(
        "buffer", 1, dtype=np.float64, field_type=ps.FieldType.BUFFER, index_shape=(values,)
    )
    part = ps.make_slice[1:30, 0:40]
    pack = build([ps.Assignment(buffer(i), v.center(i)) for i in range(values)], iteration_slice=part)
    unpack = build([ps.Assignment(v.center(i), buffer(i)) for i in range(values)], iteration_slice=part)
    a = numbers(35, 46, values)
    packed = called(pack, "buffer", v=a, buffer=np.zeros((29 * 40, values)))
    np.testing.assert_array_equal(packed, a[1:30, 0:40].reshape(-1, values))
    b, expected = called(unpack, "v", v=np.zeros_like(a), buffer=packed), np.zeros_like(a)
    expected[1:30, 0:40] = a[1:30, 0:40]
    np.testing.assert_array_equal(b, expected)
    with pytest.raises(ValueError, match="not C-contiguous"):
        pack(v=cupy.asarray(a), buffer=cupy.zeros((29 * 80, values))[::2])


def test_custom_fields_are_read_where_the_text_says() -> None:
    table = ps.Field.create_generic("table", 2, dtype=np.float64, field_type=ps.FieldType.CUSTOM)
    kernel = build(ps.Assignment(g.center, table.absolute_access((ps.y_, 1), ())), ghost_layers=0)
    a = numbers(60, 3)
    b = called(kernel, "g", g=np.zeros((20, 50)), table=a)
    np.testing.assert_array_equal(b, np.tile(a[:50, 1], (20, 1)))


def flow(store: Any, value: Any) -> Any:
    @ps.flow.block
    def equations(made: Any) -> None:
        made.store[store] = value

    return ps.flow.tie(equations)


@pytest.mark.parametrize("layout", ["NUMPY", "FZYX", "ZYXF"])
def test_ghost_layers_of_a_tensor_field_lie_around_what_the_kernel_sees(layout: str) -> None:
    u = ps.grids.TensorField("u", 2, (3,), ghost_layers=2, dtype="float64", layout=layout)
    w = ps.grids.TensorField("w", 2, dtype="float64", layout=layout)
    kernel = build(flow(w(), u[1, 0](1) + u[-2, 0](2)))
    a, b = u.create_ndarray(cupy, (24, 35)), w.create_ndarray(cupy, (24, 35))
    a[...] = cupy.asarray(numbers(*a.shape))
    kernel(u=a, w=b)
    seen = cupy.asnumpy(a)
    np.testing.assert_array_equal(cupy.asnumpy(b), seen[3:-1, 2:-2, 1] + seen[:-4, 2:-2, 2])


def test_staggered_fields() -> None:
    u = ps.StaggeredField("u", ps.Staggering.D2Q5, "float64")
    w = ps.grids.TensorField("w", 2, dtype="float64", layout="FZYX")
    kernel = build(flow(w(), u["e"] + 2 * u["n"]))
    a = numbers(34, 35, 3)
    b = called(kernel, "w", u=a, w=np.zeros((34, 35)))
    edges = list(ps.Staggering.D2Q5.value)
    np.testing.assert_array_equal(b, a[..., edges.index((1, 0))] + 2 * a[..., edges.index((0, 1))])


# ---- reductions, random numbers ----

REDUCTIONS = [
    (ps.AddReductionAssignment, 5.0, lambda start, a: start + a.sum()),
    (ps.SubReductionAssignment, 5.0, lambda start, a: start - a.sum()),
    (ps.MulReductionAssignment, 2.0, lambda start, a: start * a.prod()),
    (ps.MinReductionAssignment, 9.0, lambda start, a: min(start, a.min())),
    (ps.MaxReductionAssignment, 0.0, lambda start, a: max(start, a.max())),
]


@pytest.mark.parametrize("shape", [(3, 4), (100, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("assignment", "start", "expected"), REDUCTIONS, ids=["add", "sub", "mul", "min", "max"])
def test_reductions_go_on_from_what_is_there(
    assignment: Any, start: float, expected: Any, dtype: str, shape: tuple[int, int]
) -> None:
    x = ps.fields(f"x: {dtype}[2D]")
    kernel = build(assignment(ps.TypedSymbol("r", dtype), x.center), default_dtype=dtype)
    a = numbers(*shape, dtype=dtype)
    if assignment is ps.MulReductionAssignment:
        a = np.where(a < 0.5, 0.5, 1).astype(dtype)  # of powers of two, and few: what is exact in any order
        a[1:] = 1
    once = expected(start, a.astype("float64"))
    twice = expected(once, a.astype("float64"))
    given, rtol = cupy.asarray(a), 1e-6 if dtype == "float32" else 1e-13
    for out in (np.array(start, dtype), np.array([start], dtype), np.array([[start]], dtype)):
        there = cupy.asarray(out)
        for result in (once, twice):
            kernel(x=given, r=there)
            np.testing.assert_allclose(cupy.asnumpy(there), np.full(out.shape, result), rtol=rtol)
    for wrong in (np.array([start, start], dtype), np.zeros(0, dtype)):
        with pytest.raises(ValueError, match="'r'"):
            kernel(x=given, r=cupy.asarray(wrong))
    with pytest.raises(TypeError, match="'r'"):
        kernel(x=given, r=start)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_numbers_are_those_of_the_cpu(dtype: str) -> None:
    from stencilkit import build as build_for_cpu

    source = ps.random.Philox("random", dtype, 7)
    values, assignment = source.get_random_vector(ps.TypedSymbol("time", "int64"))
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    assignments = [assignment, ps.Assignment(x.center, values[0]), ps.Assignment(y.center, values[1])]
    options: dict[str, Any] = {"ghost_layers": 0, "default_dtype": dtype}
    kernel = build(assignments, **options)
    first, second = np.zeros((33, 35), dtype), np.zeros((33, 35), dtype)
    try:
        build_for_cpu(assignments, **options)(x=first, y=second, time=3)
    except ToolchainError as error:
        pytest.skip(f"there is no C++ compiler to compare with: {error}")
    for out, expected in (("x", first), ("y", second)):
        made = called(kernel, out, x=np.zeros_like(first), y=np.zeros_like(first), time=3)
        np.testing.assert_allclose(made, expected, rtol=1e-6)
        assert len(np.unique(made)) > 1000


# ---- what is refused ----


def test_arguments_have_names() -> None:
    kernel = build(ps.Assignment(g.center, ps.TypedSymbol("k", "float64") * f.center))
    a, b = cupy.ones((5, 6)), cupy.zeros((5, 6))
    with pytest.raises(TypeError):
        kernel(a, b, 2.0)
    with pytest.raises(KeyError, match="k"):
        kernel(f=a, g=b)
    with pytest.raises(KeyError, match="f"):
        kernel(g=b, k=2.0)
    assert not b.any()
    kernel(f=a, g=b, k=2.0)
    assert (b == 2).all()


def test_arrays_that_do_not_fit_are_refused() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    good, out = cupy.ones((5, 6)), cupy.full((5, 6), 7.0)
    for wrong in (
        {"f": cupy.ones((5, 6), "float32")},
        {"f": cupy.ones((5, 6), "int64")},
        {"f": 1.0},
        {"f": None},
        {"g": np.zeros((5, 6))},
    ):
        with pytest.raises(TypeError, match=f"'{next(iter(wrong))}'"):
            kernel(**({"f": good, "g": out} | wrong))
    for shape in ((5, 7), (4, 6), (5,), (5, 6, 2)):
        with pytest.raises(ValueError, match=r"'[fg]'"):
            kernel(f=cupy.ones(shape), g=out)
    assert (out == 7).all()


def test_an_array_of_the_host_is_refused_in_words() -> None:
    kernel = build(ps.Assignment(g.center, f.center))
    with pytest.raises(ArgumentTypeError, match=r"'f'.*host memory.*cupy\.asarray\(f\)"):
        kernel(f=np.ones((5, 6)), g=cupy.zeros((5, 6)))


# ---- PyTorch, texts ----


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
def test_tensors_of_torch(dtype: str) -> None:
    torch = library("torch")
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    kernel = build(ps.Assignment(y.center, x[1, 0] + x[0, -1]), default_dtype=dtype)
    a = numbers(50, 60, dtype=dtype)
    given, out = torch.from_numpy(a).cuda(), torch.zeros((50, 60), dtype=getattr(torch, dtype), device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        out.zero_()
        kernel(x=given, y=out)
        made = out.cpu().numpy()
    np.testing.assert_array_equal(made[1:-1, 1:-1], a[2:, 1:-1] + a[1:-1, :-2])
    both = torch.zeros((60, 50), dtype=getattr(torch, dtype), device="cuda").T
    kernel(x=given, y=both)
    np.testing.assert_array_equal(both.cpu().numpy(), made)


def test_a_tensor_of_the_host_is_refused() -> None:
    torch = library("torch")
    with pytest.raises(TypeError, match=r"'f'.*host memory"):
        build(ps.Assignment(g.center, f.center))(f=torch.zeros((5, 6), dtype=torch.float64), g=cupy.zeros((5, 6)))


def test_a_stencil_text_is_loaded_for_the_device_and_reloaded() -> None:
    with new_loader() as loader:
        heat = loader.load(TEXT, "m").heat
        a = numbers(40, 50)
        b = called(heat, "v", u=a, v=np.zeros_like(a), k=0.5)
        np.testing.assert_array_equal(b[1:-1, 1:-1], a[1:-1, 1:-1] + 0.5 * five_points(a))
        loader.load(TEXT.replace("u.center + k", "7 * u.center + k"), "m")
        b = called(heat, "v", u=a, v=np.zeros_like(a), k=0.5)
        np.testing.assert_array_equal(b[1:-1, 1:-1], 7 * a[1:-1, 1:-1] + 0.5 * five_points(a))
