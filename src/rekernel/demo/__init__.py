"""``python -m rekernel demo``: a simulation whose kernel is replaced again and again while its state goes on.

The same model runs through Taichi and through C++, or through the one of them that is there. Importing this package
imports neither Taichi, rich nor Pillow; `run` does, and says which of them is missing.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.demo.gray_scott import ACTS

if TYPE_CHECKING:
    from rekernel.demo.results import Row

__all__ = ["Options", "run"]

_NEEDS = {"rich": "rich", "PIL": "pillow"}
"""What is imported, and what it is called on PyPI."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    size: int = 512
    """Cells a side of the square."""
    steps: int | None = None
    """Steps of every act; None takes each act's own number."""
    out: Path = Path("gray_scott.png")
    """Where the picture goes."""
    seed: int = 1
    """Of the random numbers that place the first seeds."""
    quiet: bool = False
    """Only the table and the path of the picture are printed."""


def run(options: Options, told: Callable[[Sequence[Row]], None] | None = None) -> int:
    """Play all acts, print the table, write the picture; returns the exit status. `told` gets the rows of the table.

    0: all went well; 1: a swap did not keep the state, or the two languages do not agree; 2: it could not start;
    130: Ctrl-C, with the picture of what there is.
    """
    problem = _missing_packages() or _unusable(options.out)
    if problem:
        print(f"rekernel demo {problem}", file=sys.stderr)
        return 2
    from rekernel.demo.play import Play
    from rekernel.demo.show import Show
    from rekernel.demo.sides import sides

    show = Show(quiet=options.quiet)
    ready, absent = sides(options.size)
    for why in absent:
        print(why, file=sys.stderr)
    if not ready:
        return 2
    releases = " and ".join(side.release for side in ready)
    show.say(f"Gray-Scott on {options.size} x {options.size} cells, {releases}, on the CPU.", "bold")
    play = Play(options.size, options.seed, show, ready)
    status = 0
    try:
        for number, act in enumerate(ACTS, 1):
            play.act(number, act, options.steps or act.steps)
    except KeyboardInterrupt:
        show.say("Stopped; this is what there is.", "yellow")
        status = 130
    play.close(options.out)
    if told is not None:
        told(play.rows)
    for side in ready:
        side.loader.cleanup_all()
    return status or int(not play.good)


def _missing_packages() -> str:
    missing = [name for module, name in _NEEDS.items() if importlib.util.find_spec(module) is None]
    return f'needs {", ".join(missing)}: pip install "rekernel[demo]"' if missing else ""


def _unusable(out: Path) -> str:
    """Why the picture could not be written there: better now than after half a minute."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"cannot write {out}: {error.strerror}"
    if out.is_dir():
        return f"cannot write {out}: it is a folder"
    return "" if os.access(out if out.exists() else out.parent, os.W_OK) else f"cannot write {out}: not allowed"
