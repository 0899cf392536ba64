"""A version as files for other programs, by the verb of its language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rekernel.errors import JitError
from rekernel.languages import Request, languages
from rekernel.live import Live

__all__ = ["export"]


def export(live: Live, jit: Any, directory: Path, name: str | None) -> Path:
    """Write the version of an id that serves now as a module; JitError where its language has no way to."""
    edition = live.must_see()
    way = getattr(edition.language, "export", None)
    if way is None:
        able = ", ".join(row.name for row in languages().values() if hasattr(row, "export")) or "none"
        raise JitError(
            f"{live.kernel_id!r} cannot be exported: its kernels run in {edition.source.language} itself, and an "
            f"exported module runs alone; languages that can be exported: {able}"
        )
    request = Request(edition.source, edition.draft, live.kernel_id, edition.number, jit=jit)
    path: Path = way(edition.built, request, directory, name)
    return path
