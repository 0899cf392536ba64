"""A loader in a readable JSON file: texts and options, no values, never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel import plainvalues
from rekernel.errors import KernelNotFoundError
from rekernel.files import write_whole
from rekernel.languages import languages
from rekernel.publishing import dependents
from rekernel.records import load_record, record_of

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

FORMAT = 1
_SHOWN = 60


def save(loader: KernelLoader, path: Path) -> None:
    """Write all ids of a loader; the file appears whole or not at all.

    An option whose value cannot be written is a TypeError that names id, option and value.
    """
    lives = {live.kernel_id: live for live in list(loader._lives.values()) if live.current is not None}
    # Helpers before what uses them, otherwise the order of loading.
    order = sorted(lives.values(), key=lambda live: -len(dependents(live)))
    records = []
    for live in order:
        edition = live.current
        if edition is not None:
            record = record_of(live, edition, values=False)[0]
            records.append({**record, "options": _options(live.kernel_id, record["options"])})
    content = {"rekernel": FORMAT, "last": _last(loader, lives), "ids": records}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # A lone surrogate, as in the name of a file that is not UTF-8, becomes ``\udc80``: an escape of JSON, too.
    write_whole(path, text.encode("utf-8", "backslashreplace"), 0o600)


def _last(loader: KernelLoader, lives: Mapping[str, Any]) -> str | None:
    return next((name for name in reversed(list(loader._recent)) if name in lives), None)


def _options(kernel_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    made = {}
    for name, value in options.items():
        try:
            made[name] = plainvalues.to_json(value)
        except TypeError as error:
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
            raise TypeError(
                f"{kernel_id!r} cannot be saved: its option {name} is {shown}, {error}, which has no form in JSON"
            ) from None
    return made


def load_saved(cls: type[KernelLoader], path: Path, namespace: Mapping[str, Any] | None) -> KernelLoader:
    """Make a loader from a saved file; names that are missing in `namespace` are listed, by id, in one error."""
    content = _read(path)
    given = namespace or {}
    missing = {one["id"]: [name for name in one["asks_for"] if name not in given] for one in content["ids"]}
    missing = {kernel_id: names for kernel_id, names in missing.items() if names}
    if missing:
        listed = "; ".join(f"{kernel_id!r} takes {', '.join(names)}" for kernel_id, names in missing.items())
        raise KernelNotFoundError(f"{path}: names are wanted from a namespace: {listed}; pass namespace= with them")
    loader = cls()
    for record in content["ids"]:
        load_record(loader, record, namespace)
        loader._touch(record["id"])
    if content.get("last") is not None:
        loader._touch(content["last"])
    return loader


def _read(path: Path) -> dict[str, Any]:
    """Return what is in a file, options as they were; a ValueError names the file and the place where it is wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # UnicodeDecodeError, too
        raise _not_ours(path, str(error)) from None
    if not isinstance(content, dict) or "rekernel" not in content:
        raise _not_ours(path, 'it has no "rekernel" with the number of its format')
    if content["rekernel"] != FORMAT:
        raise ValueError(f"{path} has format {content['rekernel']}; this version reads format {FORMAT}")
    if not isinstance(content.get("ids"), list):
        raise _not_ours(path, '"ids" is no list')
    seen: set[str] = set()
    for number, record in enumerate(content["ids"]):
        place = f"ids[{number}]"
        try:
            _check(record, place)
            if record["id"] in seen:
                raise ValueError(f"{place}.id is {record['id']!r} a second time")
            seen.add(record["id"])
            record["options"] = {
                name: plainvalues.from_json(value, f"{place}.options.{name}")
                for name, value in record["options"].items()
            }
        except ValueError as error:
            raise _not_ours(path, str(error)) from None
    if content.get("last") is not None and content["last"] not in seen:
        raise _not_ours(path, f'"last" is {content["last"]!r}, which is none of its ids')
    return content


_FIELDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "id": ((str,), "text"), "token": ((str,), "text"), "number": ((int,), "a whole number"),
    "language": ((str,), "text"), "text": ((str,), "text"), "filename": ((str, type(None)), "text or null"),
    "first_line": ((int,), "a whole number"), "options": ((dict,), "a table"), "derived": ((bool,), "true or false"),
    "taken": ((dict,), "a table"), "asks_for": ((list,), "a list of names"),
}  # fmt: skip
_TAKEN = {"module": 2, "name": 3, "import": 1}
"""How a helper is found again, and by how many words."""


def _check(record: Any, place: str) -> None:
    """Raise a ValueError with the place of the first thing in a record that `save` does not write."""
    if not isinstance(record, dict):
        raise ValueError(f"{place} is no table")
    for name, (kinds, said) in _FIELDS.items():
        if name not in record:
            raise ValueError(f"{place} has no {name!r}")
        value = record[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ValueError(f"{place}.{name} is {_short(value)}, not {said}")
    if not record["id"].strip():
        raise ValueError(f"{place}.id is empty")
    for name in ("number", "first_line"):
        if record[name] < 1:
            raise ValueError(f"{place}.{name} is {record[name]}; it counts from 1")
    if record["language"] not in languages():
        raise ValueError(f"{place}.language is {record['language']!r}; known are {', '.join(sorted(languages()))}")
    for number, name in enumerate(record["asks_for"]):
        if not isinstance(name, str):
            raise ValueError(f"{place}.asks_for[{number}] is {_short(name)}, not a name")
    for name, row in record["taken"].items():
        words: Sequence[Any] = row if isinstance(row, list) else ()
        if not all(isinstance(word, str) for word in words) or len(words) - 1 != _TAKEN.get((*words, "")[0]):
            raise ValueError(f"{place}.taken.{name} is {_short(row)}, not a way to a helper")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _not_ours(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is no file that KernelLoader.save has written: {why}")
