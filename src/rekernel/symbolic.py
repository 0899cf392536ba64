"""Kernels of pystencils 2.x, made from symbols, as our values. Pure; pystencils is never imported here.

pystencils makes the C function and says of each of its parameters what it is: the pointer, an extent or a stride of a
field, or a number. How the function is compiled, checked, called and kept is ours.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from rekernel.errors import JitError
from rekernel.kernel import Extent, Kernel, Parameter, Slot
from rekernel.pointwise import Touched, groups

__all__ = ["is_symbolic", "kernel_of", "number_of"]

#: What the code of a kernel must contain to use a header that pystencils names for every kernel of a target.
_USES = {
    "<cmath>": re.compile(r"(?<![\w:.])(?!(?:for|if|while|return)\()[A-Za-z]\w*\("),
    "<limits>": re.compile(r"\bstd::numeric_limits\b"),
    '"pystencils_runtime/generic_cpu.hpp"': re.compile(r"\bpystencils::runtime::(?!x86|neon|sve)"),
    '"pystencils_runtime/generic_gpu.hpp"': re.compile(r"\bpystencils::runtime::(?!gpu\b)"),
    '"pystencils_runtime/cuda.cuh"': re.compile(r"\bhalf\b|\bPS_FP\d+_|\bpystencils::runtime::gpu\b"),
    '"pystencils_runtime/x86.hpp"': re.compile(r"\bpystencils::runtime::x86\b"),
    '"pystencils_runtime/half.h"': re.compile(r"\bhalf\b"),
}
#: System headers that pystencils leaves to its own headers. Named, they come from a precompiled header.
_IMPLIED = {"<stdint.h>": re.compile(r"\bu?int\d+_t\b"), "<immintrin.h>": re.compile(r"\b_mm\d*_")}

_PRAGMA = re.compile(r"^\s*#pragma.*$", re.MULTILINE)

_Roles = Mapping[str, "list[tuple[str, _Field, int]]"]
"""Of each parameter of the C function: what it is (pystencils' name for it), of which field, along which axis."""


def is_symbolic(given: Any) -> bool:
    """Return whether an object is a kernel of pystencils 2.x.

    >>> is_symbolic("text")
    False
    """
    return any(c.__name__ == "Kernel" and c.__module__.startswith("pystencils.") for c in type(given).__mro__)


def kernel_of(given: Any, restrict: str = "__restrict__", *, gpu: bool = False) -> Kernel:
    """Return a kernel of pystencils as a value.

    Its parameters are the fields and the numbers, each where the C function (whose parameters are in the order of the
    alphabet) first needs it. Fields of pystencils' usual kinds that the kernel walks along together must have the same
    spatial extents. `restrict` is the compiler's word for a pointer that no other overlaps; without one, arrays may
    overlap. JitError for a kernel that is not for a CPU, or with `gpu` not for CUDA.
    """
    if given.target.name != "CUDA" if gpu else not given.target.is_cpu():
        raise JitError(f"{given.name} is made for {given.target.name}, not for {'CUDA' if gpu else 'a CPU'}")
    code = str(given.get_c_code())
    space = f"stencil_{blake2b(code.encode(), digest_size=4).hexdigest()}"
    system, own = _headers(given.required_headers, code)
    text = f"#define RESTRICT {restrict}\nnamespace {space} {{\n{code}\n}}\n"
    parameters, slots = _table(given, code, bool(restrict))
    return Kernel(
        name=given.name, parameters=parameters, language="stencil", code="".join(f"#include {h}\n" for h in own) + text,
        slots=slots, function=f"{space}::{given.name}", headers=system, policy="pystencils",
        openmp="#pragma omp" in code,
    )  # fmt: skip


def _headers(required: Iterable[str], code: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the headers that the code uses: those of the system, and others by their full names."""
    code = _PRAGMA.sub("", code)  # whose clauses look like calls
    used = {h for h in required if h not in _USES or _USES[h].search(code)}
    used |= {header for header, use in _IMPLIED.items() if use.search(code)}
    if '"pystencils_runtime/cuda.cuh"' in used:  # there, half is CUDA's own
        used.discard('"pystencils_runtime/half.h"')
    system = sorted(header for header in used if header.startswith("<"))
    place = os.path.join(os.path.dirname(os.path.realpath(sys.modules["pystencils"].__file__ or "")), "include", "")
    others = (re.sub(r'^"(?=pystencils_runtime/)', lambda _: f'"{place}', header) for header in used - set(system))
    return tuple(system), tuple(sorted(others))


def _table(given: Any, code: str, restrict: bool) -> tuple[tuple[Parameter, ...], tuple[Slot, ...]]:
    """Return what the caller passes, and how the function's arguments come from it."""
    fields: dict[str, _Field] = {}
    numbers: dict[str, Parameter] = {}
    roles: dict[str, list[tuple[str, _Field, int]]] = {}
    slots = []
    passed = {r.field.name for p in given.parameters for r in p.properties if type(r).__name__ == "FieldBasePtr"}
    for p in given.parameters:
        found = [(type(r).__name__, r.field, getattr(r, "coordinate", 0)) for r in p.properties if hasattr(r, "field")]
        # They are a set. A size may also be that of a field in which the kernel touches nothing.
        found.sort(key=lambda role: (role[1].name not in passed, role[0], role[1].name, role[2]))
        used = [role for role in found if role[1].name in passed] or found[:1]
        roles[p.name] = [(kind, fields.setdefault(f.name, _Field(f)), axis) for kind, f, axis in used]
        if not found:
            numbers[p.name] = number_of(p)
            slots.append(Slot("scalar" if numbers[p.name].kind == "scalar" else "pointer", p.name))
            continue
        kind, first, axis = roles[p.name][0]
        if kind == "FieldBasePtr":
            first.pointer = p
            slots.append(Slot("pointer", first.name))
        else:
            slots.append(Slot("shape" if kind == "FieldShape" else "stride", first.name, axis, _type(p.dtype)))
    for name in numbers.keys() & fields.keys():
        raise JitError(
            f"{given.name} has a field and a number of the name {name}; a caller could pass one of them only"
        )
    _share(fields.values(), roles)
    if given.target.is_vector_cpu() and ("_mm" in code or "X86" not in given.target.name):
        for each in fields.values():
            each.assume_unit_stride(roles)
    group = groups(code, {each.name: each.touched(roles) for each in fields.values() if not each.members})
    order = dict.fromkeys(slot.parameter for slot in slots)
    rows = (numbers.get(name) or fields[name].parameter(group.get(name, 0), restrict) for name in order)
    return tuple(rows), tuple(slots)


def number_of(p: Any) -> Parameter:
    """Return the parameter for what belongs to no field: a number, or the place where a reduction leaves its result."""
    pointed = getattr(p.dtype, "base_type", None)
    if pointed is None:
        return Parameter(p.name, "scalar", dtype=_type(p.dtype))
    if pointed.const:
        return Parameter(p.name, "pointer", dtype=_type(pointed))
    return Parameter(p.name, "array", dtype=_type(pointed), ndim=0, written=True)


def _type(dtype: Any) -> str:
    """Return NumPy's name of a type of pystencils."""
    numpy = getattr(dtype, "numpy_dtype", None)
    if numpy is None:
        raise JitError(f"a kernel cannot be called with an argument of pystencils' type {dtype}")
    return str(numpy.name)


def _share(fields: Iterable[_Field], roles: _Roles) -> None:
    """Let extents and strides of several fields have one name, where the kernel takes them to be equal."""
    domain = [field for field in fields if field.in_domain]
    for axis in range(max((field.spatial for field in domain), default=0)):
        members = [field for field in domain if axis < field.spatial]
        fixed = [extent for field in members if isinstance(extent := field.shape[axis], int)]
        for field in members if len(members) > 1 else ():
            field.shape[axis] = fixed[0] if fixed else f"the domain's axis {axis}"
    for symbol, places in roles.items():
        if len(places) < 2:
            continue
        named = [field.shape[axis] for kind, field, axis in places if kind == "FieldShape"]
        name = next((extent for extent in named if isinstance(extent, str)), symbol)
        for kind, field, axis in places:
            (field.shape if kind == "FieldShape" else field.strides)[axis] = name


class _Field:
    """A field of pystencils as an array."""

    def __init__(self, field: Any) -> None:
        self.name = str(field.name)
        self.pointer: Any = None
        kind = getattr(getattr(field, "field_type", None), "name", "")
        self.buffer = kind == "BUFFER"  # pystencils lays it out itself
        self.in_domain = kind in ("", "GENERIC", "STAGGERED", "STAGGERED_FLUX")
        layout = field if kind else field.get_buffer_spec()
        self.shape: list[Extent] = [_fixed(extent) for extent in layout.shape]
        self.strides: list[Extent] = [None if self.buffer else _fixed(stride) for stride in layout.strides]
        self.spatial: int = field.spatial_dimensions if kind else field.get_iteration_limits().rank
        self.inner: int = (field.layout if kind else field.get_iteration_limits().loop_order)[-1]
        # Where there is one value at each point, the caller may leave its axis out or not.
        self.trailing = int(bool(kind) and self.shape[self.spatial :] in ([], [1]))
        if self.trailing:
            self.shape[self.spatial :], self.strides[self.spatial :] = [1], [None]
        margin = _margin(field)
        self.margins = [margin if margin and axis < self.spatial else 0 for axis in range(len(self.shape))]
        record = getattr(field.dtype, "members", None) and field.dtype.numpy_dtype
        self.itemsize = record.itemsize if record else 0
        self.members = tuple((n, str(t.name), int(at)) for n, (t, at, *_) in record.fields.items()) if record else ()

    def assume_unit_stride(self, roles: _Roles) -> None:
        """Require a stride of 1 along the inner loop, where the code does not ask for it: told to, it assumes 1."""
        asked = ("FieldStride", self, self.inner) in [role for places in roles.values() for role in places]
        if self.in_domain and self.strides[self.inner] is None and not asked:
            self.strides[self.inner] = 1

    def touched(self, roles: _Roles) -> Touched:
        """Return the field as the code knows it."""
        strides = {
            symbol: axis for symbol, places in roles.items() for kind, field, axis in places
            if kind == "FieldStride" and field is self
        }  # fmt: skip
        kind = (self._element(), tuple(self.margins), tuple(map(str, self.strides)))
        return Touched(self.pointer.name if self.pointer else "", self._written(), strides, kind)

    def parameter(self, group: int, restrict: bool) -> Parameter:
        """Return the field as the caller sees it."""
        if self.pointer is None:
            raise JitError(f"the kernel asks for the size of {self.name} and for nothing in it")
        written = self._written()
        shown = ", ".join(str(e) if isinstance(e, int) else ":" for e in self.shape[: len(self.shape) - self.trailing])
        element = "record" if self.members else self._element()
        return Parameter(
            self.name, "array", type=f"{'' if written else 'const '}{element}[{shown}]", written=written,
            dtype=self._element(), ndim=len(self.shape), shape=tuple(self.shape), strides=tuple(self.strides),
            trailing=self.trailing, order="C" if self.buffer else "free", restrict=restrict, group=group,
            margins=tuple(self.margins), fields=self.members, itemsize=self.itemsize,
        )  # fmt: skip

    def _written(self) -> bool:
        return self.pointer is not None and not self.pointer.dtype.base_type.const

    def _element(self) -> str:
        return _type(self.pointer.dtype.base_type) if self.pointer else ""


def _fixed(size: Any) -> int | None:
    """Return an extent or a stride that is a number, or None for a symbol."""
    return int(size) if hasattr(size, "__index__") else None


def _margin(field: Any) -> int:
    """Return how many ghost layers pystencils cuts off an array before the kernel sees it."""
    if not hasattr(field, "view_ndarray"):
        return 0
    margin = getattr(field, "ghost_layers", None)
    if not isinstance(margin, int):
        raise JitError(f"{field.name} is a {type(field).__name__}, of which it is not known what its kernel sees")
    return margin
