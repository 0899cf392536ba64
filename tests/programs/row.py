"""What the tests know about one example, and the texts that follow from it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Edits = Mapping[str, str]
"""Exact replacements. One that does not occur exactly once is an error: the row would not test what it says."""

Module = Any
"""What a driver gets: an imported module, or what the loader returned. It must not be able to tell."""


@dataclass(frozen=True)
class Swap:
    """Test (b): the same program with one change after step ``at`` of ``total``."""

    change: Edits
    """The change."""
    step: Callable[[Module, int], object]
    """Advances the program by one step; gets the module and the number of the step."""
    setup: Callable[[Module], object] = lambda m: None
    """Brings the program to step 0, as far as its text does not do so by itself."""
    at: int = 4
    total: int = 8
    edits: Edits = field(default_factory=dict)
    """Further edits that both texts have, on top of the row's."""
    watch: tuple[str, ...] = ()
    """What the change must show in, if that is not what the row watches."""
    held: tuple[str, ...] = ()
    """Kernels that the driver reads once, before the change, and goes on calling after it."""
    sparse: tuple[str, ...] = ()
    """Fields that have to be activated cell by cell when a state is put back."""


@dataclass(frozen=True)
class Row:
    """One example and how to run it without a window."""

    path: str
    """Relative to ``taichi/examples``, without ``.py``."""
    watch: tuple[str, ...] = ()
    """What must have come to life: each of these has a value other than zero. None: something was drawn."""
    edits: Edits = field(default_factory=dict)
    """Mostly sizes, so that a run takes about a second."""
    append: str = ""
    """Text added at the end, for a file that only defines things."""
    run: Callable[[Module], dict[str, object] | None] | None = None
    """Called after loading; None where loading runs the program. May return more results to compare."""
    frames: int = 2
    """How many frames the stand-in for the window hands out."""
    mouse: bool = False
    """Whether a mouse button is held down while the pointer moves."""
    argv: tuple[str, ...] = ()
    """The program's command line."""
    absent: tuple[str, ...] = ()
    """Modules that the text imports for drawing only; a silent stand-in takes their place."""
    output: bool = False
    """Whether what the program prints is compared as well."""
    variant: str = ""
    """Tells two rows of one file apart."""
    skip: str = ""
    """Why the row cannot run."""
    swap: Swap | None = None
    """How to run test (b), for a selection of the rows."""
    quick: bool = False
    """Part of the short run."""

    @property
    def id(self) -> str:
        """Names the row in test reports and on the driver's command line."""
        return f"{self.path}[{self.variant}]" if self.variant else self.path

    @property
    def module_name(self) -> str:
        """The name under which the text is imported, and its kernel id."""
        return "example_" + Path(self.path).name.replace("-", "_")


def main(m: Module) -> None:
    """The driver of most examples."""
    m.main()


def examples_folder() -> Path:
    """Where the examples of the installed Taichi are; found without importing it."""
    spec = importlib.util.find_spec("taichi")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("taichi")
    return Path(spec.origin).parent / "examples"


def original_text(row: Row) -> str:
    """The example as the tests run it."""
    text = (examples_folder() / f"{row.path}.py").read_text(encoding="utf-8") + row.append
    return _edited(text, row.edits, row)


def swap_texts(row: Row) -> tuple[str, str]:
    """The text before the change of test (b), and after it."""
    assert row.swap is not None
    before = _edited(original_text(row), row.swap.edits, row)
    return before, _edited(before, row.swap.change, row)


def _edited(text: str, edits: Edits, row: Row) -> str:
    for old, new in edits.items():
        if text.count(old) != 1:
            raise ValueError(f"{row.id}: {old!r} occurs {text.count(old)} times, expected once")
        text = text.replace(old, new)
    return text
