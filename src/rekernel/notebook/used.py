"""Which kernels a Python function uses, and what its name stands for now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from rekernel.handle import KernelHandle
from rekernel.live import Live, live_of

Function = Callable[[], Any]


def record_of(value: Any) -> Live | None:
    """Return the record behind a handle or a module that a loader gave out, or None for anything else."""
    return value._live if isinstance(value, KernelHandle) else live_of(value)


def newest(function: Any) -> Callable[[], Any]:
    """Return a way to what `function` is now: a cell that defines a function of that name again replaces it.

    Only for a function that its own module still has under its name; everything else stays what it is.
    """
    if isinstance(function, FunctionType):
        space, name = function.__globals__, function.__name__
        if space.get(name) is function:
            return lambda: found if isinstance(found := space.get(name), FunctionType) else function
    return lambda: function


def kernels_used(functions: Iterable[Any]) -> list[Live]:
    """Return the records of all kernels that these functions, and functions which they call, have names for.

    Read from their code and not followed into other modules: in the order in which the names appear, each once.
    """
    found: dict[Live, None] = {}
    seen: set[int] = set()
    todo = list(functions)
    while todo:
        value = todo.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        live = record_of(value)
        if live is not None:
            found.setdefault(live)
        elif isinstance(value, FunctionType) and not (value.__module__ or "").startswith("rekernel."):
            todo += _values(value)
    return list(found)


def _values(function: FunctionType) -> Iterator[Any]:
    """The objects behind a function's global names, closure and defaults; of functions those of its own module."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if not isinstance(value, FunctionType) or value.__globals__ is function.__globals__:
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that has no value yet
            continue
    yield from function.__defaults__ or ()
