"""``rekernel watch``: files that are loaded whenever they are saved, alone or under a script that uses them."""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rekernel.commands import CommandError, UsageError, console, subcommand

if TYPE_CHECKING:
    from rich.console import Console

    from rekernel.commands import Subparsers
    from rekernel.loader import KernelLoader
    from rekernel.values import ReloadEvent
    from rekernel.watch import Watch

__all__ = ["add"]


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "watch", _run,
        help="load files whenever they are saved, under a script or alone",
        description="Load FILEs into rekernel.kernels, and again whenever they are saved, until Ctrl-C: one line for\n"
        "each reload, the whole error where a text does not compile. A FILE may be a directory or a pattern, too.\n\n"
        "With --run a script runs meanwhile, as `python script.py` would run it. Every file that it loads with\n"
        "load_file is watched; where its first load fails, the script waits until the file is saved again.\n"
        "Its exit status is passed on.",
        epilog="rekernel watch heat.cpp\nrekernel watch --run simulate.py --size 512\nrekernel watch kernels/ --json",
    )  # fmt: skip
    for action in parser._actions:
        if action.dest == "json":
            action.help = "print one JSON object a line for each event; with --run on standard error"
    parser.add_argument("files", nargs="*", metavar="FILE", help="what is loaded into rekernel.kernels")
    parser.add_argument(
        "--run", dest="script", nargs=argparse.REMAINDER, metavar=("SCRIPT", "ARGUMENT"),
        help="the script, and all that comes after it",
    )  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from rekernel.default import kernels

    if arguments.script is not None and not arguments.script:
        raise UsageError("--run needs a script")
    if not arguments.files and arguments.script is None:
        raise UsageError("name FILEs to watch, or a script: --run script.py")
    show = _Show(arguments.json, stderr=arguments.script is not None)
    try:
        _start_runtimes(arguments.files)
        if arguments.script is None:
            with kernels.watch(*arguments.files) as watch:
                show.head(f"watching {_named(watch)}; Ctrl-C ends it")
                for event in watch:
                    show.event(event)
            return 0
        followed = _Followed(show)
        if arguments.files:
            followed.add(kernels.watch(*arguments.files))
        return _script(arguments.script, followed)
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


class _Show:
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


class _Followed:
    """The watches of a process whose loaders are followed, each with a thread that prints what it does."""

    def __init__(self, show: _Show) -> None:
        self.show = show
        self.watches: dict[int, Watch] = {}
        self.threads: list[threading.Thread] = []

    def add(self, watch: Watch) -> None:
        """Print what a watch does, until it ends."""

        def work() -> None:
            for event in watch:
                self.show.event(event)

        thread = threading.Thread(target=work, name="rekernel watch output", daemon=True)
        self.threads.append(thread)
        thread.start()

    def follow(self, loader: KernelLoader) -> None:
        """Watch what a loader loads, if that is not done already."""
        known = self.watches.get(id(loader))
        if known is None or known.loader() is not loader:
            watch = self.watches[id(loader)] = loader.watch()
            self.add(watch)

    def end(self) -> None:
        """Stop, when all is printed."""
        for watch in self.watches.values():
            watch.stop()
        for thread in self.threads[-len(self.watches) :] if self.watches else ():
            thread.join(5)


def _script(command: list[str], followed: _Followed) -> int:
    """Run a script as Python would; returns its exit status, or lets its SystemExit through."""
    script = command[0]
    try:
        with io.open_code(os.path.abspath(script)) as file:
            code = compile(file.read(), script, "exec", dont_inherit=True)
    except OSError as error:
        raise CommandError(f"cannot read the script {script}: {error.strerror}") from None
    except (SyntaxError, ValueError):
        traceback.print_exc(limit=0)
        return 1
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = main
    sys.argv[:] = command
    sys.path[0:1] = [os.path.dirname(os.path.abspath(script))]
    _wait_at_first_loads(followed)
    try:
        exec(code, main.__dict__)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next  # our own frames say nothing
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    finally:
        followed.end()
    return 0


def _wait_at_first_loads(followed: _Followed) -> None:
    """Let `load_file` of every loader follow its file, and wait for a save where there is no version to go on with."""
    from rekernel.errors import KernelSourceError
    from rekernel.loader import KernelLoader

    original = KernelLoader.load_file

    @functools.wraps(original)
    def load_file(self: KernelLoader, path: Any, kernel_id: str | None = None, **options: Any) -> types.ModuleType:
        followed.follow(self)
        while True:
            try:
                return original(self, path, kernel_id, **options)
            except (KernelSourceError, OSError, ValueError) as error:
                known = kernel_id if kernel_id is not None else os.path.splitext(os.path.basename(os.fspath(path)))[0]
                if known in self:
                    raise
                _wait_for_save(os.fspath(path), error, followed.show)

    KernelLoader.load_file = load_file  # type: ignore[method-assign]


def _wait_for_save(path: str, error: Exception, show: _Show) -> None:
    """Show an error, and return when the file, or a file that it may mean, has another content and is quiet."""
    from rekernel.languages import detect
    from rekernel.notices import Notices
    from rekernel.places import directories_of, read, ways
    from rekernel.settling import START, Settling
    from rekernel.values import ReloadEvent

    file = os.path.abspath(path)
    show.event(ReloadEvent("failed", os.path.splitext(os.path.basename(file))[0], None, error=error))
    data, _digest = read(file)
    named = getattr(error, "filename", None)
    beside: set[str] = {named} if isinstance(named, str) else set()
    if data is not None:
        try:
            mentions = getattr(detect(data.decode("utf-8", "replace"), file), "mentions", lambda *_: ())
            beside |= set(mentions(file, data, {}))
        except ValueError:
            pass
    files = {file, *map(os.path.abspath, beside)}

    def content() -> dict[str, object]:
        return {one: read(one)[1] for one in files}

    show.head(f"waiting for {path} to be saved again; Ctrl-C ends it")
    notices = Notices()
    try:
        settling = Settling(content(), time.monotonic())
        while True:
            notices.follow(directories_of({name for one in files for name in ways(one)}))
            decision = settling.look(content(), time.monotonic(), whole=bool((read(file)[0] or b"").strip()))
            left = settling.left(time.monotonic(), error=True)
            if (decision == START or settling.tried is not None) and left == 0:
                return
            notices.wait(left or 1.0)
    finally:
        notices.close()
