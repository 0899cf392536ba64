"""Launches on a device: every kind of array, fresh numbers, fresh arrays, and what is refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gpukit import QUIET, SCALE, cupy, library, new_loader, synchronize
from rekernel import ArgumentTypeError, ArgumentValueError, KernelLoader
from rekernel.launchgrid import LaunchGrid

pytestmark = QUIET

TWICE = """
template <class T> __global__ void twice(T *y, const T *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + x[i];
}
template __global__ void twice<float>(float *, const float *, int);
template __global__ void twice<double>(double *, const double *, int);
template __global__ void twice<signed char>(signed char *, const signed char *, int);
template __global__ void twice<short>(short *, const short *, int);
template __global__ void twice<int>(int *, const int *, int);
template __global__ void twice<long long>(long long *, const long long *, int);
template __global__ void twice<unsigned char>(unsigned char *, const unsigned char *, int);
"""
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8")
COPY = """
__global__ void copy(rekernel::Array<float, 2> y, rekernel::Array<const float, 2> x) {
    int64_t i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < y.shape(0) && j < y.shape(1)) y(i, j) = x(i, j);
}
"""
PUT = """
__global__ void put(double *d, float *f, int64_t *l, int64_t at, double a, float b, int64_t c) {
    d[at] = a;
    f[at] = b;
    l[at] = c;
}
"""


@pytest.fixture
def loader() -> Iterator[KernelLoader]:
    with new_loader() as made:
        yield made


def arrays_of(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How a library makes an array on the device from one of NumPy, and how it gives it back."""
    if name == "cupy":
        return cupy.asarray, cupy.asnumpy
    if name == "torch":
        torch = library("torch")
        return (lambda a: torch.from_numpy(a.copy()).cuda()), (lambda t: t.cpu().numpy())
    cuda = library("numba.cuda")
    return cuda.to_device, (lambda d: d.copy_to_host())


# ---- arrays ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["cupy", "torch", "numba"])
def test_arrays_of_every_library_are_read_and_written(loader: KernelLoader, name: str, dtype: str) -> None:
    there, back = arrays_of(name)
    x = np.arange(1000).astype(dtype)
    y, given = there(np.zeros_like(x)), there(x)
    loader.load(TWICE).twice[4, 256](y, given, x.size)
    synchronize()
    np.testing.assert_array_equal(back(y), x + x)
    np.testing.assert_array_equal(back(given), x)


def test_arrays_of_several_libraries_go_into_one_launch(loader: KernelLoader) -> None:
    torch = library("torch")
    x, y = cupy.arange(500, dtype="float32"), torch.zeros(500, device="cuda")
    loader.load(SCALE).scale[LaunchGrid.cover(500)](y, x, 3.0)
    np.testing.assert_array_equal(y.cpu().numpy(), 3 * x.get())


VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "strided": lambda a: a[1::3, ::2],
    "reversed": lambda a: a[::-1, ::-2],
    "transposed": lambda a: a.T,
    "transposed, reversed": lambda a: a.T[::-3, 5:],
    "one column": lambda a: a[:, 7:8],
    "empty": lambda a: a[:, :0],
}


@pytest.mark.parametrize("way", VIEWS)
def test_views_of_cupy_arrays_keep_their_strides(loader: KernelLoader, way: str) -> None:
    view, kernel = VIEWS[way], loader.load(COPY).copy
    base, target = np.random.default_rng(1).random((60, 44), np.float32), np.full((60, 44), -1, np.float32)
    x, y = cupy.asarray(base), cupy.asarray(target)
    kernel[LaunchGrid.cover(view(y).shape, (16, 16))](view(y), view(x))
    view(target)[...] = view(base)
    np.testing.assert_array_equal(y.get(), target)  # what is beside the view is as it was
    plain = cupy.zeros(view(base).shape, "float32")
    kernel[LaunchGrid.cover(plain.shape, (16, 16))](plain, view(x))
    np.testing.assert_array_equal(plain.get(), view(base))


def test_an_array_may_be_read_with_strides_of_0(loader: KernelLoader) -> None:
    x, y = cupy.broadcast_to(cupy.arange(40, dtype="float32"), (30, 40)), cupy.zeros((30, 40), "float32")
    loader.load(COPY).copy[LaunchGrid.cover(y.shape, (16, 16))](y, x)
    np.testing.assert_array_equal(y.get(), np.broadcast_to(np.arange(40, dtype="float32"), (30, 40)))


@pytest.mark.parametrize("way", ["strided", "transposed", "one column", "empty"])
def test_views_of_tensors_keep_their_strides(loader: KernelLoader, way: str) -> None:
    torch, view = library("torch"), VIEWS[way]
    x, y = torch.rand(60, 44, device="cuda"), torch.full((60, 44), -1.0, device="cuda")
    loader.load(COPY).copy[LaunchGrid.cover(tuple(view(y).shape), (16, 16))](view(y), view(x))
    expected = torch.full((60, 44), -1.0, device="cuda")
    view(expected).copy_(view(x))
    assert torch.equal(y, expected)


def test_views_of_numba_arrays_keep_their_strides(loader: KernelLoader) -> None:
    cuda, base = library("numba.cuda"), np.random.default_rng(1).random((60, 44), np.float32)
    x, y = cuda.to_device(base)[1::3, ::2], cupy.zeros((20, 22), "float32")
    loader.load(COPY).copy[LaunchGrid.cover(y.shape, (16, 16))](y, x)
    np.testing.assert_array_equal(y.get(), base[1::3, ::2])


