"""Files, directories and patterns that are watched: which files they mean, what these hold, where changes show."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from rekernel import key

__all__ = ["Place", "directories_of", "read", "ways"]

SUFFIXES = (".cpp", ".cc", ".cxx", ".cu", ".py")
"""What a directory is searched for. Headers are no kernels; one that a text includes is watched with that text."""
_MOST = 2_000  # directories below a pattern with **; more of them are somebody's home directory


@dataclass(frozen=True)
class Place:
    """Something that was asked to be watched."""

    path: str
    kind: str
    """``file``, ``directory`` or ``pattern``."""
    relative: bool = False
    """Whether the user has named it relative to the current directory: then its files are shown so, too."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Place:
        """Make one from what the user gave; FileNotFoundError where there is neither a file nor a directory."""
        given = os.fspath(path)
        if not isinstance(given, str):
            raise TypeError(f"watch takes paths as text, not {given!r}")
        expanded = os.path.expanduser(given)
        full, relative = os.path.abspath(expanded), not os.path.isabs(expanded)
        if os.path.isdir(full):
            return cls(full, "directory", relative)
        if os.path.lexists(full):
            return cls(full, "file", relative)
        if glob.has_magic(given):
            if os.path.isdir(_base(full)):
                return cls(full, "pattern", relative)
            raise FileNotFoundError(f"there is no directory {_base(full)} for the pattern {given!r}")
        raise FileNotFoundError(f"there is no file or directory {given!r}; a watch begins with what is there")

    def files(self) -> list[str]:
        """Return the files that are meant now, sorted."""
        if self.kind == "file":
            return [self.path]
        if self.kind == "directory":
            try:
                names = os.listdir(self.path)
            except OSError:
                return []
            found = [os.path.join(self.path, name) for name in names if name.endswith(SUFFIXES)]
        else:
            found = glob.glob(self.path, recursive=True)
        return sorted(one for one in found if not os.path.basename(one).startswith((".", "#")) and os.path.isfile(one))

    def directories(self) -> list[str]:
        """Return the directories in which such a file may appear."""
        if self.kind == "file":
            return []
        if self.kind == "directory":
            return [self.path]
        base, rest = _base(self.path), os.path.relpath(self.path, _base(self.path))
        if os.sep not in rest:
            return [base]
        found: list[str] = []
        for one, below, _files in os.walk(base):
            below[:] = [name for name in below if not name.startswith(".")]
            found.append(one)
            if len(found) >= _MOST:
                break
        return found


def _base(pattern: str) -> str:
    """Return the part of a pattern above its first magic character."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def read(path: str) -> tuple[bytes | None, object]:
    """Return what a file holds, and what tells that from other contents; None for the bytes that cannot be had."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would let us wait
            return None, "no file"
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    return data, key.content(data)


def ways(path: str) -> set[str]:
    """Return every name on the way to a file whose change gives it another content: links, and what they lead to."""
    found: set[str] = set()
    todo = [os.path.abspath(path)]
    while todo and len(found) < 100:  # links may go round in circles
        one = todo.pop()
        if one in found:
            continue
        found.add(one)
        head = one
        above = [head]
        while (head := os.path.dirname(head)) != above[-1]:
            above.append(head)
        for link in reversed(above):
            if os.path.islink(link):
                found.add(link)
                target = os.path.join(os.path.dirname(link), os.readlink(link))
                todo.append(os.path.normpath(target + one[len(link) :]))
                break
    return found


def directories_of(names: Iterable[str]) -> set[str]:
    """Return the directories that have to be watched: editors replace files, so a file itself says nothing."""
    return {os.path.dirname(name) for name in names}


_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]", re.M)


def included(path: str, text: bytes, directories: Iterable[str]) -> set[str]:
    """Return the files that a C++ text and its headers may mean by their ``#include``s, also those that are missing."""
    found: set[str] = set()
    todo = [(path, text)]
    while todo and len(found) < 1000:
        one, data = todo.pop()
        for match in _INCLUDE.finditer(data):
            name = os.fsdecode(match[1])
            for directory in (os.path.dirname(one), *directories):
                header = os.path.abspath(os.path.join(directory, name))
                if header not in found:
                    found.add(header)
                    inside, _digest = read(header)
                    if inside is not None:
                        todo.append((header, inside))
    return found
