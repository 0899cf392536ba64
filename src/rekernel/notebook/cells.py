"""Which cell runs, which id it had before, and on which line its text begins."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from rekernel.default import kernels
from rekernel.errors import KernelSourceError
from rekernel.jobs import derive, parse
from rekernel.languages import detect
from rekernel.live import Live

__all__ = ["Cells"]


@dataclass
class Cells:
    """What is known of a notebook's cells. Those of a terminal have no identity: their text alone tells their id."""

    cell_id: str | None = None
    raw: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    """The id that each cell had without naming one."""
    loaded: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    """For each id the cell that loaded it last, with the number of its run."""
    given: dict[str, Set[str]] = field(default_factory=dict)
    """For each id the options that its cells have named: what a cell no longer says is no longer meant."""

    def begin(self, info: Any) -> None:
        """Note the cell that is about to run."""
        self.cell_id, self.raw = getattr(info, "cell_id", None), getattr(info, "raw_cell", None) or ""

    def first_line(self, body: str) -> int:
        """Return the number of a text's first line in the cell that runs, as hosts number lines."""
        cell, text = self.raw.rstrip().split("\n"), body.rstrip().split("\n")
        whole = len(cell) > len(text) and cell[-1].strip() == text[-1].strip()
        return len(cell) - len(text) + 1 if whole else 1  # else: not a cell's end, but a call of run_cell_magic

    def language(self, text: str, kernel_id: str | None) -> str:
        """Return the language of a text that does not name one; ValueError if it cannot be told."""
        live = kernels._lives.get(kernel_id or "")
        known = None if live is None or live.current is None else live.current.source.language
        try:
            return detect(text, live=known).name
        except ValueError:
            mine = kernels._lives.get(self.ids.get(self.cell_id or "", ""))
            if kernel_id is not None or mine is None or mine.current is None:
                raise
            return mine.current.source.language

    def kernel_id(self, text: str, language: str) -> str | None:
        """Return the id for a cell that names none, or None to derive it from the text.

        A cell whose kernels were all renamed, or that cannot be read at the moment, keeps its id.
        """
        mine = self.ids.get(self.cell_id or "")
        if mine is None or mine not in kernels:
            return None
        names = names_of(text, language)
        held = any(_holds(live, names, language) for live in list(kernels._lives.values()))
        return None if held else mine

    def expected(self, text: str, language: str) -> str | None:
        """Return the id that the loader will derive from a text, or None if none can be told."""
        names = names_of(text, language)
        return derive(kernels, names, language) if names else None

    def note(self, kernel_id: str, derived: bool, options: Set[str], run: int) -> list[str]:
        """Remember a load that went well; return what is to be said of it."""
        cell, before = self.cell_id, self.loaded.get(kernel_id)
        self.loaded[kernel_id] = (cell, run)
        self.given[kernel_id] = {*self.given.get(kernel_id, ()), *options}
        if not derived:
            return []
        if cell is not None:
            self.ids[cell] = kernel_id
        if before is None or before[0] is None or cell is None or before[0] == cell:
            return []
        for other in [other for other, held in self.ids.items() if held == kernel_id and other != cell]:
            del self.ids[other]
        return [f"this replaces {kernel_id} of the cell [{before[1]}]; to have both, name one: %%kernel NAME"]


def _holds(live: Live, names: tuple[str, ...], language: str) -> bool:
    edition = live.current
    if edition is None or not edition.derived or edition.source.language != language:
        return False
    return not set(names).isdisjoint(edition.built.entries)


def names_of(text: str, language: str) -> tuple[str, ...]:
    """Return the names of a text's kernels; none for a text that cannot be read."""
    try:
        return tuple(kernel.name for kernel in parse(text, language=language))
    except KernelSourceError:
        return ()
