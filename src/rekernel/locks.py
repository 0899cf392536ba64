"""Locks that a forked child finds open.

A child of ``fork`` inherits a lock as held when another thread of the parent holds it, and no thread of the
child will ever open it. Every lock of rekernel is made here, and is made anew in the child.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` makes enums: for a function that fails, and slowly
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def rlock() -> Any:  # threading.RLock is a factory function before Python 3.13
    """Return a re-entrant lock that is open in a forked child."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


@contextmanager
def holding(locks: Sequence[Any]) -> Iterator[None]:
    """Hold several locks. Plain nested ``with``: an ``ExitStack`` can lose one to Ctrl-C right after taking it."""
    if not locks:
        yield
        return
    with locks[0], holding(locks[1:]):
        yield


@contextmanager
def unbroken() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done: what changes several things at once must not stop half way.

    Python calls signal handlers in the main thread only, so elsewhere there is nothing to do. The handler is
    as before when the block ends, and is then called for a signal that came meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _signal.getsignal(_signal.SIGINT)
    if not callable(handler):  # ignored, ending the process, or installed by C code: nothing raises
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    _signal.signal(_signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        _signal.signal(_signal.SIGINT, handler)
        if came:
            handler(*came[0])


@contextmanager
def heard() -> Iterator[None]:
    """Raise Ctrl-C at the end of the block if somebody inside has swallowed it, as a bare ``except:`` does."""
    handler = _signal.getsignal(_signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        handler(number, frame)

    _signal.signal(_signal.SIGINT, note)
    try:
        yield
    finally:
        if _signal.getsignal(_signal.SIGINT) is note:  # otherwise the block has set one of its own
            _signal.signal(_signal.SIGINT, handler)
    if came:
        handler(*came[0])


def _reopen() -> None:
    for lock in list(_locks):
        # In place, because native code holds the lock's bound methods. CPython's own modules use the same.
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    from rekernel import _native

    os.register_at_fork(after_in_child=_reopen)
    os.register_at_fork(after_in_child=_native.note_fork)
