"""Locks of the operating system that save double work, and nothing else: without one, all still goes right.

The system frees such a lock when its holder dies, however it dies. It is closed in children (exec and fork), so
that no child keeps it. Where the file system has no locks, there is none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rekernel.cachedir import make_private
from rekernel.workdirs import host_name

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same kernel, each publishes a whole entry
    fcntl = None

__all__ = ["Turn", "remove_left", "turn"]

TELL_AFTER = 1.0
NOTE = 128
_open: dict[int, Turn] = {}


class Turn:
    """One thread's turn at building one thing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.held = False
        """Whether the lock is ours. False: there are no locks here, or waiting took too long."""
        self.waited = 0.0
        """Seconds spent on waiting."""
        self.holder = ""
        """Who held it while we waited: process and host."""
        self.trouble: OSError | None = None
        """Why there is no lock, where the reason is not another holder."""
        self.descriptor: int | None = None

    def __repr__(self) -> str:
        return f"<Turn {'held' if self.held else 'without lock'}, waited {self.waited:.1f} s>"


@contextmanager
def turn(path: str, patience: float) -> Iterator[Turn]:
    """Take the lock file `path`, waiting at most `patience` seconds; go on without it then. No path, no lock."""
    mine = Turn(path)
    try:
        _acquire(mine, patience)
        yield mine
    finally:
        _release(mine)


def remove_left(directory: str) -> int:
    """Remove lock files that nobody holds: their holders were killed. Returns how many."""
    removed = 0
    if fcntl is None:
        return removed
    with suppress(OSError):
        for name in os.listdir(directory):
            left = Turn(os.path.join(directory, name))
            try:
                with suppress(OSError):
                    removed += _open_file(left, make=False) and _try(left)
            finally:
                _release(left)
    return removed


def _acquire(mine: Turn, patience: float) -> None:
    if fcntl is None or not mine.path:
        return
    started, pause, told = time.monotonic(), 0.002, False
    try:
        while not (_open_file(mine) and _try(mine)):
            mine.waited = time.monotonic() - started
            if mine.waited >= patience:
                return
            if mine.waited >= TELL_AFTER and not told:
                told = True
                _tell(mine)
            time.sleep(min(pause, max(0.0, patience - mine.waited)))
            pause = min(pause * 1.5, 0.05)
    except OSError as error:  # ENOLCK, EOPNOTSUPP, EROFS, ...: no locks here
        mine.trouble = error


def _tell(mine: Turn) -> None:
    import logging  # seldom needed, and slow to import

    log = logging.getLogger("rekernel")
    log.warning("waiting for %s, which builds the same kernel (%s)", mine.holder or "another", mine.path)


def _open_file(mine: Turn, make: bool = True) -> bool:
    if mine.descriptor is not None:
        return True
    flags = os.O_RDWR | (os.O_CREAT if make else 0) | os.O_NOFOLLOW
    try:
        mine.descriptor = os.open(mine.path, flags, 0o600)
    except FileNotFoundError:
        if not make:
            return False
        make_private(os.path.dirname(mine.path))
        mine.descriptor = os.open(mine.path, flags, 0o600)
    _open[id(mine)] = mine
    return True


def _try(mine: Turn) -> bool:
    """Take the lock if it is free and the file is still the one under that name."""
    assert mine.descriptor is not None
    try:
        fcntl.flock(mine.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        mine.holder = os.pread(mine.descriptor, NOTE, 0).decode("utf-8", "replace").strip()
        return False
    ours = os.fstat(mine.descriptor)
    try:
        there = os.stat(mine.path, follow_symlinks=False)
    except FileNotFoundError:
        there = None
    if there is None or (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev):
        _close(mine)  # the holder has removed the file; whoever comes now takes a new one
        return False
    mine.held = True
    # One length for all, in place: cutting the file first makes some file systems write to the disk at once (4 ms).
    note = f"process {os.getpid()} on {host_name()}".encode()
    os.pwrite(mine.descriptor, note[:NOTE].ljust(NOTE), 0)
    return True


def _release(mine: Turn) -> None:
    if mine.held:
        mine.held = False
        with suppress(OSError):  # while it is held, so that nobody else's file is removed
            os.unlink(mine.path)
    _close(mine)


def _close(mine: Turn) -> None:
    _open.pop(id(mine), None)
    descriptor, mine.descriptor = mine.descriptor, None
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)


def _leave_to_parent() -> None:
    # Closed, not unlocked: the lock belongs to the open file, which is the parent's as well.
    for mine in list(_open.values()):
        mine.held = False
        _close(mine)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
