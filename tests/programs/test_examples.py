"""The example programs inside Taichi, as strings: loaded they do what the file does, and changes act in place.

Every program runs in processes of its own, once the plain way and once through the loader, on one thread, and
everything it leaves behind is compared bit by bit. ``REKERNEL_PROGRAMS=quick`` runs a small selection.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

from programs.catalogue import ROWS
from programs.processes import Result, Runs
from programs.row import Row, examples_folder

if find_spec("taichi") is None:
    pytest.skip("Taichi is not installed", allow_module_level=True)

pytestmark = pytest.mark.slow
QUICK = os.environ.get("REKERNEL_PROGRAMS") == "quick"


def needs(*modes: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Says which processes a test compares, so that they can be started before it is its turn."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        test.modes = modes
        return test

    return mark


def rows(swap: bool) -> list[object]:
    chosen = [row for row in ROWS if (row.quick or not QUICK) and (row.swap or not swap)]
    return [
        pytest.param(row, id=row.id, marks=[pytest.mark.skip(reason=f"{row.id}: {row.skip}")] if row.skip else [])
        for row in chosen
    ]


def differences(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> list[str]:
    """What two results disagree about, one line for each array; equal means the same shape, type and bits."""
    lines = [f"{name}: only on one side" for name in sorted(left.keys() ^ right.keys())]
    for name in sorted(left.keys() & right.keys()):
        a, b = left[name], right[name]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            lines.append(f"{name}: {a.dtype}{a.shape} and {b.dtype}{b.shape}")
        elif a.tobytes() != b.tobytes():
            count = int(np.count_nonzero(a != b))
            lines.append(f"{name}: {count} of {a.size} values differ, e.g. {a[a != b].flat[0]} and {b[a != b].flat[0]}")
    return lines


def program_state(result: Result) -> dict[str, np.ndarray]:
    """The arrays of a result without the notes about its windows, its files and the moment of the change."""
    return {
        name: value
        for name, value in result.arrays.items()
        if not name.startswith("at the change") and name[-2:] != "()"
    }


def test_every_example_has_a_row() -> None:
    folder = examples_folder()
    files = {file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.py")}
    assert {row.path for row in ROWS} == {file for file in files if not file.endswith("__init__")}


@pytest.mark.parametrize("row", rows(swap=False))
@needs("direct", "loaded")
def test_a_loaded_example_does_what_the_file_does(row: Row, runs: Runs) -> None:
    direct, loaded = runs.start(row, ("direct", "loaded")).result()

    for name in row.watch:
        assert np.any(direct.arrays[name]), f"{name} stayed empty: this row would compare nothing"
    assert row.watch or direct.arrays["drawn()"].size
    assert differences(direct.arrays, loaded.arrays) == []
    if row.output:
        assert loaded.output == direct.output != ""


@pytest.mark.parametrize("row", rows(swap=True))
@needs("until", "after", "reloaded")
def test_a_reload_in_the_middle_is_a_change_in_the_middle(row: Row, runs: Runs) -> None:
    until, after, reloaded = runs.start(row, ("until", "after", "reloaded")).result()

    watch = row.swap.watch or row.watch
    at_change = {name: until.arrays[f"at the change: {name}"] for name in watch}
    unchanged = {name: until.arrays[name] for name in watch}
    changed = {name: after.arrays[name] for name in watch}
    assert differences(at_change, unchanged), "the program stood still after the change"
    assert differences(changed, unchanged), "the change made no difference"
    assert differences(program_state(after), program_state(reloaded)) == []
