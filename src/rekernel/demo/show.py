"""What the demo puts on the screen: acts, edits, a moving window on the field, and the table at the end.

On a terminal the window and a progress bar move in place. Anywhere else (a pipe, a log) each act ends in one
plain line, without control codes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from rekernel.demo.gray_scott import Field
from rekernel.demo.results import TOLERANCE, Agreement, Row, Run
from rekernel.demo.window import window

Advance = Callable[[int, float, Callable[[], Field]], None]
"""Told between the steps: how many are done, how many a second, and how to read the field."""

_FRAMES_PER_SECOND = 8
_LOG_WIDTH = 120
_LINES = 12
"""Of an edit, that are shown."""


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

    def edit(self, title: str, lines: Sequence[tuple[int, str]]) -> None:
        """The lines that the reader would have typed, or the first of them."""
        self.say(f"  {title}", "bold")
        for number, line in lines[:_LINES]:
            self.say(f"  {number:>4} {line}", "red" if line.startswith("-") else "green")
        if len(lines) > _LINES:
            self.say(f"       and {len(lines) - _LINES} more lines")

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

    def ran(self, label: str, run: Run) -> None:
        """One line when the steps of an act are over; in a log it is the only trace of them."""
        speed = f"{run.steps_per_second:,.0f} steps/s, {run.mlups:,.0f} MLUP/s"
        self.say(Text("  ran ").append(label, "bold cyan").append(f" for {run.steps:,} steps ({speed})"))

    def agreed(self, found: Agreement) -> None:
        """Whether both languages have come to the same state."""
        if found.close:
            self.say(f"  both states: {found.size:,} values of u and v, equal {found}")
        else:
            far = f"{found.different:,} of {found.size:,} values differ, by up to {found.farthest:.2g}"
            self.say(f"  both states: {far}; the tolerance is {TOLERANCE:g}", "bold red")

    def table(self, rows: Sequence[Row]) -> None:
        """What every act did, and how fast each language was."""
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), title_justify="left")
        both = len(rows[0].runs) == 2
        for heading in ("act", "version", "what changed", "steps"):
            justify: Literal["left", "right"] = "right" if heading == "steps" else "left"
            table.add_column(f"\n{heading}", justify=justify, no_wrap=heading != "what changed")
        for title in rows[0].runs:
            table.add_column(f"{title}\nedit to run", justify="right", no_wrap=True)
            table.add_column("\nsteps/s", justify="right", no_wrap=True)
        if both:
            table.add_column("\nequal", no_wrap=True)
        for row in rows:
            cells: list[str | Text] = []
            for run in row.runs.values():
                cells.append(Text(f"error: {run.time}", "red") if run.refused else Text(run.time, "green"))
                cells.append(f"{run.steps_per_second:,.0f}")
            steps = " / ".join(dict.fromkeys(f"{run.steps:,}" for run in row.runs.values()))
            agreed = [str(row.agreement or "-")] if both else []
            table.add_row(str(row.number), row.version, row.change, steps, *cells, *agreed)
        self.console.print()
        self.console.print(table)
        self.console.print()
