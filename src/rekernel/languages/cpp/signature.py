"""Signatures as the compiler says they are: records in the object, read into kernels. Pure.

The other side of ``include/rekernel/entry.hpp``: the numbers here are those there.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rekernel.kernel import Kernel, Parameter, Slot
from rekernel.languages.cpp.unit import entry_symbol

if TYPE_CHECKING:
    from rekernel.languages.cpp.candidates import Argument, Candidate
    from rekernel.languages.cpp.unit import Plan

__all__ = ["Entry", "dtype_of", "entries", "from_json", "records_in", "to_json"]

_UNSUPPORTED, _SCALAR, _POINTER, _ARRAY, _NESTED, _VOID = range(6)
_PART = struct.Struct("=10i")
_HEAD = struct.Struct("=2i")
_REASONS = {
    1: "a class or struct cannot be passed: pass its members, or arrays of them",
    2: "what is written through a reference cannot be seen from Python: use a pointer or rekernel::Array",
    3: "pointers to pointers, functions and classes cannot be passed: use pointers to numbers, or rekernel::Array",
    4: "void* does not say what it points to",
    5: "NumPy has no such number on every machine: use a type of <cstdint>, float or double",
    6: "an enumeration cannot be passed: use an integer",
    7: "this type cannot be passed; scalars, pointers to numbers and rekernel::Array can",
    8: "a kernel on a device takes no references: pass it by value",
}


@dataclass(frozen=True)
class Entry:
    """A kernel with its entry point in the object."""

    symbol: str
    kernel: Kernel


def entries(data: bytes, mark: str, candidates: Sequence[Candidate], plan: Plan) -> tuple[list[Entry], dict[str, str]]:
    """Return the kernels that an object has, in the order of the text, and why other functions are none."""
    found: list[Entry] = []
    skipped: dict[str, str] = {}
    records = {number: [one.part for one in types] for number, types in plan.items() if types is not None}
    if len(records) < len(plan):
        records |= records_in(data, mark)
    for number, candidate in enumerate(candidates):
        if number not in records:
            continue
        parts = records[number]
        reason = _reason(candidate, parts)
        if reason is None:
            found.append(Entry(entry_symbol(candidate, number), _kernel(candidate, parts)))
        else:
            skipped[candidate.name] = reason
    return found, {name: why for name, why in skipped.items() if all(e.kernel.name != name for e in found)}


def records_in(data: bytes, marker: str) -> dict[int, list[tuple[int, ...]]]:
    """Return the records in compiled bytes: for each number the result's part, then those of the parameters."""
    mark = marker.encode("ascii")
    records: dict[int, list[tuple[int, ...]]] = {}
    at = data.find(mark)
    while at >= 0:
        start = at + len(mark)
        number, count = _HEAD.unpack_from(data, start)
        rows = data[start + _HEAD.size : start + _HEAD.size + _PART.size * (count + 1)]
        records[number] = list(_PART.iter_unpack(rows))
        at = data.find(mark, start)
    return records


def _reason(candidate: Candidate, parts: Sequence[tuple[int, ...]]) -> str | None:
    """Return why a function is no kernel, or None if it is one."""
    result, *arguments = parts
    if len(arguments) != len(candidate.arguments):
        candidate = replace(candidate, arguments=_unnamed(len(arguments)))
    for argument, part in zip(candidate.arguments, arguments, strict=True):
        if part[0] == _UNSUPPORTED:
            return f"{candidate.name} is no kernel because of its parameter '{argument.text}': {_REASONS[part[9]]}"
    if result[0] == _UNSUPPORTED:
        return f"{candidate.name} is no kernel because of what it returns: only numbers can be returned, or nothing"
    return None


def _unnamed(count: int) -> tuple[Argument, ...]:
    from rekernel.languages.cpp.candidates import Argument

    return tuple(Argument(f"arg{index}", f"parameter {index + 1}", False) for index in range(count))


def _kernel(candidate: Candidate, parts: Sequence[tuple[int, ...]]) -> Kernel:
    result, *arguments = parts
    named = candidate.arguments if len(candidate.arguments) == len(arguments) else _unnamed(len(arguments))
    parameters = [_parameter(a, part) for a, part in zip(_unique(named), arguments, strict=True)]
    slots = [slot for parameter in parameters for slot in _slots(parameter)]
    returns = None if result[0] == _VOID else dtype_of(result)
    return Kernel(
        candidate.name, tuple(parameters), "cpp", doc=candidate.doc, returns=returns, line=candidate.line,
        slots=tuple(slots), function="::".join([*candidate.scope, candidate.name]),
    )  # fmt: skip


def _unique(arguments: Sequence[Argument]) -> list[Argument]:
    names = [argument.name for argument in arguments]
    return [a if names.count(a.name) == 1 else replace(a, name=f"arg{i}") for i, a in enumerate(arguments)]


def dtype_of(part: tuple[int, ...]) -> str:
    """Return NumPy's name of a scalar or element."""
    code, size = chr(part[1]), part[2]
    if code == "b":
        return "bool"
    return {"i": "int", "u": "uint", "f": "float", "c": "complex"}[code] + str(8 * size)


def _parameter(argument: Argument, part: tuple[int, ...]) -> Parameter:
    form, _code, _size, rank, written, restricted, *extents = part
    dtype = dtype_of(part)
    if form == _SCALAR:
        return Parameter(argument.name, "scalar", dtype=dtype)
    promised = bool(restricted) or argument.restrict
    if form == _ARRAY:
        return Parameter(argument.name, "array", dtype=dtype, ndim=rank, written=bool(written), restrict=promised)
    shape = (None, *extents[:rank]) if form == _NESTED else ()
    return Parameter(
        argument.name, "array", dtype=dtype, ndim=rank + 1 if form == _NESTED else None, shape=shape,
        written=bool(written), restrict=promised, order="C",
    )  # fmt: skip


def _slots(parameter: Parameter) -> list[Slot]:
    if parameter.kind == "scalar":
        return [Slot("scalar", parameter.name)]
    rank = 0 if parameter.order == "C" else parameter.ndim or 0
    shapes = [Slot("shape", parameter.name, axis) for axis in range(rank)]
    strides = [Slot("stride", parameter.name, axis) for axis in range(rank)]
    return [Slot("pointer", parameter.name), *shapes, *strides]


def to_json(entry: Entry) -> Mapping[str, Any]:
    """Return what a manifest keeps of an entry: all but the text."""
    kernel = entry.kernel
    parts = {"parameters": list(map(vars, kernel.parameters)), "slots": list(map(vars, kernel.slots)), "code": ""}
    return {"symbol": entry.symbol, "kernel": {**vars(kernel), **parts}}  # dataclasses.asdict takes half a millisecond


def from_json(row: Mapping[str, Any], code: str) -> Entry:
    """Return the entry that a manifest has kept, with its text."""
    fields = _tuples(row["kernel"])
    fields["parameters"] = tuple(Parameter(**_tuples(one)) for one in fields["parameters"])
    fields["slots"] = tuple(Slot(**one) for one in fields["slots"])
    return Entry(row["symbol"], Kernel(**{**fields, "code": code}))


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON gives back with its lists as the tuples that they were."""
    return {name: _frozen(value) for name, value in fields.items()}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
