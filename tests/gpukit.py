"""What the tests on a device share: a loader that keeps no files, kernels, other libraries, a slow producer."""

from __future__ import annotations

from typing import Any

import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from rekernel import KernelLoader  # noqa: E402
from rekernel.jit.gpu import CupyJit  # noqa: E402

#: CuPy, PyTorch and Numba use what NumPy will drop; that is not ours to report.
QUIET = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:(torch|numba|cupy).*"),
]

#: y = k * x, on any strides.
SCALE = """
__global__ void scale(rekernel::Array<float, 1> y, rekernel::Array<const float, 1> x, float k) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < y.shape(0)) y(i) = k * x(i);
}
"""
ADD = """
__global__ void add(rekernel::Array<int, 1> x) {{
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < x.shape(0)) x(i) += {};
}}
"""
SLOW_CYCLES = 2_000_000
"""About a millisecond."""


def new_loader() -> KernelLoader:
    """A loader whose texts are really compiled: nothing is kept in files."""
    return KernelLoader(jit=CupyJit(objcache=None))


def library(name: str) -> Any:
    """Another library with arrays on the device, or a skip that says so."""
    return pytest.importorskip(name, reason=f"{name} is not installed")


_slow = cupy.RawKernel(
    r"""
    extern "C" __global__ void slow(float *x, float value, long long cycles) {
        long long begin = clock64();
        while (clock64() - begin < cycles) { }
        x[blockIdx.x * blockDim.x + threadIdx.x] = value;
    }
    """,
    "slow",
)


def produce(x: Any, value: float) -> None:
    """Fill a CuPy array of 256 float32 on CuPy's current stream, a millisecond late; this returns at once."""
    assert x.shape == (256,)
    assert x.dtype == "float32"
    _slow((1,), (256,), (x, cupy.float32(value), cupy.int64(SLOW_CYCLES)))


class External:
    """A stream of another library, as CuPy takes it."""

    def __init__(self, address: int, owner: object = None) -> None:
        self.address, self.owner = address, owner

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.address)


def synchronize() -> None:
    """Wait for all that was started on the device."""
    cupy.cuda.Device().synchronize()
