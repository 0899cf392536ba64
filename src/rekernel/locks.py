"""Locks that a forked child finds open.

A child of ``fork`` inherits a lock as held when another thread of the parent holds it, and no thread of the
child will ever open it. Every lock of rekernel is made here, and is made anew in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def rlock() -> Any:  # threading.RLock is a factory function before Python 3.13
    """Return a re-entrant lock that is open in a forked child."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _reopen() -> None:
    for lock in list(_locks):
        # In place, because native code holds the lock's bound methods. CPython's own modules use the same.
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    from rekernel import _native

    os.register_at_fork(after_in_child=_reopen)
    os.register_at_fork(after_in_child=_native.note_fork)
