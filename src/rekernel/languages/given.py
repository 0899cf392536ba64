"""The values of a load's options as the languages take them. TypeError or ValueError names option and value. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rekernel.compilerflags import LEVELS

__all__ = ["directories", "flag", "level", "paths", "words"]


def flag(options: Mapping[str, Any], name: str) -> bool | None:
    """Return an option that is True, False or not given."""
    value = options.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name}= takes True, False or None, not {value!r}")
    return value


def level(value: Any) -> str | None:
    """Return ``optlevel=`` as text."""
    if value is None:
        return None
    if isinstance(value, bool) or str(value) not in LEVELS:
        raise ValueError(f"optlevel= is one of {', '.join(map(repr, LEVELS))}, not {value!r}")
    return str(value)


def words(value: Any) -> tuple[str, ...]:
    """Return the words of ``flags=``."""
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(f"flags={value!r} cannot be read: {error}") from None
    if isinstance(value, Sequence) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise TypeError(f"flags= takes a list of texts, or one text, not {value!r}")


def paths(value: Any) -> tuple[str, ...]:
    """Return the paths of ``include_dirs=``, as they are given."""
    if value is None:
        return ()
    if isinstance(value, str | os.PathLike):
        value = [value]
    try:
        return tuple(os.fsdecode(path) for path in value)
    except TypeError:
        raise TypeError(f"include_dirs= takes a list of paths, not {value!r}") from None


def directories(paths: Sequence[str]) -> tuple[str, ...]:
    """Return absolute paths; a ValueError names one that is no directory."""
    found = tuple(map(os.path.abspath, paths))
    for path in found:
        if not os.path.isdir(path):
            raise ValueError(f"include_dirs= names {path!r}, which is no directory")
    return found
