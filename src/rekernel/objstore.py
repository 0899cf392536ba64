"""Where entries are kept: files in a private directory, and the same in memory.

A store knows keys, slots and bytes. It does not look into an entry: `objcache` does. Verbs raise OSError, after a
few attempts where the trouble may pass; they never leave a half-written entry under its name.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol

from rekernel import files, workdirs
from rekernel.cachedir import make_private
from rekernel.entryfile import DamagedError
from rekernel.ledger import Ledger

SLOTS = 8
"""How many entries may share a key: the same text with other headers."""
BLOCK = 4096
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Item(NamedTuple):
    """An entry, seen from outside."""

    stamp: int
    """When it was last used, in nanoseconds since 1970."""
    size: int
    """Bytes, in whole blocks."""
    key: str
    slot: int


class Store(Protocol):
    """What a place for entries must be able to do."""

    def read(self, key: str, slot: int, most: int = -1) -> bytes | None:
        """Return an entry, or its first `most` bytes; None where there is none."""

    def write(self, key: str, slot: int, blob: bytes) -> int | None:
        """Put an entry whole into its slot. Returns about how many bytes there are now; None: nobody knows."""

    def used(self, key: str, slot: int) -> None:
        """Stamp an entry as used now."""

    def discard(self, key: str, slot: int) -> None:
        """Take an entry out, whatever it is."""

    def items(self) -> Iterator[Item]:
        """List all entries. Takes time in proportion."""

    def counted(self, total: int) -> None:
        """Hear how many bytes there really are, after a look at all items."""


class MemoryStore:
    """Entries of this process only."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], tuple[int, bytes]] = {}

    def read(self, key: str, slot: int, most: int = -1) -> bytes | None:
        """Return an entry, or its first `most` bytes; None where there is none."""
        found = self._entries.get((key, slot))
        return None if found is None else found[1] if most < 0 else found[1][:most]

    def write(self, key: str, slot: int, blob: bytes) -> int:
        """Put an entry into its slot. Returns how many bytes there are now."""
        self._entries[key, slot] = time.time_ns(), blob
        return sum(_blocks(len(blob)) for _, blob in list(self._entries.values()))

    def used(self, key: str, slot: int) -> None:
        """Stamp an entry as used now."""
        found = self._entries.get((key, slot))
        if found is not None:
            self._entries[key, slot] = time.time_ns(), found[1]

    def discard(self, key: str, slot: int) -> None:
        """Take an entry out."""
        self._entries.pop((key, slot), None)

    def items(self) -> Iterator[Item]:
        """List all entries."""
        for (key, slot), (stamp, blob) in list(self._entries.items()):
            yield Item(stamp, _blocks(len(blob)), key, slot)

    def counted(self, total: int) -> None:
        """Do nothing: the number is always known."""


class FileStore:
    """Entries as files ``objects/a/b/<key>.<slot>`` below a directory that `cachedir.prepare` has checked."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.objects = os.path.join(root, "objects")
        self.tmp = os.path.join(root, "tmp")
        self._ledger = Ledger(os.path.join(root, "ledger"), self.tmp)

    def path(self, key: str, slot: int) -> str:
        """Return the file of an entry. 256 directories: at 100,000 entries each holds 400."""
        return f"{self.objects}/{key[0]}/{key[1]}/{key}.{slot}"

    def read(self, key: str, slot: int, most: int = -1) -> bytes | None:
        """Return an entry, or its first `most` bytes; None where there is none.

        The file is open only in here: whoever has the bytes does not notice that the file is replaced or removed.
        """
        path = self.path(key, slot)
        try:
            return _read(path, most)
        except FileNotFoundError:  # by far the most frequent way: no detour
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise DamagedError("it is a symbolic link") from None
        with suppress(FileNotFoundError):
            return files.persist(lambda: _read(path, most))
        return None

    def write(self, key: str, slot: int, blob: bytes) -> int | None:
        """Put an entry whole into its slot, by one rename. Returns the bytes of all, or None where unknown.

        It is not forced to the disk: what a power failure leaves is damaged, and found to be.
        """
        path = self.path(key, slot)
        before = _size(path)
        files.replace(path, blob, self.tmp)
        with suppress(OSError):
            return self._ledger.add(_blocks(len(blob)) - before)
        return None

    def used(self, key: str, slot: int) -> None:
        """Stamp an entry as used now: its modification time, which nothing else needs. 2 us, so at every use."""
        with suppress(OSError):
            os.utime(self.path(key, slot), follow_symlinks=os.utime not in os.supports_follow_symlinks)

    def discard(self, key: str, slot: int) -> None:
        """Take an entry out, whatever is there: file, link or directory."""
        path = self.path(key, slot)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:  # a directory: moved away first, because removing it takes many steps
            aside = os.path.join(self.tmp, f"{workdirs.mark()}-{time.time_ns():x}")
            with suppress(OSError):
                make_private(self.tmp)
                os.rename(path, aside)
                workdirs.remove(aside)

    def items(self) -> Iterator[Item]:
        """List all entries; what disappears meanwhile is left out."""
        self._ledger.note()
        for directory in (f"{self.objects}/{a}/{b}" for a in "0123456789abcdef" for b in "0123456789abcdef"):
            with suppress(FileNotFoundError), os.scandir(directory) as entries:
                for entry in entries:
                    key, _, slot = entry.name.partition(".")
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if slot.isdecimal():
                            yield Item(status.st_mtime_ns, _blocks(status.st_size), key, int(slot))

    def counted(self, total: int) -> None:
        """Write down how many bytes there really are."""
        with suppress(OSError):
            self._ledger.reset(total)


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def _size(path: str) -> int:
    try:
        return _blocks(os.lstat(path).st_size)
    except OSError:
        return 0


def _read(path: str, most: int) -> bytes:
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError("it is no file")
        if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise DamagedError("another user made it, or can write to it")
        wanted = status.st_size if most < 0 else min(most, status.st_size)
        parts = []
        while wanted > 0 and (part := os.read(descriptor, wanted)):
            parts.append(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)
