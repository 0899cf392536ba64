r"""The text that is compiled: the user's own, unchanged, and after it one line for each function that may be a kernel.

::

    the user's text                                        <- line 1 is line 1
    REKERNEL_PLAIN_ENTRY(rk_step_0, ..., &::step)          <- types in plain words: the compiler confirms them
    REKERNEL_ENTRY_POINT(rk_flux_1, 1, "...", &::flux)     <- others: it deduces them, and writes them into the object

The compiler reads one of our headers before it (``-include``), so no macro of the user's can break our own text.
`rekernel.languages.cpp.signature` reads what was deduced.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rekernel.languages.cpp.candidates import Candidate
    from rekernel.languages.cpp.spelled import Spelled

__all__ = [
    "OWN", "Plan", "depth", "digest_of", "entry_symbol", "header", "header_digest", "header_path", "marker", "named",
    "own_headers", "render",
]  # fmt: skip

OWN = "rekernel entry points"
"""What a compiler calls our own lines; their numbers are those of the candidates, from 1."""

_HEADERS = ("abi.hpp", "array.hpp", "checks.hpp", "kernel.hpp", "entry.hpp")


def header_path(name: str = "entry.hpp") -> str:
    """Return where a header is that comes before every text."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.join(package, "include", "rekernel", name)


def own_headers() -> tuple[str, ...]:
    """Return the headers of ours that a unit reads."""
    return tuple(map(header_path, _HEADERS))


@cache
def digest_of(paths: tuple[str, ...]) -> str:
    """Return what the key says of files of ours, which stay as they are while the process lives."""
    state = hashlib.blake2b(digest_size=16)
    for path in paths:
        with open(path, "rb") as file:
            state.update(file.read())
    return state.hexdigest()


def header_digest() -> str:
    """Return what the key says of our own headers."""
    return digest_of(own_headers())


def marker(text: str) -> str:
    """Return 32 letters that no text contains which was written before they were known."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=b"rekernel", digest_size=16).hexdigest()


def entry_symbol(candidate: Candidate, number: int) -> str:
    """Return the name of the entry point, as profilers show it: ``rk_heat_step_0``."""
    name = "_".join([*candidate.scope, candidate.name])
    return f"rk_{''.join(c if c.isascii() and (c.isalnum() or c == '_') else '_' for c in name)}_{number}"


Plan = Mapping[int, "tuple[Spelled, ...] | None"]
"""For each candidate that gets an entry point: its types in plain words, or None for the general way."""


def header(plan: Plan) -> str:
    """Return the header that a unit needs."""
    return header_path("kernel.hpp" if all(plan.values()) else "entry.hpp")


def render(text: str, candidates: Sequence[Candidate], plan: Plan) -> str:
    r"""Return the unit's text. Each candidate has a line of its own, by which an error in it is known.

    The first line of ours begins with a comment, which a backslash at the end of the user's text may join to it.
    """
    mark = marker(text)
    parts = [f"{text}\n//\n"]
    if any(plan.values()):
        from rekernel.languages.cpp.spelled import GUARD

        parts.append(f'#line {GUARD_LINE} "{OWN}"\n{GUARD}')
    for number in plan:
        one, types = candidates[number], plan[number]
        parts += [f"{condition}\n" for condition in one.conditions]
        parts.append(f'#line {number + 1} "{OWN}"\n')
        parts.append(_general(one, number, mark) if types is None else _plain(one, number, types))
        parts.append("#endif\n" * depth(one.conditions))
    return "".join(parts)


GUARD_LINE = 1_000_001
"""More than a text has functions."""


def named(one: Candidate, number: int) -> tuple[str, str]:
    """Return what has to be declared before, and the address of a function, also where others have its name."""
    address, before = f"&{one.path}", ""
    if one.overloaded:
        opened = "".join(f"namespace {name} {{ " for name in one.scope)
        named = one.form.replace("REKERNEL_TYPE", f"rekernel_type_{number}")
        before = f"{opened}{named}{' }' * len(one.scope)} "
        scope = "::".join(["", *one.scope, ""])
        address = f"static_cast<{scope}rekernel_type_{number} *>({address})"
    return before, address


def _general(one: Candidate, number: int, mark: str) -> str:
    before, address = named(one, number)
    if one.fewer:
        kind = f"decltype(rekernel_entry::rekernel_fewer<{len(one.arguments)}>({address}))"
        before += f"static constexpr {kind} rekernel_fewer_{number} = {_passing(one)}; "
        address = f"rekernel_fewer_{number}"
    return f'{before}REKERNEL_ENTRY_POINT({entry_symbol(one, number)}, {number}, "{mark}", {address})\n'


def _passing(one: Candidate) -> str:
    """Return a function that calls another with fewer arguments than it has parameters."""
    return f"[](auto... rekernel_given) {{ return {one.path}(rekernel_given...); }}"


def _plain(one: Candidate, number: int, types: tuple[Spelled, ...]) -> str:
    result, *parameters = types
    given, slot = [], 0
    for parameter in parameters:
        given.append(parameter.taken.format(n=slot))
        slot += parameter.slots
    store = result.taken or "REKERNEL_NO_RESULT"
    return (
        f"REKERNEL_PLAIN_ENTRY({entry_symbol(one, number)}, {result.text}, ({', '.join(p.text for p in parameters)}), "
        f"{store}, ({', '.join(given)}), {_passing(one) if one.fewer else f'&{one.path}'})\n"
    )


def depth(conditions: Sequence[str]) -> int:
    """Return how many ``#endif`` the lines of a function need."""
    return sum(condition.lstrip("# \t").startswith("if") for condition in conditions)
