"""``loader.log``: what happened, as a tuple that shows itself as a table."""

from __future__ import annotations

import time
from typing import Any

from rekernel import htmltext as html
from rekernel.texttable import aligned
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
        return "\n".join([head, *(f"   {line}" for line in aligned(table, right=[3]))])

    def _repr_html_(self) -> str:
        return html.table(_HEAD, _rows(self), [3])

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
