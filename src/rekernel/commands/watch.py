"""``rekernel watch``: files that are loaded whenever they are saved, alone or under a script that uses them."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rekernel.commands import CommandError, UsageError, console, subcommand

if TYPE_CHECKING:
    from rich.console import Console

    from rekernel.commands import Subparsers
    from rekernel.values import ReloadEvent
    from rekernel.watch import Watch

__all__ = ["Show", "add"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "watch", _run, json=False,
        help="load files whenever they are saved, under a script or alone",
        description="Load FILEs into rekernel.kernels, and again whenever they are saved, until Ctrl-C: one line for\n"
        "each reload, the whole error where a text does not compile. A FILE may be a directory or a pattern, too.\n\n"
        "With --run a script runs meanwhile, as `python script.py` would run it. Every file that it loads with\n"
        "load_file is watched; where its first load fails, the script waits until the file is saved again.\n"
        "Its exit status is passed on.",
        epilog="rekernel watch heat.cpp\nrekernel watch --run simulate.py --size 512\nrekernel watch kernels/ --json",
    )  # fmt: skip
    parser.add_argument(  # not "json": the script's own output must stay where it is
        "--json", dest="lines", action="store_true",
        help="print one JSON object a line for each event; with --run on standard error",
    )  # fmt: skip
    parser.add_argument("files", nargs="*", metavar="FILE", help="what is loaded into rekernel.kernels")
    parser.add_argument(
        "--run", dest="script", nargs=argparse.REMAINDER, metavar=("SCRIPT", "ARGUMENT"),
        help="the script, and all that comes after it",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from rekernel.default import kernels
    from rekernel.notices import Notices

    if arguments.script is not None and not arguments.script:
        raise UsageError("--run needs a script")
    if not arguments.files and arguments.script is None:
        raise UsageError("name FILEs to watch, or a script: --run script.py")
    Notices()  # what it needs is missing: an error of this call, and not of the script's first load
    show = Show(arguments.lines, stderr=arguments.script is not None)
    try:
        _start_runtimes(arguments.files)
        if arguments.script is None:
            with kernels.watch(*arguments.files) as watch:
                show.head(f"watching {_named(watch)}; Ctrl-C ends it")
                for event in watch:
                    show.event(event)
            return 0
        from rekernel.commands.watchscript import Followed, run_script

        followed = Followed(show)
        if arguments.files:
            followed.add(kernels.watch(*arguments.files))
        return run_script(arguments.script, followed)
    except FileNotFoundError as error:
        raise CommandError(str(error)) from None


def _named(watch: Watch) -> str:
    names = [os.path.relpath(path) for path in watch.paths]
    return (
        ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "for new files"
    )


def _start_runtimes(files: list[str]) -> None:
    """Start what texts rely on that a program would have started: nobody else does it here."""
    from rekernel.jobs import read_text
    from rekernel.languages import detect
    from rekernel.places import Place

    for path in (path for file in files for path in Place.of(file).files()):
        try:
            text = read_text(path)
            start: Callable[[str], None] | None = getattr(detect(text, path), "start", None)
        except (OSError, ValueError):
            continue  # the watch says so
        if start is not None:
            start(text)


class Show:
    """Prints what a watch does: a line for each reload, the whole error for a failure, or JSON."""

    def __init__(self, as_json: bool, *, stderr: bool) -> None:
        self.json = as_json
        self.console: Console = console(stderr=stderr)
        self.lock = threading.Lock()

    def head(self, line: str) -> None:
        """Print what is going on; nothing for a program that reads JSON."""
        if not self.json:
            with self.lock:
                self.console.print(line, style="dim", soft_wrap=True)

    def event(self, event: ReloadEvent) -> None:
        """Print one event."""
        with self.lock:
            if self.json:
                print(json.dumps(_plain(event), allow_nan=False), file=self.console.file, flush=True)
                return
            from rich.text import Text

            line = Text(f"{time.strftime('%H:%M:%S')}  ", style="dim")
            number = "" if event.version is None else f" v{event.version}"
            if event.error is not None:
                line.append(f"{event.kernel_id} failed\n", style="bold red").append(str(event.error), style="default")
            else:
                line.append(f"{event.kernel_id}{number} ", style="bold green").append(event.kind, style="green")
                line.append(_rest(event), style="default")
            self.console.print(line, soft_wrap=True)


def _rest(event: ReloadEvent) -> str:
    took = f" in {event.seconds:.2f} s" if event.kind in ("loaded", "restored") else ""
    parts = [", ".join(event.kernels)] if event.kernels else []
    parts += [f"began anew: {', '.join(event.anew)}"] if event.anew else []
    return took + "".join(f"; {part}" if n else f": {part}" for n, part in enumerate([*parts, *event.notes]))


def _plain(event: ReloadEvent) -> dict[str, Any]:
    error = event.error
    return {
        "time": time.time(), "kind": event.kind, "kernel_id": event.kernel_id, "version": event.version,
        "language": event.language, "kernels": list(event.kernels), "anew": list(event.anew),
        "notes": list(event.notes), "seconds": event.seconds,
        "error": None if error is None else {
            "kind": type(error).__name__, "message": str(error), "filename": getattr(error, "filename", None),
            "line": getattr(error, "line", None), "column": getattr(error, "column", None),
        },
    }  # fmt: skip
