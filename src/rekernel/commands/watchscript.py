"""``rekernel watch --run``: a script that runs as Python would run it, while the files that it loads are followed."""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
import time
import traceback
import types
from typing import TYPE_CHECKING, Any

from rekernel.commands import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rekernel.commands.watch import Show
    from rekernel.loader import KernelLoader
    from rekernel.watch import Watch

__all__ = ["Followed", "run_script"]


class Followed:
    """The watches of a process whose loaders are followed, each with a thread that prints what it does."""

    def __init__(self, show: Show) -> None:
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


def run_script(command: list[str], followed: Followed) -> int:
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


def _wait_at_first_loads(followed: Followed) -> None:
    """Let `load_file` of every loader follow its file, and wait for a save where there is no version to go on with."""
    from rekernel.errors import KernelSourceError
    from rekernel.loader import KernelLoader

    original = KernelLoader.load_file

    @functools.wraps(original)
    def load_file(self: KernelLoader, path: Any, kernel_id: str | None = None, **options: Any) -> types.ModuleType:
        followed.follow(self)
        file = os.path.abspath(os.fspath(path))
        beside: set[str] = set()
        while True:
            tried = _contents({file, *_meant(file, options), *beside})
            try:
                return original(self, path, kernel_id, **options)
            except (KernelSourceError, OSError, ValueError) as error:
                known = kernel_id if kernel_id is not None else os.path.splitext(os.path.basename(file))[0]
                if known in self:
                    raise
                named = getattr(error, "filename", None)
                if isinstance(named, str) and (other := os.path.abspath(named)) not in tried:
                    beside.add(other)
                    continue  # nobody knows what it held at this try, and a save since then must not be missed
                _wait_for_save(os.fspath(path), known, tried, error, followed.show)

    KernelLoader.load_file = load_file  # type: ignore[method-assign]


def _meant(file: str, options: Mapping[str, Any]) -> set[str]:
    """Return the files that a text may mean, whether they are there or not."""
    from rekernel.languages import detect
    from rekernel.places import read

    data, _digest = read(file)
    if data is None:
        return set()
    try:
        mentions = getattr(detect(data.decode("utf-8", "replace"), file), "mentions", lambda *_: ())
        return set(map(os.path.abspath, mentions(file, data, options)))
    except (TypeError, ValueError):  # the load says so
        return set()


def _contents(files: Iterable[str]) -> dict[str, object]:
    from rekernel.places import read

    return {one: read(one)[1] for one in files}


def _wait_for_save(path: str, kernel_id: str, tried: dict[str, object], error: Exception, show: Show) -> None:
    """Show an error, and return when one of its files has another content than was tried, and is quiet."""
    from rekernel.notices import Notices
    from rekernel.places import directories_of, read, ways
    from rekernel.settling import START, Settling
    from rekernel.values import ReloadEvent

    show.event(ReloadEvent("failed", kernel_id, None, error=error))
    show.head(f"waiting for {path} to be saved again; Ctrl-C ends it")
    notices = Notices()
    try:
        settling = Settling(tried, time.monotonic())
        while True:
            notices.follow(directories_of({name for one in tried for name in ways(one)}))
            whole = bool((read(os.path.abspath(path))[0] or b"").strip())
            decision = settling.look(_contents(tried), time.monotonic(), whole=whole)
            left = settling.left(time.monotonic(), error=True)
            if (decision == START or settling.tried is not None) and left == 0:
                return
            notices.wait(left or 1.0)
    finally:
        notices.close()
