r"""What a compiler said, as data: GCC's JSON, SARIF, and all the rest as text. Pure.

>>> said = '[{"kind": "error", "message": "bad", "locations": [{"caret": {"file": "a", "line": 3, "column": 5}}]}]'
>>> parse("collect2: error: no\n" + said, {})[1].line
3
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from rekernel import diagnosticdata, gnumessages
from rekernel.errors import Diagnostic
from rekernel.gnumessages import INCLUDED

if TYPE_CHECKING:
    from rekernel.found import Toolchain

__all__ = ["format_flags", "parse", "point", "render"]

_STEP = re.compile(r"in expansion of macro |in instantiation of .* requested here")
_ESCAPE = re.compile(r"\\(.)")
_DOCUMENT = re.compile(r"^[\[{]", re.MULTILINE)
_MOST = 100
"""More lines are not tried as the start of a document: a compiler writes one, a text may have any number."""


def format_flags(toolchain: Toolchain) -> list[str]:
    """Return the flags that make a compiler write its messages as data; they do not change what it makes.

    Clang has none: its SARIF loses the places of a text with ``#line`` (22), or crashes over it (16 to 19).
    """
    if toolchain.kind != "gcc" or toolchain.number < (9,):
        return []
    return ["-fdiagnostics-format=json" if toolchain.number < (15,) else "-fdiagnostics-format=sarif-stderr"]


def parse(output: str, source: Mapping[tuple[str, int], str]) -> tuple[Diagnostic, ...]:
    """Return the errors, warnings and notes of all that a compiler and linker wrote, in its order.

    `source` has the unit's own lines by the names and numbers that the compiler uses
    (`rekernel.gnumessages.source_lines`); columns are in characters of these. What cannot be read is left out.
    """
    result: list[Diagnostic] = []
    primary = 0
    for part in _parts(output, source):
        for found in gnumessages.messages(part, source) if isinstance(part, str) else part:
            if found.severity != "note":
                primary = len(result)
            elif _STEP.match(found.message) and result:
                result[primary] = _with_step(result[primary], found)
            result.append(found)
    return tuple(result)


def _with_step(message: Diagnostic, step: Diagnostic) -> Diagnostic:
    nearer = [other for other in message.via if other.message != INCLUDED]
    return replace(message, via=(*nearer, step, *message.via[len(nearer) :]))


def point(diagnostics: Sequence[Diagnostic], own: Collection[str]) -> Diagnostic:
    """Return the first error, at the user's line.

    `own` are the names of the user's text. An error in a macro is shown where the text uses the macro; one in a
    header at the text's ``#include`` line, one in a header's template at the line that instantiates it, both with
    the header's place in the message. An error without any way to the text is returned only if all are so.
    ValueError where there is no diagnostic.

    >>> include = Diagnostic("included from here", 3, filename="heat.cpp", severity="note")
    >>> error = Diagnostic("'k' was not declared", 2, filename="inc/b.h", via=(include,))
    >>> found = point([error], {"heat.cpp"})
    >>> found.line, found.message
    (3, "in b.h:2: 'k' was not declared")
    """
    errors = [message for message in diagnostics if message.severity == "error"] or list(diagnostics)
    if not errors:
        raise ValueError("there is no diagnostic to point at")
    return next((found for error in errors if (found := _at_own(error, own)) is not None), errors[0])


def _at_own(error: Diagnostic, own: Collection[str]) -> Diagnostic | None:
    """Return an error at a line of the user's text, or None where no way leads there."""
    steps = [step for step in error.via if step.filename in own and step.line is not None]
    used = [step for step in steps if step.message.startswith("in expansion of macro ")]
    if used:
        return _moved(error, used[-1], error.message)
    if error.filename in own and error.line is not None:
        return error
    if not steps:
        return None
    where = f"{os.path.basename(error.filename)}:{error.line}: " if error.filename and error.line else ""
    return _moved(error, steps[0], f"in {where}{error.message}" if where else error.message)


def _moved(error: Diagnostic, step: Diagnostic, message: str) -> Diagnostic:
    return Diagnostic(
        message, step.line, step.column, step.end_column, step.text, step.filename, error.severity, error.via
    )


def render(output: str, source: Mapping[tuple[str, int], str]) -> str:
    """Return what a compiler wrote for people to read: documents as text, in GCC's manner, all else as it is."""
    return "".join(
        part if isinstance(part, str) else "".join(f"{line}\n" for message in part for line in _shown(message))
        for part in _parts(output, source)
    )


def _shown(message: Diagnostic) -> Iterator[str]:
    """Give the lines of one message."""
    for step in message.via:
        if step.message == INCLUDED:
            yield f"In file included from {step.filename}:{step.line}:"
    place = "".join(f"{part}:" for part in (message.filename, message.line, message.column) if part is not None)
    yield f"{place}{' ' if place else ''}{message.severity}: {message.message}"
    if message.text is not None:
        yield f"{message.line:>5} | {message.text}"
        if message.column is not None:
            before = "".join("\t" if letter == "\t" else " " for letter in message.text[: message.column - 1])
            width = (message.end_column or message.column + 1) - message.column
            yield f"      | {before}^{'~' * (width - 1)}"


def _parts(output: str, source: Mapping[tuple[str, int], str]) -> Iterator[str | tuple[Diagnostic, ...]]:
    """Give the output in pieces: each document as its messages, what is between them as it is."""
    done = 0
    for match in islice(_DOCUMENT.finditer(output), _MOST):
        if match.start() < done:
            continue
        try:
            value, end = _document(output, match.start())
            messages = diagnosticdata.read(value, source)
        except (ValueError, RecursionError):  # cut off, damaged, or nested without end
            continue
        whole = end == len(output) or output.startswith(("\n", "\r\n"), end)  # or the user's [] that Clang quotes
        if messages is not None and whole:
            if output[done : match.start()].strip():
                yield output[done : match.start()]
            yield messages
            done = end + output.startswith("\n", end)
    if output[done:].strip():
        yield output[done:]


def _document(text: str, start: int) -> tuple[Any, int]:
    r"""Return the JSON value that starts in a text and where it ends; ValueError where there is none.

    A byte that is no UTF-8 comes as ``\xff`` (see `rekernel.process.run`), which is no JSON.
    """
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        line = text[start:].partition("\n")[0]
        mended = _ESCAPE.sub(lambda found: found[0] if found[1] in '"\\/bfnrtu' else f"\\{found[0]}", line)
        if mended == line:
            raise
        return json.loads(mended), start + len(line)
