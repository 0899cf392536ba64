"""What is being built on this thread: told to the log, shown while it lasts, refused when rekernel is frozen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rekernel import freezing, journal, progress
from rekernel.values import LogEvent

if TYPE_CHECKING:
    from rekernel.source import Source
    from rekernel.why import Reason

__all__ = ["Work", "compiling", "current", "doing", "found", "refuse"]


@dataclass(frozen=True)
class Work:
    """A version on its way."""

    kernel_id: str
    number: int
    source: Source
    tell: Callable[[LogEvent], None]
    """Where its loader wants to hear of it."""


_mine = threading.local()


def current() -> Work | None:
    """Return what the asking thread builds, or None: a just-in-time compiler that nobody's loader asked."""
    work: Work | None = getattr(_mine, "work", None)
    return work


@contextmanager
def doing(work: Work | None) -> Iterator[None]:
    """Build for this version inside."""
    before = current()
    try:
        _mine.work = work
        yield
    finally:
        _mine.work = before


def refuse(name: str, language: str, reason: Reason, *, key: str | None = None, advice: str | None = None) -> None:
    """Raise `FrozenError` if nothing may be compiled. `name` is said where no loader has asked."""
    if freezing.refused():
        freezing.looked(name, language, key, reason)
        work = current()
        raise freezing.error(
            name if work is None else work.kernel_id, language, reason.field, reason.said, key=key, advice=advice,
            version=None if work is None else work.number, source=None if work is None else work.source,
        )  # fmt: skip


def found(name: str, language: str, key: str) -> None:
    """Tell that something came out of the cache."""
    freezing.looked(name, language, key, None)
    _tell("from cache", name, language, from_cache=True)


@contextmanager
def compiling(
    name: str, language: str, reason: Reason, *, key: str | None = None, advice: str | None = None
) -> Iterator[None]:
    """Compile inside: `name`, which is all that is known where no loader has asked."""
    refuse(name, language, reason, key=key, advice=advice)
    _tell("compiling", name, language, rebuilt_because=reason.said)
    began = time.perf_counter()
    try:
        with progress.shown(_title(name, language)):
            yield
    except Exception as error:
        if current() is None:  # a loader tells of failures by itself
            said = str(error)
            _tell("failed", name, language, time.perf_counter() - began, error=said, end=said.split("\n")[0])
        raise
    _tell("compiled", name, language, time.perf_counter() - began, rebuilt_because=reason.said)


def _title(name: str, language: str) -> str:
    work = current()
    if work is None:
        return f"{name} ({language})"
    part = "" if name in ("", work.kernel_id) else f".{name}"
    return f"{work.kernel_id}{part} v{work.number} ({language})"


def _tell(
    kind: str, name: str, language: str, seconds: float = 0.0, *, end: str = "", error: str | None = None,
    from_cache: bool = False, rebuilt_because: str | None = None,
) -> None:  # fmt: skip
    work = current()
    took = f" in {seconds * 1e3:.1f} ms" if seconds else ""
    end = end or (f"{rebuilt_because}" if rebuilt_because and kind == "compiling" else "")
    message = f"{_title(name, language)}: {kind}{took}{': ' if end else ''}{end}"
    kernel_id, number = (name, None) if work is None else (work.kernel_id, work.number)
    event = journal.made(
        kind, kernel_id, number, language, seconds=seconds, from_cache=from_cache, rebuilt_because=rebuilt_because,
        message=message, error=error,
    )  # fmt: skip
    (journal.tell if work is None else work.tell)(event)
