"""Fault 53, CUDA text: an empty grid launches nothing, one beyond a limit is refused and the limit named."""

from __future__ import annotations

from typing import Any

import pytest

from cudakit import CupyArray, FakeCuda, cuda_fixture, cupy_fixture  # noqa: F401
from rekernel import ArgumentValueError, KernelLoader
from rekernel.launchgrid import LaunchGrid
from test_cuda_language import driver, loader  # noqa: F401
from test_cuda_texts import pytestmark  # noqa: F401

TEXT = "__global__ void k(rekernel::Array<int, 2> x) {}"


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_an_empty_array_launches_nothing(shape: tuple[int, int], cuda: FakeCuda, loader: KernelLoader) -> None:
    assert loader.load(TEXT).k[LaunchGrid.cover(shape)](CupyArray(shape, "int32")) is None
    assert cuda.count == 0


@pytest.mark.parametrize(
    ("grid", "block", "limit"),
    [(1, (2048, 1, 1), "1024"), (1, (32, 64), "1024 threads in all"), (1, (1, 1, 65), "64"), ((1, 65536), 1, "65535"),
     ((1, 1, 70000), 1, "65535"), (2**31, 1, "2147483647")],
)  # fmt: skip
def test_a_limit_is_named(grid: Any, block: Any, limit: str, cuda: FakeCuda, loader: KernelLoader) -> None:
    with pytest.raises(ArgumentValueError, match=limit):
        loader.load(TEXT).k[grid, block](CupyArray((3, 3), "int32"))
    assert cuda.count == 0
