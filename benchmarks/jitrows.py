"""Figures of the CPU JIT as rows: printed, judged by what the project has to reach, kept for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from samples import Figure

__all__ = ["HEAD", "Row", "counted", "ratio", "scaled"]


@dataclass(frozen=True)
class Row:
    """One figure of one candidate."""

    title: str
    unit: str
    value: Figure
    limit: float | None = None
    """What it has to reach."""
    least: bool = False
    """Whether `limit` is a lower one."""
    judged: tuple[str, ...] = ("minimum",)
    """What the limit is for; the other is shown."""
    note: str = ""

    @property
    def verdicts(self) -> dict[str, str]:
        """Return ``ok`` or ``MISSED`` for the minimum, and for the median where it counts."""
        if self.limit is None:
            return {}
        found = {name: getattr(self.value, name) for name in self.judged}
        good = {name: value >= self.limit if self.least else value <= self.limit for name, value in found.items()}
        return {name: "ok" if reached else "MISSED" for name, reached in good.items()}

    def __str__(self) -> str:
        sign = ">=" if self.least else "<="
        target = "" if self.limit is None else f"{sign} {self.limit:.4g}"
        said = ", ".join(f"{name} {word}" for name, word in self.verdicts.items())
        line = f"{self.title + ', ' + self.unit:<66}{self.value.count:>5}{self.value!s:>22}  {target:<10}{said}"
        return line.rstrip() + (f"\n    {self.note}" if self.note else "")

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "verdicts": self.verdicts}


HEAD = f"{'':<66}{'n':>5}{'minimum / median':>22}  target"


def scaled(title: str, unit: str, values: Figure | Iterable[float], factor: float = 1.0, **options: Any) -> Row:
    """Return the row of a figure, or of single values, in another unit."""
    figure = values if isinstance(values, Figure) else Figure.of(values)
    return Row(title, unit, figure.times(factor), **options)


def counted(title: str, unit: str, value: float, **options: Any) -> Row:
    """Return the row of something that is counted once."""
    return Row(title, unit, Figure(value, value, 1), **options)


def ratio(title: str, own: Figure, other: Figure, **options: Any) -> Row:
    """Return the row of how many times the one is the other; minimum by minimum, median by median."""
    return Row(title, "times", Figure(own.minimum / other.minimum, own.median / other.median, own.count), **options)
