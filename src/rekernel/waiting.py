"""Texts that are to be loaded on one thread only, at its next use of them: Taichi's, after their files have changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekernel.holds import holds

if TYPE_CHECKING:
    from rekernel.live import Live

__all__ = ["Waiting"]


@dataclass(frozen=True)
class _One:
    owner: object
    thread: threading.Thread
    lives: tuple[Live, ...]
    """The ids whose use begins the load: the text's own, and those that depend on it."""
    act: Callable[[], None]


class Waiting:
    """What waits in one loader, by id. `act` is called on its thread; it takes itself out when it begins."""

    def __init__(self) -> None:
        self._all: dict[str, _One] = {}

    def put(
        self, kernel_id: str, owner: object, thread: threading.Thread, lives: Iterable[Live], act: Callable[[], None]
    ) -> None:
        """Let a load of `owner` wait, in place of what waited for this id."""
        old = self._all.get(kernel_id)
        if old is not None:
            self.take(kernel_id, old.owner)
        one = self._all[kernel_id] = _One(owner, thread, tuple(lives), act)
        for live in one.lives:
            holds.ask(live, True)

    def take(self, kernel_id: str, owner: object) -> bool:
        """Take the load of an owner out, and tell whether it was there."""
        one = self._all.get(kernel_id)
        if one is None or one.owner is not owner or self._all.pop(kernel_id, None) is not one:
            return False
        for live in one.lives:
            holds.ask(live, any(live in other.lives for other in list(self._all.values())))
        return True

    def catch_up(self, loader: Any) -> None:
        """Do what waits for this thread, unless it is inside ``loader.hold()``."""
        if holds.mine(loader) is None:
            for one in list(self._all.values()):
                if one.thread is threading.current_thread() or not one.thread.is_alive():
                    one.act()

    def __bool__(self) -> bool:
        return bool(self._all)
