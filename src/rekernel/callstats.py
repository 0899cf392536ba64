"""What a handle has counted and timed, as its ``stats`` tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rekernel import _native

__all__ = ["stats_of"]


def stats_of(handle: _native.Handle) -> dict[str, int | float]:
    """Return counts and, if calls were timed, their times in seconds."""
    found: dict[str, int | float] = {"calls": handle.calls, "failures": handle.failures}
    times = handle._times
    if times is not None:
        count, total, least, p50, p95, p99, most = times
        found |= {"timed": count, "seconds": total, "mean": total / count, "min": least}
        found |= {"p50": p50, "p95": p95, "p99": p99, "max": most}
    return found
