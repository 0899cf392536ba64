"""The play: act by act, the same move on the kernel of each language, the same steps, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rekernel import KernelSourceError
from rekernel.demo import picture
from rekernel.demo.gray_scott import (
    ACTS,
    KERNEL_ID,
    STEPS_PER_CALL,
    Act,
    Field,
    Move,
    changed_lines,
    edited,
    sown,
)
from rekernel.demo.picture import Panel, Strip
from rekernel.demo.results import Pace, Row, Run, agreement
from rekernel.demo.show import Show
from rekernel.demo.sides import Side

_NOTES = {
    Move.START: "loaded in",
    Move.SWAP: "swapped in",
    Move.BREAK: "edit refused in",
    Move.ROLLBACK: "back in",
}
"""What the captions call the time of a move."""


@dataclass
class _Half:
    """A side, and what has been seen of it so far."""

    side: Side
    step: Callable[[], object] = lambda: None
    panels: list[Panel] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0


class Play:
    """The run between its acts."""

    def __init__(self, size: int, seed: int, show: Show, sides: Sequence[Side]) -> None:
        self.size, self.show = size, show
        self.start = sown(size, seed)
        self.halves = [_Half(side) for side in sides]
        self.rows: list[Row] = []
        self.state_kept = True

    @property
    def good(self) -> bool:
        """Whether no swap changed a state, and no state is far from the other one."""
        return self.state_kept and all(row.agreement is None or row.agreement.close for row in self.rows)

    def act(self, number: int, act: Act, steps: int) -> None:
        """One move on each kernel, then the steps; then the row and the panels, also after Ctrl-C."""
        self.show.act(number, len(ACTS), act.says)
        total = -(-steps // STEPS_PER_CALL) * STEPS_PER_CALL
        times = [self._move(half, act) for half in self.halves]
        paces = [Pace(STEPS_PER_CALL) for _ in self.halves]  # the first step is part of the move
        versions = [self._version(half.side, act) for half in self.halves]
        try:
            for half, pace, version in zip(self.halves, paces, versions, strict=True):
                self._run(half, pace, f"{half.side.title} {version}", total)
        finally:
            runs = {}
            for half, pace, edit_ms, version in zip(self.halves, paces, times, versions, strict=True):
                mlups = pace.rate * self.size**2 / 1e6
                run = Run(edit_ms, act.move is Move.BREAK, pace.done, pace.rate, mlups)
                runs[half.side.title] = run
                half.panels.append(
                    Panel(half.side.state()[1][0], version, f"{_NOTES[act.move]} {run.time}  ·  {pace.done:,} steps")
                )
                half.steps, half.seconds = half.steps + pace.timed, half.seconds + pace.seconds
                self.show.ran(f"{half.side.title} {version}", run)
            alike = len(self.halves) == 2 and len({pace.done for pace in paces}) == 1
            agreed = agreement(*(half.side.state() for half in self.halves)) if alike else None
            self.rows.append(Row(number, versions[0], act.change, runs, agreed))
            if agreed is not None:
                self.show.agreed(agreed)

    def close(self, out: Path) -> None:
        """The table, the picture, and whether the states came through."""
        if not self.rows:
            return
        self.show.table(self.rows)
        ran = ", ".join(dict.fromkeys(row.version.split()[0] for row in self.rows))
        self.show.say(f"Each callable 'step' was taken from its module once, in act 1; it ran {ran}.")
        strips = [
            Strip(half.side.title, f"{half.steps / half.seconds:,.0f} steps/s" if half.seconds else "", half.panels)
            for half in self.halves
        ]
        heading = f"Gray-Scott, {self.size} x {self.size} cells: the kernel was replaced while the state went on"
        equal = all(row.agreement is not None and not row.agreement.different for row in self.rows)
        picture.save(out, strips, heading, "the rows are equal, bit for bit" if equal else "")
        if not self.state_kept:
            self.show.say("A swap changed the field, which must not happen.", "bold red")
        self.show.console.print(f"Picture: {out}", soft_wrap=True, highlight=False)

    def _run(self, half: _Half, pace: Pace, label: str, total: int) -> None:
        side = half.side

        def newest() -> Field:
            v: Field = side.state()[1][0]
            return v

        with self.show.running(label, total) as advance:
            while pace.done < total:
                pace.run(half.step, side.sync, total)
                advance(pace.done, pace.rate, newest)

    def _move(self, half: _Half, act: Act) -> float:
        """Do to a kernel what the act begins with, and one step; returns milliseconds from edit to run."""
        side = half.side
        new = edited(side.text, side.model.edits[act.edit]) if act.edit else side.text
        if act.edit:
            self.show.edit(side.title, changed_lines(side.text, new))
        before = None if act.move is Move.START else side.state()
        refusal: KernelSourceError | None = None
        started = time.perf_counter()
        if act.move is Move.ROLLBACK:
            side.loader.rollback(KERNEL_ID)
        elif act.move is Move.BREAK:
            refusal = _refused(side, new)
        else:
            side.load(new)
        spent = time.perf_counter() - started
        if refusal is not None:
            self.show.error(str(refusal))
        if before is None:
            half.step = side.begin(*self.start)  # its step is taken once: it follows every swap
        else:
            self._compare(side, before)
        started = time.perf_counter()
        half.step()
        side.sync()
        return 1e3 * (spent if refusal is not None else spent + time.perf_counter() - started)

    def _compare(self, side: Side, before: tuple[Field, Field]) -> None:
        after = side.state()
        kept = all((old == new).all() for old, new in zip(before, after, strict=True))
        self.state_kept &= kept
        size = f"{sum(values.size for values in after):,} values of u and v"
        says = f"  {side.title} state: {size}, {'none changed' if kept else 'CHANGED'}"
        self.show.say(says, "" if kept else "bold red")

    def _version(self, side: Side, act: Act) -> str:
        """The live version with its name; a rollback gets a new number, and says whose text it has."""
        label = f"v{side.version()} {act.name}"
        if act.move is Move.ROLLBACK:
            first = next(row.version for row in self.rows if row.version.endswith(act.name))
            label += f" = {first.split()[0]}"
        return label


def _refused(side: Side, text: str) -> KernelSourceError:
    try:
        side.load(text)
    except KernelSourceError as error:
        return error
    raise AssertionError(f"the broken edit was accepted as {side.title}")
