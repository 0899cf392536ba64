"""What became of a unit: a shared object, or what the compiler said. Values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rekernel.errors import Diagnostic, RekernelError

__all__ = ["Beside", "CompileFailed", "Header", "Product"]


class CompileFailed(RekernelError):  # noqa: N818 - says what happened; KernelSourceError is what users see
    """A unit did not compile or link."""

    def __init__(self, message: str, *, command: Sequence[str], output: str, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(message)
        self.command = tuple(command)
        self.output = output
        """All that the compiler or linker wrote."""
        self.diagnostics = tuple(diagnostics)
        """What could be read of it, with files and lines as the compiler names them; at least one error."""


@dataclass(frozen=True)
class Header:
    """A file that a unit included."""

    path: str
    """As the compiler named it."""
    system: bool
    """Whether it lies where the compiler looks by itself."""


@dataclass(frozen=True)
class Beside:
    """A second text of a unit, which no flag and no macro of the first one reaches."""

    text: str
    info: Any
    """Its own compiler flags; the compiler is the unit's."""
    include_dirs: Sequence[str] = ()


@dataclass(frozen=True)
class Product:
    """What became of a unit."""

    data: bytes
    """The shared object."""
    headers: tuple[Header, ...]
    """The files that were included, by the compiler's own account."""
    warnings: tuple[Diagnostic, ...]
    """Warnings and their notes."""
    command: tuple[str, ...]
    """The command that compiled it."""
    output: str
    """All that compiler and linker wrote."""
    seconds: float
    """How long compiling and linking took."""
    link_command: tuple[str, ...] = ()
    """The command that linked it."""
    precompiled: bool = False
    """Whether a precompiled header was used."""
