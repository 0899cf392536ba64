"""Which headers a unit was compiled with, and whether they are still those.

User headers count by content, system headers by size and time. A list of the headers that were read says
nothing about a file that *would* be read now: one that shadows a header from an earlier directory, or one that
`__has_include` asks for. So the names in the directories that are searched are recorded, too: those that could
shadow a header always, all names where some text contains `__has_include`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rekernel import key

Row = list[Any]  # as JSON gives it back

RACY_NS = 2_000_000_000
# A file changed this short a time ago may change again without a new time stamp, on file systems that count
# in 1 or 2 seconds: what was read from it is used, and not remembered.
DEPTH = 3
# How many directories an #include may name, <a/b/c/x.h>, for a shadowing file to be noticed.
ASKING = (b"__has_include", b"__has_embed")
# What nobody includes. Anything else may be a header: <cmath> and "table.dat" are, too.
NO_HEADER = (".o", ".so", ".a", ".d", ".py", ".pyc", ".ipynb", ".log", ".md", ".tmp", ".swp", ".pyi", "~")

_Stamp = tuple[int, int, int, int]
_contents: dict[str, tuple[_Stamp, str, bool]] = {}
_listings: dict[str, tuple[_Stamp, tuple[str, ...]]] = {}
_accepted: set[tuple[str, str, str]] = set()
_LIMIT = 20_000  # remembered files; a process that has more starts again


class HeaderChangedError(Exception):
    """A header was written while the compiler ran: nobody knows which text it has seen."""


def record(
    user: Iterable[str | os.PathLike[str]],
    system: Iterable[str | os.PathLike[str]] = (),
    directories: Iterable[str | os.PathLike[str]] = (),
    *,
    text: str = "",
    started_ns: int | None = None,
) -> dict[str, list[Row]]:
    """Return ``manifest["headers"]`` for the headers that a compiler has read.

    `directories` are the user's include directories, `text` is the unit itself. `started_ns` is the time at
    which the compiler was started (`time.time_ns`): a header written after it raises `HeaderChangedError`, and so
    does one that is gone; what was built may be used then, and is not to be published. (A compiler needs longer
    to start than the clock of the file system needs for one tick.)
    """
    users, systems = _names(user), _names(system)
    asks = any(word in text.encode("utf-8", "surrogatepass") for word in ASKING)
    rows: list[Row] = []
    for path in users:
        try:
            stamp, digest, asking = _read(path)
        except OSError as error:
            raise HeaderChangedError(f"{path}: {error.strerror}") from None
        if started_ns is not None and stamp[2] > started_ns:
            raise HeaderChangedError(f"{path} was written while the compiler ran")
        asks = asks or asking
        rows.append([path, digest, *_trusted(stamp)])
    known: list[Row] = []
    for path in systems:
        try:
            status = os.stat(path)
        except OSError as error:
            raise HeaderChangedError(f"{path}: {error.strerror}") from None
        known.append([path, status.st_size, status.st_mtime_ns])
    watched = _watched(users + systems)
    searched = [_directory(path, watched, asks) for path in _searched(users, systems, _names(directories))]
    return {"user": rows, "system": known, "directories": searched}


def valid(manifest: Mapping[str, Any], same_text: Callable[[], bool] | None = None) -> str | None:
    """Return None while the headers of a manifest are as they were, otherwise why they are not.

    `same_text` is asked when all headers are the same and only the names in a directory differ, which matters
    only to `__has_include`: it preprocesses and says whether the result is the same. A yes is remembered for
    this process. Without it, such a difference is a reason. ``headers["trusted"]`` are headers that are not looked
    at, only whether another one hides them.
    """
    headers = manifest.get("headers") or {}
    for path, digest, *stamp in headers.get("user", ()):
        why = _user_changed(path, digest, tuple(stamp))
        if why:
            return why
    for path, size, mtime in headers.get("system", ()):
        try:
            status = os.stat(path)
        except OSError:
            return f"header gone: {path}"
        if (status.st_size, status.st_mtime_ns) != (size, mtime):
            return f"header changed: {path}"
    return _directories_changed(headers, same_text)


def settled(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a manifest that is `valid` with the stamps of what was too young to have one and is not any more.

    Such a file is then known by one look. What is taken is what was read, never what is there a moment later.
    """
    headers = manifest["headers"]
    if all(any(row[-4:]) for kind in ("user", "directories") for row in headers.get(kind, ())):
        return manifest
    read = [row[0] for kind in ("user", "system") for row in headers.get(kind, ())]
    watched = _watched([*read, *headers.get("trusted", ())])

    def file_row(row: Row) -> Row:
        known = _contents.get(row[0])
        return [*row[:2], *known[0]] if known is not None and known[1] == row[1] else row

    def directory_row(row: Row) -> Row:
        known = _listings.get(row[0])
        if known is None:
            return row
        names, listing = _seen(known[1], watched, bool(row[2]))
        return [*row[:3], *known[0]] if (names, listing) == (row[1], row[2]) else row

    return {**manifest, "headers": {
        **headers, "user": [*map(file_row, headers.get("user", ()))],
        "directories": [*map(directory_row, headers.get("directories", ()))],
    }}  # fmt: skip


