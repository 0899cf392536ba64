"""``loader.watch()``: files that are saved are loaded, while the program that uses their kernels runs."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
import traceback
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rekernel import events
from rekernel.jobs import same_file
from rekernel.journal import log
from rekernel.locks import rlock
from rekernel.notices import Notices
from rekernel.places import Place, directories_of
from rekernel.settling import Times
from rekernel.values import ReloadEvent
from rekernel.watched import Watched

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

__all__ = ["Watch"]

EVERY = 1.0
"""Seconds between two looks at all files where no notice comes; more where a look takes long."""
KEPT = 1000
"""Events that are kept for those who iterate."""

_all: weakref.WeakSet[Watch] = weakref.WeakSet()


class Watch:
    """Files that are followed until `stop`, which leaving the context calls, too.

    >>> watch = loader.watch()  # doctest: +SKIP
    >>> watch  # doctest: +SKIP
    <Watch: heat.cpp, paint.py and 2 files beside them>

    Iterating, also with ``async for``, gives the `ReloadEvent` of everything that the watch has done from its beginning
    on (the last 1,000), then waits for more, and ends at `stop`.
    """

    def __init__(
        self, loader: KernelLoader, paths: Iterable[str | os.PathLike[str]] = (), *, polling: bool | None = None,
        times: Times | None = None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """Use ``loader.watch(...)``. `times` is how long, by the `clock`, a content has to be quiet."""
        self._notices = Notices(polling)
        self._places = [Place.of(path) for path in paths]
        self.times, self.clock = times or Times(), clock
        self.home = threading.current_thread()
        """The thread for texts that are bound to one and were never loaded before."""
        self._process = os.getpid()
        self._cwd = os.getcwd()
        self.reference = weakref.ref(loader, lambda _: self.poke())
        self._texts: dict[tuple[str, str], Watched] = {}
        self._left: set[str] = set()
        self._finding = rlock()
        self._names: set[str] = set()
        self._stopped = False
        self.turns = 0
        """How often all files were looked at."""
        self._acting = threading.local()
        self._events: list[tuple[int, ReloadEvent]] = []
        self._count = 0
        self._readers = 0
        self._news = threading.Condition(threading.Lock())
        self._wakers: list[Callable[[], None]] = []
        self._key = events.next_key()
        loader._callbacks[self._key] = self._heard
        self._find(loader)
        for text in list(self._texts.values()):
            if text.live is None:
                text.load_now()
        loader._watches.append(self)
        _all.add(self)
        self._thread = threading.Thread(target=self._work, name="rekernel watch", daemon=True)
        self._thread.start()

    # --- what is watched -------------------------------------------------------------------------------------

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are watched: texts, and what these include or import."""
        found = {text.path for text in self._all_texts()}
        found |= {file for text in self._all_texts() for file in text.beside if os.path.exists(file)}
        return tuple(map(Path, sorted(found)))

    @property
    def errors(self) -> Mapping[Path, Exception]:
        """What is wrong now, by file: errors that were told, and whose files have not been mended since."""
        return {Path(text.path): text.error() for text in self._all_texts() if text.error is not None}

    def _all_texts(self) -> list[Watched]:
        return list(self._texts.values())

    def __repr__(self) -> str:
        names = sorted({os.path.basename(text.path) for text in self._all_texts()})
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        beside = len(self.paths) - len({text.path for text in self._all_texts()})
        parts = [shown or "nothing yet"]
        if beside:
            parts.append(f"{beside} file{'s' * (beside > 1)} beside")
        if self.errors:
            parts.append(f"{len(self.errors)} broken")
        if self._stopped:
            parts.append("stopped")
        return f"<Watch: {'; '.join(parts)}>"

    # --- stopping --------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the watch and its threads; nothing is reloaded after this. It may be called again, and by callbacks."""
        self._stopped = True
        loader = self.reference()
        if loader is not None:
            loader._callbacks.pop(self._key, None)
            with suppress(ValueError):
                loader._watches.remove(self)
        self.poke()
        if os.getpid() != self._process:  # a forked child has none of these threads
            return
        threads = [self._thread, *(text.stop() for text in self._all_texts())]
        with self._news:
            self._news.notify_all()
            wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()
        if threading.current_thread() not in threads and not getattr(self._acting, "on", False):
            for thread in threads:
                if thread is not None:
                    thread.join()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # --- events ----------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ReloadEvent]:
        """Give events, waiting for them. Texts that are bound to this thread are loaded meanwhile."""
        self._readers += 1
        try:
            seen = 0
            while True:
                wait = self.catch_up()
                with self._news:
                    event = self._next(seen)
                    if event is None:
                        if self._stopped:
                            return
                        self._news.wait(wait)
                        continue
                seen = event[0]
                yield event[1]
        finally:
            self._readers -= 1

    async def __aiter__(self) -> AsyncIterator[ReloadEvent]:
        """Give events, waiting for them without holding up the event loop."""
        loop = asyncio.get_running_loop()
        self._readers += 1
        try:
            seen = 0
            while True:
                with self._news:
                    event = self._next(seen)
                    if event is None:
                        if self._stopped:
                            return
                        waiting = loop.create_future()
                        self._wakers.append(partial(_wake, loop, waiting))
                if event is None:
                    await waiting
                else:
                    seen = event[0]
                    yield event[1]
        finally:
            self._readers -= 1

    def catch_up(self) -> float | None:
        """Load now what waits for this thread, as the next call of a kernel would.

        Returns after how many seconds there may be more, or None if nothing waits.
        """
        loader = self.reference()
        if loader is None or not loader._waiting:
            return None
        loader._waiting.catch_up(loader)
        return self.times.swap if loader._waiting else None

    def _next(self, seen: int) -> tuple[int, ReloadEvent] | None:
        return next((one for one in self._events if one[0] > seen), None)

    def _heard(self, event: ReloadEvent) -> None:
        if event.kind == "unloaded":
            with self._finding:
                for one, text in list(self._texts.items()):
                    if text.kernel_id == event.kernel_id:
                        self._left.add(text.path)
                        self._texts.pop(one, None)
                        text.stop()
        if getattr(self._acting, "on", False):
            with self._news:
                self._count += 1
                self._events = [*self._events[1 - KEPT :], (self._count, event)]
                self._news.notify_all()
                wakers, self._wakers = self._wakers, []
            for wake in wakers:
                wake()
        self.poke()

    # --- for the texts ---------------------------------------------------------------------------------------

    def loader(self) -> KernelLoader | None:
        """Return the loader, or None when it is gone or the watch has ended."""
        return None if self._stopped else self.reference()

    def poke(self) -> None:
        """Let the watch look at everything soon."""
        self._notices.wake()
        with self._news:
            self._news.notify_all()

    def works_here(self) -> bool:
        """Whether this is the process that watches, and not one forked from it."""
        return os.getpid() == self._process

    def shown(self, path: str) -> str:
        """Return the name of a file as the user would write it."""
        relative = any(place.relative and (place.path == path or path in place.files()) for place in self._places)
        return os.path.relpath(path, self._cwd) if relative else path

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Mark what this thread does as done by the watch: its events are the watch's."""
        before = getattr(self._acting, "on", False)
        self._acting.on = True
        try:
            yield
        finally:
            self._acting.on = before

    def show(self, error: Exception) -> None:
        """Print an error, unless somebody reads the events or the log."""
        if not self._readers and not _is_logged():
            with suppress(OSError, ValueError):  # a stream that is closed
                print("".join(traceback.format_exception_only(error)).rstrip("\n"), file=sys.stderr)

    # --- the thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._stopped:
                try:
                    wait = self._turn()
                    if wait is None:
                        return
                    self._wait(wait)
                except Exception:
                    log.exception("watching files goes on after an error of its own")
                    time.sleep(0.1)
        finally:
            self._notices.close()
            if not self._stopped:  # the loader is gone
                self.stop()

    def _turn(self) -> float | None:
        """Look at everything once; returns the seconds until the next look if nothing happens, None at the end."""
        started = time.monotonic()
        self._notices.hear()
        loader = self.loader()
        if loader is None:
            return None
        with self._finding:
            self._find(loader)
        del loader
        texts = self._all_texts()
        names = {name for text in texts for name in text.names()}
        self._names = names
        self._notices.follow(directories_of(names).union(*(place.directories() for place in self._places)))
        for text in texts:
            text.look()
            text.tell()
        self.turns += 1
        dues = [due for text in texts if (due := text.due()) is not None]
        return min([EVERY, *dues]) if dues else max(EVERY, 50 * (time.monotonic() - started))

    def _wait(self, seconds: float) -> None:
        """Wait until something has changed that matters."""
        until = time.monotonic() + seconds
        while not self._stopped:
            left = until - time.monotonic()
            changed = self._notices.wait(left) if left > 0 else set()
            if not changed or changed & self._names or any(map(self._may_be_new, changed)):
                return

    def _may_be_new(self, path: str) -> bool:
        """Whether a name that has changed may be a file that is not followed yet, or a directory for one."""
        return any(
            place.kind == "pattern" or (place.kind == "directory" and os.path.dirname(path) == place.path)
            for place in self._places
        )

    def _find(self, loader: KernelLoader) -> None:
        """Bring the texts up to date with what is loaded, and with the files that are there."""
        loaded: dict[str, list[str]] = {}
        for kernel_id, (name, path) in list(loader._files.items()):
            live = loader._lives.get(kernel_id)
            edition = None if live is None else live.current
            if edition is not None and edition.source.filename == name:
                loaded.setdefault(path, []).append(kernel_id)
        wanted: dict[tuple[str, str], bool] = {}
        if not self._places:
            wanted = {(path, kernel_id): True for path, ids in loaded.items() for kernel_id in ids}
        for place in self._places:
            for file in place.files():
                known = [(path, i) for path, ids in loaded.items() if same_file(path, file) for i in ids]
                if not known and file not in self._left:
                    known = [(file, os.path.splitext(os.path.basename(file))[0])]
                for one in known:
                    wanted[one] = wanted.get(one, False) or place.kind == "file"
        for one, text in list(self._texts.items()):
            if one not in wanted and (not self._places or text.live is None):
                self._texts.pop(one, None)
                text.stop()
        for one, named in wanted.items():
            self._left.discard(one[0])
            if one not in self._texts:
                self._texts[one] = Watched(self, *one, named=named)


def _wake(loop: asyncio.AbstractEventLoop, waiting: asyncio.Future[None]) -> None:
    def done() -> None:
        if not waiting.done():
            waiting.set_result(None)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(done)


def _is_logged() -> bool:
    """Whether somebody has asked for the log: what reaches him need not be printed."""
    logger: logging.Logger | None = log
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


@atexit.register
def _stop_all() -> None:
    """End the threads before the interpreter does, for it would stop them inside the native code of watchfiles."""
    for watch in list(_all):
        watch.stop()
