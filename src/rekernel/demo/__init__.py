"""``python -m rekernel demo``: a simulation whose kernel is replaced again and again while its state goes on.

Importing this package imports neither Taichi, rich nor Pillow; `run` does, and says which of them is missing.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.demo.gray_scott import (
    ACTS,
    KERNEL_ID,
    STEPS_PER_CALL,
    Act,
    Move,
    changed_lines,
    edited,
    first_text,
)

if TYPE_CHECKING:
    from rekernel import KernelLoader, KernelSourceError
    from rekernel.demo.picture import Field, Panel
    from rekernel.demo.show import Row, Show

__all__ = ["Options", "run"]

_NEEDS = {"taichi": "taichi", "rich": "rich", "PIL": "pillow", "numpy": "numpy"}
"""What is imported, and what it is called on PyPI."""

_NOTES = {
    Move.START: "loaded in",
    Move.SWAP: "swapped in",
    Move.BREAK: "edit refused in",
    Move.ROLLBACK: "back in",
}
"""What the captions call the time of a move."""


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


def run(options: Options) -> int:
    """Play all acts, print the table, write the picture; returns the exit status.

    0: all went well; 1: a swap did not keep the state; 2: it could not start; 130: Ctrl-C, with the
    picture of what there is.
    """
    problem = _missing_packages() or _unusable(options.out)
    if problem:
        print(f"rekernel demo {problem}", file=sys.stderr)
        return 2
    from rekernel import KernelLoader
    from rekernel.demo.show import Show

    show = Show(quiet=options.quiet)
    ti = _start_taichi(options.seed)
    release = ".".join(map(str, ti.__version__))
    show.say(f"Gray-Scott on {options.size} x {options.size} cells, Taichi {release} on the CPU.", "bold")
    with KernelLoader() as loader:
        play = _Play(options, show, loader, ti)
        status = 0
        try:
            for number, act in enumerate(ACTS, 1):
                play.act(number, act)
        except KeyboardInterrupt:
            show.say("Stopped; this is what there is.", "yellow")
            status = 130
        play.close()
    return status or int(not play.state_kept)


def _missing_packages() -> str:
    missing = [name for module, name in _NEEDS.items() if importlib.util.find_spec(module) is None]
    if not missing:
        return ""
    advice = 'pip install "rekernel[demo]"'
    if "taichi" in missing and sys.version_info >= (3, 14):
        advice += " with Python 3.10 to 3.13, as Taichi has no packages for newer ones"
    return f"needs {', '.join(missing)}: {advice}"


def _unusable(out: Path) -> str:
    """Why the picture could not be written there: better now than after half a minute."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"cannot write {out}: {error.strerror}"
    if out.is_dir():
        return f"cannot write {out}: it is a folder"
    return "" if os.access(out if out.exists() else out.parent, os.W_OK) else f"cannot write {out}: not allowed"


def _start_taichi(seed: int) -> Any:
    # Taichi reads both early: no banner, and no question to the network about its version.
    os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "False")
    os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")
    ti: Any = importlib.import_module("taichi")
    with contextlib.redirect_stdout(io.StringIO()):  # one more line of banner that has no switch
        # Without the offline cache every edit is really compiled, so the times are those of a new edit.
        ti.init(arch=ti.cpu, random_seed=seed, offline_cache=False, log_level=ti.ERROR)
    return ti


