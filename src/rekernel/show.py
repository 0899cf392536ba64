"""How loaders, modules and handles look in a terminal and in a notebook. Reads only; never raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rekernel import htmltext as html
from rekernel.errors import FrozenError, KernelSourceError, RekernelError
from rekernel.excerpt import headline, place
from rekernel.freezing import is_frozen
from rekernel.texttable import aligned

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
        made.append((html.one_line(live.kernel_id), f"v{edition.number}", edition.source.language, shown, _state(live)))
    return made


def _state(live: Live) -> str:
    error = live.error
    if isinstance(error, KernelSourceError):
        where = place(error)
        return f"last edit failed: {where + ': ' if where else ''}{error.message}"
    if error is not None:
        return f"last edit failed: {failure(error)}"
    calls = calls_of(live)
    return f"live, {calls:,} call{'' if calls == 1 else 's'}"


def failure(error: Exception) -> str:
    """Return the error of an edit in one line; that the version before goes on shows beside it."""
    if isinstance(error, KernelSourceError):
        return headline(error)
    said = str(error.args[0]) if isinstance(error, FrozenError) else str(error)
    return " ".join(said.split())


def loader_text(lives: Sequence[Live]) -> str:
    """Return the loader as a small table."""
    table = rows(lives)
    frozen = ", frozen" if is_frozen() else ""
    head = f"<KernelLoader: {len(table)} id{'' if len(table) == 1 else 's'}{frozen}>"
    return "\n".join([head, *(f"  {line}" for line in aligned(table, least={3: _NAMES}))])


def loader_html(lives: Sequence[Live]) -> str:
    """Return the loader as a table for a notebook."""
    title = loader_text(lives).split("\n")[0][1:-1]
    table = html.table(("id", "version", "language", "kernels", "state"), rows(lives))
    return html.block(html.bold(title), table if lives else "")


def module_html(live: Live) -> str:
    """Return a module for a notebook: its version, the signatures of its kernels, and how the last edit failed."""
    edition = live.seen()
    if edition is None:
        return html.block(html.text(module_line(live)))
    title = f"{html.bold(f'{html.one_line(live.kernel_id)} v{edition.number}')} {html.muted(edition.source.language)}"
    signatures = [html.code(str(kernel)) for kernel in edition.built.kernels] or [html.muted("no kernels")]
    error = live.error
    if error is None:
        return html.block(title, *signatures, colour=html.GREEN)
    return html.block(title, *signatures, html.note(f"last edit failed: {failure(error)}", html.RED), colour=html.RED)


def handle_html(handle: Any) -> str:
    """Return a handle for a notebook: signature, version, docstring."""
    try:
        doc, pinned = handle._value.doc, ", pinned" if handle._pin is not None else ""
        title = html.muted(f"{handle._title} v{handle.version} ({handle.language}{pinned})")
        text = html.lines(doc.strip("\n").split("\n")) if doc else ""
        return html.block(f"{html.code(str(handle._value))} &nbsp;{title}", text, colour=html.GREEN)
    except RekernelError as error:
        return html.block(html.text(f"{handle._title}: {error}"), colour=html.RED)
