"""CUDA texts on a device, against CuPy: results, reloads on a stream, checks, shared memory, captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from rekernel import KernelLoader  # noqa: E402
from rekernel.launchgrid import LaunchGrid  # noqa: E402

STEP = """
__constant__ float weights[2];
__global__ void step(rekernel::Array<float, 2> y, rekernel::Array<const float, 2> x, float k) {
    int64_t i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < x.shape(0) && j < x.shape(1)) y(i, j) = k * x(i, j) + weights[0];
}
"""
ADD = "__global__ void add(int *x, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += {}; }}"


@pytest.fixture
def loader() -> Any:
    with KernelLoader() as made:
        yield made


def test_any_strides_are_read_and_written(loader: KernelLoader) -> None:
    m = loader.load(STEP, "m")
    m.weights.set([0.5, 0])
    x, y = cupy.random.rand(60, 40).astype("f4").T[::2], cupy.zeros((40, 60), "f4")[::-2]
    for k in range(3):
        m.step[LaunchGrid.cover(y.shape, (16, 16))](y, x, k)
        np.testing.assert_allclose(y.get(), k * x.get() + 0.5, rtol=1e-6)
    np.testing.assert_array_equal(m.weights.get(), np.float32([0.5, 0]))


def test_a_fresh_number_counts_in_every_call(loader: KernelLoader) -> None:
    kernel = loader.load("__global__ void put(double *x, double a) { x[0] = a; }").put
    x = cupy.zeros(1)
    for number in np.random.default_rng(1).random(1000):
        kernel[1, 1](x, float(number))
        assert x.item() == number


def test_templates_and_shared_memory(loader: KernelLoader) -> None:
    text = """
    template <class T> __global__ void total(T *out, const T *x, int n) {
        extern __shared__ unsigned char room[];
        T *part = reinterpret_cast<T *>(room);
        part[threadIdx.x] = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) part[threadIdx.x] += x[i];
        __syncthreads();
        if (threadIdx.x == 0) { out[0] = 0; for (int i = 0; i < blockDim.x; ++i) out[0] += part[i]; }
    }
    template __global__ void total<double>(double *, const double *, int);
    template __global__ void total<int>(int *, const int *, int);
    """
    kernel = loader.load(text).total
    for dtype in ("int32", "float64"):
        x, out = cupy.arange(1000, dtype=dtype), cupy.zeros(1, dtype)
        kernel[1, 1024, None, 1024 * x.itemsize](out, x, 1000)
        assert out.item() == 499500
    out = cupy.zeros(1)
    kernel[1, 1024, None, 100 << 10](out, cupy.ones(10), 10)  # more than 48 KiB
    assert out.item() == 10


def test_reloads_on_a_stream_lose_no_launch(loader: KernelLoader) -> None:
    x, expected = cupy.zeros(1 << 20, "int32"), 0
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    for number in range(20):
        kernel = loader.load(ADD.format(number), "m").add
        for _ in range(50):
            kernel[LaunchGrid.cover(x.size), stream](x, x.size)
        expected += 50 * number
    stream.synchronize()
    assert (x == expected).all()


def test_a_wrong_index_raises_and_the_context_lives_on(loader: KernelLoader) -> None:
    text = "\n__global__ void put(rekernel::Array<float, 1> x, int at) {\n    x(at + threadIdx.x) = 1;\n}\n"
    kernel = loader.load(text, "m", debug=True).put
    x = cupy.zeros(100, "f4")
    with pytest.raises(IndexError, match=r"m\.put\(\), line 3: index \d+ is out of bounds for axis 0 with size 100"):
        kernel[1, 32](x, 90)
    kernel[1, 32](x, 10)
    assert x.sum().item() == 42  # ten before the end, and 32


def test_a_failed_assert_raises_and_the_context_lives_on(loader: KernelLoader) -> None:
    text = "#include <cassert>\n__global__ void put(int *x, int n) {\n  assert(n > 3);\n  x[0] = n;\n}\n"
    kernel = loader.load(text, "m", debug=True).put
    x = cupy.zeros(1, "int32")
    with pytest.raises(AssertionError, match=r"line 3: assert\(n > 3\) failed"):
        kernel[1, 1](x, 2)
    kernel[1, 1](x, 5)
    assert x.item() == 5


def test_torch_tensors_and_their_current_stream(loader: KernelLoader) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    kernel = loader.load(ADD.format(3), "m").add
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.zeros(1 << 20, dtype=torch.int32, device="cuda")
        kernel[LaunchGrid.cover(x.numel())](x, x.numel())
        assert bool((x == 3).all())
    with pytest.raises(ValueError, match=r"\.detach\(\)"):
        loader.load("__global__ void f(float *x) {}").f[1, 1](torch.zeros(3, device="cuda", requires_grad=True))


def test_numba_arrays(loader: KernelLoader) -> None:
    cuda = pytest.importorskip("numba.cuda", reason="Numba's CUDA part is not installed")
    x = cuda.to_device(np.zeros(1000, np.int32))
    loader.load(ADD.format(4), "m").add[4, 256](x, 1000)
    cupy.cuda.Device().synchronize()
    assert (x.copy_to_host() == 4).all()


def test_a_captured_version_is_replayed_after_it_was_replaced(loader: KernelLoader) -> None:
    kernel = loader.load(ADD.format(1), "m").add
    x = cupy.zeros(100, "int32")
    kernel[1, 128](x, 100)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        kernel[1, 128](x, 100)
        graph = stream.end_capture()
    for number in range(2, 6):
        loader.load(ADD.format(number), "m").add[1, 128](x, 0)
    for _ in range(10):
        graph.launch(stream)
    stream.synchronize()
    assert (x == 11).all()
