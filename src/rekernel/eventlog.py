"""``loader.log``: what happened, as a tuple that shows itself as a table."""

from __future__ import annotations

import html
import time
from typing import Any

from rekernel.values import LogEvent

__all__ = ["Log"]

SHOWN = 20
_HEAD = ("time", "what", "kernel", "seconds", "")
_LONGEST = 90


class Log(tuple[LogEvent, ...]):
    """Events, oldest first: a tuple, of which the last 20 are shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        table = _rows(self)
        head = f"<log: {len(self)} event{'' if len(self) == 1 else 's'}>"
        if len(self) > SHOWN:
            table.insert(0, ("...", f"{len(self) - SHOWN} earlier", "", "", ""))
        widths = [max((len(row[i]) for row in table), default=0) for i in range(4)]
        lines = []
        for row in table:
            when, what, kernel, seconds, said = row
            cells = [when.ljust(widths[0]), what.ljust(widths[1]), kernel.ljust(widths[2]), seconds.rjust(widths[3])]
            lines.append("  ".join([" ", *cells, said]).rstrip())
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{title}</th>" for title in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in _rows(self)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __getitem__(self, index: Any) -> Any:
        """Return an event, or for a slice a log."""
        found = super().__getitem__(index)
        return Log(found) if isinstance(index, slice) else found


def _rows(events: tuple[LogEvent, ...]) -> list[tuple[str, str, str, str, str]]:
    return [
        (
            time.strftime("%H:%M:%S", time.localtime(event.time)), event.kind, _one_line(event.title, 40),
            f"{event.seconds:.3f}" if event.seconds else "", _one_line(event.error or event.rebuilt_because or ""),
        )
        for event in tuple.__getitem__(events, slice(-SHOWN, None))
    ]  # fmt: skip


def _one_line(text: str, most: int = _LONGEST) -> str:
    line = text.split("\n")[0]
    line = line if line.isprintable() else repr(line)[1:-1]
    return line if len(line) <= most else f"{line[: most - 3]}..."
