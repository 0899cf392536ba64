"""The figures as rows: printed side by side, judged against what the project has to reach, kept for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import peers
from samples import Figure


@dataclass
class Row:
    """One figure for every peer that has it."""

    title: str
    unit: str
    values: Mapping[str, Figure]
    limit: Figure | float | None = None
    """What rekernel has to stay under; a `Figure` gives minimum and median a limit each."""
    limit_text: str = ""
    note: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = self.values.get(peers.Rekernel.name)
        if self.limit is None or own is None:
            return
        limit = self.limit if isinstance(self.limit, Figure) else Figure(self.limit, self.limit, own.count)
        self.verdicts["minimum"] = "ok" if own.minimum <= limit.minimum else "MISSED"
        if own.count > 1:
            self.verdicts["median"] = "ok" if own.median <= limit.median else "MISSED"
        self.limit_text = self.limit_text or f"<= {limit.minimum:g} {self.unit}"

    def lines(self) -> list[str]:
        cells = "".join(f"{self.values.get(name, '-')!s:>22}" for name in peers.NAMES)
        count = max((value.count for value in self.values.values()), default=0)
        found = [f"{self.title + ', ' + self.unit:<52}{count:>4}{cells}"]
        if self.verdicts:
            said = ", ".join(f"{key} {value}" for key, value in self.verdicts.items())
            found.append(f"    target {self.limit_text}: {said}")
        if self.note:
            found.append(f"    {self.note}")
        return found

    def plain(self) -> dict[str, Any]:
        return asdict(self)


HEAD = f"{'minimum / median of':<52}{'n':>4}" + "".join(f"{name:>22}" for name in peers.NAMES)


def ratio(row: Row, other: str = peers.Bare.name) -> tuple[float, float]:
    """Return rekernel's minimum and median over those of another peer."""
    own, base = row.values[peers.Rekernel.name], row.values[other]
    return own.minimum / base.minimum, own.median / base.median
