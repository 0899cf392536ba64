"""Messages in the documents that compilers write: GCC's JSON, and SARIF. Pure.

A document is checked as it is read: what it lacks is None, what is no document at all is left to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from rekernel.errors import Diagnostic
from rekernel.gnumessages import INCLUDED, character_column, readable

__all__ = ["read"]

Lines = Mapping[tuple[str, int], str]


def read(document: Any, source: Lines) -> tuple[Diagnostic, ...] | None:
    """Return the messages of a document in its order, or None where it is none that we know."""
    if isinstance(document, list):
        if not all(_is_message(item) for item in document):
            return None
        return tuple(found for item in document for found in _gcc(item, source))
    if isinstance(document, dict) and isinstance(document.get("runs"), list):
        return tuple(found for run in _objects(document, "runs") for found in _run(run, source))
    return None


# --- GCC 9 to 14 ---------------------------------------------------------------------------------------------


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("kind"), str) and isinstance(item.get("message"), str)


def _gcc(item: Mapping[str, Any], source: Lines) -> Iterator[Diagnostic]:
    """Give a message and its notes."""
    kind, message, option = item["kind"], item["message"], item.get("option")
    if kind == "internal compiler error":
        message = f"{kind}: {message}"
    elif isinstance(option, str):
        message += f" [{option}]"
    place = next((place for place in _objects(item, "locations") if _object(place, "caret")), {})
    caret, finish = _object(place, "caret"), _object(place, "finish")
    file, line = caret.get("file"), _number(caret.get("line"))
    end = None
    if not finish or (finish.get("file"), finish.get("line")) == (caret.get("file"), caret.get("line")):
        last = _gcc_column(finish or caret)
        end = last + 1 if last else None
    file, kind = file if isinstance(file, str) else None, kind if kind in ("warning", "note") else "error"
    yield _placed(message, kind, file, line, _gcc_column(caret), end, source, in_bytes=True)
    for child in _objects(item, "children"):
        if _is_message(child):
            yield from _gcc(child, source)


def _gcc_column(place: Mapping[str, Any]) -> int | None:
    """Return a column in bytes; GCC before 11 knows no others and gives them no name."""
    return _number(place.get("byte-column", place.get("column")))


# --- SARIF 2.1 -----------------------------------------------------------------------------------------------


def _run(run: Mapping[str, Any], source: Lines) -> Iterator[Diagnostic]:
    """Give the messages of one call of a compiler, and what it says about itself when it crashes."""
    gcc = str(_object(_object(run, "tool"), "driver").get("name", "")).startswith("GNU")
    artifacts = [_object(artifact, "location").get("uri") for artifact in _objects(run, "artifacts")]

    def placed(message: str, kind: str, locations: list[Mapping[str, Any]], via: tuple[Diagnostic, ...]) -> Diagnostic:
        file, line, column, end, in_bytes = _region(locations, artifacts, source, gcc)
        return _placed(message, kind, file, line, column, end, source, in_bytes=in_bytes, via=via)

    for result in _objects(run, "results"):
        rule, level = result.get("ruleId"), result.get("level", "warning")
        message = str(_object(result, "message").get("text", ""))
        message += f" [{rule}]" if isinstance(rule, str) and rule.startswith("-") else ""
        primary, related = _objects(result, "locations"), _objects(result, "relatedLocations")
        here = _file(primary[0], artifacts, source) if primary else None
        chain = [
            place for place in related
            if not _object(place, "message") and _file(place, artifacts, source) not in (here, None)
        ]  # fmt: skip
        via = tuple(placed(INCLUDED, "note", [place], ()) for place in chain)
        yield placed(message, level if level in ("error", "warning") else "note", primary, via)
        for place in related:
            if said := _object(place, "message").get("text"):
                yield placed(str(said), "note", [place], ())
    for invocation in _objects(run, "invocations"):
        for notice in _objects(invocation, "toolExecutionNotifications"):
            message = str(_object(notice, "message").get("text", ""))
            yield placed(message, "error", _objects(notice, "locations"), ())


def _region(
    locations: list[Mapping[str, Any]], artifacts: list[Any], source: Lines, gcc: bool
) -> tuple[str | None, int | None, int | None, int | None, bool]:
    """Return file, line, first column, the column after the last, and whether columns are bytes.

    Clang gives marked ranges first and then the place itself, without width.
    """
    if not locations:
        return None, None, None, None, False
    first = locations[0] if gcc else locations[-1]
    physical = _object(first, "physicalLocation")
    region = _object(physical, "region")
    line, column = _number(region.get("startLine")), _number(region.get("startColumn"))
    ends = []
    for location in locations:
        other = _object(_object(location, "physicalLocation"), "region")
        start, end = _number(other.get("startColumn")), _number(other.get("endColumn"))
        same = other.get("startLine") == line and other.get("endLine", line) == line
        if same and column and start and end and start <= column < end:
            ends.append(end)
    # GCC counts characters where it can read the line, then quotes it; it cannot read what a #line names.
    in_bytes = gcc and not _object(physical, "contextRegion")
    return _file(first, artifacts, source), line, column, max(ends, default=None), in_bytes


def _file(location: Mapping[str, Any], artifacts: list[Any], source: Lines) -> str | None:
    """Return the file of a location: named there, or by its number in the list of files."""
    physical = _object(location, "physicalLocation")
    artifact, line = _object(physical, "artifactLocation"), _object(physical, "region").get("startLine")
    index = artifact.get("index")
    listed = artifacts[index] if type(index) is int and 0 <= index < len(artifacts) else None
    uri = artifact.get("uri", listed)
    if not isinstance(uri, str):
        return None
    plain = uri.removeprefix("file://")
    # GCC writes a name as it is, Clang as an address: with %20 for a blank.
    return plain if type(line) is int and (plain, line) in source else unquote(plain)


# --- both ----------------------------------------------------------------------------------------------------


def _placed(
    message: str, kind: str, file: str | None, line: int | None, column: int | None, end: int | None, source: Lines, *,
    in_bytes: bool, via: tuple[Diagnostic, ...] = (),
) -> Diagnostic:  # fmt: skip
    """Return a message with its place, columns in characters."""
    if file is None or line is None:
        return Diagnostic(readable(message), None, None, None, None, file, kind, via)
    text = source.get((file, line))
    if in_bytes and text is not None:
        column = character_column(text, column) if column else None
        end = character_column(text, end) if end else None
    end = end if end and column and end > column else None
    return Diagnostic(readable(message), line, column, end, text, file, kind, via)


def _number(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 31 else None


def _object(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _objects(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = holder.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
