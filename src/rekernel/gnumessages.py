r"""Messages in the text that GCC, Clang and linkers print. Pure.

>>> messages("heat.cpp:3:21: error: 'sr' was not declared in this scope\n")[0].line
3
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rekernel.errors import Diagnostic

__all__ = ["INCLUDED", "character_column", "messages", "readable", "source_lines"]

INCLUDED = "included from here"
"""The message of a step from a header to the line that includes it."""

_PLACE = r"(?P<file>[^\n]+?):(?P<line>\d+):(?:(?P<column>\d+):)?"
_MESSAGE = re.compile(_PLACE + r" (?P<kind>fatal error|error|warning|note|sorry, unimplemented): (?P<text>[^\n]*)")
_PLACELESS = re.compile(r"(?:\S*/)?(?:cc1plus|g\+\+\S*|clang\S*|ld\S*|collect2|as): (?:fatal )?error: (?P<text>[^\n]*)")
_CRASH = re.compile(r"(?P<text>[^\n]*internal compiler error[^\n]*)")
_UNRESOLVED = re.compile(
    r"[^\n]*(?P<text>undefined (?:reference to|symbol:?) [^\n]*)|[^\n]*(?P<twice>multiple definition of [^\n;]*)"
)
_INCLUDED = re.compile(r"(?:In file included| {10,}) from (?P<file>[^\n]+?):(?P<line>\d+)(?::(?P<column>\d+))?[:,]")
_REQUIRED = re.compile(_PLACE + r" {2,}(?P<text>(?:recursively )?required [^\n]*|in 'constexpr' expansion [^\n]*)")
_LINE = re.compile(r"\s*#\s*(?:line\s+)?(?P<number>\d+)(?:\s+\"(?P<name>(?:[^\"\\]|\\.)*)\")?")
_SPELLED = re.compile(r"\\U(000[0-9a-f]{5}|0010[0-9a-f]{4})")
_SOURCE = re.compile(r" *(?:\d+ )?\| (?P<text>.*)")


def source_lines(text: str, name: str) -> dict[tuple[str, int], str]:
    r"""Return the lines of a unit by the file and number under which a compiler names them.

    >>> source_lines('a\n#line 7 "heat.cpp"\nb\n', "unit.cpp")[("heat.cpp", 7)]
    'b'
    """
    found: dict[tuple[str, int], str] = {}
    number = 0
    for line in text.split("\n"):
        number += 1
        if match := _LINE.match(line):
            number = int(match["number"]) - 1
            name = name if match["name"] is None else re.sub(r"\\(.)", r"\1", match["name"])
        else:
            found.setdefault((name, number), line.removesuffix("\r"))
    return found


def character_column(text: str, column: int) -> int:
    """Return the column, from 1, in characters of a line for one in bytes."""
    # What is no UTF-8 in a unit is one byte in the file and one surrogate here.
    return len(text.encode("utf-8", "replace")[: max(column - 1, 0)].decode("utf-8", "ignore")) + 1


def readable(text: str) -> str:
    r"""Return a message as one line, with its names as the user wrote them.

    Where a terminal may have ASCII only, GCC writes ``\U000000fc`` for a letter of a name.
    """
    return _SPELLED.sub(lambda found: chr(int(found[1], 16)), text.replace("\n", " ").strip())


def messages(output: str, source: Mapping[tuple[str, int], str] | None = None) -> tuple[Diagnostic, ...]:
    """Return the errors, warnings and notes of a compiler's output, in its order; what cannot be read is left out.

    `source` has the unit's own lines, for GCC does not show those that a ``#line`` gives to another file. The lines
    before a message that tell how the compiler got there are its `via`.
    """
    lines = [line.removesuffix("\r") for line in output.split("\n")]
    known = source or {}
    result: list[Diagnostic] = []
    included: list[Diagnostic] = []
    required: list[Diagnostic] = []
    chains: dict[str | None, tuple[Diagnostic, ...]] = {}  # said once, then true for all messages from that header
    for number, line in enumerate(lines):
        if match := _MESSAGE.fullmatch(line):
            file = match["file"]
            if included:
                chains[file], included = tuple(included), []
            via: tuple[Diagnostic, ...] = ()
            if match["kind"] != "note":
                via, required = (*required, *chains.get(file, ())), []
            result.append(_placed(match, lines[number + 1 : number + 3], known, via))
        elif match := _INCLUDED.fullmatch(line):
            outwards = len(included) if line.startswith(" ") else 0  # Clang begins with the unit, GCC with the header
            included.insert(outwards, _step(match, INCLUDED, known))
        elif match := _REQUIRED.fullmatch(line):
            required.append(_step(match, match["text"], known))
        elif match := _PLACELESS.fullmatch(line) or _CRASH.fullmatch(line):
            if "ld returned" not in line and "linker command failed" not in line:
                result.append(Diagnostic(readable(match["text"])))
        elif match := _UNRESOLVED.fullmatch(line):
            unresolved = Diagnostic(readable(match["text"] or match["twice"]))
            if unresolved not in result:
                result.append(unresolved)
    return tuple(result)


def _placed(
    match: re.Match[str], below: Sequence[str], source: Mapping[tuple[str, int], str], via: tuple[Diagnostic, ...]
) -> Diagnostic:
    """Return a message with a place. Compilers count columns in bytes; we count characters."""
    kind = "error" if match["kind"] not in ("warning", "note") else match["kind"]
    line, column = _numbers(match)
    text, marks = _excerpt(below)
    text = source.get((match["file"], line), text)
    end = None
    if column is not None and text is not None:
        column = character_column(text, column)
        if "^" in marks:
            end = column + len(marks[marks.index("^") :].split(" ")[0])
    return Diagnostic(readable(match["text"]), line or None, column, end, text, match["file"], kind, via)


def _step(match: re.Match[str], said: str, source: Mapping[tuple[str, int], str]) -> Diagnostic:
    """Return a place through which the compiler came."""
    line, column = _numbers(match)
    text = source.get((match["file"], line))
    if column is not None and text is not None:
        column = character_column(text, column)
    return Diagnostic(readable(said), line or None, column, None, text, match["file"], "note")


def _numbers(match: re.Match[str]) -> tuple[int, int | None]:
    """Return line and column; a number that no file can have is none."""
    line, column = (int(digits) if digits and len(digits) < 10 else 0 for digits in match.group("line", "column"))
    return line, column or None


def _excerpt(below: Sequence[str]) -> tuple[str | None, str]:
    """Return the quoted source line and the line of marks under it, as GCC (with a gutter) and Clang print them."""
    if not below:
        return None, ""
    marks = below[1] if len(below) > 1 else ""
    if quoted := _SOURCE.fullmatch(below[0]):
        under = _SOURCE.fullmatch(marks)
        return quoted["text"], under["text"] if under else ""
    if "^" in marks and not marks.strip(" \t^~"):
        return below[0], marks
    return None, ""
