"""Telling what happened: log lines and the user's callbacks, always outside all locks."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from rekernel import journal
from rekernel.journal import log
from rekernel.values import LogEvent, ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

_keys = itertools.count()


def next_key() -> int:
    """Return a key for a callback."""
    return next(_keys)


def tell(loader: KernelLoader, event: ReloadEvent) -> None:
    """Log an event and hand it to the loader's callbacks; what a callback raises is logged and stops nothing."""
    note(loader, _noted(event))
    for callback in list(loader._callbacks.values()):
        try:
            callback(event)
        except Exception:
            log.exception("an on_reload callback failed for %s", event.kernel_id)


def note(loader: KernelLoader, event: LogEvent) -> None:
    """Put an event into the loader's log and into that of the process."""
    loader._log.append(event)
    journal.tell(event)


def teller(loader: KernelLoader) -> Callable[[LogEvent], None]:
    """Return what notes events for a loader and does not keep it alive."""
    reference = weakref.ref(loader)

    def tell(event: LogEvent) -> None:
        alive = reference()
        if alive is not None:
            note(alive, event)

    return tell


def _noted(event: ReloadEvent) -> LogEvent:
    return journal.made(
        "swapped" if event.kind == "loaded" else event.kind, event.kernel_id, event.version, event.language,
        seconds=event.seconds, from_cache=event.from_cache, rebuilt_because=event.rebuilt_because,
        message=_line(event), error=None if event.error is None else str(event.error) or type(event.error).__name__,
    )  # fmt: skip


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its class where it says nothing."""
    return str(error).split("\n")[0] or type(error).__name__


def _line(event: ReloadEvent) -> str:
    number = "" if event.version is None else f" v{event.version}"
    parts = [f"{event.kernel_id}{number} {event.kind}"]
    if event.kind in ("loaded", "restored"):
        parts.append(f"in {event.seconds * 1e3:.1f} ms: {', '.join(event.kernels)}")
    if event.anew:
        parts.append(f"began anew: {', '.join(event.anew)}")
    parts += event.notes
    if event.error is not None:
        parts.append(first_line(event.error))
    return "; ".join(parts)
