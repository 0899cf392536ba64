"""How many threads a GPU kernel runs on: `LaunchGrid`, a value with CUDA's limits. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from rekernel.errors import ArgumentTypeError, ArgumentValueError

__all__ = ["BLOCK", "GRID", "THREADS", "Dim3", "LaunchGrid"]

Dim3 = tuple[int, int, int]

BLOCK: Dim3 = (1024, 1024, 64)
"""The most threads that a block may have along x, y and z."""
THREADS = 1024
"""The most threads of a block in all."""
GRID: Dim3 = (2**31 - 1, 65535, 65535)
"""The most blocks along x, y and z."""


@dataclass(frozen=True, init=False)
class LaunchGrid:
    """A grid of blocks, and the threads of each block: what ``kernel[LaunchGrid(grid, block)]`` launches.

    `grid` and `block`: one to three integers each, in CUDA's order x, y, z; missing ones are 1. A grid with an extent
    of 0 launches nothing. ArgumentTypeError for what is no integer, ArgumentValueError beyond a limit of CUDA, which
    the message names.

    >>> LaunchGrid(10, 256)
    LaunchGrid(grid=(10, 1, 1), block=(256, 1, 1))
    >>> grid, block = LaunchGrid((4, 4), (16, 16))
    >>> grid
    (4, 4, 1)
    """

    grid: Dim3
    """Blocks along x, y, z."""
    block: Dim3
    """Threads of a block along x, y, z."""

    def __init__(self, grid: int | Sequence[int], block: int | Sequence[int]) -> None:
        blocks, threads = _three("grid", grid), _three("block", block)
        for axis, number, most in zip("xyz", threads, BLOCK, strict=True):
            if not 1 <= number <= most:
                raise _beyond("block", axis, number, f"a block has 1 to {most} threads along {axis}")
        if prod(threads) > THREADS:
            raise _beyond("block", "", prod(threads), f"a block has at most {THREADS} threads in all")
        for axis, number, most in zip("xyz", blocks, GRID, strict=True):
            if not 0 <= number <= most:
                raise _beyond("grid", axis, number, f"a grid has 0 to {most} blocks along {axis}")
        object.__setattr__(self, "grid", blocks)
        object.__setattr__(self, "block", threads)

    @classmethod
    def cover(cls, shape: int | Sequence[int], block: int | Sequence[int] = 256) -> LaunchGrid:
        """Return the smallest grid with at least one thread for each element of an array of this shape.

        The last axis of `shape` is x, the one before it y; all axes before these are z together. `block`: threads along
        x, or up to three integers x, y, z. As the number of threads is rounded up, a kernel has to compare its index
        with the extent. An extent of 0 gives a grid that launches nothing.

        >>> LaunchGrid.cover((3, 1000, 1000), (32, 8))
        LaunchGrid(grid=(32, 125, 3), block=(32, 8, 1))
        >>> LaunchGrid.cover(1000)
        LaunchGrid(grid=(4, 1, 1), block=(256, 1, 1))
        """
        extents = _integers("shape", shape)
        if any(extent < 0 for extent in extents):
            raise _beyond("shape", "", min(extents), "extents are not negative")
        threads = cls(1, block).block
        leading = prod(extents[:-2])
        sizes = (*reversed(extents[-2:]), *(1,) * (2 - len(extents)), leading)
        blocks = [-(-size // count) for size, count in zip(sizes, threads, strict=True)]
        for number, most, axis in zip(blocks, GRID, "xyz", strict=True):
            if number > most:
                raise _beyond(
                    "grid", axis, number,
                    f"a grid has at most {most} blocks along {axis}; give a block with more threads along {axis}",
                )  # fmt: skip
        return cls(blocks, threads)

    def __iter__(self) -> Iterator[Dim3]:
        yield self.grid
        yield self.block

    def _repr_html_(self) -> str:
        from rekernel import htmltext as html

        named = {"blocks": self.grid, "threads of each": self.block}
        rows = [(name, *map(str, three), f"{prod(three):,}") for name, three in named.items()]
        return html.block(html.code(repr(self)), html.table(("", "x", "y", "z", "in all"), rows, (1, 2, 3, 4)))


def _three(name: str, given: int | Sequence[int]) -> Dim3:
    numbers = _integers(name, given)
    if not 1 <= len(numbers) <= 3:
        raise ArgumentValueError(
            f"{name} has {len(numbers)} integers; CUDA has three axes, x, y and z",
            argument=name, expected="1 to 3 integers", got=str(len(numbers)),
        )  # fmt: skip
    return cast(Dim3, (*numbers, 1, 1)[:3])


def _integers(name: str, given: Any) -> tuple[int, ...]:
    with suppress(TypeError):
        return (_integer(given),)
    with suppress(TypeError):
        if not isinstance(given, bytes):
            return tuple(map(_integer, given))
    raise ArgumentTypeError(
        f"{name} is an integer or up to three of them, not {given!r}",
        argument=name, expected="integers", got=type(given).__name__,
    )  # fmt: skip


def _integer(given: Any) -> int:
    if isinstance(given, bool):
        raise TypeError
    return operator.index(given)


def _beyond(name: str, axis: str, number: int, limit: str) -> ArgumentValueError:
    place = f"{name} {axis}".rstrip()
    return ArgumentValueError(f"{place} would be {number}: {limit}", argument=name, expected=limit, got=str(number))