class _Play:
    """The run between its acts: the text as it stands, the live module, and what has been seen so far."""

    def __init__(self, options: Options, show: Show, loader: KernelLoader, ti: Any) -> None:
        self.options, self.show, self.loader, self.ti = options, show, loader, ti
        self.text = first_text(options.size)
        self.module: Any = None
        self.step: Any = None
        self.rows: list[Row] = []
        self.panels: list[Panel] = []
        self.state_kept = True

    def act(self, number: int, act: Act) -> None:
        """One move on the kernel, then the steps; then the row and the panel, also after Ctrl-C."""
        from rekernel.demo.picture import Panel
        from rekernel.demo.show import Pace, Row

        self.show.act(number, len(ACTS), act.says)
        edit_ms = self._move(act)
        version = self._version(act)
        total = -(-(self.options.steps or act.steps) // STEPS_PER_CALL) * STEPS_PER_CALL
        pace = Pace(STEPS_PER_CALL)  # the first step is part of the move
        try:
            with self.show.running(version, total) as advance:
                while pace.done < total:
                    pace.run(self.step, self.ti.sync, total)
                    advance(pace.done, pace.rate, self._field)
        finally:
            refused = act.move is Move.BREAK
            mlups = pace.rate * self.options.size**2 / 1e6
            row = Row(number, version, act.change, edit_ms, refused, pace.done, pace.rate, mlups)
            note = f"{_NOTES[act.move]} {row.time}  ·  {pace.done:,} steps"
            self.rows.append(row)
            self.panels.append(Panel(self._field(), version, note))
            self.show.ran(row)

    def close(self) -> None:
        """The table, the picture, and whether the state came through."""
        from rekernel.demo import picture

        if not self.rows:
            return
        self.show.table(self.rows)
        ran = ", ".join(dict.fromkeys(row.version.split()[0] for row in self.rows))
        self.show.say(f"The callable 'step' was taken from the module once, in act 1; it ran {ran}.")
        size = self.options.size
        heading = f"Gray-Scott, {size} x {size} cells: one run, one field"
        remark = "the kernel was replaced while the state went on"
        picture.save(self.options.out, self.panels, heading, remark)
        if not self.state_kept:
            self.show.say("A swap changed the field, which must not happen.", "bold red")
        self.show.console.print(f"Picture: {self.options.out}", soft_wrap=True, highlight=False)

    def _move(self, act: Act) -> float:
        """Do to the kernel what the act begins with, and one step; returns milliseconds from edit to run."""
        new = edited(self.text, act.edits)
        if act.edits:
            self.show.edit(changed_lines(self.text, new))
        before = None if act.move is Move.START else self._state()
        refusal: KernelSourceError | None = None
        started = time.perf_counter()
        if act.move is Move.ROLLBACK:
            self.loader.rollback(KERNEL_ID)
        elif act.move is Move.BREAK:
            refusal = self._refused(new)
        else:
            self.module, self.text = self.loader.load(new, KERNEL_ID, language="taichi"), new
        spent = time.perf_counter() - started
        if refusal is not None:
            self.show.error(str(refusal))
        if before is not None:
            self._compare(before)
        started = time.perf_counter()
        if act.move is Move.START:
            self.step = self.module.step  # taken once: it follows every swap
            self.module.seed()
        self.step()
        self.ti.sync()
        return 1e3 * (spent if refusal is not None else spent + time.perf_counter() - started)

    def _refused(self, text: str) -> KernelSourceError:
        from rekernel import KernelSourceError

        try:
            self.loader.load(text, KERNEL_ID, language="taichi")
        except KernelSourceError as error:
            return error
        raise AssertionError("the broken edit was accepted")

    def _compare(self, before: tuple[Field, Field]) -> None:
        after = self._state()
        kept = all((old == new).all() for old, new in zip(before, after, strict=True))
        self.state_kept &= kept
        size = f"{sum(values.size for values in after):,} values of u and v"
        self.show.say(f"  state: {size}, {'none changed' if kept else 'CHANGED'}", "" if kept else "bold red")

    def _version(self, act: Act) -> str:
        """The live version with its name; a rollback gets a new number, and says whose text it has."""
        live = next(version.number for version in self.loader.history(KERNEL_ID) if version.live)
        label = f"v{live} {act.name}"
        if act.move is Move.ROLLBACK:
            first = next(row.version for row in self.rows if row.version.endswith(act.name))
            label += f" = {first.split()[0]}"
        return label

    def _state(self) -> tuple[Field, Field]:
        return self.module.u.to_numpy(), self.module.v.to_numpy()

    def _field(self) -> Field:
        values: Field = self.module.v.to_numpy()[0]
        return values
