"""The logger of the package, and what it is told."""

from __future__ import annotations

import logging
import time
from typing import Any

from rekernel.values import LogEvent

__all__ = ["log", "made", "tell"]

log = logging.getLogger("rekernel")
log.addHandler(logging.NullHandler())


def made(kind: str, kernel_id: str, version: int | None, language: str | None, **rest: Any) -> LogEvent:
    """Return an event of now."""
    return LogEvent(time.time(), kind, kernel_id, version, language, **rest)


def tell(event: LogEvent) -> None:
    """Log an event; a record has it as ``record.rekernel``."""
    level = logging.WARNING if event.kind == "failed" else logging.INFO
    if log.isEnabledFor(level):
        log.log(level, "%s", event.message or str(event), extra={"rekernel": event})
