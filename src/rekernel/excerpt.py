"""How an error in the user's text is shown: first line to act on, then the user's own lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rekernel import htmltext

if TYPE_CHECKING:
    from rekernel.errors import KernelSourceError

_LINE_END = re.compile(r"\r\n|\r|\n")
_WIDEST = 160


def split_lines(text: str) -> list[str]:
    r"""Split at ``\n``, ``\r\n`` and ``\r`` only.

    ``str.splitlines`` also splits at form feed, ``\x1c`` or U+2028, which no compiler counts as a line.
    """
    return _LINE_END.split(text)


def line_of(source: str, first_line: int, line: int | None) -> str | None:
    """Return the user's line number `line` of a text that starts at `first_line`, or None."""
    if line is None:
        return None
    lines = split_lines(source)
    index = line - first_line
    return lines[index] if 0 <= index < len(lines) else None


def place(error: KernelSourceError) -> str:
    """Return where the error is, as the user would look it up: ``line 3, column 21`` or ``heat.cpp:3:21``."""
    if error.line is None:
        return ""
    if error.filename is not None:
        column = f":{error.column}" if error.column is not None else ""
        return f"{_visible(error.filename)}:{error.line}{column}"
    column = f", column {error.column}" if error.column is not None else ""
    return f"line {error.line}{column}"


def headline(error: KernelSourceError) -> str:
    """Return the one line that alone is enough to act on."""
    where, kernel_id = place(error), _visible(error.kernel_id)
    return f"{kernel_id} v{error.version} ({error.language}){', ' + where if where else ''}: {error.message}"


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c == "\t" else "�" for c in text)


def _shown(line: str) -> str:
    """Return a line as it may be printed: tabs as one blank, control characters visible, not too long."""
    clean = _visible(line)
    return clean if len(clean) <= _WIDEST else clean[: _WIDEST - 3] + "..."


def excerpt(error: KernelSourceError) -> list[str]:
    """Return the lines around the error with a marker under the wrong part; empty without a place."""
    if error.line is None or line_of(error.source, error.first_line, error.line) is None:
        return []
    width = len(str(error.line + 1))
    rows = []
    for number in (error.line - 1, error.line, error.line + 1):
        text = line_of(error.source, error.first_line, number)
        if text is None or (number != error.line and not text.strip()):
            continue
        mark = ">" if number == error.line else " "
        rows.append(f"{mark} {number:>{width}} | {_shown(text)}".rstrip())
        if number == error.line and error.column is not None and error.column <= _WIDEST:
            end = error.end_column if error.end_column is not None else error.column + 1
            carets = "^" * max(1, min(end, len(text) + 1) - error.column)
            rows.append(f"  {'':>{width}} | {' ' * (error.column - 1)}{carets}")
    return rows


def footer(error: KernelSourceError) -> str:
    """Return what goes on, and where the rest of the messages is."""
    parts = []
    if error.keeps is not None:
        parts.append(f"{error.kernel_id} v{error.keeps} keeps running.")
    more = len([d for d in error.diagnostics if d.severity == "error"]) - 1
    if more > 0:
        parts.append(f"{more} more error{'s' if more > 1 else ''}; all of it: error.output, error.command")
    return " ".join(parts)


def render(error: KernelSourceError) -> str:
    """Return the whole block as plain text."""
    return "\n".join([headline(error), *excerpt(error), *filter(None, [footer(error)])])


def render_html(error: KernelSourceError) -> str:
    """Return the block for a notebook: the same words, the wrong line marked."""
    rows = excerpt(error)
    marked = next((index for index, row in enumerate(rows) if row.startswith(">")), None)
    lines = htmltext.lines(rows, marked) if rows else ""
    return htmltext.block(htmltext.bold(headline(error)), lines, htmltext.text(footer(error)), colour=htmltext.RED)
