"""``rekernel``, or ``python -m rekernel``: the command line. Each subcommand is a file of `rekernel.commands`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from rekernel.commands import Parser
from rekernel.commands.answers import CommandError, only_json, plain_warnings, tell

__all__ = ["main"]

_SUBCOMMANDS = ("demo", "watch", "build", "cache", "doctor", "bench", "stubs")
"""Files of `rekernel.commands`, in the order of the help."""


def _version() -> str:
    try:
        return version("rekernel")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "(not installed)"


def _parser() -> Parser:
    parser = Parser(
        prog="rekernel", description="Edit kernels while they run.",
        epilog="Exit status: 0, all is well; 1, something went wrong that the output names; 2, a wrong call.",
    )  # fmt: skip
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND")
    for name in _SUBCOMMANDS:
        import_module(f"rekernel.commands.{name}").add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns the exit status, which is 2 for a call that makes no sense.

    >>> main(["--version"])  # doctest: +ELLIPSIS
    rekernel ...
    0
    """
    given = sys.argv[1:] if argv is None else list(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # a terminal without Unicode shows what it can
    parser = _parser()
    prog, as_json = parser.prog, "--json" in given
    try:
        arguments = parser.parse_args(given)
        if arguments.version:
            print(f"rekernel {_version()}")
            return 0
        if not hasattr(arguments, "run"):
            parser.print_help(sys.stderr)
            return 2
        prog, as_json = arguments.prog, getattr(arguments, "json", False)
        with only_json() if as_json else nullcontext(), plain_warnings(prog):
            status: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130  # what shells report for Ctrl-C; no traceback for what the user wanted
    except BrokenPipeError:  # `rekernel cache list | head`: nobody reads on, which is no mistake
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        from rekernel.errors import RekernelError

        if not isinstance(error, CommandError | RekernelError | OSError):
            raise  # a mistake of ours: the traceback is wanted
        return tell(error, prog, as_json)
    return status


if __name__ == "__main__":
    sys.exit(main())
