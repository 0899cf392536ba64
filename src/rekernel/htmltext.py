"""The few shapes that everything of rekernel has in a notebook: block, table, code, note. Pure text, all of it escaped.

Colours are half transparent over the page's own, and text has the page's own colour: light and dark themes both read
well, with no style sheet and no script, which hosts take out of what they do not trust.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

__all__ = [
    "GRAY", "GREEN", "RED", "YELLOW", "block", "bold", "code", "lines", "muted", "note", "one_line", "table", "text",
]  # fmt: skip

RED, YELLOW, GREEN, GRAY = "214,64,69", "205,140,20", "60,150,90", "128,128,128"
_MONO = "font-family:var(--jp-code-font-family,var(--vscode-editor-font-family,monospace))"
_SMALL = "font-size:var(--jp-code-font-size,var(--vscode-editor-font-size,13px))"


def text(words: str) -> str:
    """Return words as they are to be read, whatever they hold."""
    return html.escape(words)


def one_line(words: str) -> str:
    """Return words that cannot break a line: as they are, or quoted."""
    return words if words.isprintable() else repr(words)


def bold(words: str) -> str:
    """Return words that stand out."""
    return f"<b>{text(words)}</b>"


def muted(words: str) -> str:
    """Return words that stand back."""
    return f'<span style="opacity:.65">{text(words)}</span>'


def code(words: str) -> str:
    """Return words of a program, within a line."""
    return f'<code style="{_MONO};background:none;color:inherit;padding:0">{text(words)}</code>'


def lines(rows: Iterable[str], marked: int | None = None, colours: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return lines of a program; one may be marked, and those that begin with a key of `colours` have its colour."""
    shown = []
    for index, row in enumerate(rows):
        colour = RED if index == marked else colours.get(row[:1])
        style = "" if colour is None else f' style="background:rgba({colour},.22)"'
        shown.append(f"<span{style}>{text(row)}</span>")
    look = f"{_MONO};{_SMALL};line-height:1.4;margin:.3em 0;padding:0;background:none;color:inherit;overflow-x:auto"
    return f'<pre style="{look}">' + "\n".join(shown) + "</pre>"


def note(words: str, colour: str = YELLOW) -> str:
    """Return one remark on a line of its own."""
    return f'<div style="border-left:3px solid rgb({colour});padding-left:.5em;margin:.2em 0">{text(words)}</div>'


def block(*parts: str, colour: str = GRAY) -> str:
    """Return parts, which are HTML already, one below the other behind a coloured edge."""
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    look = f"border-left:3px solid rgba({colour},.8);padding:.1em .7em;margin:.2em 0;text-align:left"
    return f'<div style="{look}">{inside}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table of plain words; the columns `numbers` are set to the right."""

    def row(cells: Sequence[str], tag: str) -> str:
        made = []
        for column, words in enumerate(cells):
            side = "right" if column in numbers else "left"
            wrap = "" if column == len(cells) - 1 else ";white-space:nowrap"  # the last one may be long
            made.append(f'<{tag} style="text-align:{side};padding:.15em .7em{wrap}">{text(words)}</{tag}>')
        return "<tr>" + "".join(made) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f'<table style="margin:0"><thead>{row(head, "th")}</thead><tbody>{body}</tbody></table>'
