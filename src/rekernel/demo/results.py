"""What the demo has measured: values, and how they are written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rekernel.demo.gray_scott import STEPS_PER_CALL, Field

TOLERANCE = 1e-5
"""How far the states of the two languages may be apart. They round alike and should not be apart at all."""


@dataclass(frozen=True)
class Run:
    """What one language did in one act."""

    edit_ms: float
    """From the start of the load to the end of the first new step; a refused edit: to its error."""
    refused: bool
    steps: int
    steps_per_second: float
    mlups: float
    """Million lattice cells updated a second."""

    @property
    def time(self) -> str:
        """The edit-to-run time with as many digits as it deserves."""
        return spelled(self.edit_ms)


@dataclass(frozen=True)
class Row:
    """One line of the table: what an act did."""

    number: int
    version: str
    """For example ``v3 whirl``."""
    change: str
    runs: Mapping[str, Run]
    """By the title of the language."""
    agreement: Agreement | None
    """How the states compare at the end; None where there is one, or where Ctrl-C left them at different steps."""


@dataclass(frozen=True)
class Agreement:
    """How two states compare.

    >>> str(Agreement(0, 524288, 0.0)), Agreement(1, 524288, 2e-5).close
    ('bit for bit', False)
    """

    different: int
    """Values that are not equal bit for bit."""
    size: int
    farthest: float
    """The largest difference; not a number where one of the values is none."""

    @property
    def close(self) -> bool:
        """Whether every difference is within `TOLERANCE`."""
        return self.farthest <= TOLERANCE

    def __str__(self) -> str:
        return "bit for bit" if self.different == 0 else f"within {self.farthest:.1g}"


def agreement(one: tuple[Field, Field], other: tuple[Field, Field]) -> Agreement:
    """Compare the newest values of ``u`` and ``v`` of two states, bit by bit and as numbers."""
    pairs = [(a[0], b[0]) for a, b in zip(one, other, strict=True)]
    different = sum(int((a.view("u4") != b.view("u4")).sum()) for a, b in pairs)
    farthest = float(np.max([abs(a - b).max() for a, b in pairs])) if different else 0.0  # max() may lose a NaN
    return Agreement(different, sum(a.size for a, _ in pairs), farthest)


def spelled(milliseconds: float) -> str:
    """A time with as many digits as it deserves.

    >>> spelled(1234.5), spelled(0.1234)
    ('1,234 ms', '0.12 ms')
    """
    return f"{milliseconds:.2f} ms" if milliseconds < 10 else f"{milliseconds:,.0f} ms"


class Pace:
    """Counts steps and the time that they took, without the time for showing them."""

    def __init__(self, done: int) -> None:
        self.done = done
        self.timed = 0
        self.seconds = 0.0

    def run(self, step: Callable[[], object], sync: Callable[[], object], total: int) -> None:
        """Steps for about a tenth of a second."""
        before, started = self.done, time.perf_counter()
        try:
            while self.done < total and time.perf_counter() - started < 0.1:
                step()
                self.done += STEPS_PER_CALL
            sync()
        finally:
            self.timed += self.done - before
            self.seconds += time.perf_counter() - started

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.timed / self.seconds if self.seconds else 0.0
