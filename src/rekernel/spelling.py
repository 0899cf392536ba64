"""Which known name was meant by one that is unknown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["meant"]


def meant(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name, or nothing where no known name is like it.

    >>> meant("het", ["heat", "wave"]), meant("x", ["heat"])
    ("; did you mean 'heat'?", '')
    """
    import difflib

    near = difflib.get_close_matches(name, sorted(set(known) - {name}), n=1) if isinstance(name, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""
