"""One file that serves one id: built aside when it changes, swapped in or complained about when it is quiet."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekernel import building, events, jobs, key, process, publishing
from rekernel.errors import parked
from rekernel.languages import Language
from rekernel.live import Edition, Live
from rekernel.locks import rlock
from rekernel.places import read, ways
from rekernel.settling import NOTHING, START, Content, Settling
from rekernel.values import ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader
    from rekernel.watch import Watch

__all__ = ["Watched"]

_NEVER = "never loaded"
#: A header that fifty texts include is saved: not fifty compilers at once.
_several = threading.Semaphore(max(2, os.cpu_count() or 1))


class _NoKernelsError(Exception):
    """A file that was only found, in a directory, and is something else."""


@dataclass(eq=False)
class _Attempt:
    """A content on its way to become a version."""

    content: Content
    data: bytes | None
    language: Language | None = None
    thread: threading.Thread | None = None
    """That builds it; None for a text that waits for its own thread."""


class Watched:
    """A file and an id. Every method may be called on any thread."""

    def __init__(self, watch: Watch, path: str, kernel_id: str, *, named: bool) -> None:
        """Begin with what serves the id. `named`: the user has named this file, so it has to have kernels."""
        self.watch, self.path, self.kernel_id, self.named = watch, path, kernel_id, named
        self.lock = rlock()
        self.changed = threading.Condition(self.lock)
        self.attempt: _Attempt | None = None
        self.failure: tuple[Content, Callable[[], Exception]] | None = None
        self.error: Callable[[], Exception] | None = None
        self.beside: frozenset[str] = frozenset()
        self._edition: Callable[[], Edition | None] = lambda: None
        shown = self._adopt() or {path: _NEVER}
        self.settling = Settling(shown, watch.clock(), watch.times)

    # --- what the files hold ---------------------------------------------------------------------------------

    @property
    def live(self) -> Live | None:
        """The record of the id, or None where it is not loaded, or from somewhere else."""
        loader = self.watch.loader()
        live = None if loader is None else loader._lives.get(self.kernel_id)
        if loader is None or live is None or live.current is None:
            return None
        name, path = loader._files.get(self.kernel_id, (None, None))
        return live if path == self.path and name == live.current.source.filename else None

    def names(self) -> set[str]:
        """All names whose change may give the text or what it includes another content."""
        return {name for file in {self.path, *self.beside} for name in ways(file)}

    def look(self) -> None:
        """Read the files, and begin or drop a build if that is what they ask for."""
        with self.lock:
            live = self.live
            if live is not None and live.current is not self._edition() and self.attempt is None:
                self._adopt()  # somebody else has loaded it or gone back: what the file holds is let be
            data, content = self._read()
            decision = self.settling.look(content, self.watch.clock(), whole=bool(data and data.strip()))
            if decision == NOTHING:
                return
            old, self.attempt, self.failure = self.attempt, None, None
            new = self.attempt = _Attempt(content, data) if decision == START else None
            self.changed.notify_all()
        if old is not None:
            self._drop(old)
        if new is not None:
            self._begin(new)

    def load_now(self) -> None:
        """Load what the file holds for the first time, on this thread, without waiting; an error is told."""
        data, content = self._read()
        self.settling.look(content, -math.inf)
        self.attempt = _Attempt(content, data)
        self._begin(self.attempt, here=True)
        self.tell()

    def due(self) -> float | None:
        """Return in how many seconds there is something to do although nothing changes, or None."""
        with self.lock:
            if self.failure is None and not self.settling.waits:
                return None
            return self.settling.left(self.watch.clock(), error=True)

    def _read(self) -> tuple[bytes | None, dict[str, object]]:
        data, mine = read(self.path)
        return data, {**{file: read(file)[1] for file in self.beside}, self.path: mine}

    # --- building --------------------------------------------------------------------------------------------

    def _begin(self, attempt: _Attempt, *, here: bool = False) -> None:
        loader = self.watch.loader()
        if loader is None:
            return
        try:
            job = self._job(loader, attempt)
        except _NoKernelsError:
            with self.lock:
                if self.attempt is attempt:
                    self.attempt = None
                    self.settling.show(attempt.content)
            return
        except Exception as error:
            self._failed(attempt, error)
            return
        live = publishing.record(loader, self.kernel_id)
        lives = (live, *publishing.dependents(live))
        bound = [one.current for one in lives if one.current is not None and not one.current.language.threads]
        if here:
            self._run(attempt, job)
        elif bound or not job.language.threads:
            home = bound[0].thread if bound else self.watch.home
            with self.lock:
                if self.attempt is attempt:
                    loader._waiting.put(self.kernel_id, attempt, home, lives, lambda: self._run_here(attempt, job))
            self.watch.poke()
        else:
            name = f"rekernel watch {self.kernel_id}"
            thread = threading.Thread(target=self._run, args=(attempt, job, _several), name=name, daemon=True)
            with self.lock:
                if self.attempt is attempt:
                    attempt.thread = thread
                    thread.start()

    def _job(self, loader: KernelLoader, attempt: _Attempt) -> jobs.Job:
        """Return what `load_file` would do with the content; raise what it would raise."""
        live = self.live
        source = None if live is None or live.current is None else live.current.source
        if attempt.data is None:
            if source is None and not self.named:
                raise _NoKernelsError
            raise self._missing(attempt.content[self.path], live)
        if source is None:
            jobs.id_of_file(loader, self.path)
        elif not attempt.data.strip():  # a disk that was full, an editor that fell: never meant to take kernels away
            raise ValueError(self._goes_on(" is empty", live))
        language, name = (None, self.watch.shown(self.path)) if source is None else (source.language, source.filename)
        text = jobs.decoded(name or self.path, attempt.data)
        job = jobs.Job(text, self.kernel_id, language, None, name, 1, True, True, {}, ahead=True, tells=False)
        ticket = loader._background.ticket(self.kernel_id)
        job.still_wanted = lambda: self.attempt is attempt and ticket()
        job.ready = lambda: self._ready(attempt)
        try:
            jobs.prepare(loader, job)
        except ValueError as error:
            if source is None and not self.named:
                raise _NoKernelsError from error  # of no language that we know
            raise
        finally:
            attempt.language = getattr(job, "language", None)
        if source is None and not self.named and not job.draft.kernels:
            raise _NoKernelsError
        return job

    def _missing(self, why: object, live: Live | None) -> OSError:
        if why is None:
            return FileNotFoundError(self._goes_on(" is gone", live))
        return OSError(self._goes_on(f": {why}", live))

    def _goes_on(self, what: str, live: Live | None) -> str:
        number = None if live is None or live.current is None else live.current.number
        goes_on = "" if number is None else f"; {self.kernel_id} v{number} keeps running"
        return f"{self.path}{what}{goes_on}"

    def _run(self, attempt: _Attempt, job: jobs.Job, several: Any = None) -> None:
        loader, live = self.watch.loader(), self.live
        if loader is None:
            return
        before = None if live is None else live.current
        try:
            with several or nullcontext(), self.watch.acting():
                building.run(loader, job)
        except (Exception, SystemExit) as error:
            self._failed(attempt, error if isinstance(error, Exception) else RuntimeError(f"SystemExit: {error}"))
        else:
            self._succeeded(loader, attempt, job, before)
        self.watch.poke()

    def _run_here(self, attempt: _Attempt, job: jobs.Job) -> None:
        """Load on the thread that was waited for, if the content has settled."""
        loader = self.watch.loader()
        if loader is None or not self.watch.works_here():
            return
        self.look()
        settled = self.attempt is attempt and self.settling.left(self.watch.clock()) == 0
        if settled and loader._waiting.take(self.kernel_id, attempt):
            self._run(attempt, job)
            self.tell()

    def _ready(self, attempt: _Attempt) -> bool:
        """Tell whether a content that was built is to be shown, when it has been the same for long enough."""
        while True:
            self.look()
            with self.lock:
                left = self.settling.left(self.watch.clock())
                if self.attempt is not attempt or left == 0:
                    return self.attempt is attempt
                self.changed.wait(left)

    def _succeeded(self, loader: KernelLoader, attempt: _Attempt, job: jobs.Job, before: Edition | None) -> None:
        with self.lock:
            if self.attempt is not attempt:
                return
            self.attempt = None
            loader._files[self.kernel_id] = str(job.filename), self.path
            failed = self.settling.failed
            served = self._adopt()
            live = self.live
            current = None if live is None else live.current
            if current is not None and current.source.text == job.text:
                self.error = None
                self.settling.show({**attempt.content, **served})
            elif current is not None and current.version.restores is None and current.source.filename == job.filename:
                self.settling.tried = None  # a load that had read the file before it changed came between
                return
            else:  # the user has gone back, unloaded the id, or loaded another text
                self.settling.show(attempt.content)
                return
        if failed and current is before:
            event = ReloadEvent("recovered", self.kernel_id, current.number, job.language.name, current.version.kernels)
            with self.watch.acting():
                events.tell(loader, event)

    def _failed(self, attempt: _Attempt, error: Exception) -> None:
        with self.lock:
            if self.attempt is attempt:
                if attempt.data is not None and attempt.language is not None:
                    self._mention(attempt.language, attempt.data)
                self.failure = {**self._read()[1], **attempt.content}, parked(error)
        self.watch.poke()

    def _drop(self, attempt: _Attempt) -> None:
        if attempt.thread is not None:
            process.abandon(attempt.thread)
        loader = self.watch.reference()
        if loader is not None:
            loader._waiting.take(self.kernel_id, attempt)

    # --- telling ---------------------------------------------------------------------------------------------

    def tell(self) -> None:
        """Tell of a failure, if the content that has failed was quiet for long enough."""
        with self.lock:
            if self.failure is None or self.settling.left(self.watch.clock(), error=True) > 0:
                return
            (content, error), self.failure, self.attempt = self.failure, None, None
            self.settling.show(content, failed=True)
            self.error = error
        loader = self.watch.loader()
        if loader is not None:
            with self.watch.acting():
                if self.live is None and self.kernel_id in loader:  # the error is not that of the text which has the id
                    events.tell(loader, ReloadEvent("failed", self.kernel_id, None, error=error()))
                else:
                    publishing.failed(loader, self.kernel_id, error())
            self.watch.show(error())

    def stop(self) -> threading.Thread | None:
        """Drop what is under way; returns the thread that ends because of it."""
        with self.lock:
            attempt, self.attempt, self.failure = self.attempt, None, None
            self.changed.notify_all()
        if attempt is None:
            return None
        self._drop(attempt)
        return attempt.thread

    # --- the id ----------------------------------------------------------------------------------------------

    def _adopt(self) -> Mapping[str, object]:
        """Take what serves the id for known, and return what its files held when it was built."""
        live = self.live
        edition = None if live is None else live.current
        if edition is None:
            return {}
        self._edition = weakref.ref(edition)
        files: Mapping[str, object] = getattr(edition.language, "files", lambda built: {})(edition.built)
        self.beside = frozenset(files)
        text = edition.source.text.encode("utf-8", "surrogatepass")
        self._mention(edition.language, text, edition.source.options)
        return {**files, self.path: key.content(text)}

    def _mention(self, language: Language, text: bytes, options: Mapping[str, Any] | None = None) -> None:
        """Let files count that a text may mean: a header that is missing may appear, or another one hide it."""
        if hasattr(language, "mentions"):
            self.beside |= frozenset(language.mentions(self.path, text, options or {})) - {self.path}
