"""What the figures of `gpu.py` share: rows, what is checked, and NVRTC without anything around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cupy
from cupy_backends.cuda.libs import nvrtc
from samples import Figure


class WrongResultError(RuntimeError):
    """A peer computed something else than it should."""


@dataclass
class Row:
    """One figure."""

    title: str
    unit: str
    value: Figure
    limit: float | None = None
    """What it has to reach."""
    least: bool = False
    """Whether the limit is the least that is wanted, and not the most."""
    note: str = ""

    @property
    def verdict(self) -> str:
        """``ok`` if the minimum (or, where more is better, the best) reaches the limit."""
        if self.limit is None:
            return ""
        good = self.value.minimum >= self.limit if self.least else self.value.minimum <= self.limit
        return f"target {'>=' if self.least else '<='} {self.limit:.4g}: {'ok' if good else 'MISSED'}"

    def plain(self) -> dict[str, Any]:
        """The row as JSON has it."""
        return {
            "title": self.title, "unit": self.unit, "minimum": self.value.minimum, "median": self.value.median,
            "count": self.value.count, "verdict": self.verdict, "note": self.note,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.title:<66}{self.value!s:>22} {self.unit:<7} {self.verdict} {self.note}".rstrip()


Rows = Iterator[Row]


def one(value: float) -> Figure:
    """A figure of one measurement."""
    return Figure(value, value, 1)


def synchronize() -> None:
    cupy.cuda.Device().synchronize()


def arch() -> str:
    return f"sm_{cupy.cuda.Device().compute_capability}"


def check(found: Any, wanted: Any, who: str) -> None:
    if found != wanted:
        raise WrongResultError(f"{who}: {found!r} instead of {wanted!r}")


def cubin(text: str, options: tuple[str, ...]) -> bytes:
    """What NVRTC makes of a text."""
    program = nvrtc.createProgram(text, "cold.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={arch()}", *options))
        found: bytes = nvrtc.getCUBIN(program)
    finally:
        nvrtc.destroyProgram(program)
    return found
