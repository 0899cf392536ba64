"""Rows of words as lines whose columns stand one below the other. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["aligned"]


def aligned(
    rows: Sequence[Sequence[str]], right: Sequence[int] = (), least: Mapping[int, int] = MappingProxyType({})
) -> list[str]:
    """Return a line for each row; the columns of `right` end together, those of `least` have so many letters at least.

    >>> aligned([("step", "1,000"), ("flux", "7")], right=[1])
    ['step  1,000', 'flux      7']
    """
    widths = [max([least.get(column, 0), *map(len, words)]) for column, words in enumerate(zip(*rows, strict=True))]
    return [
        "  ".join(
            words.rjust(width) if column in right else words.ljust(width)
            for column, (words, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
