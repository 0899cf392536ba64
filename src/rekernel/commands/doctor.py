"""``rekernel doctor``: what is there, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rekernel.commands import console, dump, subcommand

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.commands.checkrows import Row

__all__ = ["add"]

_COLOURS = {"ok": "green", "warning": "yellow", "missing": "red"}


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    subcommand(
        subparsers, "doctor", _run,
        help="what is there, what works, and what to do about the rest",
        description="Looks at Python, compilers (each builds a kernel), OpenMP, the CPU, CUDA, the extras and the\n"
        "cache. Each line is ok, warning or missing; below the last two stands what to do. Exit status 0 if the\n"
        "core works, which is Python's part and C++ kernels; 1 otherwise.",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from concurrent.futures import ThreadPoolExecutor

    from rekernel.commands import checks
    from rekernel.commands.checkrows import OK, rows_of

    with ThreadPoolExecutor(4) as pool:  # they wait for other processes
        rows = [row for found in pool.map(rows_of, checks.CHECKS) for row in found]
    good = not any(row.core and row.state != OK for row in rows)
    variables = checks.environment()
    if arguments.json:
        dump({"ok": good, "rows": [vars(row) for row in rows], "environment": variables})
    else:
        _show(rows, variables, good)
    return int(not good)


def _show(rows: Sequence[Row], variables: dict[str, str], good: bool) -> None:
    wrong = [row.part for row in rows if row.core and row.state != "ok"]
    end = "the core works" if good else f"the core does not work: {', '.join(wrong)}"
    try:
        from rich.table import Table
        from rich.text import Text

        out = console()
    except Exception:  # rich is one of the things that may be broken
        for row in rows:
            print(row.state, row.part, row.found, f"-> {row.advice}" if row.advice else "", sep="  ")
        print(end)
        return
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
    out.print(grid)
    out.print(end, style="bold green" if good else "bold red")
