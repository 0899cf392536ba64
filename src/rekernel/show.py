"""How loaders, modules and handles look in a terminal and in a notebook. Reads only; never raises."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rekernel.errors import KernelSourceError, RekernelError
from rekernel.excerpt import headline, place
from rekernel.freezing import is_frozen

if TYPE_CHECKING:
    from rekernel.handle import KernelHandle
    from rekernel.live import Live

_MOST = 4  # kernel names of one row
_NAMES = 18  # columns for them, at least


def handle_line(handle: KernelHandle) -> str:
    """``<kernel heat.step v3 (cpp): step(dst: float64[:, :], k: float64)>``."""
    pinned = ", pinned" if handle._pin is not None else ""
    try:
        return f"<kernel {handle._title} v{handle.version} ({handle.language}{pinned}): {handle._value}>"
    except RekernelError as error:
        return f"<kernel {handle._title}: {error}>"


def module_line(live: Live) -> str:
    """``<kernels of 'heat' v3 (taichi): step, flux>``."""
    edition = live.seen()
    if edition is None:
        return f"<kernels of {live.kernel_id!r}: removed>"
    names = ", ".join(edition.built.entries) or "no kernels"
    return f"<kernels of {live.kernel_id!r} v{edition.number} ({edition.source.language}): {names}>"


def calls_of(live: Live) -> int:
    """Return how often the id's kernels were called through their handles."""
    return sum(handle.calls for handle in live.handles.values())


def rows(lives: Sequence[Live]) -> list[tuple[str, str, str, str, str]]:
    """Return one row an id: id, version, language, kernels, state."""
    made = []
    for live in lives:
        edition = live.current
        if edition is None:
            continue
        names = list(edition.built.entries)
        shown = ", ".join(names[:_MOST]) + (f", +{len(names) - _MOST}" if len(names) > _MOST else "")
        made.append((_one_line(live.kernel_id), f"v{edition.number}", edition.source.language, shown, _state(live)))
    return made


def _one_line(kernel_id: str) -> str:
    """Return an id as a table can show it: as it is, or quoted if it would break the line."""
    return kernel_id if kernel_id.isprintable() else repr(kernel_id)


def _state(live: Live) -> str:
    error = live.error
    if isinstance(error, KernelSourceError):
        where = place(error)
        return f"last edit failed: {where + ': ' if where else ''}{error.message}"
    if error is not None:
        return f"last edit failed: {' '.join(str(error).split())}"
    calls = calls_of(live)
    return f"live, {calls:,} call{'' if calls == 1 else 's'}"


def loader_text(lives: Sequence[Live]) -> str:
    """Return the loader as a small table."""
    table = rows(lives)
    frozen = ", frozen" if is_frozen() else ""
    head = f"<KernelLoader: {len(table)} id{'' if len(table) == 1 else 's'}{frozen}>"
    widths = [max([len(row[i]) for row in table] + [_NAMES] * (i == 3)) for i in range(4)] if table else []
    lines = ["  " + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[4]]) for row in table]
    return "\n".join([head, *lines])


def loader_html(lives: Sequence[Live]) -> str:
    """Return the loader as a table for a notebook."""
    head = "".join(f"<th style='text-align:left'>{t}</th>" for t in ("id", "version", "language", "kernels", "state"))
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(c)}</td>" for c in row) + "</tr>"
        for row in rows(lives)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def module_html(live: Live) -> str:
    """Return a module for a notebook: its version and the signatures of its kernels."""
    edition = live.seen()
    if edition is None:
        return f"<code>{html.escape(module_line(live))}</code>"
    items = "".join(f"<li><code>{html.escape(str(kernel))}</code></li>" for kernel in edition.built.kernels)
    failed = ""
    if isinstance(live.error, KernelSourceError):
        failed = f"<div style='color:#c33'>last edit failed: {html.escape(headline(live.error))}</div>"
    title = f"<b>{html.escape(live.kernel_id)}</b> v{edition.number} ({html.escape(edition.source.language)})"
    return f"<div>{title}<ul>{items}</ul>{failed}</div>"


def handle_html(handle: Any) -> str:
    """Return a handle for a notebook: signature, version, docstring."""
    try:
        doc = handle._value.doc
        title = f"<code>{html.escape(str(handle._value))}</code> of <b>{html.escape(handle.kernel_id)}</b>"
        return f"<div>{title} v{handle.version} ({html.escape(handle.language)})" + (
            f"<pre>{html.escape(doc)}</pre></div>" if doc else "</div>"
        )
    except RekernelError as error:
        return f"<code>{html.escape(str(error))}</code>"
