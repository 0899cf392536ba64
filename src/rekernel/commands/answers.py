"""What a subcommand answers: its one JSON document, what others print meanwhile, and errors."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

__all__ = ["CommandError", "UsageError", "dump", "error_document", "message_of", "only_json", "plain_warnings", "tell"]


class CommandError(Exception):
    """What ends a subcommand: exit status 1, and a message with what to do."""

    status = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CommandError):
    """A call that makes no sense: exit status 2. `parser` prints how it is called first."""

    status = 2

    def __init__(self, message: str, hint: str = "", parser: argparse.ArgumentParser | None = None) -> None:
        super().__init__(message, hint)
        self.parser = parser


_documents: list[TextIO] = []
"""Where JSON goes, inside of `only_json`."""


def dump(document: Any) -> None:
    """Print the one JSON document of a subcommand."""
    print(json.dumps(document, indent=2, default=_plain), file=_documents[-1] if _documents else None, flush=True)


@contextmanager
def only_json() -> Iterator[None]:
    """Let nothing but `dump` reach standard output: what texts and their runtimes print goes to the error stream."""
    sys.stdout.flush()
    kept = -1
    with suppress(OSError, ValueError):
        if sys.stdout.fileno() == 1:
            kept = os.dup(1)
    if kept < 0:  # it is no file: in a notebook or a test
        _documents.append(sys.stdout)
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _documents.pop()
        return
    os.dup2(2, 1)  # a library in C does not ask Python where it may print
    try:
        with open(kept, "w", encoding="utf-8", closefd=False) as stream:
            _documents.append(stream)
            yield
    finally:
        _documents.pop()
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, set | frozenset | Sequence) else str(value)


@contextmanager
def plain_warnings(prog: str) -> Iterator[None]:
    """Print warnings of ours as one line, without the line of the code that gives them."""
    import warnings

    from rekernel.errors import RekernelWarning

    with warnings.catch_warnings():
        others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, RekernelWarning):
                print(f"{prog}: warning: {message}", file=sys.stderr)
            else:
                others(message, category, *place, **more)

        warnings.showwarning = show
        yield


def error_document(error: BaseException) -> dict[str, Any]:
    """Return an error as JSON: its kind, message and hint, and for one in a text the place."""
    made = {"kind": type(error).__name__, "message": message_of(error), "hint": getattr(error, "hint", "")}
    names = ("kernel_id", "language", "filename", "line", "column", "field", "command")
    return made | {name: getattr(error, name) for name in names if getattr(error, name, None) is not None}


def message_of(error: BaseException) -> str:
    """Return the whole text of an error, with its type in front where the text alone says too little."""
    said = str(error)
    if not said:
        return type(error).__name__
    speaks = isinstance(error, CommandError | ValueError | TypeError | OSError)
    return said if speaks or type(error).__module__.startswith("rekernel") else f"{type(error).__name__}: {said}"


def tell(error: BaseException, prog: str, as_json: bool) -> int:
    """Print what ended the subcommand `prog`; returns the exit status."""
    status: int = getattr(error, "status", 1)
    if as_json:
        dump({"error": error_document(error)})
        return status
    if isinstance(error, UsageError) and error.parser is not None:
        prog = error.parser.prog
        error.parser.print_usage(sys.stderr)
    print(f"{prog}: error: {message_of(error)}", file=sys.stderr)
    if hint := getattr(error, "hint", ""):
        print(hint, file=sys.stderr)
    elif isinstance(error, UsageError) and error.parser is not None:
        print(f"all of it: {prog} --help", file=sys.stderr)
    return status
