"""Grids on a device: as many threads as asked for, limits, empty ones, and more than 2**31 elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukit import QUIET, cupy, new_loader
from rekernel import ArgumentValueError, KernelLoader
from rekernel.launchgrid import LaunchGrid

pytestmark = QUIET

COUNT = """
__global__ void count(unsigned long long *threads) { atomicAdd(threads, 1ull); }
__global__ void visit(rekernel::Array<int, 3> x) {
    int64_t i = int64_t(blockIdx.z) * blockDim.z + threadIdx.z;
    int64_t j = int64_t(blockIdx.y) * blockDim.y + threadIdx.y;
    int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < x.shape(0) && j < x.shape(1) && k < x.shape(2)) atomicAdd(&x(i, j, k), 1);
}
"""
HALVES = """
__global__ void halves(rekernel::Array<uint8_t, 1> x, int first, int second) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < x.shape(0)) x(i) = i < (int64_t(1) << 31) ? first : second;
}
"""


@pytest.fixture
def loader() -> Iterator[KernelLoader]:
    with new_loader() as made:
        yield made


@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (3, 1024), ((5, 7), (32, 8)), ((2, 3, 4), (4, 4, 64)), ((1, 65535), 1), ((1, 1, 65535), 2), (1 << 20, 1)],
)
def test_as_many_threads_run_as_the_brackets_say(loader: KernelLoader, grid: Any, block: Any) -> None:
    threads = cupy.zeros(1, "uint64")
    loader.load(COUNT).count[grid, block](threads)
    assert int(threads[0]) == np.prod(grid, dtype=np.int64) * np.prod(block, dtype=np.int64)


@pytest.mark.parametrize("grid", [0, (0, 5), (5, 0), (1, 1, 0)])
def test_an_empty_grid_launches_nothing(loader: KernelLoader, grid: Any) -> None:
    threads = cupy.zeros(1, "uint64")
    loader.load(COUNT).count[grid, 32](threads)
    assert int(threads[0]) == 0


@pytest.mark.parametrize(
    ("grid", "block", "limit"),
    [
        (1, 1025, "1024"),
        (1, (1, 1, 65), "64"),
        (1, (32, 64), "1024"),
        ((1, 65536), 1, "65535"),
        (2**31, 1, "2147483647"),
    ],
)
def test_beyond_a_limit_the_limit_is_named(loader: KernelLoader, grid: Any, block: Any, limit: str) -> None:
    threads = cupy.zeros(1, "uint64")
    with pytest.raises(ArgumentValueError, match=limit):
        loader.load(COUNT).count[grid, block](threads)
    assert int(threads[0]) == 0


@settings(max_examples=60)
@given(
    st.tuples(*[st.integers(0, 40)] * 3),
    st.sampled_from([1, 32, 256, (16, 16), (32, 4, 2), (1, 1, 64), (8, 8, 8)]),
)
def test_cover_reaches_every_element_once(shape: tuple[int, int, int], block: Any) -> None:
    with new_loader() as loader:
        x = cupy.zeros(shape, "int32")
        loader.load(COUNT).visit[LaunchGrid.cover(shape, block)](x)
        assert bool((x == 1).all())


def test_more_than_2_to_the_31_elements_are_reached(loader: KernelLoader) -> None:
    count, kernel = 2_200_000_000, loader.load(HALVES).halves
    if cupy.cuda.runtime.memGetInfo()[0] < 2 * count:
        pytest.skip("less than 4.4 GB of the device's memory are free")
    x = cupy.zeros(count, "uint8")

    def holds(view: Any, value: int) -> bool:  # in parts, so that only the kernel's own indices go beyond 2**31
        return all(bool((view[at : at + (1 << 28)] == value).all()) for at in range(0, view.size, 1 << 28))

    kernel[LaunchGrid.cover(count, 1024)](x, 3, 4)
    assert holds(x[: 1 << 31], 3)
    assert holds(x[1 << 31 :], 4)
    kernel[LaunchGrid.cover(count, 1024)](x[::-1], 5, 6)
    rest = count - (1 << 31)
    assert holds(x[:rest], 6)
    assert holds(x[rest:], 5)
    del x
    cupy.get_default_memory_pool().free_all_blocks()
