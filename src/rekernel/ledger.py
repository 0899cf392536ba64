"""How large the cache is, without counting at every publication."""

from __future__ import annotations

import os
from contextlib import suppress

from rekernel import files, locks

RECORD = 17
RECORDS = 4096  # before the sum is written instead of them
CARRIED = 15  # times that this happens before sizes are counted anew, because a few are always lost


class Ledger:
    """How many bytes a directory holds, without looking: everybody who adds appends 17 bytes to a file.

    The first record is a sum. An estimate: what is killed between adding and writing it down is missing until
    the next count.
    """

    def __init__(self, path: str, tmp: str) -> None:
        self.path = path
        self._tmp = tmp
        self._lock = locks.rlock()
        self._inode = self._offset = self._total = self._carried = 0
        self._noted = (0, 0)

    def add(self, amount: int) -> int | None:
        """Append, and return the sum; None where the file is new, damaged or old, and a count is due."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            os.write(descriptor, b"%+16d\n" % amount)
            with self._lock:
                return self._sum(descriptor)
        finally:
            os.close(descriptor)

    def note(self) -> None:
        """A count begins: what is appended from now on may be missing in it."""
        self._noted = (0, 0)
        with suppress(OSError):
            status = os.stat(self.path)
            self._noted = status.st_ino, status.st_size

    def reset(self, total: int, carried: int = 0) -> None:
        """Begin anew with what was counted since `note`, or carried on that often.

        What others have appended meanwhile is added. The count may have seen it: too much is only counted again.
        """
        try:
            old = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            old = -1
        try:
            files.replace(self.path, b"%x%15d\n" % (carried, total), self._tmp)
            missed = self._appended(old) if old >= 0 else 0
        finally:
            if old >= 0:
                os.close(old)
        if missed:
            self.add(missed)

    def _appended(self, descriptor: int) -> int:
        status = os.fstat(descriptor)
        inode, start = self._noted
        if status.st_ino != inode:  # somebody else has begun anew since
            start = RECORD
        os.lseek(descriptor, start, os.SEEK_SET)
        try:
            return sum(map(int, os.read(descriptor, max(0, status.st_size - start)).split()))
        except ValueError:
            return 0

    def _sum(self, descriptor: int) -> int | None:
        status = os.fstat(descriptor)
        if status.st_ino != self._inode or status.st_size < self._offset:
            self._inode, self._offset, self._total = status.st_ino, 0, 0
        os.lseek(descriptor, self._offset, os.SEEK_SET)
        text = os.read(descriptor, status.st_size - self._offset)
        try:
            if self._offset == 0:
                self._carried, self._total, text = int(text[:1], 16), int(text[1:RECORD]), text[RECORD:]
                self._offset = RECORD
            self._total += sum(map(int, text.split()))
        except ValueError:  # new or damaged
            self._offset = 0
            return None
        self._offset += len(text)
        if status.st_size <= RECORD * RECORDS:
            return self._total
        if self._carried >= CARRIED:
            return None
        self._noted = status.st_ino, self._offset
        self.reset(self._total, self._carried + 1)
        return self._total
