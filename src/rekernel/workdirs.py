"""Private directories and files of running processes, and how those of dead processes are found.

Names begin with a mark of the process: its number, the time it was started and its host. Numbers are used
again by the system; together with the start they are not.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache

from rekernel.cachedir import make_private

__all__ = ["host_name", "mark", "remove", "sweep", "workdir"]

FOREIGN_SECONDS = 86_400.0
# What another host has left, or who knows who, goes after a day.


def host_name() -> str:
    """Return the name of this host, as ``socket.gethostname`` does."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import socket

    return socket.gethostname()


def mark() -> str:
    """Return the mark of this process."""
    return _mark(os.getpid())


@lru_cache(maxsize=4)
def _mark(pid: int) -> str:
    return f"{pid}-{_started(pid) or 0}-{_host()}"


@contextmanager
def workdir(places: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Make a private directory for one build, and remove it however the block ends.

    `places` are directories, each with a prefix for the name; the first in which one can be made is taken.
    """
    owner, name = os.getpid(), f"{mark()}-{os.urandom(6).hex()}"
    made: list[str] = []
    trouble: OSError | None = None
    try:
        for parent, prefix in places:
            made.append(os.path.join(parent, prefix + name))
            try:
                _mkdir(made[-1])
                break
            except OSError as error:
                trouble = error
        else:
            tried = ", ".join(parent for parent, _ in places) or "nowhere"
            raise OSError(f"no directory for a build can be made (tried: {tried}): {trouble}")
        yield made[-1]
    finally:
        if os.getpid() == owner:  # a child that was forked inside the block leaves it to its parent
            for path in made:
                remove(path)


def sweep(parent: str, prefix: str = "") -> int:
    """Remove what dead processes have left in a directory. Returns how many files and directories."""
    removed = 0
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and _is_left(entry, prefix):
                remove(entry.path)
                removed += 1
    return removed


def remove(path: str) -> None:
    """Remove a file or a whole directory, if that is possible."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            import shutil  # imports every kind of archive

            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    except OSError:
        pass  # in use, or not ours: the next start tries again


def _mkdir(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        os.mkdir(path, 0o700)


def _is_left(entry: os.DirEntry[str], prefix: str) -> bool:
    status = entry.stat(follow_symlinks=False)
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return False
    parts = entry.name.removeprefix(prefix).split("-")
    if len(parts) == 4 and parts[0].isdecimal() and parts[1].isdecimal() and parts[2] == _host():
        return not _alive(int(parts[0]), int(parts[1]))
    return time.time() - status.st_mtime > FOREIGN_SECONDS


def _alive(pid: int, started: int) -> bool:
    now = _started(pid)
    if now is not None:
        return now == started
    if os.name != "posix":  # os.kill(pid, 0) would be Ctrl-C there
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _started(pid: int) -> int | None:
    """Return when a process was started, in the system's ticks; -1 for a zombie, None where nobody knows."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name in parentheses may hold spaces and parentheses; the start is the 22nd field.
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return -1 if fields[0] in (b"Z", b"X") else int(fields[19])


@lru_cache(maxsize=1)
def _host() -> str:
    """Return 8 digits for this host and its table of processes: a container counts its own."""
    table = 0
    with suppress(OSError):
        table = os.stat("/proc/self/ns/pid").st_ino
    return hashlib.blake2b(f"{host_name()} {table}".encode(), digest_size=4).hexdigest()
