"""Telling what happened: log lines and the user's callbacks, always outside all locks."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from rekernel.values import ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

log = logging.getLogger("rekernel")
log.addHandler(logging.NullHandler())

_keys = itertools.count()


def next_key() -> int:
    """Return a key for a callback."""
    return next(_keys)


def tell(loader: KernelLoader, event: ReloadEvent) -> None:
    """Log an event and hand it to the loader's callbacks; what a callback raises is logged and stops nothing."""
    level = logging.WARNING if event.kind == "failed" else logging.INFO
    if log.isEnabledFor(level):
        log.log(level, "%s", _line(event), extra={"rekernel": event})
    for callback in list(loader._callbacks.values()):
        try:
            callback(event)
        except Exception:
            log.exception("an on_reload callback failed for %s", event.kernel_id)


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
