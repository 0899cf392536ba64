"""Why something is built: the first field of a key that differs from what was built before. Pure.

::

    labelled fields -> words (kept in the manifest of an entry) -> difference with the nearest entry -> one sentence
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekernel import key

__all__ = ["NEW", "Reason", "because", "differing", "nearest", "words"]

NEW = "not seen before"
_LONGEST = 3000  # characters of a value that is kept in words: GCC's ``-march=native`` alone has 900
_SHOWN = 60  # characters of a value in a sentence
_TEXTS = ("unit", "beside", "headers")
"""Fields that hold texts, of which only the digest is kept."""
_FIRST = ("unit", "version", "nvrtc", "architecture")
"""What says most where several fields differ: a new version of a compiler has another path and other files, too."""
_FLAGS = ("cxxflags", "linker flags", "flags", "options", "environment")
_SAID = {
    "unit": "text changed", "beside": "text beside it changed", "module": "what it is linked to changed",
    "launcher": "compiler launcher", "driver": "compiler", "version": "compiler version", "triple": "target system",
    "files": "files of the compiler", "environment": "environment of the compiler", "linker": "linker",
    "cxxflags": "flags", "linker flags": "linker flags", "flags": "flags", "options": "options", "cpu": "CPU changed",
    "architecture": "architecture", "nvrtc": "NVRTC version", "headers": "headers given as texts changed",
    "before": "headers read first", "expressions": "names", "places": "include directories",
    "our headers": "rekernel changed", "reader": "rekernel changed", "cpp": "rekernel changed",
    "cuda": "rekernel changed",
}  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """Why something has to be built."""

    field: str
    """What differs: a label of the key (``unit``, ``version``, ``cxxflags``), ``header``, ``entry`` or ``key``."""
    said: str
    """The same for people: ``text changed``, ``flags changed: -O2 -> -O3``, ``not seen before``."""


def words(fields: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """Return the fields of a key as a manifest keeps them: in words where they are short, else as digests.

    >>> words([("unit", "int f();"), ("triple", "x86_64-linux-gnu"), ("module", False)])
    {'unit': '#d09b64409676', 'triple': 'x86_64-linux-gnu', 'module': False}
    """
    return {label: _word(label, value) for label, value in fields}


def differing(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Return the labels of the fields that differ: what says most, then in the order of the key."""
    labels = dict.fromkeys([*_FIRST, *now, *before])
    return [label for label in labels if now.get(label, _NONE) != before.get(label, _NONE)]


def nearest(now: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return what differs in the fewest fields; of several the first, which is the latest."""
    return min(others, key=lambda other: len(differing(now, other)), default=None)


def because(missed: str, now: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Reason:
    """Return why there was nothing in the cache.

    `missed` is the cache's own reason, which says more where there was an entry of the key: ``header changed: a.h``.
    `others` are the fields of what the same kernels were before, the latest first.

    >>> because("new", {"unit": "#1", "cxxflags": "-O3 -g"}, [{"unit": "#1", "cxxflags": "-O2 -g"}])
    Reason(field='cxxflags', said='flags changed: -O2 -> -O3')
    >>> because("new", {"unit": "#1"}, [])
    Reason(field='key', said='not seen before')
    """
    if missed != "new":
        return Reason("header" if missed.startswith(("header", "names")) else "entry", missed)
    before = nearest(now, others)
    if before is None:
        return Reason("key", NEW)
    labels = differing(now, before)
    if not labels:
        return Reason("entry", "taken out of the cache since")
    return Reason(labels[0], _sentence(labels[0], now.get(labels[0]), before.get(labels[0])))


_NONE = object()


def _word(label: str, value: object) -> Any:
    if label not in _TEXTS:
        plain = value.replace("\0", " ") if isinstance(value, str) else _plain(value)
        if plain is not _NONE and len(str(plain)) <= _LONGEST:
            return plain
    return f"#{key.digest([('value', value)])[:12]}"


def _plain(value: object) -> Any:
    """Return a value as JSON gives it back, or `_NONE`."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, tuple | list):
        items = [_plain(item) for item in value]
        return _NONE if _NONE in items else items
    return _NONE


def _sentence(label: str, now: Any, before: Any) -> str:
    said = _SAID.get(label, label)
    if said.endswith("changed"):
        return said
    if label in _FLAGS:
        now, before = (value.split() if isinstance(value, str) else value or [] for value in (now, before))
        gone, came = _joined(f for f in before if f not in now), _joined(f for f in now if f not in before)
        shown = _change(gone, came) if gone or came else ": another order"
        return f"{said} changed{shown}"
    return f"{said} changed{_change(_short(label, before), _short(label, now))}"


def _change(before: str, now: str) -> str:
    if "#" in (before[:1], now[:1]) or before == now:
        return ""
    before, now = (text if len(text) <= _SHOWN else f"{text[: _SHOWN - 4]} ..." for text in (before, now))
    if not before or not now:
        return f": {now} came" if now else f": {before} went"
    return f": {before} -> {now}"


def _joined(items: Iterable[Any]) -> str:
    return " ".join("=".join(map(str, item)) if isinstance(item, list) else str(item) for item in items)


def _short(label: str, value: Any) -> str:
    if value is None or value == []:
        return ""
    if label == "nvrtc" and isinstance(value, list):
        return ".".join(map(str, value))
    if isinstance(value, list):
        return _joined(dict.fromkeys(map(str, value)))
    match = re.search(r"(gcc|clang) version (\d[\d.]*)", str(value)) if label == "version" else None
    return str(value) if match is None else f"{match[1].replace('gcc', 'g++').replace('clang', 'clang++')} {match[2]}"
