"""``rekernel stubs``: the types of a text's kernels as a ``.pyi``, for type checkers and editors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.commands import CommandError, console, dump, existing, subcommand, texts
from rekernel.commands.answers import only_json

if TYPE_CHECKING:
    from rekernel.commands import Subparsers

__all__ = ["add"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "stubs", _run,
        help="write the types of kernels as a .pyi",
        description="Write a .pyi with the kernels of a text, their types and docstrings: what type checkers and\n"
        "editors read. The text is compiled where only its compiler knows the types.",
    )  # fmt: skip
    parser.add_argument("file", type=existing, metavar="FILE", help="a text with kernels")
    parser.add_argument("--output", "-o", metavar="PATH", help="the .pyi, or - to print it (default: beside the text)")
    texts.add_load_arguments(parser)


def _run(arguments: argparse.Namespace) -> int:
    from rekernel.files import write_whole
    from rekernel.jit.export import HEAD, stub
    from rekernel.loader import KernelLoader

    text = texts.one(arguments.file, arguments)
    with KernelLoader() as loader:
        with only_json():  # what the text prints must not come into the types
            texts.loaded(loader, text)
        info = loader.info(text.kernel_id)
        if not info.kernels:
            why = "".join(f"\n{name} is no kernel: {reason}" for name, reason in info.skipped.items())
            raise CommandError(f"{text.path} has no kernels{why}")
        made = stub(info.kernels, whole=text.path.suffix != ".py")
        names = list(dict.fromkeys(kernel.name for kernel in info.kernels))
    place = None
    if arguments.output != "-":
        place = Path(arguments.output) if arguments.output else text.path.with_suffix(".pyi")
        if place.exists() and not place.read_text(encoding="utf-8", errors="replace").startswith(HEAD):
            raise CommandError(
                f"{place} is not one of ours and stays as it is", "write to another place: --output PATH, or --output -"
            )
        write_whole(place, made.encode("utf-8"), 0o666)
    if arguments.json:
        dump({"file": str(text.path), "output": None if place is None else str(place), "kernels": names, "text": made})
    elif place is None:
        print(made, end="")
    else:
        console().print(f"{place}: {', '.join(names)}", soft_wrap=True)
    return 0
