"""The tables by which the native extension calls a compiled kernel, made from a `Kernel`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rekernel.kernel import Kernel, Parameter, Slot

if TYPE_CHECKING:
    from rekernel._native import _ArrayRow, _FunctionParameter, _FunctionSlot

__all__ = ["rows"]

_SIZES: Mapping[str, int] = {
    **{name: 1 for name in ("bool", "int8", "uint8")},
    **{name: 2 for name in ("int16", "uint16", "float16")},
    **{name: 4 for name in ("int32", "uint32", "float32")},
    **{name: 8 for name in ("int64", "uint64", "float64", "complex64")},
    "complex128": 16,
}
_INTEGERS = tuple(name for name in _SIZES if "int" in name)


def rows(kernel: Kernel) -> tuple[tuple[_FunctionParameter, ...], tuple[_FunctionSlot, ...]]:
    """Return the `parameters` and `slots` of a `_native.Function` for the kernel.

    An array whose strides the code can know neither from slots nor from the parameter has to be C-contiguous,
    as has one of any rank. Raises ValueError, and names what is wrong, for a kernel that contradicts itself:
    an unknown parameter, axis, field or dtype.
    """
    places = {p.name: i for i, p in enumerate(kernel.parameters)}
    if len(places) < len(kernel.parameters):
        raise ValueError(f"kernel {kernel.name}: two parameters have the same name")
    for slot in kernel.slots:
        if slot.parameter not in places:
            raise ValueError(f"kernel {kernel.name}: slot of the unknown parameter {slot.parameter!r}")
    strided = {(s.parameter, s.axis) for s in kernel.slots if s.kind == "stride"}
    try:
        parameters = tuple(_parameter(p, strided) for p in kernel.parameters)
        slots = tuple(_slot(s, places[s.parameter], kernel.parameters[places[s.parameter]]) for s in kernel.slots)
    except ValueError as error:
        raise ValueError(f"kernel {kernel.name}: {error}") from None
    return parameters, slots


def _size_of(dtype: str | None, name: str) -> int:
    if dtype is None or dtype not in _SIZES:
        raise ValueError(f"{name} has the unknown dtype {dtype!r}; known are {', '.join(_SIZES)}")
    return _SIZES[dtype]


def _parameter(parameter: Parameter, strided: set[tuple[str, int]]) -> _FunctionParameter:
    name = f"parameter {parameter.name!r}"
    if parameter.kind == "scalar":
        _size_of(parameter.dtype, name)
        return (parameter.name, "scalar", parameter.type, parameter.dtype or "")
    if parameter.kind not in ("array", "pointer"):
        raise ValueError(f"{name} is of the kind {parameter.kind!r}, which compiled code does not take")
    if parameter.order not in ("any", "C", "free"):
        raise ValueError(f"{name} has the unknown order {parameter.order!r}; known are 'any', 'C' and 'free'")
    return _array(parameter, name, strided)


def _array(parameter: Parameter, name: str, strided: set[tuple[str, int]]) -> _ArrayRow:
    rank = parameter.ndim or 0
    sizes = {"shape": parameter.shape, "strides": parameter.strides, "margins": parameter.margins}
    for word, given in sizes.items():
        if given and len(given) != rank:
            raise ValueError(f"{name} has {len(given)} items in {word}, but {parameter.ndim} dimensions")
    if not 0 <= parameter.trailing <= rank:
        raise ValueError(f"{name} has {parameter.trailing} trailing axes, but {parameter.ndim} dimensions")
    for axis in range(rank - parameter.trailing, rank):
        if not parameter.shape or not isinstance(parameter.shape[axis], int):
            raise ValueError(f"{name}: the trailing axis {axis} must have a fixed extent")
    return (
        parameter.name,
        "array",
        parameter.type,
        "" if parameter.fields else parameter.dtype or "",
        _itemsize(parameter, name),
        -1 if parameter.ndim is None else parameter.ndim,
        parameter.shape,
        parameter.strides,
        parameter.trailing,
        _must_be_contiguous(parameter, strided),
        parameter.written,
        parameter.restrict,
        parameter.fields,
        parameter.group,
        parameter.margins,
    )


def _itemsize(parameter: Parameter, name: str) -> int:
    if not parameter.fields:
        return _size_of(parameter.dtype, name)
    for field, dtype, offset in parameter.fields:
        size = _size_of(dtype, f"field {field!r} of {name}")
        if not 0 <= offset <= parameter.itemsize - size:
            raise ValueError(f"field {field!r} of {name} lies outside of the record of {parameter.itemsize} bytes")
    return parameter.itemsize


def _must_be_contiguous(parameter: Parameter, strided: set[tuple[str, int]]) -> bool:
    if parameter.order == "C" or parameter.kind == "pointer" or parameter.ndim is None:
        return True
    if parameter.order == "free":
        return False
    shape = parameter.shape or (None,) * parameter.ndim
    strides = parameter.strides or (None,) * parameter.ndim
    return any(
        shape[axis] != 1 and strides[axis] is None and (parameter.name, axis) not in strided
        for axis in range(parameter.ndim)
    )


def _slot(slot: Slot, place: int, parameter: Parameter) -> _FunctionSlot:
    what = f"{slot.kind} slot of {slot.parameter!r}"
    if slot.kind not in ("pointer", "shape", "stride", "scalar"):
        raise ValueError(f"{what}: unknown kind {slot.kind!r}")
    if (slot.kind == "scalar") != (parameter.kind == "scalar"):
        raise ValueError(f"{what}: the parameter is of the kind {parameter.kind!r}")
    if slot.kind == "scalar":
        return (slot.kind, place, 0, 0, parameter.dtype or "")
    if slot.kind == "pointer":
        return (slot.kind, place, 0, _offset(slot, parameter, what), parameter.dtype or "")
    if not 0 <= slot.axis < (parameter.ndim or 0):
        raise ValueError(f"{what}: axis {slot.axis} is out of range for {parameter.ndim} dimensions")
    if slot.dtype not in _INTEGERS:
        raise ValueError(f"{what} has the unknown dtype {slot.dtype!r}; known are {', '.join(_INTEGERS)}")
    return (slot.kind, place, slot.axis, 0, slot.dtype)


def _offset(slot: Slot, parameter: Parameter, what: str) -> int:
    if not slot.field:
        return 0
    for field, _, offset in parameter.fields:
        if field == slot.field:
            return offset
    raise ValueError(f"{what}: unknown field {slot.field!r}")
