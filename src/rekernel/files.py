"""Files that appear whole or not at all, on file systems that are shared, slow or full."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rekernel.cachedir import make_private
from rekernel.workdirs import mark

if TYPE_CHECKING:
    from pathlib import Path

_PASSING = {errno.ESTALE, errno.EBUSY, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTEMPTY, errno.EINTR}
_PAUSES = (0.001, 0.004, 0.016)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_T = TypeVar("_T")


def replace(path: str, blob: bytes, tmp: str) -> None:
    """Write a file whole, by one rename from the directory `tmp` of the same file system."""
    temporary = os.path.join(tmp, f"{mark()}-{os.urandom(6).hex()}")
    try:
        persist(lambda: write(temporary, blob), parent=tmp)
        persist(lambda: os.replace(temporary, path), parent=os.path.dirname(path))
    except BaseException:  # KeyboardInterrupt, too
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Write a file of the user's whole, by one rename beside it, with the rights `mode` less the umask."""
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        descriptor = os.open(temporary, _WRITE, mode)
    except OSError as error:
        error.filename = str(path)  # which the user has named
        raise
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:  # KeyboardInterrupt, too
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write(path: str, blob: bytes) -> None:
    """Write a new file for this user alone. What was there under this name is removed."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # of an attempt before
    descriptor = os.open(path, _WRITE, 0o600)
    try:
        rest = memoryview(blob)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        now = time.time_ns()  # finer than the clock of the file system, so that the order of use is right
        with suppress(OSError, TypeError):  # TypeError: this system takes paths only
            os.utime(descriptor, ns=(now, now))
    finally:
        os.close(descriptor)  # raises where a network file system finds out only now that the disk is full


def persist(action: Callable[[], _T], parent: str = "") -> _T:
    """Do something again while it fails for a reason that may pass: NFS, another process, a removed directory.

    A missing `parent` is made.
    """
    for pause in _PAUSES:
        try:
            return action()
        except FileNotFoundError:
            if not parent:
                raise
            make_private(parent)
            if pause == _PAUSES[0]:
                continue  # usual in a young cache, and nothing to wait for
        except OSError as error:
            if error.errno not in _PASSING:
                raise
        time.sleep(pause)
    return action()
