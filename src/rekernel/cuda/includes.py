"""Which headers a text may include: NVRTC does not say which it has read.

The texts are searched for ``#include`` lines without preprocessing them, so that more may be found than are read (a
line in a branch that is left out), never fewer. What is found is recorded and compared by `rekernel.headers`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

__all__ = ["Included", "scan"]

_GAP = r"(?:[ \t]|/\*.*?\*/)*"
_INCLUDE = re.compile(
    rf"(?P<start>^{_GAP})?(?:\#|%:|\?\?=){_GAP}include(?:_next)?\b{_GAP}"
    r'(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>|(?P<other>[A-Za-z_]))',
    re.M | re.S,
)
_SPLICE = re.compile(r"\\[ \t]*\r?\n")


@dataclass
class Included:
    """The headers of a text, as far as they were found."""

    files: list[str] = field(default_factory=list)
    """The user's headers that exist, in the order in which they are met."""
    via: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of each, the file and line that include it first; the text itself goes by its name."""
    missing: list[str] = field(default_factory=list)
    """Names that are in no directory: headers of CUDA, or mistakes."""
    shadowed: set[str] = field(default_factory=set)
    """Names of which the compiler would have a text from us, and the user has a file."""
    exact: bool = True
    """False where a macro names a header: nobody knows what is read, and the result is not kept."""


def scan(text: str, name: str, directory: str | None, include_dirs: Sequence[str], known: Collection[str]) -> Included:
    """Return what a text may include, directly or through other headers.

    `directory`: where the text's own ``#include "x.h"`` looks first, or None. `known`: names that are no files, as the
    compiler has their texts from us.
    """
    found = Included()
    done: set[str] = set()
    todo: list[tuple[str, str | None, str]] = [(name, directory, text)]
    while todo:
        file, place, code = todo.pop(0)
        for header, quoted, line in _includes(code, found):
            places = [*([place] if quoted and place is not None else []), *include_dirs]
            paths = [path for each in places if os.path.isfile(path := os.path.join(each, header))]
            if os.path.isabs(header) and os.path.isfile(header):
                paths = [header]
            if not paths:
                found.missing += [header] if header not in known and header not in found.missing else []
                continue
            if header in known:
                found.shadowed.add(header)
            path = paths[0]
            if os.path.realpath(path) in done:  # "a/../a/x.h" is "a/x.h"
                continue
            done.add(os.path.realpath(path))
            found.files.append(path)
            found.via[path] = (file, line)
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as stream:
                    todo.append((path, os.path.dirname(path), stream.read()))
            except OSError:
                found.exact = False
    return found


def _includes(code: str, found: Included) -> list[tuple[str, bool, int]]:
    """Return the names that a text includes, whether in quotes, and on which line."""
    spliced = _SPLICE.sub("", code) if "\\" in code else code
    if "include" not in spliced:
        return []
    rows: list[tuple[str, bool, int]] = []
    for match in _INCLUDE.finditer(spliced):
        kind = match.lastgroup or ""
        if kind == "other":
            found.exact = found.exact and match["start"] is None
        else:
            # With spliced lines before it the number is a little too small; it is shown, and nothing depends on it.
            rows.append((match[kind], kind == "quoted", spliced.count("\n", 0, match.start(kind)) + 1))
    return rows
