"""Values of options as JSON, and back: readable, and never a pickle. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

__all__ = ["from_json", "to_json"]


def to_json(value: Any) -> Any:
    """Return a value as JSON has it; TypeError says what cannot be kept.

    What JSON does not have is a table of one row: a tuple ``{"tuple": [...]}``, a path ``{"path": "..."}``. A mapping
    is such a table, too: ``{"dict": {...}}``.

    >>> to_json(("-O2", Path("include")))
    {'tuple': ['-O2', {'path': 'include'}]}
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is list:
        return [to_json(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [to_json(item) for item in value]}
    if isinstance(value, PurePath):
        return {"path": str(value)}
    if type(value) in (dict, MappingProxyType):
        if all(type(key) is str for key in value):
            return {"dict": {key: to_json(item) for key, item in value.items()}}
        raise TypeError("a mapping whose keys are not all text")
    raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a "))


def from_json(value: Any, place: str) -> Any:
    """Return what `to_json` was given. ValueError names the `place` of what it has not written.

    >>> from_json({"tuple": ["-O2"]}, "ids[0].options.flags")
    ('-O2',)
    """
    if isinstance(value, list):
        return [from_json(item, f"{place}[{number}]") for number, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    kind, inner = next(iter(value.items())) if len(value) == 1 else ("", None)
    if kind == "tuple" and isinstance(inner, list):
        return tuple(from_json(inner, f"{place}.tuple"))
    if kind == "path" and isinstance(inner, str):
        return Path(inner)
    if kind == "float" and inner in ("inf", "-inf", "nan"):
        return float(inner)
    if kind == "dict" and isinstance(inner, Mapping):
        return {name: from_json(item, f"{place}.dict.{name}") for name, item in inner.items()}
    raise ValueError(f'{place} is a table, and none of {{"tuple": [...]}}, {{"path": "..."}}, {{"dict": {{...}}}}')
