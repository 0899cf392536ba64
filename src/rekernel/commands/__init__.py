"""The command line: one file for each subcommand, and here what they share.

A subcommand's file has one function ``add(subparsers)``. It makes a parser with `subcommand`, gives it its arguments
and sets ``run``: what is to be done, from the parsed arguments to the exit status. What a subcommand needs is
imported when it runs, so that ``--help`` is quick and works without any extra.

Exit statuses: 0, all is well; 1, something went wrong that the output names (a text that does not compile, a damaged
entry); 2, the call makes no sense; 130, Ctrl-C.

With ``--json`` there is one JSON document on standard output and nothing else, for errors too: then it is
``{"error": {"kind": ..., "message": ..., "hint": ...}}``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rekernel.commands.answers import CommandError, UsageError, dump, error_document, message_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    Subparsers = argparse._SubParsersAction["Parser"]  # argparse has no public name for it

__all__ = [
    "CommandError", "Parser", "UsageError", "console", "dump", "error_document", "existing", "message_of",
    "power_of_two", "size", "subcommand", "table", "whole",
]  # fmt: skip

PIPED_WIDTH = 160
"""Columns where nobody looks through a window: rows stay on one line, for ``grep``."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are exceptions, so that one place prints them, as text or as JSON."""

    more: Callable[[], str] | None = None
    """Gives the end of the help, where that takes more than is imported for every call."""

    def format_help(self) -> str:
        """Return the help, its end included."""
        return super().format_help() + ("" if self.more is None else f"\n{self.more()}\n")

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` instead of ending the process."""
        raise UsageError(message, parser=self)


def subcommand(
    subparsers: Subparsers, name: str, run: Callable[[argparse.Namespace], int], *, help: str, description: str,
    epilog: str | None = None, json: bool = True,
) -> Parser:  # fmt: skip
    """Add a subcommand that does `run`; every subcommand that prints something takes ``--json``."""
    parser = subparsers.add_parser(
        name, help=help, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )  # fmt: skip
    parser.set_defaults(run=run, prog=parser.prog)
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    return parser


# --- what comes in ---------------------------------------------------------------------------------------------


def whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not below `least`.

    >>> whole(1)("10_000")
    10000
    """

    def read(text: str) -> int:
        try:
            value = int(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is below {least}")
        return value

    return read


def power_of_two(text: str) -> int:
    """Read a power of two that is not below 32."""
    value = whole(32)(text)
    if value & (value - 1):
        raise argparse.ArgumentTypeError(f"{value} is not a power of two")
    return value


def size(text: str) -> int:
    """Read a number of bytes: ``500M``, ``2G``, ``1000000``."""
    from rekernel.cachedir import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def existing(text: str) -> Path:
    """Read the path of a file that is there."""
    path = Path(text)
    if path.is_dir():
        inside = os.path.join(text, "*.cpp")
        raise argparse.ArgumentTypeError(f"{text} is a directory; name its files, such as {inside}")
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return path


# --- what goes out ---------------------------------------------------------------------------------------------


def console(*, stderr: bool = False) -> Console:
    """Return a console: colours on a terminal only, and never where NO_COLOR is set; rows stay whole when piped."""
    from rich.console import Console

    class Own(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # which `main` knows; rich would end the process with status 1

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    return Own(file=stream, width=width, markup=False, highlight=False, emoji=False)


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table; a column whose name begins with ``>`` is flush right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False)
    for name in columns:
        right = name.startswith(">")
        made.add_column(name.lstrip(">"), justify="right" if right else "left", no_wrap=right, overflow="fold")
    return made
