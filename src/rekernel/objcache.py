"""The object cache: what was built once is found again, by every process of this user. It can only help.

An entry is one file, published whole by one rename and checked by size and digest before use. Whatever goes wrong
with the cache, a call goes on as if the entry were not there, and one warning per kind of trouble says so.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rekernel import buildlock, cachedir, entryfile, headers, locks, variants, workdirs
from rekernel.buildlock import Turn
from rekernel.cachedir import AUTO, Auto
from rekernel.cachestats import CacheStats, Counters
from rekernel.errors import RekernelWarning
from rekernel.kin import Kin
from rekernel.objstore import FileStore, MemoryStore, Store
from rekernel.variants import Checked, Valid
from rekernel.why import Reason, because

__all__ = ["AUTO", "CacheStats", "Checked", "Entry", "ObjectCache"]

PATIENCE = 10.0
MEMORY = 128 << 20  # bytes at most where there is no directory
TEMPORARY = "rekernel-build-"
_KEY = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True)
class Entry:
    """Something that was found."""

    key: str
    manifest: Mapping[str, Any]
    """What was published with the data, as JSON gives it back: tuples are lists."""
    data: bytes
    """A copy of our own: it stays when the entry is replaced or evicted."""


class ObjectCache:
    """Keeps built objects under the digest of all that made them.

    `directory`: AUTO for the usual place (see `rekernel.cachedir`), a path, or None for no cache at all. `size`:
    the most bytes to keep, a number or text such as ``"500M"``; else REKERNEL_CACHE_SIZE, else 1 GiB. Making one
    touches no file; the directory is looked at when it is first needed. Any thread and any process may use it.

    >>> cache = ObjectCache(None)  # nothing is kept
    >>> cache.directory is None, cache.prune(0)
    (True, 0)
    """

    def __init__(self, directory: str | os.PathLike[str] | Auto | None = AUTO, *, size: int | str | None = None):
        self._directory = directory
        self._limit = None if size is None else cachedir.parse_size(size)
        self._lock = locks.rlock()
        self._ready = False
        self._store: Store | None = None
        self._kin = Kin(None)
        self._warned: set[str] = set()
        self._counted = Counters()
        self._longest = 0.0

    def __repr__(self) -> str:
        store = self._store  # looking at a cache must not open it
        place = store.root if isinstance(store, FileStore) else self._directory if store is None else "in memory"
        return f"<ObjectCache {place}: {self.stats.hits} hits, {self.stats.misses} misses>"

    @property
    def directory(self) -> str | None:
        """The directory in use; None without a cache, or where it is in memory only."""
        store = self._opened()
        return store.root if isinstance(store, FileStore) else None

    @property
    def size(self) -> int:
        """The most bytes that are kept."""
        if self._limit is None:
            self._limit = self._size_of_environment()
        return self._limit

    @property
    def stats(self) -> CacheStats:
        """What happened so far."""
        return self._counted.stats()

    def why(self, key: str) -> str | None:
        """Return why the last lookup of a key was a miss, or None where it was none."""
        return self._counted.why(key)

    def lookup(self, key: str, valid: Valid | None = None, *, again: bool = False) -> Entry | None:
        """Return the entry of a key, or None.

        Several entries may share a key; the first whose manifest `valid` accepts is returned. `valid` says
        why it does not, which is the reason of the miss. `again` is the second look, inside `building`: found
        then, the miss before it does not count.
        """
        _check(key)
        store = self._opened()
        if store is None:
            self._counted.missed(key, "no cache", again)
            return None
        found = variants.find(store, key, valid)
        if found.damaged:
            self._counted.add(damaged=len(found.damaged))
            what = found.damaged[0]
            self._warn("damaged", f"a damaged entry was taken out of the kernel cache: {what}; it is built again")
        if found.trouble is not None:
            self._warn("read", f"an entry of the kernel cache cannot be read ({found.trouble}); it is built again")
        if found.entry is None:
            self._counted.missed(key, found.reason, again)
            return None
        self._counted.hit(key, again)
        return Entry(key, found.entry.manifest, found.entry.data)

    def because(self, key: str, fields: Mapping[str, Any], subject: tuple[str, ...]) -> Reason:
        """Return why the last lookup of a key was a miss: which of its `fields` differs from the nearest entry.

        Compared are the latest entries that were published for the same `subject`; see `rekernel.why`.
        """
        missed = self.why(key) or "new"
        store = self._opened()
        if store is None or missed != "new":
            return because(missed, fields, ())
        manifests = [variants.manifest(store, one) for one in self._kin.keys(subject)]
        return because(missed, fields, [one["fields"] for one in manifests if one and "fields" in one])

    def publish(
        self, key: str, manifest: Mapping[str, Any], data: bytes, *, subject: tuple[str, ...] | None = None
    ) -> bool:
        """Keep something that was built. Returns whether it is there now; what was built is good either way.

        `subject` names the kernels, such as ``("cpp", "heat")``: the next miss of it is compared with this entry by
        what ``manifest["fields"]`` says of its key (`rekernel.why.words`).

        ``manifest["headers"]`` (see `rekernel.headers`) tells entries of one key apart; one with the same
        headers is replaced. A manifest that JSON cannot hold is a TypeError.
        """
        _check(key)
        variant = headers.variant(manifest)
        blob = entryfile.pack(key, variant, time.time_ns(), manifest, bytes(data))
        store = self._opened()
        if store is None or self.size == 0:
            return False
        if len(blob) > self.size:
            self._warn("size", f"an object of {len(blob)} bytes is larger than the whole cache ({self.size} bytes)")
            return False
        try:
            total = variants.put(store, key, variant, blob)
        except OSError as error:
            self._warn("write", f"the kernel cache cannot be written ({error}); what is built is used and not kept")
            return False
        self._counted.add(published=1)
        if subject is not None:
            self._kin.note(subject, key)
        most = self._most(store)
        if total is None or total > most:  # far above: wait for who is at it, do not run ahead of it
            self._evict(store, most, 0.0 if total is None or total < 1.1 * most else 0.5)
        return True

    def prune(self, size: int | str | None = None) -> int:
        """Take out what was not used for longest, until 80 % of `size` are left. Returns how many entries.

        Nothing happens below `size` (that of the cache if not given); 0 empties it. What is loaded stays.
        """
        limit = None if size is None else cachedir.parse_size(size)
        store = self._opened()
        return 0 if store is None else self._evict(store, self._most(store) if limit is None else limit, PATIENCE)

    def verify(self) -> Checked:
        """Read and check all entries, and take the damaged ones out."""
        store = self._opened()
        return Checked() if store is None else variants.check(store)

    @contextmanager
    def building(self, key: str) -> Iterator[Turn]:
        """Hold a lock that keeps other threads and processes from building the same at the same time.

        Look up again inside: another one may have published meanwhile. It only saves work: after 10 s, or three
        times the longest build so far, or where there are no locks, the block runs without it.
        """
        _check(key)
        store = self._opened()
        if not isinstance(store, FileStore):
            yield Turn("")
            return
        with buildlock.turn(os.path.join(store.root, "locks", key), max(PATIENCE, 3 * self._longest)) as mine:
            if mine.waited and not mine.held and mine.trouble is None:
                self._warn("lock", f"{mine.holder or 'another process'} builds the same kernel for more than "
                                   f"{mine.waited:.0f} s; building without waiting for it")  # fmt: skip
            started = time.monotonic()
            yield mine
            self._longest = max(self._longest, time.monotonic() - started)

    @contextmanager
    def workdir(self) -> Iterator[str]:
        """Make a private directory for one build, inside the cache or else among the temporary ones.

        It is gone when the block ends. What a killed process has left goes when the next one starts.
        """
        store = self._opened()
        places = [(store.tmp, "")] if isinstance(store, FileStore) else []
        with suppress(OSError):
            import tempfile

            places.append((tempfile.gettempdir(), TEMPORARY))
            if not isinstance(store, FileStore):  # opening a directory has swept it
                workdirs.sweep(*places[-1])
        with workdirs.workdir(places) as path:
            yield path

    def _opened(self) -> Store | None:
        with self._lock:
            if self._ready:
                return self._store
            place = None
            if self._directory is not None:
                place = cachedir.choose(self._directory)
                self._store = MemoryStore() if place.path is None else _start(place.path)
                if isinstance(self._store, FileStore):
                    self._kin = Kin(os.path.join(self._store.root, "kin"), self._store.tmp)
            self._ready = True
        if place is not None and place.warning:
            self._warn("directory", place.warning)
        return self._store

    def _most(self, store: Store) -> int:
        return self.size if isinstance(store, FileStore) else min(self.size, MEMORY)

    def _evict(self, store: Store, limit: int, patience: float) -> int:
        path = os.path.join(store.root, "locks", "prune") if isinstance(store, FileStore) else ""
        try:
            with buildlock.turn(path, patience) as mine:
                if mine.holder and not mine.held and patience < PATIENCE:
                    return 0  # another process is at it
                removed = variants.evict(store, limit)
        except OSError as error:
            self._warn("prune", f"the kernel cache cannot be listed ({error})")
            return 0
        self._counted.add(evicted=removed)
        return removed

    def _size_of_environment(self) -> int:
        text = os.environ.get("REKERNEL_CACHE_SIZE", "").strip()
        try:
            return cachedir.parse_size(text) if text else cachedir.DEFAULT_SIZE
        except ValueError as error:
            self._warn("limit", f"REKERNEL_CACHE_SIZE is not understood ({error}); 1 GiB is taken")
            return cachedir.DEFAULT_SIZE

    def _warn(self, kind: str, message: str) -> None:
        """Warn once of each kind. Outside the lock: a warning may be made an exception."""
        with self._lock:
            known = kind in self._warned
            self._warned.add(kind)
        if not known:
            warnings.warn(RekernelWarning(message), stacklevel=3)


def _check(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is no key of the cache: 16 to 128 digits of rekernel.key.digest")


def _start(root: str) -> FileStore:
    """Open a directory, and remove what dead processes have left in it."""
    store = FileStore(root)
    workdirs.sweep(store.tmp)
    buildlock.remove_left(os.path.join(root, "locks"))
    return store
