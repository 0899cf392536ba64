"""``rekernel demo``: a simulation whose kernel is edited while it runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.commands import dump, power_of_two, subcommand, whole

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.demo.results import Row

__all__ = ["add"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "demo", _run,
        help="a simulation whose kernel is edited while it runs",
        description="A Gray-Scott simulation through Taichi and through C++ on the CPU, or through the one that is\n"
        "there. Its kernel is replaced twice, broken once and rolled back once while the state goes on;\n"
        "at the end there are a table of times and a picture of every act.",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=power_of_two, default=512, help="cells a side, a power of two (default: %(default)s)"
    )
    parser.add_argument("--steps", type=whole(2), help="steps of every act (default: 2,000 to 3,600)")
    picture = Path("gray_scott.png")
    parser.add_argument("--out", type=Path, default=picture, help="the picture (default: %(default)s)")
    parser.add_argument("--seed", type=whole(0), default=1, help="picks the start (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="print the table and the path, nothing else")


def _run(a: argparse.Namespace) -> int:
    from rekernel import demo

    options = demo.Options(size=a.size, steps=a.steps, out=a.out, seed=a.seed, quiet=a.quiet or a.json)
    if not a.json:
        return demo.run(options)
    rows: list[Row] = []
    status = demo.run(options, rows.extend)
    acts = [{**vars(row), "runs": {name: vars(one) for name, one in row.runs.items()}} for row in rows]
    dump({"acts": acts, "picture": str(a.out) if acts else None, "status": status})
    return status
