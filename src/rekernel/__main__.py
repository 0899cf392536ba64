"""``python -m rekernel``: the command line, one function for each subcommand.

A subcommand's function gets the collection of subparsers, adds its own with its arguments, and sets ``run``
to what is to be done with them; `_SUBCOMMANDS` names them all. What a subcommand needs is imported when it
runs, so that ``--help`` is quick and works without any extra.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction["_Parser"]  # argparse has no public name for it

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    """An argument parser that shows its whole help, not only the usage line, when it is called wrongly."""

    def error(self, message: str) -> NoReturn:
        self.print_help(sys.stderr)
        self.exit(2, f"\n{self.prog}: error: {message}\n")


def _whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers that are not below ``least``."""

    def read(text: str) -> int:
        try:
            value = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        return value

    return read


def _power_of_two(text: str) -> int:
    value = _whole(32)(text)
    if value & (value - 1):
        raise argparse.ArgumentTypeError(f"{value} is not a power of two")
    return value


def _demo(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="a simulation whose kernel is edited while it runs",
        description="A Gray-Scott simulation through Taichi and through C++ on the CPU, or through the one that is "
        "there. Its kernel is replaced twice, broken once and rolled back once while the state goes on; at the end "
        "there are a table of times and a picture of every act.",
    )
    parser.add_argument(
        "--size", type=_power_of_two, default=512, help="cells a side, a power of two (default: %(default)s)"
    )
    parser.add_argument("--steps", type=_whole(2), help="steps of every act (default: 2,000 to 3,600)")
    picture = Path("gray_scott.png")
    parser.add_argument("--out", type=Path, default=picture, help="the picture (default: %(default)s)")
    parser.add_argument("--seed", type=_whole(0), default=1, help="picks the start (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="print the table and the path, nothing else")

    def run(arguments: argparse.Namespace) -> int:
        from rekernel import demo

        a = arguments
        return demo.run(demo.Options(size=a.size, steps=a.steps, out=a.out, seed=a.seed, quiet=a.quiet))

    parser.set_defaults(run=run)


_SUBCOMMANDS: tuple[Callable[[Subparsers], None], ...] = (_demo,)


def _version() -> str:
    try:
        return version("rekernel")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "(not installed)"


def _parser() -> _Parser:
    parser = _Parser(prog="python -m rekernel", description="Edit kernels while they run.")
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for add in _SUBCOMMANDS:
        add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status, which is 2 for a call that makes no sense.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    rekernel ...
    0
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.version:
        print(f"rekernel {_version()}")
        return 0
    if not hasattr(arguments, "run"):
        parser.print_help(sys.stderr)
        return 2
    try:
        status: int = arguments.run(arguments)
    except KeyboardInterrupt:
        return 130  # what shells report for Ctrl-C; no traceback for what the user wanted
    return status


if __name__ == "__main__":
    sys.exit(main())
