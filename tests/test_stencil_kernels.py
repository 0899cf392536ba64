"""Each kind of kernel that pystencils generates for a CPU, through our JIT, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rekernel.errors import JitError
from stencilkit import JIT, build, config, numbers, ps, sp, theirs, vectors

f, g = ps.fields("f, g: double[2D]")
FIVE_POINTS = f[1, 0] + f[-1, 0] + f[0, 1] + f[0, -1] - 4 * f[0, 0]
TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def five_points(a: np.ndarray) -> np.ndarray:
    return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]


# --- dense --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("layout", ["c", "f", "numpy", "fzyx", "zyxf"])
def test_a_stencil_in_every_layout_of_field_and_array(layout: str, order: Any) -> None:
    x, y = ps.fields("x, y: double[2D]", layout=layout)
    kernel = build(ps.Assignment(y.center, x[1, 0] - x[0, -1]))
    a = np.asarray(numbers(5, 7), order=order)
    b = np.zeros((7, 5)).T
    kernel(x=a, y=b)
    assert np.array_equal(b[1:-1, 1:-1], a[2:, 1:-1] - a[1:-1, :-2])
    assert b.sum() == b[1:-1, 1:-1].sum()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_ghost_layers_and_iteration_slices(rank: int) -> None:
    x, y = ps.fields(f"x, y: double[{rank}D]")
    a = numbers(*[6] * rank)
    for options, inner in (
        ({"ghost_layers": 0}, slice(None)),
        ({"ghost_layers": 2}, slice(2, -2)),
        ({"iteration_slice": ps.make_slice[(slice(1, -2),) * rank] if rank > 1 else slice(1, -2)}, slice(1, -2)),
        ({"iteration_slice": ps.make_slice[(slice(0, 5, 2),) * rank] if rank > 1 else slice(0, 5, 2)}, slice(0, 5, 2)),
    ):
        b, expected = np.zeros_like(a), np.zeros_like(a)
        build(ps.Assignment(y.center, x.center * 3), **options)(x=a, y=b)
        expected[(inner,) * rank] = 3 * a[(inner,) * rank]
        assert np.array_equal(b, expected), options


def test_a_slice_that_fixes_an_axis_takes_any_layout() -> None:
    kernel = build(ps.Assignment(g.center, f.center), iteration_slice=ps.make_slice[0, 1:-1])
    a, b = np.asfortranarray(numbers(4, 6)), np.zeros((4, 12))[:, ::2]
    kernel(f=a, g=b)
    assert np.array_equal(b[0, 1:-1], a[0, 1:-1])
    assert np.count_nonzero(b) == 4


def test_spatial_counters_and_conditions() -> None:
    x, y = (ps.tcast(symbol, "float64") for symbol in (ps.x_, ps.y_))
    kernel = build(ps.Assignment(g.center, sp.Piecewise((f.center, f.center > x), (x + 10 * y, True))), ghost_layers=0)
    a, b = numbers(3, 4) * 2, np.zeros((3, 4))
    kernel(f=a, g=b)
    row, column = np.indices(a.shape)
    assert np.array_equal(b, np.where(a > row, a, row + 10 * column))


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_of_field_and_number(dtype: str) -> None:
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    kernel = build(ps.Assignment(y.center, x.center * ps.TypedSymbol("k", dtype) + x[0, 1]), default_dtype=dtype)
    a, k = numbers(4, 5, dtype=dtype), np.dtype(dtype).type(3)
    b = np.zeros_like(a)
    kernel(x=a, y=b, k=k)
    assert np.array_equal(b[1:-1, 1:-1], a[1:-1, 1:-1] * k + a[1:-1, 2:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_c_library(dtype: str) -> None:
    x, y = ps.fields(f"x, y: {dtype}[1D]")
    c = x.center
    term = sp.sqrt(c) + sp.exp(-c) * sp.sin(c) + sp.Max(c, 2) + sp.Min(c, 3) + sp.Abs(c - 3) + sp.floor(c) + c**5
    a = numbers(40, dtype=dtype) * 3
    b = np.zeros_like(a)
    build(ps.Assignment(y.center, term), default_dtype=dtype)(x=a, y=b)
    steps = (
        np.sqrt(a) + np.exp(-a) * np.sin(a) + np.maximum(a, 2) + np.minimum(a, 3) + np.abs(a - 3) + np.floor(a) + a**5
    )
    np.testing.assert_allclose(b, steps, rtol=1e-5 if dtype == "float32" else 1e-14)


def test_functions_of_integers() -> None:
    x, y = ps.fields("x, y: int32[1D]")
    a = np.arange(-5, 6, dtype="int32")
    b = np.zeros_like(a)
    build(ps.Assignment(y.center, sp.Abs(x.center) + sp.Max(x.center, 2) + sp.Min(x.center, 0)))(x=a, y=b)
    assert np.array_equal(b, abs(a) + np.maximum(a, 2) + np.minimum(a, 0))


# --- shapes and strides -------------------------------------------------------------------------------------------


def test_fixed_shapes_and_strides_are_required() -> None:
    a = numbers(6, 5)
    x = ps.Field.create_from_numpy_array("x", a)
    z = ps.Field.create_fixed_size("z", (6, 5), dtype=np.float64)
    kernel = build(ps.Assignment(z.center, x.center))
    b = np.zeros((6, 5))
    kernel(x=a, z=b)
    assert np.array_equal(a, b)
    for arguments, words in (
        ({"x": a, "z": np.asfortranarray(b)}, "the stride of axis 1 must be 1 elements, got 6"),
        ({"x": a[:5], "z": b[:5]}, "axis 0 must have extent 6, got 5"),
        ({"x": a[:, ::-1], "z": b}, "the stride of axis 1 must be 1 elements, got -1"),
    ):
        with pytest.raises(ValueError, match=words):
            kernel(**arguments)


def test_one_value_at_each_point_may_have_an_axis_of_its_own() -> None:
    x = ps.Field.create_generic("x", 2, dtype=np.float64, index_shape=(1,))
    kernel = build(ps.Assignment(g.center, x.center(0)))
    a = numbers(4, 5)
    for given in (a, a[..., None]):
        for out in (np.zeros_like(a), np.zeros((4, 5, 1))):
            kernel(x=given, g=out)
            assert np.array_equal(out.reshape(a.shape), a)
    with pytest.raises(ValueError, match="axis 2 must have extent 1, got 2"):
        kernel(x=np.zeros((4, 5, 2)), g=a)


def test_values_with_indices_need_their_axes() -> None:
    v, m = ps.fields("v(3), m(2, 2): double[2D]")
    kernel = build([ps.Assignment(g.center, v.center(0) + v.center(2) * m.center(0, 1))])
    a, b, out = numbers(4, 5, 3), numbers(4, 5, 2, 2, seed=2), np.zeros((4, 5))
    kernel(v=a, m=b, g=out)
    assert np.array_equal(out, a[..., 0] + a[..., 2] * b[..., 0, 1])
    for wrong in (a[..., :2], a[..., 0], a[..., None]):
        with pytest.raises(ValueError, match="'v'"):
            kernel(v=wrong, m=b, g=out)


def test_an_index_may_be_a_number_of_the_caller() -> None:
    v = ps.fields("v(3): double[2D]")
    kernel = build(ps.Assignment(g.center, v.center(ps.TypedSymbol("i", "int64"))))
    a, out = numbers(4, 5, 3), np.zeros((4, 5))
    for i in range(3):
        kernel(v=a, g=out, i=i)
        assert np.array_equal(out, a[..., i])


def test_fields_that_share_strides_need_arrays_of_one_layout() -> None:
    """pystencils passes one of the two strides for both: with arrays that differ it would read anywhere."""
    twin = f.new_field_with_different_name("twin")
    kernel = build(ps.Assignment(twin.center, FIVE_POINTS))
    a = numbers(6, 5)
    for given in (a, np.asfortranarray(a), a[::-1]):
        out = np.zeros_like(given)
        out = out[::-1] if given.strides[0] < 0 else out
        kernel(f=given, twin=out)
        assert np.array_equal(out[1:-1, 1:-1], five_points(given))
    with pytest.raises(ValueError, match=r"'twin': the stride of axis 1 is 6 elements, but that of 'f' is 1"):
        kernel(f=a, twin=np.zeros((6, 5), order="F"))


def test_all_arrays_of_the_domain_have_one_shape() -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS))
    with pytest.raises(ValueError, match=r"axis 1 has extent 4, but 'f' has extent 5"):
        kernel(f=np.zeros((6, 5)), g=np.zeros((6, 4)))


@pytest.mark.parametrize("index_dtype", ["int32", "int64", "uint64"])
def test_indices_of_another_type(index_dtype: str) -> None:
    kernel = build(ps.Assignment(g.center, f.center), index_dtype=index_dtype)
    a, b = numbers(4, 5), np.zeros((4, 5))
    kernel(f=a, g=b)
    assert np.array_equal(a, b)
    huge = np.lib.stride_tricks.as_strided(a, (2**33, 0), (0, 8))
    if index_dtype == "int32":
        with pytest.raises(ValueError, match="does not fit the int32 of the kernel"):
            kernel(f=huge, g=np.lib.stride_tricks.as_strided(b, (2**33, 0), (8, 8)))


# --- lists, buffers, custom fields --------------------------------------------------------------------------------

RECORDS = [
    np.dtype([("x", "i8"), ("y", "i8"), ("value", "f8")], align=True),
    np.dtype([("dir", "i1"), ("value", "f8"), ("x", "i8"), ("flag", "?"), ("y", "i8")], align=True),
    np.dtype([("x", "i4"), ("y", "i4"), ("value", "f4"), ("dir", "i4")], align=True),
]


@pytest.mark.parametrize("record", RECORDS, ids=["plain", "with holes", "int32"])
def test_lists_of_records(record: np.dtype) -> None:
    """As for boundaries: each record names a point and carries a value. Some are used, some are not."""
    index = ps.Field.create_generic("index", 1, dtype=record, field_type=ps.FieldType.INDEXED)
    value = ps.tcast(index("value"), "float64")
    kernel = build(ps.Assignment(g[0, 0], value + f[1, 0]), index_field=index, index_dtype=record["x"])
    points = np.zeros(5, record)
    points["x"], points["y"], points["value"] = [1, 2, 0, 3, 1], [0, 1, 2, 3, 4], numbers(5)
    a, b, expected = numbers(5, 6), np.zeros((5, 6)), np.zeros((5, 6))
    for some in (points, points[::2], points[::-1], points[:0]):
        kernel(f=a, g=b, index=some)
        expected[some["x"], some["y"]] = some["value"] + a[some["x"] + 1, some["y"]]
        assert np.array_equal(b, expected)


def test_records_that_lie_otherwise_are_refused() -> None:
    record = RECORDS[1]
    index = ps.Field.create_generic("index", 1, dtype=record, field_type=ps.FieldType.INDEXED)
    kernel = build(ps.Assignment(g[0, 0], index("value")), index_field=index)
    good = np.zeros(3, record)
    kernel(g=np.zeros((4, 4)), index=good)
    packed = np.dtype([(name, record[name]) for name in record.names])
    unaligned = np.zeros(3 * record.itemsize + 1, "u1")[1:].view(record)
    for wrong, error in (
        (np.zeros(3, packed), TypeError),
        (np.zeros(3, [("x", "i8"), ("y", "i8"), ("value", "f8")]), TypeError),
        (good.astype(record.newbyteorder()), TypeError),
        (np.zeros(3), TypeError),
        (unaligned, ValueError),
    ):
        with pytest.raises(error, match=r"kernel\(\) argument 'index'"):
            kernel(g=np.zeros((4, 4)), index=wrong)


def test_a_field_of_packed_records_is_no_array_of_numbers() -> None:
    points = np.zeros(6, [("tag", "i1"), ("value", "f4"), ("more", "i1")])
    x, y = ps.fields("x, y: float[1D]")
    kernel = build(ps.Assignment(y.center, x.center))
    with pytest.raises(ValueError, match=r"not aligned|not a multiple of the item size 4"):
        kernel(x=points["value"], y=np.zeros(6, "f4"))


def test_boundaries_of_pystencils() -> None:
    """A boundary condition as pystencils handles it, its index list made by pystencils."""
    from pystencils.boundaries import Dirichlet
    from pystencils.boundaries.boundaryhandling import create_boundary_kernel
    from pystencils.boundaries.createindexlist import (
        create_boundary_index_array,
        numpy_data_type_for_boundary_object,
    )

    stencil = ((1, 0), (-1, 0), (0, 1), (0, -1))
    wall = Dirichlet(7)
    index = ps.Field.create_generic(
        "indexField", 1, dtype=numpy_data_type_for_boundary_object(wall, 2), field_type=ps.FieldType.INDEXED
    )
    kernel = create_boundary_kernel(f, index, stencil, wall, config()).compile()
    flags = np.zeros((6, 5), "uint32")
    flags[0], flags[1:] = 2, 1
    points = create_boundary_index_array(flags, stencil, 2, 1, wall, nr_of_ghost_layers=0)
    a = numbers(6, 5)
    b = a.copy()
    kernel(f=b, indexField=points)
    assert len(points) == 5
    assert set(b[points["x"], points["y"]]) == {7.0}
    assert np.count_nonzero(a != b) == 5


@pytest.mark.parametrize("values", [1, 3])
def test_buffers_are_filled_and_emptied(values: int) -> None:
    v = ps.fields(f"v({values}): double[2D]")
    buffer = ps.Field.create_generic(
        "buffer", 1, dtype=np.float64, field_type=ps.FieldType.BUFFER, index_shape=(values,)
    )
    part = ps.make_slice[1:3, 0:4]
    pack = build([ps.Assignment(buffer(i), v.center(i)) for i in range(values)], iteration_slice=part)
    unpack = build([ps.Assignment(v.center(i), buffer(i)) for i in range(values)], iteration_slice=part)
    a, packed = numbers(5, 6, values), np.zeros((8, values))
    pack(v=a, buffer=packed)
    assert np.array_equal(packed, a[1:3, 0:4].reshape(8, values))
    b = np.zeros_like(a)
    unpack(v=b, buffer=packed)
    assert np.array_equal(b[1:3, 0:4], a[1:3, 0:4])
    with pytest.raises(ValueError, match="not C-contiguous"):
        pack(v=a, buffer=np.zeros((16, values))[::2])


def test_custom_fields_are_read_where_the_text_says() -> None:
    table = ps.Field.create_generic("table", 2, dtype=np.float64, field_type=ps.FieldType.CUSTOM)
    kernel = build(ps.Assignment(g.center, table.absolute_access((ps.y_, 1), ())), ghost_layers=0)
    a, b = numbers(6, 3), np.zeros((2, 5))
    kernel(g=b, table=a)
    assert np.array_equal(b, np.tile(a[:5, 1], (2, 1)))


# --- new fields ---------------------------------------------------------------------------------------------------


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
    a, b = u.create_ndarray(np, (4, 5)), w.create_ndarray(np, (4, 5))
    a[...] = numbers(*a.shape)
    kernel(u=a, w=b)
    assert np.array_equal(b, a[3:-1, 2:-2, 1] + a[:-4, 2:-2, 2])
    for wrong in (np.zeros(a.shape[:2]), a[:-1], a[..., :2], a[:3]):
        with pytest.raises(ValueError, match=r"argument '[uw]'"):
            kernel(u=wrong, w=b)
    with pytest.raises(ValueError, match=r"axis 0 has extent 8, but 'u' has extent 4 there"):
        kernel(u=a, w=np.zeros((8, 9)))
    kernel(u=np.zeros((3, 3, 3)), w=np.zeros((0, 0)))


def test_staggered_fields() -> None:
    u = ps.StaggeredField("u", ps.Staggering.D2Q5, "float64")
    w = ps.grids.TensorField("w", 2, dtype="float64", layout="FZYX")
    kernel = build(flow(w(), u["e"] + 2 * u["n"]))
    a = numbers(4, 5, 3)
    b = np.zeros((4, 5))
    kernel(u=a, w=b)
    edges = [entry for entry in ps.Staggering.D2Q5.value]
    assert np.array_equal(b, a[..., edges.index((1, 0))] + 2 * a[..., edges.index((0, 1))])


# --- reductions, random numbers -----------------------------------------------------------------------------------

REDUCTIONS = [
    (ps.AddReductionAssignment, 5.0, lambda start, a: start + a.sum()),
    (ps.SubReductionAssignment, 5.0, lambda start, a: start - a.sum()),
    (ps.MulReductionAssignment, 2.0, lambda start, a: start * a.prod()),
    (ps.MinReductionAssignment, 9.0, lambda start, a: min(start, a.min())),
    (ps.MaxReductionAssignment, 0.0, lambda start, a: max(start, a.max())),
]


@pytest.mark.parametrize("openmp", [False, True])
@pytest.mark.parametrize(("assignment", "start", "expected"), REDUCTIONS, ids=["add", "sub", "mul", "min", "max"])
def test_reductions_go_on_from_what_is_there(assignment: Any, start: float, expected: Any, openmp: bool) -> None:
    kernel = build(assignment(ps.TypedSymbol("r", "double"), f.center), openmp_enable=openmp)
    a = numbers(3, 4)
    for out in (np.array(start), np.array([start]), np.array([[start]])):
        kernel(f=a, r=out)
        np.testing.assert_allclose(out, expected(start, a), rtol=1e-14)
    for wrong in (np.array([start, start]), np.zeros(0)):
        with pytest.raises(ValueError, match="'r'"):
            kernel(f=a, r=wrong)
    with pytest.raises(TypeError, match="'r'"):
        kernel(f=a, r=start)
    with pytest.raises(ValueError, match="it overlaps 'f'"):
        kernel(f=a, r=a[0, 0:1])


def philox(dtype: str) -> list[Any]:
    source = ps.random.Philox("random", dtype, 7)
    values, assignment = source.get_random_vector(ps.TypedSymbol("time", "int64"))
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    return [assignment, ps.Assignment(x.center, values[0]), ps.Assignment(y.center, values[1])]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_random_numbers_are_those_of_pystencils(dtype: str, tmp_path: Any) -> None:
    kernel = ps.create_kernel(philox(dtype), config(ghost_layers=0, default_dtype=dtype))
    made = [np.zeros((4, 5), dtype) for _ in range(4)]
    kernel.compile()(x=made[0], y=made[1], time=3)
    theirs(kernel, tmp_path)(x=made[2], y=made[3], time=3)
    assert np.array_equal(made[0], made[2])
    assert np.array_equal(made[1], made[3])
    assert len(np.unique(made[0])) == 20
    assert 0 < made[0].min() < made[0].max() < 1


# --- how it is compiled -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("vector", vectors())
def test_vector_targets(vector: str, dtype: str) -> None:
    half = vector == "X86_AVX512_FP16"
    if half:
        dtype = "float16"
    x, y = ps.fields(f"x, y: {dtype}[2D]")
    kernel = build(
        ps.Assignment(y.center, (x[0, 1] if half else sp.sqrt(x[0, 1])) + x[-1, 0] * sp.Symbol("k")), default_dtype=dtype, vector=vector,
        vectorize_assume_inner_stride_one=True,
    )  # fmt: skip
    assert kernel.target is ps.Target[vector]
    a = numbers(5, 43, dtype=dtype)
    b = np.zeros_like(a)
    kernel(x=a, y=b, k=2)
    assert np.array_equal(b[1:-1, 1:-1], (a if half else np.sqrt(a))[1:-1, 2:] + a[:-2, 1:-1] * np.dtype(dtype).type(2))
    with pytest.raises(ValueError, match="the stride of axis 1 must be 1 elements, got 2"):
        kernel(x=a[:, ::2], y=b[:, ::2], k=2)
    view = np.zeros((6, 50), dtype)[:5, 3:46]
    kernel(x=a, y=view, k=2)
    assert np.array_equal(view, b)


@pytest.mark.parametrize("vector", vectors())
def test_vectors_of_random_numbers(vector: str) -> None:
    if vector == "X86_AVX512_FP16":
        pytest.skip("Philox has no half precision")
    made = [np.zeros((4, 37)) for _ in range(4)]
    for a, b, options in (
        (made[0], made[1], {}),
        (made[2], made[3], {"vector": vector, "vectorize_assume_inner_stride_one": True}),
    ):
        build(philox("float64"), ghost_layers=0, **options)(x=a, y=b, time=3)
    assert np.array_equal(made[0], made[2])
    assert np.array_equal(made[1], made[3])


@pytest.mark.parametrize(
    "options",
    [{"openmp_enable": True}, {"openmp_enable": True, "openmp_num_threads": 2}, {"loop_blocking": (4, 8)},
     {"loop_blocking": (4, None), "openmp_enable": True}, {"openmp_enable": True, "openmp_schedule": "dynamic"}],
    ids=str,
)  # fmt: skip
def test_threads_and_blocks(options: dict[str, Any]) -> None:
    kernel = build(ps.Assignment(g.center, FIVE_POINTS), **options)
    a, b = numbers(23, 31), np.zeros((23, 31))
    kernel(f=a, g=b)
    assert np.array_equal(b[1:-1, 1:-1], five_points(a))


def test_a_kernel_for_a_gpu_is_refused() -> None:
    class Gpu:
        name, target = "paint", ps.Target.CUDA

    Gpu.__name__, Gpu.__module__ = "Kernel", "pystencils.codegen.kernel"
    with pytest.raises(JitError, match="paint is made for CUDA, not for a CPU"):
        JIT.compile(Gpu())
