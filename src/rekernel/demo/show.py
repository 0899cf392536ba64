"""What the demo puts on the screen: acts, edits, a moving window on the field, and the table at the end.

On a terminal the window and a progress bar move in place. Anywhere else (a pipe, a log) each act ends in one
plain line, without control codes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from rich.color import Color
from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.style import Style
from rich.table import Table
from rich.text import Text

from rekernel.demo.gray_scott import STEPS_PER_CALL
from rekernel.demo.picture import Field, colours

Advance = Callable[[int, float, Callable[[], Field]], None]
"""Told between the steps: how many are done, how many a second, and how to read the field."""

_FRAMES_PER_SECOND = 8
_LOG_WIDTH = 110
# A braille character is two dots wide and four high; these are its bits, row by row.
_BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_DOT_FROM = 0.2
"""A dot is set where ``v`` is above this."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what an act did."""

    number: int
    version: str
    """For example ``v3 whirl``."""
    change: str
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
        return f"{self.edit_ms:.2f} ms" if self.edit_ms < 10 else f"{self.edit_ms:,.0f} ms"


class Pace:
    """Counts steps and the time that they took, without the time for showing them."""

    def __init__(self, done: int) -> None:
        self.done = done
        self._timed = 0
        self._seconds = 0.0

    def run(self, step: Callable[[], object], sync: Callable[[], object], total: int) -> None:
        """Steps for about a tenth of a second."""
        before, started = self.done, time.perf_counter()
        try:
            while self.done < total and time.perf_counter() - started < 0.1:
                step()
                self.done += STEPS_PER_CALL
            sync()
        finally:
            self._timed += self.done - before
            self._seconds += time.perf_counter() - started

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self._timed / self._seconds if self._seconds else 0.0


class Show:
    """Everything that is printed, in the order of the play."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console or Console(highlight=False)
        if not self.console.is_terminal:
            self.console.width = max(self.console.width, _LOG_WIDTH)
        self.quiet = quiet

    def say(self, text: str | Text, style: str = "") -> None:
        """One line; nothing in quiet mode. The text is taken as it is, without markup."""
        if not self.quiet:
            self.console.print(text if isinstance(text, Text) else Text(text, style), soft_wrap=True)

    def act(self, number: int, total: int, says: str) -> None:
        """The heading of an act."""
        self.say("")
        heading = Text(f"Act {number} of {total}  ", "bold magenta")
        self.say(heading.append(says, "bold default"))

    def edit(self, lines: Iterable[tuple[int, str]]) -> None:
        """The lines that the reader would have typed."""
        for number, line in lines:
            self.say(f"  {number:>4} {line}", "red" if line.startswith("-") else "green")

    def error(self, text: str) -> None:
        """The error exactly as rekernel prints it, with its first line in red."""
        first, _, rest = text.partition("\n")
        self.say("")
        self.say(first, "bold red")
        if rest:
            self.say(rest)
        self.say("")

    @contextmanager
    def running(self, version: str, total: int) -> Iterator[Advance]:
        """While the steps of one act run; what it gives is to be called between them."""
        if self.quiet or not self.console.is_terminal:
            yield lambda done, rate, field: None
            return
        progress = Progress(
            TextColumn("{task.description}", style="bold"),
            BarColumn(bar_width=None, complete_style="magenta", finished_style="magenta"),
            TextColumn("{task.completed:,} / {task.total:,} steps"),
            TextColumn("{task.fields[rate]:,.0f} steps/s", style="cyan"),
            console=self.console,
            expand=True,
        )
        task = progress.add_task(version, total=total, rate=0.0)
        # A terminal echoes ^C behind the bar; wrapped, it would push up by a line what is erased at the end.
        bar = Constrain(progress, self.console.width - 4)
        shown_at = 0.0
        # Drawn by hand between steps: a drawing thread would take time from Taichi's workers.
        with Live(console=self.console, auto_refresh=False, transient=True) as live:

            def advance(done: int, rate: float, field: Callable[[], Field]) -> None:
                nonlocal shown_at
                progress.update(task, completed=done, rate=rate)
                if time.perf_counter() - shown_at < 1 / _FRAMES_PER_SECOND and done < total:
                    return
                live.update(Group(*self._window(field), bar), refresh=True)
                shown_at = time.perf_counter()

            yield advance

    def _window(self, field: Callable[[], Field]) -> list[Text]:
        columns, rows = min(self.console.width - 2, 110), min(self.console.height - 6, 26)
        if columns < 40 or rows < 6 or not self.console.encoding.startswith("utf"):
            return []
        return window(field(), columns, rows)

    def ran(self, row: Row) -> None:
        """One line when an act is over; in a log it is the only trace of the steps."""
        speed = f"{row.steps_per_second:,.0f} steps/s, {row.mlups:,.0f} MLUP/s"
        self.say(Text("  ran ").append(row.version, "bold cyan").append(f" for {row.steps:,} steps ({speed})"))

    def table(self, rows: Sequence[Row]) -> None:
        """What every act did, and how fast."""
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), title_justify="left")
        table.add_column("act")
        table.add_column("version", no_wrap=True)
        table.add_column("what changed")
        for heading in ("edit to run", "steps", "steps/s", "MLUP/s"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(
                str(row.number),
                row.version,
                row.change,
                Text(f"error: {row.time}", "red") if row.refused else Text(row.time, "green"),
                f"{row.steps:,}",
                f"{row.steps_per_second:,.0f}",
                f"{row.mlups:,.0f}",
            )
        self.console.print()
        self.console.print(table)
        self.console.print()


def window(field: Field, columns: int, rows: int) -> list[Text]:
    """The middle of the field over its whole width, in braille dots and in the colours of the picture.

    >>> [line.plain for line in window(np.eye(8, dtype=np.float32), 4, 1)]
    ['⠀⠑⢄⠀']
    """
    size = field.shape[0]
    across = (np.arange(2 * columns) + 0.5) * size / (2 * columns)
    high = min(4 * rows, 2 * columns)
    down = (np.arange(high - high % 4) + 0.5 - (high - high % 4) / 2) * size / (2 * columns) + size / 2
    values = field[np.ix_(down.astype(int) % size, across.astype(int))]
    cells = values.reshape(len(down) // 4, 4, columns, 2).swapaxes(1, 2)
    characters = ((cells > _DOT_FROM) * _BRAILLE).sum(axis=(2, 3)) + 0x2800
    # Few colours and only the brighter ones: dots on a dark terminal are dark already.
    table = [Style(color=Color.from_rgb(*map(int, rgb))) for rgb in colours(24)[10:]]
    tints = (np.clip(cells.max(axis=(2, 3)) / 0.42, 0, 0.999) * len(table)).astype(int)
    lines = []
    for line_characters, line_tints in zip(characters, tints, strict=True):
        line = Text(no_wrap=True)
        for character, tint in zip(line_characters, line_tints, strict=True):
            line.append(chr(character), table[tint])
        lines.append(line)
    return lines
