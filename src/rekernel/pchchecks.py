"""Whether a precompiled header may be used, and whose turn it is to make one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import pairwise

from rekernel.found import Toolchain
from rekernel.process import SEARCHED

__all__ = ["digest_of", "shadowed", "turn", "usable"]


def usable(toolchain: Toolchain, flags: Sequence[str]) -> bool:
    """Return whether a precompiled header means the same as the headers: nothing else decides what they are."""
    variables = {name for name, _value in toolchain.environment}
    return (
        not variables.intersection(SEARCHED)
        and not toolchain.launcher  # ccache has rules of its own for precompiled headers
        and bool(toolchain.system_dirs)
        and not any(
            flag.startswith(("-include", "-imacros", "-iprefix", "-nostdinc", "-xc")) or flag == "-x" for flag in flags
        )
    )


def shadowed(flags: Sequence[str], toolchain: Toolchain, headers: Sequence[str]) -> bool:
    """Return whether a directory of the user's has a file that could take the place of a system header."""
    directories = [flag[2:] for flag in flags if flag.startswith("-I") and len(flag) > 2]
    directories += [after for flag, after in pairwise(flags) if flag in ("-I", "-isystem", "-iquote", "-idirafter")]
    if not directories:
        return False
    roots = sorted((root.rstrip("/") + "/" for root in toolchain.system_dirs), key=len, reverse=True)
    below = (path[len(root) :] for path in headers for root in roots if path.startswith(root))
    firsts = {path.split("/")[0] for path in below}
    for directory in directories:
        with suppress(FileNotFoundError, NotADirectoryError):
            if not firsts.isdisjoint(os.listdir(directory)):
                return True
    return False


def digest_of(path: str) -> str:
    """Return the digest of a file."""
    digest = blake2b(digest_size=32)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def turn(place: str) -> Iterator[bool]:
    """Hold an operating system's lock while precompiling; gives False where another process holds it. Never waits."""
    try:
        file = open(os.path.join(place, "lock"), "wb")  # noqa: SIM115 - closed below, which lets go
    except OSError:
        yield True
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        except OSError:  # a file system without locks
            mine = True
        yield mine
