"""Whether the object cache is where it should be, whole, and on a disk that is fit for it. Nothing is taken out."""

from __future__ import annotations

import os
from collections.abc import Iterator

from rekernel.commands.checkrows import OK, WARNING, Row

__all__ = ["cache"]

_REMOTE = ("nfs", "cifs", "smb", "fuse.sshfs", "lustre", "gpfs", "beegfs", "afs")
"""File systems on which a lookup waits for the network."""
_ROOM = 1 << 28
"""Bytes that should be free."""


def cache() -> Iterator[Row]:
    """Look at the cache of this user, and read all of its entries."""
    import shutil

    from rekernel import buildlock, cachedir, cachelist
    from rekernel.commands.cache import bytes_said

    place = cachedir.choose()
    own = "set REKERNEL_CACHE_DIR to a directory of your own"
    for tried, why in place.tried:
        yield Row("cache", WARNING, f"{tried} is not used: {why}", own)
    if place.path is None:
        yield Row("cache", WARNING, "in memory only: every process compiles anew", own)
        return
    try:
        limit = cachedir.parse_size(os.environ.get("REKERNEL_CACHE_SIZE", "").strip() or cachedir.DEFAULT_SIZE)
    except ValueError as error:
        limit = cachedir.DEFAULT_SIZE
        yield Row("cache size", WARNING, f"REKERNEL_CACHE_SIZE: {error}", "set it to bytes, or such as 500M")
    count, bad = cachelist.damaged(place.path)
    total, free = sum(one.size for one in cachelist.listed(place.path)), shutil.disk_usage(place.path).free
    yield Row("cache", OK, f"{place.path}: {count} entries, {bytes_said(total)} of {bytes_said(limit)}")
    if bad:
        yield Row("cache entries", WARNING, f"{len(bad)} damaged: {bad[0]}", "rekernel cache verify")
    kind = _file_system(place.path)
    bad_disk = kind.startswith(_REMOTE) or free < _ROOM
    advice = "set REKERNEL_CACHE_DIR to a directory on a local disk with room" if bad_disk else ""
    yield Row("cache disk", WARNING if bad_disk else OK, f"{kind or 'unknown'}, {bytes_said(free)} free", advice)
    with buildlock.turn(os.path.join(place.path, "locks", "doctor"), 1.0) as mine:
        held = mine.held
    if held:
        yield Row("cache locks", OK, "work")
    else:
        advice = "nothing is lost but work: two processes may build the same at the same time"
        yield Row("cache locks", WARNING, f"do not work: {mine.trouble or mine.holder}", advice)


def _file_system(path: str) -> str:
    best, kind = "", ""
    if os.path.exists("/proc/mounts"):
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                where = words[1].replace("\\040", " ")
                if (path + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best):
                    best, kind = where, words[2]
    return kind
