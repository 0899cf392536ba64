"""The conformance suite of C++ texts, as data: one table per theme. `test_cpp_texts` loads and calls them all.

A row says what a text is to become: its kernels as they show themselves, what is skipped and why, and what calls
give. A call is written in Python, with the kernels by their names, ``np``, and `written`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Bad", "Text", "bad", "text"]


@dataclass(frozen=True)
class Text:
    """A text that loads."""

    name: str
    """What it shows: the name of the test."""
    code: str
    kernels: tuple[str, ...]
    """Its kernels as they show themselves, in the order of the text."""
    calls: tuple[tuple[str, Any], ...] = ()
    """Expressions and what they give; an exception as the value is raised, its text is part of the message."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Functions that are no kernels, each with a part of the reason."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the load."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Files beside the text: then it is loaded from a file, too."""


@dataclass(frozen=True)
class Bad:
    """A text that does not load."""

    name: str
    code: str
    line: int | None
    column: int | None
    """None where compilers differ."""
    says: str
    """A regular expression that the message matches, by every compiler."""
    options: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def text(
    name: str, code: str, *kernels: str, calls: tuple[tuple[str, Any], ...] = (), skipped: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None, **options: Any,
) -> Text:  # fmt: skip
    """Return a row; what is named beyond the fields is an option of the load."""
    options.setdefault("optlevel", "0")
    return Text(name, code, kernels, calls, skipped or {}, options, headers or {})


def bad(
    name: str, code: str, line: int | None, column: int | None, says: str, *, headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Bad:  # fmt: skip
    """Return a row of a text that does not load."""
    options.setdefault("optlevel", "0")
    return Bad(name, code, line, column, says, options, headers or {})