def variant(manifest: Mapping[str, Any]) -> bytes:
    """Return 16 bytes that tell manifests of other header contents apart, without times of user headers."""
    headers = manifest.get("headers") or {}
    parts = (
        [row[:2] for row in headers.get("user", ())],
        headers.get("system", []),
        [row[:3] for row in headers.get("directories", ())],
    )
    return bytes.fromhex(key.content(json.dumps(parts).encode("ascii")))[:16]


def _user_changed(path: str, digest: str, stamp: tuple[int, ...]) -> str | None:
    try:
        now = _stamp(os.stat(path))
        if now == stamp:
            return None
        same = _read(path)[1] == digest
    except OSError:
        return f"header gone: {path}"
    return None if same else f"header changed: {path}"


def _directories_changed(headers: Mapping[str, Any], same_text: Callable[[], bool] | None) -> str | None:
    watched: frozenset[str] | None = None
    asked: list[tuple[str, str, str]] = []
    for path, names, listing, *stamp in headers.get("directories", ()):
        if _stamp_of(path) == tuple(stamp):
            continue
        if watched is None:
            read = [row[0] for kind in ("user", "system") for row in headers.get(kind, ())]
            watched = _watched([*read, *headers.get("trusted", ())])
        _, now_names, now_listing, *_ = _directory(path, watched, bool(listing))
        for name in sorted(set(now_names) - set(names)):
            return f"header may be shadowed: {os.path.join(path, name)}"
        if now_listing != listing and (path, listing, now_listing) not in _accepted:
            asked.append((path, listing, now_listing))
    if not asked:
        return None
    if same_text is None or not same_text():
        return f"names changed: {asked[0][0]}"
    _accepted.update(asked)
    return None


def _names(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    return list(dict.fromkeys(os.path.abspath(os.fspath(path)) for path in paths))


def _stamp(status: os.stat_result) -> _Stamp:
    # The change time, too: `cp -p` and `touch -r` give another text the old modification time.
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _stamp_of(path: str) -> _Stamp | None:
    try:
        return _stamp(os.stat(path))
    except OSError:
        return None


def _settled(stamp: _Stamp) -> bool:
    return max(stamp[2], stamp[3]) + RACY_NS < time.time_ns()


def _trusted(stamp: _Stamp | None) -> Sequence[int]:
    """Return what to record: zeros, which no file has, where the stamp is too young to prove anything."""
    return stamp if stamp is not None and _settled(stamp) else (0, 0, 0, 0)


def _read(path: str) -> tuple[_Stamp, str, bool]:
    """Return stamp, digest, and whether the text contains `__has_include`; from memory where that is sure."""
    known = _contents.get(path)
    if known is not None and known[0] == _stamp_of(path):
        return known
    with open(path, "rb") as stream:
        stamp = _stamp(os.fstat(stream.fileno()))
        data = stream.read()
    found = stamp, key.content(data), any(word in data for word in ASKING)
    _remember(_contents, path, found)
    return found


def _remember(memory: dict[str, Any], path: str, found: tuple[Any, ...]) -> None:
    if _settled(found[0]):
        if len(memory) > _LIMIT:
            memory.clear()
        memory[path] = found


def _directory(path: str, watched: frozenset[str], asks: bool) -> Row:
    """Return one row: path, names that could shadow, digest of all names (or nothing), stamp."""
    stamp, found = _list(path)
    names, listing = _seen(found, watched, asks)
    return [path, names, listing, *_trusted(stamp)]


def _seen(found: Sequence[str], watched: frozenset[str], asks: bool) -> tuple[list[str], str]:
    listing = key.content("\0".join(found).encode("utf-8", "surrogatepass")) if asks else ""
    return [name for name in found if name in watched], listing


def _list(path: str) -> tuple[_Stamp | None, tuple[str, ...]]:
    stamp = _stamp_of(path)
    if stamp is None:
        return None, ()
    known = _listings.get(path)
    if known is not None and known[0] == stamp:
        return known
    try:
        found = stamp, tuple(sorted(name for name in os.listdir(path) if _may_be_included(name)))
    except OSError:
        return None, ()
    _remember(_listings, path, found)
    return found


def _may_be_included(name: str) -> bool:
    return not name.startswith((".", "#", "__pycache__")) and not name.endswith(NO_HEADER)


def _watched(paths: Iterable[str]) -> frozenset[str]:
    """Return every name that a shadowing file, or a new directory on the way to one, would have."""
    return frozenset(part for path in paths for part in path.split(os.sep)[-DEPTH - 1 :])


def _searched(users: list[str], systems: list[str], directories: list[str]) -> list[str]:
    """Return the directories in which a shadowing file could appear.

    Those of the include path, those of the user's headers (a quoted name is searched beside the file that
    includes it), and below both the ones on the way to <a/b/x.h>, as far as they exist: a missing one would
    appear in its parent.
    """
    roots = list(dict.fromkeys(directories + [os.path.dirname(path) for path in users]))
    ways: dict[str, None] = {}
    for parent in dict.fromkeys(os.path.dirname(path) for path in users + systems):
        parts = parent.split(os.sep)[-DEPTH:]
        for first in range(len(parts)):
            for last in range(first, len(parts)):
                ways[os.path.join(*parts[first : last + 1])] = None
    below = [os.path.join(root, way) for root in roots for way in ways if way]
    return list(dict.fromkeys(roots + [path for path in below if os.path.isdir(path)]))
