"""When a changed file may be built, swapped in, or complained about: contents and clock readings in, decisions out.

A save is seldom one moment. Editors empty a file and then fill it, write it in pieces, put another one in its place, or
save ten times in half a second. So a build begins at the first change, and what becomes of it is shown only when
the content has been the same for a while: sooner where all went well, later where it is an error, because half a text
is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DROP", "NOTHING", "START", "Content", "Settling", "Times", "same"]

Content = Mapping[str, object]
"""What the files of one text hold, by their names: anything that can be compared, None for a file that is not there."""

NOTHING, START, DROP = "nothing", "start", "drop"


@dataclass(frozen=True)
class Times:
    """How long a content must have been the same, in seconds."""

    swap: float = 0.08
    """before it is swapped in"""
    error: float = 0.3
    """before an error is shown, and before a file that is empty or not there counts as meant so"""


def same(one: Content, other: Content) -> bool:
    """Whether two contents agree on all files that both of them know: which files belong to a text may change.

    >>> same({"a.cpp": 1, "a.hpp": 1}, {"a.cpp": 1, "b.hpp": 2})
    True
    """
    return all(one[name] == other[name] for name in one.keys() & other.keys())


class Settling:
    """One text and its files.

    >>> text = Settling({"a.cpp": "old"}, now=0.0)
    >>> text.look({"a.cpp": "half"}, now=1.0), text.look({"a.cpp": "whole"}, now=1.05)
    ('start', 'start')
    >>> round(text.left(now=1.1), 3), text.left(now=1.2)
    (0.03, 0.0)
    >>> text.show({"a.cpp": "whole"})
    >>> text.look({"a.cpp": "whole"}, now=2.0)
    'nothing'
    """

    def __init__(self, shown: Content, now: float, times: Times | None = None) -> None:
        """Begin with the content that serves."""
        self.times = times or Times()
        self.shown = self.seen = shown
        self.since = now
        self.tried: Content | None = None
        self.failed = False

    def look(self, seen: Content, now: float, *, whole: bool = True) -> str:
        """Tell what to do about what the files hold now.

        `START`: build this, and drop what is being built. `DROP`: drop it, for the files are again as they were. A
        content that is not `whole` (empty, not there, not readable) is most likely on its way and begins to count when
        it has been so for as long as an error has to.
        """
        if not same(seen, self.seen):
            self.since = now
        self.seen = seen
        wanted = not same(seen, self.shown) and (whole or self.left(now, error=True) == 0)
        if wanted and (self.tried is None or not same(seen, self.tried)):
            self.tried = seen
            return START
        if not wanted and self.tried is not None:
            self.tried = None
            return DROP
        return NOTHING

    def left(self, now: float, *, error: bool = False) -> float:
        """Return for how many seconds the content must still be the same before its version or `error` is shown."""
        return max(0.0, self.since + (self.times.error if error else self.times.swap) - now)

    @property
    def waits(self) -> bool:
        """Whether the files hold something that is not shown and that nobody builds yet."""
        return self.tried is None and not same(self.seen, self.shown)

    def show(self, content: Content, *, failed: bool = False) -> None:
        """Note that the outcome of a content is public: its version serves, or its error was told."""
        self.shown, self.failed, self.tried = content, failed, None
