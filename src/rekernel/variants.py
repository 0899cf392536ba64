"""What the entries of one key have in common: find the one that fits, put one in, take the oldest out.

A key has up to 8 slots. They are tried one by one, without listing a directory, so that a lookup costs the same
in a small and in a large cache.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rekernel import entryfile
from rekernel.entryfile import DamagedError, Unpacked
from rekernel.objstore import SLOTS, Store

Valid = Callable[[Mapping[str, Any]], str | None]

LEAVE = 0.8  # of the limit, so that not every publication has to look for room


@dataclass(frozen=True)
class Found:
    """The result of looking for a key."""

    entry: Unpacked | None
    """The one that fits."""
    reason: str
    """Why there is none: that of the latest one, which tells best what has changed since."""
    damaged: tuple[str, ...]
    """What was wrong with entries that were taken out."""
    trouble: OSError | None
    """Why a slot could not be read."""


@dataclass(frozen=True)
class Checked:
    """What `ObjectCache.verify` found."""

    entries: int = 0
    size: int = 0
    """Bytes, in whole blocks."""
    damaged: tuple[str, ...] = ()
    """One line for each entry that was taken out."""


def find(store: Store, key: str, valid: Valid | None) -> Found:
    """Return the first whole entry that `valid` accepts, and stamp it as used."""
    newest, reason, damaged = -1, "new", []
    trouble: OSError | None = None
    for slot in range(SLOTS):
        try:
            entry = read(store, key, slot)
        except DamagedError as error:
            store.discard(key, slot)
            damaged.append(str(error))
            continue
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EIO):  # not for too many open files, say
                store.discard(key, slot)
            trouble = error
            continue
        if entry is None:
            continue
        why = _asked(valid, entry.manifest)
        if why is None:
            store.used(key, slot)
            return Found(entry, "", tuple(damaged), trouble)
        if entry.head.created > newest:
            newest, reason = entry.head.created, why
    if damaged:
        reason = "damaged"
    elif trouble is not None:
        reason = "unreadable"
    return Found(None, reason, tuple(damaged), trouble)


def read(store: Store, key: str, slot: int) -> Unpacked | None:
    """Return a checked entry, None where there is none."""
    blob = store.read(key, slot)
    return None if blob is None else entryfile.unpack(key, blob)


def manifest(store: Store, key: str) -> Mapping[str, Any] | None:
    """Return the manifest of an entry, unchecked and without its data, or None: good enough to say what it was."""
    for slot in range(SLOTS):
        with suppress(OSError, DamagedError, ValueError):
            first = _head(store, key, slot)
            blob = None if first is None else store.read(key, slot, entryfile.HEAD_SIZE + first.manifest)
            if blob is not None:
                found = json.loads(blob[entryfile.HEAD_SIZE :])
                return found if isinstance(found, dict) else None
    return None


def put(store: Store, key: str, variant: bytes, blob: bytes) -> int | None:
    """Write an entry: over the same variant, else into a free slot, else over the oldest.

    A slot that cannot be written (a directory is there) is passed over. Returns what the store says about its
    size. Two processes may choose the same free slot at the same time: the later one stays, the other builds
    again when it is needed.
    """
    trouble: OSError | None = None
    for slot in _preferred(store, key, variant):
        try:
            return store.write(key, slot, blob)
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            trouble = error
            store.discard(key, slot)
        except OSError as error:
            # Whoever was in the way, another process on Windows or on another host, has the same to write.
            if holds(store, key, slot, variant):
                return 0
            raise error
    raise trouble or OSError("no slot")


def holds(store: Store, key: str, slot: int, variant: bytes) -> bool:
    """Whether a slot seems to hold a variant; the digest is checked when it is used."""
    first = _head(store, key, slot)
    return first is not None and first.variant == variant


def evict(store: Store, limit: int) -> int:
    """Take out the entries unused for longest until 80 % of `limit` are left. Returns how many."""
    items = sorted(store.items())
    total = sum(item.size for item in items)
    removed = 0
    if total > limit:
        for item in items:
            if total <= limit * LEAVE:
                break
            store.discard(item.key, item.slot)
            total -= item.size
            removed += 1
    store.counted(total)
    return removed


def check(store: Store) -> Checked:
    """Read all entries, and take the damaged ones out."""
    whole: list[int] = []
    damaged: list[str] = []
    for item in store.items():
        try:
            if read(store, item.key, item.slot) is not None:
                whole.append(item.size)
        except (DamagedError, OSError) as error:
            store.discard(item.key, item.slot)
            damaged.append(f"{item.key}.{item.slot}: {error}")
    return Checked(len(whole), sum(whole), tuple(damaged))


def _asked(valid: Valid | None, manifest: Mapping[str, Any]) -> str | None:
    try:
        return None if valid is None else valid(manifest)
    except Exception as error:  # a manifest of another shape, a header that vanishes: never a failed call
        return f"cannot be checked: {type(error).__name__}: {error}"


def _head(store: Store, key: str, slot: int) -> entryfile.Head | None:
    with suppress(OSError, DamagedError):
        blob = store.read(key, slot, entryfile.HEAD_SIZE)
        return None if blob is None else entryfile.head(blob)
    return None


def _preferred(store: Store, key: str, variant: bytes) -> list[int]:
    heads = {slot: _head(store, key, slot) for slot in range(SLOTS)}
    same = [slot for slot, first in heads.items() if first is not None and first.variant == variant]
    free = [slot for slot, first in heads.items() if first is None]
    old = sorted((first.created, slot) for slot, first in heads.items() if first is not None)
    return list(dict.fromkeys([*same, *free, *(slot for _, slot in old)]))
