"""The versions of an id as a view lists them."""

from __future__ import annotations

import difflib
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

_MOST, _LINES = 8, 20


def shown_versions(loader: KernelLoader, kernel_id: str) -> dict[str, Any]:
    """Return the newest versions of an id, newest first, each with what it would change: plain data for a page."""
    history = loader.history(kernel_id)
    live = next((version for version in history if version.live), None)
    return {
        "id": kernel_id,
        "versions": [
            {
                "number": version.number,
                "live": version.live,
                "restores": version.restores,
                "when": time.strftime("%H:%M:%S", time.localtime(version.loaded_at)),
                "diff": "" if live is None or version.live else _changes(live.source, version.source),
            }
            for version in history[: -_MOST - 1 : -1]
        ],
    }


@lru_cache(maxsize=64)  # asked for with every picture
def _changes(old: str, new: str) -> str:
    """The lines that differ, without the lines around them."""
    rows = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]
    rows = [row for row in rows if not row.startswith("@@")]
    return "\n".join(rows if len(rows) <= _LINES else [*rows[:_LINES], "..."]) or "the same text"
