"""What ``%kernels``, ``%kernel_history`` and ``%kernel_diff`` show. Pure; plain text and HTML say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rekernel import htmltext as html
from rekernel.infotext import took
from rekernel.live import Live
from rekernel.show import failure
from rekernel.texttable import aligned
from rekernel.values import KernelInfo, Version

__all__ = ["Diff", "Table", "diff", "history", "kernels"]


@dataclass(frozen=True)
class Table:
    """Rows of words under a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    """Columns that are set to the right."""
    notes: Sequence[str] = ()
    """What does not fit into a column."""
    empty: str = "nothing here"
    """What is said of a table without rows."""

    def __repr__(self) -> str:
        if not self.rows:
            return self.empty
        return "\n".join([*aligned([self.head, *self.rows], self.numbers), *self.notes])

    def _repr_html_(self) -> str:
        if not self.rows:
            return html.muted(self.empty)
        notes = "".join(html.note(note, html.RED) for note in self.notes)
        return html.table(self.head, self.rows, self.numbers) + notes


@dataclass(frozen=True)
class Diff:
    """What changed between two versions, as a unified diff."""

    text: str
    empty: str = "the texts are the same"

    def __repr__(self) -> str:
        return self.text or self.empty

    def _repr_html_(self) -> str:
        if not self.text:
            return html.muted(self.empty)
        return html.lines(self.text.split("\n"), colours={"+": html.GREEN, "-": html.RED, "@": html.GRAY})


HEAD = ("id", "version", "language", "kernel", "calls", "a call", "median", "built in", "cache")


def kernels(lives: Sequence[Live]) -> Table:
    """Return all kernels of these ids, one row each; what an id's last edit failed of stands below."""
    rows, notes = [], []
    for live in lives:
        edition = live.current
        if edition is None:
            continue
        about = (html.one_line(live.kernel_id), f"v{edition.number}", edition.source.language)
        build = (took(edition.build_seconds), "hit" if edition.built.from_cache else "")
        for name in edition.built.entries or ("no kernels",):
            handle = live.handles.get(name)
            calls = 0 if handle is None else handle.calls
            rows.append((*about, name, f"{calls:,}", *_times(handle), *build))
            about, build = ("", "", ""), ("", "")
        if live.error is not None:
            notes.append(f"{html.one_line(live.kernel_id)}: last edit failed: {failure(live.error)}")
    return Table(HEAD, rows, (4, 5, 6, 7), notes, "no kernels are loaded: begin a cell with %%kernel")


def _times(handle: Any) -> tuple[str, str]:
    stats = {} if handle is None else handle.stats
    times = [stats.get(name) for name in ("mean", "p50")]
    mean, median = ("" if time is None else took(time) for time in times)
    return mean, median


def history(versions: Sequence[Version]) -> Table:
    """Return the versions of an id, newest first."""
    rows = []
    for version in reversed(versions):
        when = datetime.fromtimestamp(version.loaded_at).strftime("%H:%M:%S")
        how = "" if version.restores is None else f"v{version.restores} again"
        rows.append((f"v{version.number}", "live" if version.live else "", when, ", ".join(version.kernels), how))
    return Table(("version", "", "loaded at", "kernels", ""), rows)


def diff(info: KernelInfo, version: int | None) -> Diff:
    """Return what changed since a version; without a number, since the one before."""
    before = [old.number for old in info.history if old.number < info.version]
    if version is None and not before:
        return Diff("", f"{info.kernel_id} v{info.version} is the only version")
    number = version if version is not None else before[-1]
    return Diff(info.diff(number), f"the texts of v{number} and v{info.version} are the same")
