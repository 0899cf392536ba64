"""Kernels as constants of C++: what the code of an exported module knows of them (see pymodule/tables.hpp). Pure."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rekernel.kernel import Kernel

if TYPE_CHECKING:
    from rekernel._native import _FunctionParameter, _FunctionSlot

__all__ = ["function_name", "identifier", "limits", "literal", "tables"]

_NUMBERED = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
_ELEMENTS = {name: number for number, name in enumerate(_NUMBERED, start=1)}
"""The numbers of ``Element`` in tables.hpp."""
_SLOTS = {"pointer": "p", "shape": "n", "stride": "s", "scalar": "v"}


def function_name(kernel: Kernel) -> str:
    """Return the name that a kernel has in a module: its own, made an identifier.

    >>> [function_name(Kernel(name, (), "cpp")) for name in ("step", "heat.step", "2d", "lambda")]
    ['step', 'heat_step', '_2d', 'lambda_']
    """
    return identifier(kernel.name)


def identifier(text: str) -> str:
    """Return a text made an identifier of Python's.

    >>> [identifier(text) for text in ("heat.step", "2d", "lambda")]
    ['heat_step', '_2d', 'lambda_']
    """
    name = re.sub(r"\W", "_", text)
    name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def literal(text: str) -> str:
    r"""Return a text as a C string literal, the same for every compiler and encoding.

    >>> print(literal('a "b"\n?'))
    "a \"b\"\n\?"
    """
    named = {0x0A: "\\n", 0x22: '\\"', 0x5C: "\\\\", 0x3F: "\\?"}  # ?: trigraphs
    encoded = text.encode("utf-8", "replace")
    return '"' + "".join(named.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in encoded) + '"'


def limits(kernels: Sequence[Kernel]) -> str:
    """Return how much room a call needs at most."""
    rows = {
        "most_parameters": max(len(kernel.parameters) for kernel in kernels),
        "most_slots": max(len(kernel.slots) for kernel in kernels),
        "most_extents": max(len(_extents(kernel)) for kernel in kernels),
    }
    constants = "".join(f"constexpr int {name} = {max(count, 1)};\n" for name, count in rows.items())
    return f'#line 1 "rekernel module"\nnamespace rekernel_module {{\n{constants}}}\n'


def _extents(kernel: Kernel) -> dict[str, int]:
    """Return the numbers of the named extents and strides."""
    named = dict.fromkeys(e for p in kernel.parameters for e in (*p.shape, *p.strides) if isinstance(e, str))
    return {name: number for number, name in enumerate(named)}


def tables(kernel: Kernel, index: int, symbol: str, nogil: bool | None = None) -> str:
    """Return the constants that describe one kernel, and the declaration of its entry point.

    `nogil`: whether calls release the GIL; None for those that have much to do.
    """
    from rekernel.jit.calltable import rows

    parameters, slots = rows(kernel)
    extents = _extents(kernel)
    texts = [
        f'extern "C" __attribute__((visibility("default"), noinline)) __INT32_TYPE__ {symbol}(rk_call *);\n',
        *(_axes(row, f"{index}_{place}", extents) for place, row in enumerate(parameters) if len(row) > 4),
        *(_fields(row, f"{index}_{place}") for place, row in enumerate(parameters) if len(row) > 4),
        _array("Parameter", f"parameters_{index}", [_parameter(r, f"{index}_{i}") for i, r in enumerate(parameters)]),
        _array("Slot", f"slots_{index}", [_slot(row) for row in slots]),
        _array("const char *", f"extents_{index}", [literal(name) for name in extents]),
    ]
    values = [
        literal(function_name(kernel)), literal(str(kernel)),
        *_counted(f"parameters_{index}", len(parameters)), *_counted(f"slots_{index}", len(slots)),
        *_counted(f"extents_{index}", len(extents)), symbol, _element(kernel.returns or ""),
        _flag(kernel.policy == "pystencils"), _flag(kernel.openmp), {None: "0", True: "1", False: "-1"}[nogil],
    ]  # fmt: skip
    return "".join([*texts, f"constexpr Kernel kernel_{index} = {{{', '.join(values)}}};\n"])


def _array(kind: str, name: str, rows: Sequence[str]) -> str:
    return f"constexpr {kind} {name}[] = {{{', '.join(rows)}}};\n" if rows else ""


def _counted(name: str, count: int) -> tuple[str, str]:
    return name if count else "nullptr", str(count)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _element(dtype: str) -> str:
    return f"static_cast<Element>({_ELEMENTS[dtype]})" if dtype else "Element::none"


def _axes(row: _FunctionParameter, place: str, extents: dict[str, int]) -> str:
    _, _, _, _, itemsize, ndim, shape, strides, *_, margins = row  # type: ignore[misc]
    rank = max(ndim, 0)
    made = []
    free = (None,) * rank
    for extent, stride, margin in zip(shape or free, strides or free, margins or (0,) * rank, strict=True):
        fixed = extent if isinstance(extent, int) else -1
        names = [extents[name] if isinstance(name, str) else -1 for name in (extent, stride)]
        step = (_flag(True), stride * itemsize) if isinstance(stride, int) else (_flag(False), 0)
        made.append(f"{{{fixed}, {names[0]}, {step[0]}, {step[1]}, {names[1]}, {margin}}}")
    return _array("Axis", f"axes_{place}", made)


def _fields(row: _FunctionParameter, place: str) -> str:
    rows = [f"{{{literal(name)}, {_element(dtype)}, {offset}}}" for name, dtype, offset in row[12]]  # type: ignore[misc]
    return _array("Field", f"fields_{place}", rows)


def _parameter(row: _FunctionParameter, place: str) -> str:
    name, kind, shown, dtype = row[:4]
    first = f"{literal(name)}, {literal(shown)}, {_element(dtype)}"
    if kind == "scalar":
        return f"{{{first}, false, false, false, false, 0, 0, 0, nullptr, nullptr, 0, 0}}"
    itemsize, ndim, shape, _, trailing, contiguous, written, restrict, fields, group, _ = row[4:]  # type: ignore[misc]
    least = ndim
    while trailing and shape[least - 1] == 1:  # of any other extent there would be memory to miss
        least, trailing = least - 1, trailing - 1
    flags = ", ".join(map(_flag, (True, contiguous, written, restrict)))
    axes = f"axes_{place}" if ndim > 0 else "nullptr"
    return f"{{{first}, {flags}, {ndim}, {least}, {itemsize}, {axes}, {_counted_fields(place, len(fields))}, {group}}}"


def _counted_fields(place: str, count: int) -> str:
    return ", ".join(_counted(f"fields_{place}", count))


def _slot(row: _FunctionSlot) -> str:
    kind, parameter, axis, offset, dtype = row
    return f"{{'{_SLOTS[kind]}', {parameter}, {axis}, {offset}, {_element(dtype)}}}"
