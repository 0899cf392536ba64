"""``loader.hold()``: a thread that sees no swap made by another one while it is inside."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.locks import rlock, unbroken

if TYPE_CHECKING:
    from rekernel.live import Edition, Live


class Inside:
    """One ``with loader.hold()`` that runs. Held weakly, so that it ends even if Ctrl-C comes as it begins or ends."""


@dataclass(eq=False)
class Hold:
    """One thread's promise to see no foreign swap."""

    inside: weakref.WeakSet[Inside] = field(default_factory=weakref.WeakSet)
    snapshot: dict[Live, Edition | None] = field(default_factory=dict)


class Holds:
    """All holds of the process. Entering costs nothing: a swap puts the old version into foreign holds."""

    def __init__(self) -> None:
        self.lock = rlock()
        self.active: dict[tuple[int, int], Hold] = {}
        self.later: list[tuple[Live, Callable[[], None]]] = []

    def mine(self, loader: Any) -> Hold | None:
        """Return the asking thread's hold on a loader, or None."""
        hold = self.active.get((id(loader), threading.get_ident()))
        return hold if hold is not None and hold.inside else None

    def enter(self, loader: Any, inside: Inside) -> None:
        """Begin a hold of this thread, or go one deeper."""
        key = (id(loader), threading.get_ident())
        with self.lock:
            if self.mine(loader) is None:
                self._end(key)
            self.active.setdefault(key, Hold()).inside.add(inside)

    def leave(self, loader: Any, inside: Inside) -> None:
        """End it, and do what was put off until then."""
        key = (id(loader), threading.get_ident())
        with unbroken(), self.lock:
            hold = self.active.get(key)
            if hold is not None:
                hold.inside.discard(inside)
            if hold is None or hold.inside:
                return
            self._end(key)
        self._catch_up()

    def _end(self, key: tuple[int, int]) -> None:
        hold = self.active.pop(key, None)
        for live in () if hold is None else hold.snapshot:
            self._asked(live)

    def swap(self, changes: list[tuple[Live, tuple[Any, ...] | None, Edition | None]]) -> None:
        """Swap several ids at once, for everybody but foreign holders."""
        me = threading.get_ident()
        with self.lock:
            for live, _, _ in changes:
                for (loader, thread), hold in self.active.items():
                    if loader == id(live.loader()) and thread != me and hold.inside:
                        hold.snapshot.setdefault(live, live.current)
                self.show(live)
            _native.swap([(live.cell, table, edition) for live, table, edition in changes])

    def show(self, live: Live) -> None:
        """Let the asking thread see what serves an id now, for it has loaded this itself."""
        with self.lock:
            own = self.mine(live.loader())
            if own is not None:
                own.snapshot.pop(live, None)
            self._asked(live)

    def ask(self, live: Live, waiting: bool) -> None:
        """Note whether a text waits to be loaded at the next use of this id (see `rekernel.waiting`)."""
        with self.lock:
            live.waiting = waiting
            self._asked(live)

    def _asked(self, live: Live) -> None:
        """Let every call of an id ask its hook first, or none."""
        live.cell.override = live.waiting or any(live in hold.snapshot for hold in self.active.values())

    def when_free(self, live: Live, act: Callable[[], None]) -> None:
        """Do something now, or when no thread holds an older version of this id any more."""
        with self.lock:
            if any(live in hold.snapshot for hold in self.active.values() if hold.inside):
                self.later.append((live, act))
                return
        act()

    def only_mine(self) -> None:
        """Forget the holds of other threads: a forked child does not have them."""
        me = threading.get_ident()
        left = {live for key, hold in self.active.items() if key[1] != me for live in hold.snapshot}
        self.active = {key: hold for key, hold in self.active.items() if key[1] == me}
        for live in left:
            self._asked(live)
        self._catch_up()

    def _catch_up(self) -> None:
        """Do what was put off and is free now. The lock is not held meanwhile."""
        with self.lock:
            held = {live for hold in self.active.values() for live in hold.snapshot}
            due = [act for live, act in self.later if live not in held]
            self.later = [(live, act) for live, act in self.later if live in held]
        for act in due:
            act()


holds = Holds()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=holds.only_mine)  # after that of `locks`, which opens the lock
