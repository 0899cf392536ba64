"""What a compiler said about a unit, as an error at the user's own line. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Any

from rekernel.diagnostics import point
from rekernel.errors import Diagnostic, KernelSourceError
from rekernel.languages.cpp.unit import OWN
from rekernel.source import Source

__all__ = ["blamed", "placed", "source_error"]

_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?(?:[\w:<>, ]+::)?(?P<name>\w+)")
_UNDECLARED = re.compile(
    r"'(\w+)' (?:was not|has not been) declared|undeclared identifier '(\w+)'|identifier \"(\w+)\" is undefined"
)


def blamed(failure: Any) -> dict[int, str] | None:
    """Return the candidates whose own lines failed, with the reason, or None where the user's text is wrong."""
    errors = [d for d in failure.diagnostics if d.severity == "error"]
    if not errors or any(d.filename != OWN or d.line is None for d in errors):
        return None
    return {d.line - 1: d.message for d in reversed(errors) if d.line}


def source_error(
    failure: Any, source: Source, text: str, name: str, *, kernel_id: str, number: int,
    python: Mapping[str, Any] = MappingProxyType({}),
) -> KernelSourceError:  # fmt: skip
    """Return the error to raise. `name` is what the compiler called the text, `python` has the names of the caller."""
    said = [d for d in failure.diagnostics if d.filename != OWN] or list(failure.diagnostics)
    said = [replace(d, message=f"{d.message}{_of_python(d.message, python)}") for d in said]
    errors = [d for d in said if d.severity == "error"] or said
    first = _first(errors, text, name)
    own = first.filename == name
    shift = source.first_line - 1
    return KernelSourceError(
        first.message, kernel_id=kernel_id, version=number, language=source.language, source=source.text,
        first_line=source.first_line, filename=source.filename,
        line=first.line + shift if own and first.line else None, column=first.column if own else None,
        end_column=first.end_column if own else None,
        diagnostics=[placed(d, source, name) for d in said if d.severity != "note"] or [Diagnostic(first.message)],
        command=failure.command, output=_renamed(failure.output, source, name),
    )  # fmt: skip


def _of_python(message: str, python: Mapping[str, Any]) -> str:
    """Return what to do about a name that the text lacks and the caller has as a value, or nothing."""
    match = _UNDECLARED.search(message)
    name = "" if match is None else match[match.lastindex or 0]
    if not name or name not in python:
        return ""
    value = python[name]
    if callable(value) or isinstance(value, ModuleType):
        return ""
    number = type(value) in (int, float) and abs(value) < 2**63
    kind = "double" if isinstance(value, float) else "int64_t"
    way = f", or write it into the text: constexpr {kind} {name} = {value};" if number else ""
    return f"; the text takes no names from Python: pass {name} as an argument{way}"


def placed(diagnostic: Diagnostic, source: Source, name: str) -> Diagnostic:
    """Return a message with its place as the user counts: file or cell, and line in it."""
    if diagnostic.filename != name:
        return diagnostic
    line = None if diagnostic.line is None else diagnostic.line + source.first_line - 1
    return replace(diagnostic, line=line, filename=source.filename)


def _first(errors: Sequence[Diagnostic], text: str, name: str) -> Diagnostic:
    """Return the error to show: the first that has a way to the user's text, or the use of what is nowhere defined."""
    first = point(errors, {name})
    match = _UNDEFINED.search(first.message)
    use = None if match is None or first.filename == name else re.search(rf"\b{match['name']}\b", text)
    if match is None or use is None:
        return first
    line = text.count("\n", 0, use.start()) + 1
    column = use.start() - (text.rfind("\n", 0, use.start()) + 1) + 1
    said = f"{match['name']} is declared and nowhere defined ({first.message})"
    return Diagnostic(said, line, column, column + len(match["name"]), None, name)


def _renamed(output: str, source: Source, name: str) -> str:
    """Return the compiler's own words with the user's name of the text."""
    if source.filename is None:
        return output
    return re.sub(rf"(?m)(?<![\w./-]){re.escape(name)}(?=:\d)", lambda _: source.filename or name, output)
