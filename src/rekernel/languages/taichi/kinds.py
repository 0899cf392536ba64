"""What counts as state in a Taichi text, and when two pieces of it are of the same kind."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from rekernel.languages.pyrun import PREFIX
from rekernel.languages.taichi.package import ALIASES

_PROGRAM_BOUND = frozenset(
    {"Field", "Ndarray", "SNode", "FieldsBuilder", "Texture", "SparseMatrixBuilder", "SparseMatrix", "MeshInstance"}
)
_WINDOWS = frozenset({"GUI", "Window", "Canvas", "Scene", "Camera", "VideoManager"})
_MOST = 64  # elements of a container that are looked at
_LARGEST = 1 << 26  # bytes of an array that are digested


def is_state(value: Any, *, program: bool = True, depth: int = 0) -> bool:
    """Whether a value is data that a running program would miss.

    Fields, ndarrays, layout nodes, textures, windows, NumPy arrays, PyTorch tensors, instances of classes that
    the text defines, and containers of them. Without `program`, only what outlives ``ti.init``.
    """
    kind = type(value)
    if isinstance(value, np.ndarray):
        return True
    root = kind.__module__.split(".")[0]
    if root in ALIASES:
        names = {base.__name__ for base in kind.__mro__}
        return bool(names & _WINDOWS) or (program and bool(names & _PROGRAM_BOUND))
    if kind.__module__.startswith(PREFIX) and not isinstance(value, type):
        return program or not holds_program_state(value)
    if root == "torch" and kind.__name__ in ("Tensor", "Parameter"):
        return True
    if depth < 3 and kind in (list, tuple, set, dict):
        items = list(value.values() if kind is dict else value)[:_MOST]
        return any(is_state(item, program=program, depth=depth + 1) for item in items)
    return False


def holds_program_state(value: Any, depth: int = 0) -> bool:
    """Whether a value is, or reaches through its attributes or items, memory of a Taichi program."""
    kind = type(value)
    if kind.__module__.split(".")[0] in ALIASES:
        return bool({base.__name__ for base in kind.__mro__} & _PROGRAM_BOUND)
    if depth >= 3:
        return False
    if kind in (list, tuple, set, dict):
        items = list(value.values() if kind is dict else value)[:_MOST]
        return any(holds_program_state(item, depth + 1) for item in items)
    if kind.__module__.startswith(PREFIX):
        return any(holds_program_state(item, depth + 1) for item in getattr(value, "__dict__", {}).values())
    return False


def print_of(value: Any) -> int | None:
    """Return a digest of a NumPy array's content, or None where it is too large to be worth it."""
    if not isinstance(value, np.ndarray) or value.nbytes > _LARGEST or value.dtype.hasobject:
        return None
    return zlib.crc32(np.ascontiguousarray(value).view(np.uint8).reshape(-1).data) if value.size else 0


def same_kind(old: Any, new: Any) -> bool:
    """Whether `old` can take the place of `new`: kind, dtype, shape and layout are the same."""
    if type(old) is not type(new):
        return False
    if isinstance(old, np.ndarray):
        order = (old.flags.c_contiguous, old.flags.f_contiguous) == (new.flags.c_contiguous, new.flags.f_contiguous)
        return old.dtype == new.dtype and old.shape == new.shape and order
    names = {base.__name__ for base in type(old).__mro__}
    if "Field" in names:
        return _field(old) == _field(new) and _field(old) is not None
    if "Ndarray" in names:
        return (str(old.element_type), tuple(old.shape)) == (str(new.element_type), tuple(new.shape)) and bool(
            old.grad is None
        ) == bool(new.grad is None)
    return False


def _field(value: Any) -> tuple[Any, ...] | None:
    """Describe a field by its members' types and their places in the tree, or None when it has no place yet."""
    members = value._get_field_members()
    described: list[Any] = [tuple(getattr(value, "keys", ())) if type(value).__name__ == "StructField" else ()]
    described.append((getattr(value, "n", 1), getattr(value, "m", 1)))
    parents: dict[int, int] = {}
    for member in members:
        node = member.ptr.snode()
        if node is None:
            return None
        chain = []
        parent = node
        while parent is not None:
            shape = tuple(parent.get_shape_along_axis(axis) for axis in range(parent.num_active_indices()))
            chain.append((str(parent.type), shape))
            parent = parent.parent
        order = parents.setdefault(node.parent.id, len(parents))  # members side by side, or apart
        grads = (node.has_adjoint(), node.has_dual())
        described.append((str(node.data_type().to_string()), tuple(chain), order, grads))
    return tuple(described)
