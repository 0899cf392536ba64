"""Launch grids: what they are made of, what they cover, which limits they name."""

from __future__ import annotations

import pickle
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rekernel.jit
from rekernel import ArgumentTypeError, ArgumentValueError, LaunchGrid


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        (4, 32, ((4, 1, 1), (32, 1, 1))),
        ((4, 5), [8, 4], ((4, 5, 1), (8, 4, 1))),
        ((4, 5, 6), (8, 4, 2), ((4, 5, 6), (8, 4, 2))),
        (np.int32(4), (np.int64(8), np.uint8(4)), ((4, 1, 1), (8, 4, 1))),
        (np.array([4, 5]), np.array(8), ((4, 5, 1), (8, 1, 1))),
        (0, 1, ((0, 1, 1), (1, 1, 1))),
        ((2**31 - 1, 65535, 65535), (1, 1, 64), ((2**31 - 1, 65535, 65535), (1, 1, 64))),
    ],
)
def test_grid_and_block_are_three_plain_integers_each(grid: Any, block: Any, expected: Any) -> None:
    made = LaunchGrid(grid, block)
    assert (made.grid, made.block) == expected
    assert {type(number) for number in made.grid + made.block} == {int}


def test_it_is_a_value() -> None:
    one, same, other = LaunchGrid(4, 32), LaunchGrid((4, 1), (32,)), LaunchGrid(4, 64)
    assert one == same
    assert one != other
    assert hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "LaunchGrid(grid=(4, 1, 1), block=(32, 1, 1))"
    grid, block = one
    assert (grid, block) == ((4, 1, 1), (32, 1, 1))
    with pytest.raises(AttributeError):
        one.grid = (1, 1, 1)  # type: ignore[misc]


def test_it_has_one_name_everywhere() -> None:
    assert rekernel.jit.LaunchGrid is LaunchGrid


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (2**31, 1, r"grid x would be 2147483648: a grid has 0 to 2147483647 blocks along x"),
        ((1, 65536), 1, r"grid y would be 65536: a grid has 0 to 65535 blocks along y"),
        ((1, 1, 65536), 1, r"grid z would be 65536"),
        (-1, 1, r"grid x would be -1"),
        (1, 1025, r"block x would be 1025: a block has 1 to 1024 threads along x"),
        (1, (1, 1, 65), r"block z would be 65: a block has 1 to 64 threads along z"),
        (1, (32, 33), r"block would be 1056: a block has at most 1024 threads in all"),
        (1, 0, r"block x would be 0"),
        ((), 1, r"grid has 0 integers; CUDA has three axes"),
        (1, (1, 1, 1, 1), r"block has 4 integers"),
    ],
)
def test_beyond_a_limit_the_limit_is_named(grid: Any, block: Any, message: str) -> None:
    with pytest.raises(ArgumentValueError, match=f"^{message}"):
        LaunchGrid(grid, block)


@pytest.mark.parametrize(
    "wrong", [1.0, "8", b"8", None, True, (1.0,), (True,), ("1",), np.array([1.5]), np.array(1.5), {}.keys]
)
def test_what_is_no_integer_is_refused_by_name(wrong: Any) -> None:
    for name in ("grid", "block"):
        with pytest.raises(ArgumentTypeError, match=f"^{name} is an integer or up to three of them, not "):
            LaunchGrid(**{"grid": 1, "block": 1, name: wrong})
    with pytest.raises(ArgumentTypeError, match=r"^shape is an integer"):
        LaunchGrid.cover(wrong)


@pytest.mark.parametrize(
    ("shape", "block", "grid"),
    [
        (1000, 256, (4, 1, 1)),
        ((1000,), 256, (4, 1, 1)),
        ((), 256, (1, 1, 1)),
        ((3, 1000), 256, (4, 3, 1)),
        ((3, 1000), (32, 8), (32, 1, 1)),
        ((5, 3, 1000), (32, 8, 2), (32, 1, 3)),
        ((2, 5, 3, 1000), 100, (10, 3, 10)),
        ((2, 2, 5, 3, 1000), 100, (10, 3, 20)),
        ((0, 1000), 256, (4, 0, 1)),
        ((1000, 0), 256, (0, 1000, 1)),
        (2**31 * 200, 256, (2**31 * 200 // 256, 1, 1)),
    ],
)
def test_a_cover_rounds_up_with_the_last_axis_as_x(shape: Any, block: Any, grid: Any) -> None:
    assert LaunchGrid.cover(shape, block).grid == grid


@given(st.lists(st.integers(0, 3000), max_size=5), st.tuples(*[st.integers(1, 8)] * 3))
def test_a_cover_has_a_thread_for_each_element_and_no_idle_block(shape: list[int], block: tuple[int, int, int]) -> None:
    sizes = [*[*reversed(shape[-2:]), 1, 1][:2], prod(shape[:-2])]
    if any(-(-size // threads) > 65535 for size, threads in zip(sizes[1:], block[1:], strict=True)):
        with pytest.raises(ArgumentValueError, match="65535"):
            LaunchGrid.cover(shape, block)
        return
    made = LaunchGrid.cover(shape, block)
    for size, blocks, threads in zip(sizes, made.grid, made.block, strict=True):
        assert blocks * threads >= size
        assert size > (blocks - 1) * threads


def test_a_cover_beyond_a_limit_says_how_to_get_below_it() -> None:
    with pytest.raises(
        ArgumentValueError, match=r"grid y would be 100000: .* 65535 .*give a block with more threads along y"
    ):
        LaunchGrid.cover((100_000, 10))
    assert LaunchGrid.cover((100_000, 10), (32, 8)).grid == (1, 12500, 1)
    with pytest.raises(ArgumentValueError, match="extents are not negative"):
        LaunchGrid.cover((3, -1))


def test_all_small_shapes_are_covered() -> None:
    for shape in product(range(4), repeat=3):
        assert prod(LaunchGrid.cover(shape, (1, 1, 1)).grid) == prod(shape)
