"""The one line below a kernel cell: which version runs, how it came about, and what one should know. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rekernel import htmltext as html

__all__ = ["Status"]


@dataclass(frozen=True)
class Status:
    """What a load, a rollback or a build in the background came to."""

    kernel_id: str
    version: int | None
    language: str
    how: str
    """``built in 412 ms``, ``from cache in 3.1 ms``, ``unchanged``, ``v3 again``."""
    kernels: Sequence[str] = ()
    """Their signatures."""
    notes: Sequence[str] = ()
    """What may surprise: a name that meant something else, state that began anew, functions that are no kernels."""
    warnings: Sequence[str] = ()
    """What the compiler warned of."""

    def __repr__(self) -> str:
        rows = [f"{self._title}  {self.language}  {self.how}", *(f"  {kernel}" for kernel in self.kernels)]
        rows += [f"  ! {note}" for note in self.notes]
        rows += [f"  warning: {warning}" for warning in self.warnings]
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        title = f"{html.bold(self._title)} {html.muted(self.language)} &nbsp;{html.text(self.how)}"
        return html.block(
            title,
            *(html.code(kernel) for kernel in self.kernels),
            *(html.note(note) for note in self.notes),
            *(html.note(f"warning: {warning}") for warning in self.warnings),
            colour=html.YELLOW if self.notes or self.warnings else html.GREEN,
        )

    @property
    def _title(self) -> str:
        number = "" if self.version is None else f" v{self.version}"
        return f"{html.one_line(self.kernel_id)}{number}"
