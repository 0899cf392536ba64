"""``rekernel doctor``: what is there, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rekernel.commands import console, dump, subcommand

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.commands.checks import Row

__all__ = ["add"]

_COLOURS = {"ok": "green", "warning": "yellow", "missing": "red"}


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    subcommand(
        subparsers, "doctor", _run,
        help="what is there, what works, and what to do about the rest",
        description="Looks at Python, compilers (each builds a kernel), OpenMP, the CPU, CUDA, the extras and the cache.\n"
        "Each line is ok, warning or missing; below the last two stands what to do. Exit status 0 if the core\n"
        "works, which is Python's part and C++ kernels; 1 otherwise.",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from rekernel.commands import checks

    with ThreadPoolExecutor(4) as pool:  # they wait for other processes
        rows = [row for found in pool.map(checks.rows_of, checks.CHECKS) for row in found]
    good = not any(row.core and row.state != checks.OK for row in rows)
    variables = checks.environment()
    if arguments.json:
        dump({"ok": good, "rows": [vars(row) for row in rows], "environment": variables})
    else:
        _show(rows, variables, good)
    return int(not good)


def _show(rows: Sequence[Row], variables: dict[str, str], good: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        said = Text(row.found)
        if row.advice:
            said.append(f"\n-> {row.advice}", style="bold")
        grid.add_row(Text(row.state, style=_COLOURS[row.state]), row.part, said)
    for name, value in variables.items():
        grid.add_row(Text("set", style="dim"), name, value)
    out = console()
    out.print(grid)
    wrong = [row for row in rows if row.core and row.state != "ok"]
    said = "the core works" if good else f"the core does not work: {', '.join(row.part for row in wrong)}"
    out.print(said, style="bold green" if good else "bold red")
