"""The CUDA texts of `gpu.py`. Those on pointers are the same for CuPy, for bare NVRTC and for rekernel."""

from __future__ import annotations

from itertools import count
from random import Random

POINTERS = """
extern "C" __global__ void small(double *y, const double *x, double a, double b, long long n) {
    if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x] + b;
}
"""
ARRAYS = """
__global__ void small(rekernel::Array<double, 1> y, rekernel::Array<const double, 1> x, double a, double b, int64_t n) {
    if (threadIdx.x < n) y(threadIdx.x) = a * x(threadIdx.x) + b;
}
"""

JACOBI = """
extern "C" __global__ void jacobi(double *__restrict__ y, const double *__restrict__ x, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
        y[i * n + j] = 0.25 * (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1] + x[i * n + j + 1]);
}
"""
JACOBI_ARRAYS = """
__global__ void jacobi(rekernel::KIND<double, 2> y, rekernel::KIND<const double, 2> x) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < y.shape(0) - 1 && j > 0 && j < y.shape(1) - 1)
        y(i, j) = 0.25 * (x(i - 1, j) + x(i + 1, j) + x(i, j - 1) + x(i, j + 1));
}
"""
BLOCKS = ((32, 4), (32, 8), (32, 16), (64, 4), (128, 2), (128, 4), (256, 1), (512, 1))

_COLD = """
__global__ void cold(double *y, const double *x, double k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1)
        y[i] = k * (x[i - 1] - 2 * x[i] + x[i + 1]) + NUMBER;
}
"""
_NUMBERS, _RANDOM = count(1), Random()


def fresh(kind: str = "pointers") -> tuple[str, float]:
    """A stencil that nobody has compiled before, and the number that it writes where its array is constant."""
    number = next(_NUMBERS) + _RANDOM.random()
    text = _COLD.replace("NUMBER", repr(number))
    if kind == "pointers":
        return text.replace("__global__", 'extern "C" __global__'), number
    return text.replace("const double *x", "A<const double, 1> x").replace("double *y", "A<double, 1> y").replace(
        "A<", "rekernel::Array<"), number  # fmt: skip


PUT = "__global__ void put(double *x, int64_t at, double value) { x[at] = value; }"
SUM = """
__global__ void put(rekernel::Array<float, 1> y, rekernel::Array<const float, 1> x, float k) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < y.shape(0)) y(i) = k * x(i);
}
"""
ROOMY = """
__device__ unsigned char room[1 << 20];  // so that a module that stays is seen
__global__ void put(int *x) {{ room[threadIdx.x] = 1; x[0] = {} + room[threadIdx.x] - 1; }}
"""
FLOOR = """
#include <time.h>
typedef int (*launch_t)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
double seconds(launch_t launch, void *function, void **parameters, int count) {
    double begin = now();
    for (int i = 0; i < count; ++i)
        if (launch(function, 1, 1, 1, 32, 1, 1, 0, 0, parameters, 0)) return -1;
    return (now() - begin) / count;
}
"""
