"""Objects made by an older version go on with the new version's methods and their own data."""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Mapping
from typing import Any


def classes_of(values: Mapping[str, Any], module_name: str) -> dict[str, type]:
    """Return the classes that the text itself defines."""
    return {n: v for n, v in values.items() if isinstance(v, type) and v.__module__ == module_name}


def struct_types_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``ti.dataclass`` types (objects, not classes) that the text binds."""
    return {n: v for n, v in values.items() if type(v).__name__ == "StructType" and hasattr(v, "methods")}


def instances(cls: type) -> list[Any]:
    """Return all living instances of exactly this class (the collector knows them: each refers to its class)."""
    return [r for r in gc.get_referrers(cls) if type(r) is cls]


Undo = Callable[[], object]


def move(old: Mapping[str, type], new: Mapping[str, type]) -> list[Undo]:
    """Give the instances of old classes the new class of that name; return how to undo it."""
    done: list[Undo] = []
    for name, old_class in old.items():
        new_class = new.get(name)
        if new_class is None or new_class is old_class:
            continue
        for item in instances(old_class):
            try:
                item.__class__ = new_class
            except TypeError:
                continue  # another layout (``__slots__``): it keeps the class that it was made by
            done.append(functools.partial(setattr, item, "__class__", old_class))
    return done


def move_structs(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Undo]:
    """Give instances and fields of old ``ti.dataclass`` types the methods of the new type of that name."""
    done: list[Undo] = []
    for name, old_type in old.items():
        new_type = new.get(name)
        if new_type is None or new_type is old_type:
            continue
        before, after = old_type.methods, new_type.methods
        for referrer in gc.get_referrers(before):
            owner = _struct_owner(referrer, before)
            if owner is not None and owner is not old_type and _give_methods(owner, before, after):
                done.append(functools.partial(_give_methods, owner, after, before))
    return done


def _give_methods(owner: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Replace the methods of a struct field or struct instance; tell whether it had `before`."""
    if getattr(owner, "struct_methods", None) is before:
        owner.struct_methods = after
        return True
    if owner.__dict__.get("_Struct__methods") is not before:
        return False
    # A struct keeps its methods twice: the dictionary, and each one bound to itself.
    for method in before:
        owner.__dict__.pop(method, None)
    owner.__dict__["_Struct__methods"] = after
    for method, function in after.items():
        owner.__dict__[method] = types.MethodType(function, owner)
    return True


def _struct_owner(referrer: Any, methods: Mapping[str, Any]) -> Any:
    """Return the object that holds `methods`, given the object or its ``__dict__``."""
    if not isinstance(referrer, dict):
        return referrer if hasattr(referrer, "__dict__") and type(referrer).__module__ != "builtins" else None
    if referrer is methods:
        return None
    for name in ("_Struct__methods", "struct_methods"):
        if referrer.get(name) is methods:
            for owner in gc.get_referrers(referrer):
                if getattr(owner, "__dict__", None) is referrer:
                    return owner
    return None
