"""``loader.hold()``: a thread that sees no swap made by another one while it is inside."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.locks import rlock

if TYPE_CHECKING:
    from rekernel.live import Edition, Live


@dataclass(eq=False)
class Hold:
    """One thread's promise to see no foreign swap."""

    thread: int
    depth: int = 0
    snapshot: dict[Live, Edition | None] = field(default_factory=dict)


class Holds:
    """All holds of the process. Entering costs nothing: a swap puts the old version into foreign holds."""

    def __init__(self) -> None:
        self.lock = rlock()
        self.active: dict[tuple[int, int], Hold] = {}
        self.later: list[Callable[[], None]] = []

    def mine(self, loader: Any) -> Hold | None:
        """Return the asking thread's hold on a loader, or None."""
        return self.active.get((id(loader), threading.get_ident()))

    def enter(self, loader: Any) -> None:
        """Begin a hold of this thread, or go one deeper."""
        key = (id(loader), threading.get_ident())
        with self.lock:
            self.active.setdefault(key, Hold(key[1])).depth += 1

    def leave(self, loader: Any) -> None:
        """End it; what was put off until no foreign thread holds is done now."""
        key = (id(loader), threading.get_ident())
        with self.lock:
            hold = self.active[key]
            hold.depth -= 1
            if hold.depth:
                return
            del self.active[key]
            for live in hold.snapshot:
                live.cell.override = any(live in other.snapshot for other in self.active.values())
            later, self.later = (self.later, []) if not self.active else ([], self.later)
        for act in later:
            act()

    def swap(self, loader: Any, changes: list[tuple[Live, tuple[Any, ...] | None, Edition | None]]) -> bool:
        """Swap several ids at once for everybody but foreign holders; tell whether there are any."""
        me = (id(loader), threading.get_ident())
        with self.lock:
            foreign = [hold for key, hold in self.active.items() if key != me and key[0] == me[0]]
            for live, _, _ in changes:
                own = self.active.get(me)
                if own is not None:
                    own.snapshot.pop(live, None)
                for hold in foreign:
                    hold.snapshot.setdefault(live, live.current)
                live.cell.override = any(live in hold.snapshot for hold in self.active.values())
            _native.swap([(live.cell, table, edition) for live, table, edition in changes])
        return bool(foreign)


holds = Holds()
