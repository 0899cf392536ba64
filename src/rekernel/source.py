"""The text that a user hands over, with where it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from rekernel.excerpt import split_lines

_INDENT = re.compile(r"[ \t]*")


@dataclass(frozen=True)
class Source:
    """Immutable text + language + options + origin."""

    text: str
    """Exactly what the user gave."""
    language: str
    """A name of the table of languages."""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """The options that the user gave for this id, without defaults."""
    filename: str | None = None
    """The user's file or cell, as it is shown in errors."""
    first_line: int = 1
    """The number of the text's first line in that file or cell."""

    @property
    def code(self) -> str:
        """The text without byte-order mark, and dedented when its first code line is indented.

        Lines keep their numbers: nothing is put before them and none is taken away.
        """
        return self._dedented[0]

    @property
    def dedent(self) -> int:
        """How many columns `code` lost at the left, to be added to every reported column."""
        return self._dedented[1]

    @cached_property
    def _dedented(self) -> tuple[str, int]:
        return dedented(self.text)


def dedented(text: str) -> tuple[str, int]:
    r"""Strip a byte-order mark, and the indent of the first code line from all lines that share it.

    >>> dedented("    a = 1\n    b = 2\n")
    ('a = 1\nb = 2\n', 4)
    """
    if text.startswith("\ufeff"):
        text = text[1:]
    lines = split_lines(text)
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    margin = _INDENT.match(first).group()  # type: ignore[union-attr]  # the pattern matches any text
    if not margin:
        return text, 0
    out = []
    for line in lines:
        if line.startswith(margin):
            out.append(line[len(margin) :])
        elif not line.strip() or line.lstrip().startswith("#"):
            out.append(line.lstrip(" \t"))
        else:
            return text, 0  # a line is indented less: leave the text alone and let the parser point at it
    return "\n".join(out), len(margin)
