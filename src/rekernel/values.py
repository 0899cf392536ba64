"""Frozen values that tell the user about ids, versions and reloads."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekernel.kernel import Kernel

__all__ = ["KernelInfo", "LoaderStats", "ReloadEvent", "Version"]


@dataclass(frozen=True)
class Version:
    """One successful load of one id."""

    kernel_id: str
    number: int
    """Counted from 1 for each id; never goes backwards."""
    source: str
    """The text, exactly as it was given."""
    options: Mapping[str, Any]
    kernels: tuple[str, ...]
    loaded_at: float
    """Seconds since the epoch."""
    live: bool = False
    """Whether this version serves the id now."""
    restores: int | None = None
    """The number of the version whose content a rollback, or loading its text again, brought back."""


@dataclass(frozen=True)
class KernelInfo:
    """All that rekernel knows about an id."""

    kernel_id: str
    version: int
    language: str
    source: str
    filename: str | None
    options: Mapping[str, Any]
    kernels: tuple[Kernel, ...]
    skipped: Mapping[str, str]
    """Public functions that are no kernels, with the reason."""
    code: str
    """What was compiled."""
    assembly: str | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """What happened during the load and may surprise (a skipped ``ti.init``)."""
    error: Exception | None
    """The last failed load, until a load succeeds."""
    build_seconds: float
    from_cache: bool
    rebuilt_because: str | None
    depends_on: tuple[str, ...]
    """Ids of the helpers whose kernels, functions or values the text uses."""
    history: tuple[Version, ...]
    """The last 32 versions, oldest first."""

    def diff(self, version: int) -> str:
        """Return a unified diff from the text of `version` to the text of this one."""
        from rekernel.errors import KernelNotFoundError

        for old in self.history:
            if old.number == version:
                rows = difflib.unified_diff(
                    old.source.splitlines(), self.source.splitlines(),
                    f"{self.kernel_id} v{version}", f"{self.kernel_id} v{self.version}", lineterm="",
                )  # fmt: skip
                return "\n".join(rows)
        known = ", ".join(f"v{v.number}" for v in self.history)
        raise KernelNotFoundError(f"{self.kernel_id} has no version {version} in its history; it has {known}")


@dataclass(frozen=True)
class ReloadEvent:
    """What ``loader.on_reload`` tells."""

    kind: str
    """``loaded``, ``rolled back``, ``restored``, ``unloaded``, ``renewed`` or ``failed``."""
    kernel_id: str
    version: int | None
    """The new version's number; for ``failed`` the one that goes on running, or None."""
    language: str | None = None
    kernels: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    """Module-level state that began anew although the version before had it."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    error: Exception | None = None


@dataclass(frozen=True)
class LoaderStats:
    """Counts over the life of a loader."""

    ids: int
    loads: int
    """Successful loads that made a new version, dependents included."""
    unchanged: int
    """Loads that found the live version to be what was asked for."""
    reused: int
    """Versions that came back without being built (rollback, A to B to A)."""
    failures: int
    calls: int
    versions_held: int
    """Versions whose callables are in memory for rollback."""
    languages: Mapping[str, Any] = field(default_factory=dict)
    """What each language counts itself, such as compiled kernels that Taichi keeps until ``ti.reset``."""
