"""Which arrays of a stencil may be one and the same: those of which it touches one element, at one time. Pure.

pystencils promises the compiler that its arrays do not overlap. Where a kernel reads an array only at the element that
it then writes, the promise may be broken: no compiler can write before it knows what to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Touched", "groups"]

_COPIES = re.compile(r"__\d+\b")
"""What pystencils appends to the counter of a loop that it has cut into pieces."""
_LOOP = re.compile(r"\bfor\(")


@dataclass(frozen=True)
class Touched:
    """An array as the code of a kernel knows it."""

    pointer: str
    """The name of its pointer."""
    written: bool
    strides: Mapping[str, int] = field(default_factory=dict)
    """The axis of each of its strides that has a name."""
    kind: object = None
    """What else must be equal for two arrays to be one, such as the type of the elements."""


def groups(code: str, arrays: Mapping[str, Touched]) -> dict[str, int]:
    """Return a number for each array; one that is written and another of its number may be one array. 0: none.

    >>> arrays = {"dst": Touched("d", True), "src": Touched("s", False)}
    >>> groups("d[i] = 2.0 * s[i];", arrays), groups("d[i] = s[i] + s[i + 1];", arrays)
    ({'dst': 1, 'src': 1}, {'dst': 0, 'src': 0})
    """
    seen = {name: [list(_indices(line, array)) for line in code.split("\n")] for name, array in arrays.items()}
    loops = [bool(_LOOP.search(line)) for line in code.split("\n")]
    alike: dict[object, list[str]] = {}
    for name, array in arrays.items():
        alike.setdefault((array.kind, frozenset(i for line in seen[name] for i in line)), []).append(name)
    numbers = dict.fromkeys(arrays, 0)
    for number, names in enumerate(alike.values(), start=1):
        outputs = [name for name in names if arrays[name].written]
        inputs = [name for name in names if not arrays[name].written]
        if all(_pointwise(seen[output], seen[other], loops) for output in outputs for other in inputs):
            numbers.update(dict.fromkeys(names if outputs and inputs else (), number))
    return numbers


def _indices(line: str, array: Touched) -> Iterator[str]:
    """Yield the indices at which a line has an array, such that those of other arrays can be compared with them."""
    for match in re.finditer(rf"\b{re.escape(array.pointer)}\[", line):
        depth, end = 1, match.end()
        while depth and end < len(line):
            depth += {"[": 1, "]": -1}.get(line[end], 0)
            end += 1
        index = _COPIES.sub("", line[match.end() : end - 1])
        yield re.sub(
            r"\w+", lambda word: f"stride {array.strides.get(word[0])}" if word[0] in array.strides else word[0], index
        )


def _pointwise(output: list[list[str]], other: list[list[str]], loops: list[bool]) -> bool:
    """Return whether no element of `other` is read after that element of `output` is written."""
    if len({index for line in output for index in line}) > 1:
        # Of several elements, one might be read early, kept, and be read again where it is needed.
        pairs = zip(output, other, strict=True)
        return all(not read or (read[0] in written and len(set(read)) == 1) for written, read in pairs)
    written = False
    for stored, loaded, loop in zip(output, other, loops, strict=True):
        written = written and not loop
        if loaded and written:
            return False
        written = written or bool(stored)
    return True
