"""Values that a text takes from the user's namespace, and the helpers of other ids among them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from rekernel.handle import KernelHandle
from rekernel.live import Edition, LiveModule, live_of

if TYPE_CHECKING:
    from rekernel.live import Live

MISSING: Any = object()
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_DEPTH = 3
_MOST = 256  # items of a container, or attributes of an object, that are looked at
_CONTAINERS = (list, tuple, set, frozenset, dict, MappingProxyType)
#: Packages whose objects hold no helpers of the user's, and are many.
_OTHERS = frozenset(sys.stdlib_module_names - {"__main__"}) | {
    "numpy", "taichi", "quadrants", "taichi_forge", "torch", "cupy", "rekernel", "matplotlib", "scipy", "sympy",
    "pystencils", "IPython",
}  # fmt: skip


class Borrowed(dict[str, Any]):
    """What a namespace had for the names that a text wants, and what its lists and dicts held then."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.contents = {name: _items(value) for name, value in values.items() if type(value) in (list, dict, set)}


def _items(value: Any) -> tuple[Any, ...]:
    if type(value) is dict:
        return (*value.keys(), *value.values()) if len(value) <= _MOST else ()
    return tuple(value) if len(value) <= _MOST else ()


def lookup(namespace: Mapping[str, Any] | None, wants: Iterable[str]) -> Borrowed:
    """Return what the namespace has for the names that a text wants. The namespace is read, never written."""
    return Borrowed({} if namespace is None else {name: namespace[name] for name in wants if name in namespace})


def same(borrowed: Borrowed, namespace: Mapping[str, Any] | None, wants: Iterable[str]) -> bool:
    """Whether the namespace still has the same values for the names that a text wants.

    Objects are compared by identity (arrays and fields may have changed their data: that is what they are for),
    plain constants by value, lists and dicts by what they hold.
    """
    if namespace is None:
        return not borrowed
    for name in wants:
        if not _is_same(borrowed.get(name, MISSING), namespace.get(name, MISSING)):
            return False
    for name, old in borrowed.contents.items():
        new = _items(namespace[name])
        if len(old) != len(new) or not all(map(_is_same, old, new)):
            return False
    return True


def _is_same(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and isinstance(old, _PLAIN) and bool(old == new))


class View(SimpleNamespace):
    """A helper module as one fixed version: what a text is given in place of the module that follows."""

    def __getattr__(self, name: str) -> Any:
        names = ", ".join(sorted(vars(self))) or "none"
        raise AttributeError(f"the helper has no {name!r}; its names: {names}")


class Delegate:
    """An object that holds helpers among its attributes, with their fixed versions in place of these."""

    def __init__(self, original: Any, names: Mapping[str, Any]) -> None:
        vars(self).update(names)
        self._rekernel_original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_rekernel_original"], name)


def _holds_names(value: Any) -> bool:
    """Whether an object is the user's own and may hold helpers: a namespace, a module, a class, an instance."""
    kind = type(value)
    if kind is SimpleNamespace:
        return True
    names = getattr(value, "__dict__", None)
    if names is None or len(names) > _MOST or (callable(value) and not isinstance(value, type)):
        return False
    module = value.__name__ if kind is ModuleType else (value if isinstance(value, type) else kind).__module__
    return module.split(".")[0] not in _OTHERS and not module.startswith("_rekernel_live.")


def _refilled(container: Any, items: list[Any]) -> Any:
    """Return a container like this one with other items."""
    if isinstance(container, Mapping):
        if isinstance(container, MappingProxyType):
            return dict(zip(container, items, strict=True))
        made = copy.copy(container)
        made.update(zip(list(container), items, strict=True))  # type: ignore[attr-defined]
        return made
    return type(container)._make(items) if hasattr(container, "_make") else type(container)(items)


Resolve = Callable[["Live"], Edition]


def resolve(
    values: Mapping[str, Any], edition_of: Resolve, find: Callable[[Any], Any]
) -> tuple[dict[str, Any], list[Live]]:
    """Replace helpers among `values` by what their ids have now; return the values and the ids found.

    `edition_of` gives the version of an id that is to be used; `find` gives ``(live, name)`` for an object that
    a version of an id defines (a ``ti.func``, a class), or None. Lists, tuples and dicts are looked through.
    """
    used: dict[int, Live] = {}

    def one(value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _PLAIN_KINDS:
            return value
        if kind is LiveModule:
            live = live_of(value)
            assert live is not None
            used[id(live)] = live
            built = edition_of(live).built
            return View(**{**built.names, **built.originals})
        if kind is KernelHandle:
            if value._pin is not None:
                return value._pin.built.originals.get(value._name, value)
            used[id(value._live)] = value._live
            return edition_of(value._live).built.originals.get(value._name, value)
        if depth < _DEPTH and isinstance(value, _CONTAINERS) and len(value) <= _MOST:
            items = list(value.values() if isinstance(value, Mapping) else value)
            made = [one(item, depth + 1) for item in items]
            return value if all(a is b for a, b in zip(made, items, strict=True)) else _refilled(value, made)
        if depth < _DEPTH and _holds_names(value):
            names = dict(vars(value))
            made = [one(item, depth + 1) for item in names.values()]
            new = {n: b for (n, a), b in zip(names.items(), made, strict=True) if a is not b}
            return Delegate(value, new) if new else value
        found = find(value)
        if found is not None:
            live, name = found
            used[id(live)] = live
            built = edition_of(live).built
            return built.names.get(name, built.originals.get(name, value))
        return value

    return {name: one(value, 0) for name, value in values.items()}, list(used.values())


_PLAIN_KINDS = frozenset(_PLAIN)


def _is_ours(module_name: str) -> bool:
    return module_name == "rekernel" or module_name.startswith("rekernel.")


def frames_of_ours() -> int:
    """Return how many frames above the caller's are rekernel's: a ``stacklevel`` that points at the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def callers_globals() -> Mapping[str, Any]:
    """Return the globals of the first frame outside rekernel: only to say what is missing, never as values."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame.f_globals
