"""Which keys the same kernels had before: what a miss is compared with. It only serves to say why.

256 small files of lines, ``<kernels> <key>``: their number and size are bounded, whatever is loaded.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rekernel import files, key
from rekernel.cachedir import make_private

__all__ = ["Kin"]

MOST = 4  # keys that one is compared with
LINES = 128  # of a file; half of them are left when there are more
_DIGITS = 16
_LINE = _DIGITS + 1 + 64 + 1
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


class Kin:
    """The latest keys of each subject: of ``("cpp", "heat")``, say."""

    def __init__(self, directory: str | None, tmp: str = "") -> None:
        """`directory` is where they are kept; None keeps them in this process only."""
        self._directory, self._tmp = directory, tmp
        self._here: dict[str, list[str]] = {}

    def note(self, subject: tuple[str, ...], digest: str) -> None:
        """Remember a key. What cannot be written is forgotten."""
        name = key.digest([("subject", subject)])[:_DIGITS]
        if self._directory is None:
            self._here[name] = [digest, *self._here.get(name, ())][:MOST]
            return
        with suppress(OSError):
            make_private(self._directory)
            path = os.path.join(self._directory, name[:2])
            descriptor = os.open(path, _APPEND, 0o600)
            try:
                os.write(descriptor, f"{name} {digest}\n".encode("ascii"))
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size > LINES * _LINE:
                kept = "\n".join([*self._lines(path)[-LINES // 2 :], ""])
                files.replace(path, kept.encode("ascii", "replace"), self._tmp)

    def keys(self, subject: tuple[str, ...]) -> list[str]:
        """Return the keys that were noted for a subject, the latest first."""
        name = key.digest([("subject", subject)])[:_DIGITS]
        if self._directory is None:
            return list(self._here.get(name, ()))
        rows = [line.split() for line in self._lines(os.path.join(self._directory, name[:2]))]
        found = [row[1] for row in reversed(rows) if len(row) == 2 and row[0] == name]
        return list(dict.fromkeys(found))[:MOST]

    def _lines(self, path: str) -> list[str]:
        with suppress(OSError):
            descriptor = os.open(path, _READ)
            with open(descriptor, encoding="ascii", errors="replace") as file:
                return file.read(2 * LINES * _LINE).splitlines()
        return []
