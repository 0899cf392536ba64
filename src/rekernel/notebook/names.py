"""The user's names: kernels go in, and what stood there before is never lost in silence."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from rekernel.handle import KernelHandle
from rekernel.live import Live

__all__ = ["bind"]

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 40


def bind(live: Live, names: Iterable[str], namespace: dict[str, Any]) -> tuple[str, ...]:
    """Put the handles of an id's kernels into a namespace; return one line for each name that meant something else."""
    said = []
    for name in names:
        handle, before = live.handle(name), namespace.get(name)
        if before is handle:
            continue
        if name in namespace:
            said.append(f"{name} was {_told(before)}; now it is the kernel {live.kernel_id}.{name}")
        namespace[name] = handle
    return tuple(said)


def _told(value: Any) -> str:
    if isinstance(value, KernelHandle):
        pinned = f" v{value._pin.number}, pinned" if value._pin is not None else ""
        return f"the kernel {value.kernel_id}.{value.__name__}{pinned}"
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    if isinstance(shape, tuple) and shape:
        return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind} of shape {shape}"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}, {_short.repr(value)}"