# ---- numbers, and what is held ----


def test_10000_fresh_numbers_are_all_the_ones_that_were_given(loader: KernelLoader) -> None:
    count, rng = 10_000, np.random.default_rng(2)
    kernel = loader.load(PUT).put
    doubles, floats, longs = (cupy.zeros(count, dtype) for dtype in ("float64", "float32", "int64"))
    numbers, wholes = rng.standard_normal(count), rng.integers(-(2**63), 2**63 - 1, count)
    call = kernel[1, 1]
    for at in range(count):
        call(
            doubles, floats, longs, at, float(numbers[at]), float(numbers[at]), int(wholes[at])
        )  # fresh objects, dropped at once
    np.testing.assert_array_equal(doubles.get(), numbers)
    np.testing.assert_array_equal(floats.get(), numbers.astype("float32"))
    np.testing.assert_array_equal(longs.get(), wholes)


def test_1000_fresh_arrays_leave_0_bytes(loader: KernelLoader) -> None:
    kernel, pool = loader.load(SCALE).scale, cupy.get_default_memory_pool()
    y = cupy.zeros(1 << 18, "float32")
    kernel[LaunchGrid.cover(y.shape)](y, cupy.zeros_like(y), 1.0)
    before, seen = pool.used_bytes(), []
    for number in range(1000):
        x = cupy.full(y.shape, number, "float32")
        seen.append(weakref.ref(x))
        kernel[LaunchGrid.cover(y.shape)](y, x, 2.0)
        del x
        assert seen[-1]() is None, "the array is still held after the call"
    assert pool.used_bytes() == before
    np.testing.assert_array_equal(y.get(), np.full(y.shape, 2 * 999, "float32"))


def test_1000_fresh_tensors_leave_0_bytes(loader: KernelLoader) -> None:
    torch, kernel = library("torch"), loader.load(SCALE).scale
    y = torch.zeros(1 << 18, device="cuda")
    kernel[LaunchGrid.cover(y.numel())](y, torch.zeros_like(y), 1.0)
    gc.collect()
    before = torch.cuda.memory_allocated()
    for number in range(1000):
        kernel[LaunchGrid.cover(y.numel())](y, torch.full_like(y, number), 2.0)
    assert torch.cuda.memory_allocated() == before
    assert bool((y == 2 * 999).all())


# ---- refused ----


def test_a_tensor_that_wants_a_gradient_may_be_read_but_not_written(loader: KernelLoader) -> None:
    torch, kernel = library("torch"), loader.load(SCALE).scale
    x, y = torch.ones(64, device="cuda", requires_grad=True), torch.zeros(64, device="cuda")
    kernel[1, 64](y, x, 2.0)
    assert bool((y == 2).all())
    with pytest.raises(ArgumentValueError, match=r"\.detach\(\)"):
        kernel[1, 64](x, y, 2.0)
    kernel[1, 64](x.detach(), y, 2.0)
    assert bool((x == 4).all())


def test_an_array_in_host_memory_is_refused_with_the_way_to_move_it(loader: KernelLoader) -> None:
    kernel, y = loader.load(SCALE).scale, cupy.zeros(64, "float32")
    for x, way in ((np.zeros(64, "f4"), r"cupy\.asarray\(x\)"), (memoryview(np.zeros(64, "f4")), r"x")):
        with pytest.raises(ArgumentTypeError, match=way):
            kernel[1, 64](y, x, 1.0)
    torch = library("torch")
    with pytest.raises(ArgumentTypeError, match=r"x\.cuda\(\)"):
        kernel[1, 64](y, torch.zeros(64), 1.0)


@pytest.mark.parametrize(("dtype", "shape"), [("float64", 64), ("int32", 64), ("float32", (8, 8))])
def test_a_wrong_dtype_or_rank_is_refused(loader: KernelLoader, dtype: str, shape: Any) -> None:
    y = cupy.full(64, 5, "float32")
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=r"\bx\b"):
        loader.load(SCALE).scale[1, 64](y, cupy.zeros(shape, dtype), 1.0)
    assert bool((y == 5).all())


def test_a_call_without_brackets_shows_them(loader: KernelLoader) -> None:
    kernel, y = loader.load(SCALE).scale, cupy.zeros(64, "float32")
    with pytest.raises(TypeError, match=r"scale\[LaunchGrid\.cover\(y\.shape\)\]\(y, x, k\)"):
        kernel(y, y, 1.0)
    with pytest.raises(TypeError, match=r"scale\[\(1,\), \(64,\)\]\("):
        kernel((1,), (64,), (y, y, 1.0))


def test_arrays_of_two_devices_are_refused(loader: KernelLoader) -> None:
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one CUDA device; this needs two")
    y = cupy.zeros(64, "float32")
    with cupy.cuda.Device(1):
        x = cupy.zeros(64, "float32")
    kernel = loader.load(SCALE).scale
    with pytest.raises(ArgumentValueError, match=r"(?s)device 1.*device 0|device 0.*device 1"):
        kernel[1, 64](y, x, 1.0)
    with cupy.cuda.Device(1):
        kernel[1, 64](cupy.zeros_like(x), x, 1.0)
        assert cupy.cuda.runtime.getDevice() == 1
