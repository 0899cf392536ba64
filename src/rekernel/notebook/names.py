"""The notebook's names: what a text defines comes in, and what the user has there is not lost in silence."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from rekernel import publishing
from rekernel.handle import KernelHandle
from rekernel.live import Live

__all__ = ["Names", "Outside"]

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 40
_NOTHING: Any = object()


@dataclass
class Names:
    """The names of one notebook, ``shell.user_ns``, and what has been said about them."""

    user: dict[str, Any]
    said: set[tuple[str, str]] = field(default_factory=set)

    def bind(self, live: Live, kernels: Iterable[str], over: bool = True) -> list[str]:
        """Let kernels of an id have their names; return one line for each name that meant something else.

        Unless `over`, a name that means something else stays as it is.
        """
        notes = []
        for name in kernels:
            handle, old = live.handle(name), self.user.get(name, _NOTHING)
            if old is handle or (old is not _NOTHING and not over):
                continue
            if old is not _NOTHING:
                notes.append(f"{name} was {told(old)}; now it is the kernel {live.kernel_id}.{name}")
            self.user[name] = handle
        return notes

    def add(self, live: Live, values: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
        """Let what a text defines beside kernels (fields, constants, functions) have names that are free.

        A name that still has the value of the version `before` is renewed. What the user has put there stays, and the
        line that is returned says so, once for each name.
        """
        kept = []
        for name, value in values.items():
            if name.startswith("_") or isinstance(value, ModuleType):
                continue
            old = self.user.get(name, _NOTHING)
            if old is _NOTHING or old is before.get(name, _NOTHING):
                self.user[name] = value
            elif old is not value and (live.kernel_id, name) not in self.said:
                self.said.add((live.kernel_id, name))
                kept.append(name)
        if not kept:
            return []
        own = ", ".join(f"rekernel.kernels[{live.kernel_id!r}].{name}" for name in kept)
        stay = "stay as they were" if kept[1:] else "stays as it was"
        return [f"{', '.join(kept)} in the notebook {stay}; the text's own: {own}"]


class Outside(Mapping[str, Any]):
    """The notebook's names without the kernels and functions of one id.

    Its text defines them itself: one that is used and defined no more has left the text, and is to be missed.
    """

    def __init__(self, user: Mapping[str, Any], kernel_id: str | None) -> None:
        self.user = user
        self.kernel_id = kernel_id

    def __getitem__(self, name: str) -> Any:
        value = self.user[name]
        owner: Live | None = value._live if isinstance(value, KernelHandle) else None
        if owner is None and callable(value) and (found := publishing.owner(value)) is not None:
            owner = found[0]
        if owner is not None and owner.kernel_id == self.kernel_id and owner.token == "default":
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self.user)

    def __len__(self) -> int:
        return len(self.user)


def told(value: Any) -> str:
    """Return what a value is, in a few words."""
    if isinstance(value, KernelHandle):
        pinned = f" v{value._pin.number}, pinned" if value._pin is not None else ""
        return f"the kernel {value.kernel_id}.{value.__name__}{pinned}"
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    a = "an" if kind[0] in "aeiou" else "a"
    if isinstance(shape, tuple) and shape:
        return f"{a} {kind} of shape {shape}"
    try:
        return f"{a} {kind}, {_short.repr(value)}"
    except Exception:  # a repr of the user's that fails
        return f"{a} {kind}"
