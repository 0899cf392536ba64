"""Kernels and variables as NVRTC says they are: records in the compiled module. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rekernel.kernel import Kernel
from rekernel.languages.cpp import signature as cpp
from rekernel.languages.cpp.signature import Entry, dtype_of, records_in
from rekernel.languages.cpp.unit import marker
from rekernel.languages.cuda.reading import Reading
from rekernel.languages.cuda.unit import address

__all__ = ["Global", "arguments", "found_in"]

_POINTER, _NESTED = 2, 4
_VECTOR = ("float", "double", "int", "uint", "short", "ushort", "char", "uchar", "long", "ulong", "longlong")
_VECTORS = frozenset(f"{name}{count}" for name in _VECTOR for count in (1, 2, 3, 4))


@dataclass(frozen=True)
class Global:
    """A ``__constant__`` or ``__device__`` variable."""

    name: str
    symbol: str
    """Its name in the module."""
    dtype: str
    shape: tuple[int, ...]


def found_in(
    data: bytes, text: str, reading: Reading, numbers: Sequence[int], names: Mapping[str, str]
) -> tuple[list[Entry], dict[str, str], list[Global]]:
    """Return the kernels of a cubin in the order of the text, why other functions are none, and the variables.

    `numbers`: what our own lines named; `names`: the lowered names of their addresses.
    """
    mark, kernels = marker(text), reading.candidates
    plan = dict.fromkeys(number for number in numbers if number < len(kernels))
    found, skipped = cpp.entries(data, mark, kernels, plan)
    entries = []
    for one in found:
        number = int(one.symbol.rpartition("_")[2])
        entries.append(Entry(names[address(number)], replace(one.kernel, language="cuda")))
    skipped = {name: _advised(why) for name, why in skipped.items()}
    records = records_in(data, mark) if reading.variables else {}
    variables: dict[str, Global] = {}
    for number, variable in enumerate(reading.variables, len(kernels)):
        if number in records and number in numbers:
            form, _code, _size, rank, _written, _restricted, *extents = records[number][1]
            if form in (_POINTER, _NESTED):
                shape = tuple(extents[:rank]) if form == _NESTED else ()
                made = Global(variable.name, names[address(number)], dtype_of(records[number][1]), shape)
                variables.setdefault(variable.name, made)
    return entries, skipped, list(variables.values())


def _advised(why: str) -> str:
    """Return a reason with what to do about CUDA's vector types."""
    words = why.replace("*", " ").replace("'", " ").split()
    vector = next((word for word in words if word in _VECTORS), None)
    if vector is None:
        return why
    element = vector.rstrip("1234")
    return f"{why}; take a {element}* and use reinterpret_cast<{vector} *> in the kernel"


def arguments(kernel: Kernel) -> tuple[int, ...]:
    """Return how many slots each parameter takes: an Array is one structure of pointer, shape and strides."""
    counts = dict.fromkeys((one.name for one in kernel.parameters), 0)
    for slot in kernel.slots:
        counts[slot.parameter] += 1
    return tuple(counts.values())


def to_json(variables: Sequence[Global]) -> list[dict[str, Any]]:
    """Return what a manifest keeps of variables."""
    return [vars(one) for one in variables]


def from_json(rows: Sequence[Mapping[str, Any]]) -> list[Global]:
    """Return the variables that a manifest has kept."""
    return [Global(row["name"], row["symbol"], row["dtype"], tuple(row["shape"])) for row in rows]
