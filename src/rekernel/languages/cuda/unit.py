r"""The text that is compiled: the user's own, unchanged, and after it one line for each kernel and variable.

::

    the user's text                                                     <- line 1 is line 1
    REKERNEL_CUDA_KERNEL(rk_step_0, rekernel_at_0, 0, "...", &::step)   <- its signature, as data in the module

NVRTC reads one of our headers before it (``--pre-include``). It tells the names in the compiled module of what our
lines call ``rekernel_at_0`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from rekernel.languages.cpp import unit as cpp
from rekernel.languages.cpp.candidates import Candidate
from rekernel.languages.cpp.unit import OWN, entry_symbol, header_path, marker
from rekernel.languages.cuda.reading import Variable

__all__ = ["HEADER", "OWN", "address", "headers", "render"]

HEADER = "rekernel/cuda.hpp"
"""What comes before every text."""
_HEADERS = ("cuda.hpp", "abi.hpp", "array.hpp", "entry.hpp", "cudachecks.hpp")
_OWN_INCLUDE = re.compile(r'#include "(\w+\.hpp)"')


@cache
def headers() -> Mapping[str, str]:
    """Return the texts of our own headers, by the names in their ``#include``: NVRTC need not read a file."""
    found = {}
    for name in _HEADERS:
        with open(header_path(name), encoding="utf-8") as file:
            found[f"rekernel/{name}"] = _OWN_INCLUDE.sub(r"#include <rekernel/\1>", file.read())
    return found


def address(number: int) -> str:
    """Return what our lines call the address of a kernel or variable."""
    return f"rekernel_at_{number}"


def render(
    text: str, kernels: Sequence[Candidate], variables: Sequence[Variable], numbers: Collection[int] | None = None
) -> str:
    r"""Return the unit's text. Each kernel, then each variable has a line of its own, by which an error in it is known.

    Only those of `numbers` are named. The first line of ours begins with a comment, which a backslash at the end of the
    user's text may join to it.
    """
    mark = marker(text)
    parts = [f"{text}\n//\n"]
    found: list[Candidate | Variable] = [*kernels, *variables]
    for number, one in enumerate(found):
        if numbers is not None and number not in numbers:
            continue
        parts += [f"{condition}\n" for condition in one.conditions]
        parts.append(f'#line {number + 1} "{OWN}"\n')
        if isinstance(one, Candidate):
            before, path = cpp.named(one, number)
            called = entry_symbol(one, number)
        else:
            before, path, called = "", f"&{one.path}", f"rk_variable_{number}"
        kind = "KERNEL" if isinstance(one, Candidate) else "VARIABLE"
        parts.append(f'{before}REKERNEL_CUDA_{kind}({called}, {address(number)}, {number}, "{mark}", {path})\n')
        if one.conditions:
            there = f"REKERNEL_HAS_{number}"
            parts.append(f"#define {there} 1\n" + "#endif\n" * cpp.depth(one.conditions))
            parts.append(f"#if !defined({there})\nREKERNEL_CUDA_NONE({address(number)})\n#endif\n")
    return "".join(parts)
