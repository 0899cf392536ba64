"""Counting what happens through a cache, and why something was built again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from rekernel import locks

KEPT = 1024  # keys whose last miss is remembered, and different reasons that are counted


@dataclass(frozen=True)
class CacheStats:
    """What happened through one cache object."""

    hits: int = 0
    misses: int = 0
    published: int = 0
    evicted: int = 0
    damaged: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many misses for which reason: ``new``, ``header changed: /home/me/a.h``, ``damaged``, ..."""


class Counters:
    """The numbers behind `CacheStats`, for all threads."""

    def __init__(self) -> None:
        self._lock = locks.rlock()
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def add(self, **amounts: int) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts.update(amounts)

    def hit(self, key: str, again: bool) -> None:
        """Count a hit. At the second look it takes the place of the miss at the first."""
        with self._lock:
            self._counts["hits"] += 1
            reason = self._last.pop(key, None)
            if again and reason is not None:
                self._counts["misses"] -= 1
                self._reasons[reason] -= 1

    def missed(self, key: str, reason: str, again: bool) -> None:
        """Count a miss, once for both looks."""
        with self._lock:
            if again and key in self._last:
                return
            if len(self._reasons) >= KEPT and reason not in self._reasons:
                reason = "other"
            self._counts["misses"] += 1
            self._reasons[reason] += 1
            self._last.pop(key, None)
            if len(self._last) >= KEPT:
                self._last.pop(next(iter(self._last)))
            self._last[key] = reason

    def why(self, key: str) -> str | None:
        """Return the reason of a key's last miss, or None when the last look was no miss."""
        with self._lock:
            return self._last.get(key)

    def stats(self) -> CacheStats:
        """Return the numbers as they are now."""
        with self._lock:
            return CacheStats(reasons=MappingProxyType(dict(+self._reasons)), **self._counts)
