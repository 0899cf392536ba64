"""A Taichi kernel's annotations as parameters: in NumPy's names for people, as table rows for the native check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rekernel import _native
from rekernel.errors import ArgumentTypeError, ArgumentValueError
from rekernel.kernel import Kernel, Parameter
from rekernel.languages.taichi import written
from rekernel.languages.taichi.package import Package, arguments

_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64", "u1": "bool",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip

#: The smallest magnitude that rounds to infinity: half a unit in the last place above the largest finite value.
_OVERFLOW = {"float16": 65520.0, "float32": 3.4028235677973366e38, "float64": None}

Row = tuple[str, int, Any, Any, int, int, bool, str, Callable[[Any], Any] | None]


def dtype_name(package: Package, annotation: Any) -> str | None:
    """Return NumPy's name of a primitive type (``ti.f32``, ``float``, ``int``), or None for anything else."""
    if annotation is None:
        return None
    try:
        cooked = package.module.lang.util.cook_dtype(annotation)
    except Exception:  # whatever is no primitive type is refused there, in several ways
        return None
    return _NUMPY.get(str(cooked.to_string()))


def describe(package: Package, annotation: Any) -> str:
    """Return a type as it is shown: ``float32[:, :]``, ``int32``, ``vector(3, float32)``, ``template``."""
    kind = type(annotation).__name__
    scalar = None if kind in ("NdarrayType", "MatrixType", "VectorType") else dtype_name(package, annotation)
    if scalar is not None:
        return scalar
    if kind == "NdarrayType":
        element = "any" if annotation.dtype is None else describe(package, annotation.dtype)
        if annotation.ndim is None:
            return "ndarray" if annotation.dtype is None else f"ndarray({element})"
        return f"{element}[{', '.join([':'] * annotation.ndim)}]"
    if kind in ("MatrixType", "VectorType"):
        element = describe(package, annotation.dtype)
        if annotation.ndim == 1:
            return f"vector({annotation.n}, {element})"
        return f"matrix({annotation.n}, {annotation.m}, {element})"
    if kind in ("template", "Template"):
        return "template"
    return kind.removesuffix("Type").lower()


def kernel_value(package: Package, kernel: Any, functions: written.Functions, text: str, original: Any) -> Kernel:
    """Return the kernel as a value. `original` is what the text bound to the name (it carries the docstring)."""
    name = kernel.func.__name__
    writes = _writes(kernel, functions)
    parameters = tuple(
        Parameter(
            a.name, _kind(a.annotation), describe(package, a.annotation),
            written=a.name in writes and _kind(a.annotation) == "array",
            dtype=dtype_name(package, a.annotation.dtype if _kind(a.annotation) == "array" else a.annotation),
        )
        for a in arguments(kernel)
    )  # fmt: skip
    returned = kernel.return_type
    returns = None
    if returned is not None:
        parts = returned if isinstance(returned, list | tuple) else (returned,)
        returns = ", ".join(describe(package, part) for part in parts)
    line = kernel.func.__code__.co_firstlineno
    return Kernel(name, parameters, "taichi", code=text, doc=original.__doc__, returns=returns, line=line)


def _writes(kernel: Any, functions: written.Functions) -> frozenset[str]:
    node = functions.get(kernel.func.__name__)
    if node is None:
        return frozenset(a.name for a in arguments(kernel))
    return written.written(node, functions)


def _kind(annotation: Any) -> str:
    kind = type(annotation).__name__
    if kind == "NdarrayType":
        return "array"
    if kind in ("template", "Template"):
        return "template"
    return "other" if kind.endswith("Type") and kind != "DataType" else "scalar"


def rows(package: Package, kernel: Any, functions: written.Functions) -> tuple[Row, ...]:
    """Return the table by which the native guard checks a call."""
    writes = _writes(kernel, functions)
    return tuple(_row(package, a.name, a.annotation, a.name in writes, kernel) for a in arguments(kernel))


def _row(package: Package, name: str, annotation: Any, is_written: bool, kernel: Any) -> Row:
    expected = describe(package, annotation)
    kind = type(annotation).__name__
    if kind == "NdarrayType":
        element, extra = annotation.dtype, 0
        if type(element).__name__ in ("MatrixType", "VectorType"):
            element, extra = element.dtype, element.ndim
        scalar = dtype_name(package, element)
        number = -1 if scalar is None else np.dtype(scalar).num
        rank = -1 if annotation.ndim is None else annotation.ndim + extra
        return name, _native.ARRAY, None, None, number, rank, is_written, expected, None
    if kind in ("MatrixType", "VectorType"):
        check = _matrix_check(f"{kernel.func.__name__}() argument {name!r}", name, annotation, package)
        return name, _native.CHECK if check else _native.ANY, None, None, -1, -1, False, expected, check
    scalar = dtype_name(package, annotation)
    if scalar is None:
        return name, _native.ANY, None, None, -1, -1, False, expected, None
    if scalar in _OVERFLOW:
        return name, _native.FLOAT, None, _OVERFLOW[scalar], -1, -1, False, expected, None
    low, high = (0, 1) if scalar == "bool" else _range(scalar)
    return name, _native.INT, low, high, -1, -1, False, expected, None


def _range(scalar: str) -> tuple[int, int]:
    limits = np.iinfo(scalar)
    return int(limits.min), int(limits.max)


def _matrix_check(title: str, name: str, annotation: Any, package: Package) -> Callable[[Any], Any] | None:
    """Return a check of shape and, for integer elements, of range: Taichi would let a wrapped value through."""
    scalar = dtype_name(package, annotation.dtype)
    if scalar is None:
        return None
    shape = (annotation.n,) if annotation.ndim == 1 else (annotation.n, annotation.m)
    expected = describe(package, annotation)
    limits = None if scalar in _OVERFLOW else (0, 1) if scalar == "bool" else _range(scalar)

    def check(value: Any) -> Any:
        if value is None or isinstance(value, str | bytes | int | float | complex):
            got = type(value).__name__
            raise ArgumentTypeError(
                f"{title}: expected {expected}, got {got}", argument=name, expected=expected, got=got
            )
        got_shape = tuple(np.shape(value.to_list() if hasattr(value, "to_list") else value))
        if len(shape) == 1 and got_shape == (shape[0], 1):
            got_shape = shape
        if got_shape != shape:
            raise ArgumentValueError(
                f"{title}: expected {expected}, got a value of shape {got_shape}",
                argument=name, expected=expected, got=str(got_shape),
            )  # fmt: skip
        if limits is not None:
            for item in np.ravel(np.asarray(value.to_list() if hasattr(value, "to_list") else value, dtype=object)):
                if isinstance(item, int | np.integer) and not limits[0] <= int(item) <= limits[1]:
                    raise ArgumentValueError(
                        f"{title}: {item} does not fit {scalar} ({limits[0]} to {limits[1]})",
                        argument=name, expected=expected, got=str(item),
                    )  # fmt: skip
        return value

    return check
