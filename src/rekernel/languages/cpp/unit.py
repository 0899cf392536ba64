r"""The text that is compiled: the user's own, unchanged, and after it one line for each function that may be a kernel.

::

    the user's text                                        <- line 1 is line 1
    REKERNEL_ENTRY_POINT(rk_step_0, 0, "...", &::step)     <- its signature as data, and its entry point

The compiler reads ``rekernel/entry.hpp`` before it (``-include``), so no macro of the user's can break our own text,
and it deduces each signature from the function itself. `rekernel.languages.cpp.signature` reads them in the object.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Sequence

from rekernel.languages.cpp.reading import Candidate

__all__ = ["OWN", "entry_symbol", "header_digest", "header_path", "marker", "render"]

OWN = "rekernel entry points"
"""What a compiler calls our own lines; their numbers are those of the candidates, from 1."""

_HEADERS = ("abi.hpp", "array.hpp", "checks.hpp", "entry.hpp")
_digest: list[str] = []


def header_path(name: str = "entry.hpp") -> str:
    """Return where a header is that comes before every text."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(package, "include", "rekernel", name)


def own_headers() -> tuple[str, ...]:
    """Return the headers of ours that a unit reads."""
    return tuple(map(header_path, _HEADERS))


def header_digest() -> str:
    """Return what the key says of our own headers."""
    if not _digest:
        state = hashlib.blake2b(digest_size=16)
        for path in own_headers():
            with open(path, "rb") as file:
                state.update(file.read())
        _digest.append(state.hexdigest())
    return _digest[0]


def marker(text: str) -> str:
    """Return 32 letters that no text contains which was written before they were known."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=b"rekernel", digest_size=16).hexdigest()


def entry_symbol(candidate: Candidate, number: int) -> str:
    """Return the name of the entry point, as profilers show it: ``rk_heat_step_0``."""
    name = "_".join([*candidate.scope, candidate.name])
    return f"rk_{''.join(c if c.isascii() and (c.isalnum() or c == '_') else '_' for c in name)}_{number}"


def render(text: str, candidates: Sequence[Candidate], without: Collection[int] = ()) -> str:
    r"""Return the unit's text. `without` are the numbers of candidates that are left out.

    The first line of ours begins with a comment, which a backslash at the end of the user's text may join to it.
    """
    mark = marker(text)
    parts = [f'{text}\n//\n#line 1 "{OWN}"\n']
    for number, one in enumerate(candidates):
        if number in without:
            parts.append("\n")
            continue
        if one.conditions:
            parts += _opened(one.conditions, number)
        address = f"&{one.path}"
        if one.form:
            opened = "".join(f"namespace {name} {{ " for name in one.scope)
            named = one.form.replace("REKERNEL_TYPE", f"rekernel_type_{number}")
            parts.append(f"{opened}{named}{' }' * len(one.scope)} ")
            scope = "::".join(["", *one.scope, ""])
            address = f"static_cast<{scope}rekernel_type_{number} *>({address})"
        parts.append(f'REKERNEL_ENTRY_POINT({entry_symbol(one, number)}, {number}, "{mark}", {address})\n')
        if one.conditions:
            parts.append("#endif\n" * _depth(one.conditions) + f'#line {number + 2} "{OWN}"\n')
    return "".join(parts)


def _opened(conditions: Sequence[str], number: int) -> list[str]:
    return [*(f"{condition}\n" for condition in conditions), f'#line {number + 1} "{OWN}"\n']


def _depth(conditions: Sequence[str]) -> int:
    return sum(condition.lstrip("# \t").startswith("if") for condition in conditions)
