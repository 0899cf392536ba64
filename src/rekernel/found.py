"""A compiler as it was found. A value."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from rekernel.gnutext import LinkLine

__all__ = ["Stamp", "Toolchain", "stamp"]

Stamp = tuple[str, int, int, int]
"""A file as it was: path, inode, size, time of the last change in ns."""


@dataclass(frozen=True)
class Toolchain:
    """A compiler as it was found: what `rekernel.toolchain` needs to call it, and what goes into a key."""

    driver: str
    """The compiler's path, as PATH gives it: the name may matter (a link to ccache)."""
    resolved: str
    """The same with links followed."""
    launcher: tuple[str, ...]
    """What runs it: ``("ccache",)``."""
    verbs: tuple[str, ...]
    """Words that belong to the driver."""
    flags: tuple[str, ...]
    """Flags that the command carried."""
    kind: str
    """``gcc`` or ``clang``, by what it says itself."""
    version: str
    """The line in which it tells its version."""
    triple: str
    """What it compiles for: ``x86_64-linux-gnu``."""
    native: tuple[str, ...]
    """The concrete flags for this CPU; empty where they could not be read."""
    cpu: str
    """A digest of the CPU's model and features."""
    compiler: str
    """The compiler proper: ``.../cc1plus``."""
    system_dirs: tuple[str, ...]
    """Where it looks for system headers."""
    link: LinkLine | None
    """How to call the linker; None: through the driver."""
    stamps: tuple[Stamp, ...]
    """The files that the answers depend on."""
    environment: tuple[tuple[str, str], ...]
    """The environment variables that change what it does; each call gets them."""

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers: ``(12, 2, 0)``."""
        match = re.search(r"(?:version |\) )(\d+(?:\.\d+)*)", self.version)
        return tuple(map(int, match[1].split("."))) if match else ()

    @property
    def command(self) -> list[str]:
        """What a call of the driver begins with."""
        return [self.driver, *self.verbs, *self.flags]

    @property
    def identity(self) -> tuple[tuple[str, Any], ...]:
        """The labelled fields that tell this compiler from others; for keys. Times of files are not among them."""
        sizes = tuple((path, size) for path, _inode, size, _time in self.stamps)
        return (
            ("launcher", self.launcher), ("driver", (self.driver, self.resolved, *self.verbs)), ("flags", self.flags),
            ("version", self.version), ("triple", self.triple), ("files", sizes), ("environment", self.environment),
            ("linker", None if self.link is None else self.link.before[0]),
        )  # fmt: skip


def stamp(path: str) -> Stamp | None:
    """Return a file as it is now, or None where it is not."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_ino, status.st_size, status.st_mtime_ns
