"""What lies in a cache directory, entry by entry, for people: a look that changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rekernel import entryfile
from rekernel.entryfile import DamagedError
from rekernel.objstore import FileStore

__all__ = ["BESIDE", "Listed", "beside", "damaged", "listed"]

BESIDE = {
    "pch": "precompiled headers", "probes": "what compilers can do", "kin": "earlier keys", "tmp": "running builds",
}  # fmt: skip
"""Directories beside the entries."""


@dataclass(frozen=True)
class Listed:
    """An entry, as far as it tells what it is."""

    key: str
    slot: int
    size: int
    """Bytes, in whole blocks."""
    created: float
    """Seconds since the epoch."""
    used: float
    """When it was last used."""
    kernels: tuple[str, ...] = ()
    language: str = ""
    """Of the text; ``jit`` for a kernel that a JIT was given; empty where the entry does not tell."""
    compiler: str = ""
    trouble: str = ""
    """Why the entry cannot be read."""


def listed(directory: str) -> list[Listed]:
    """Return all entries, the last used first. Heads and manifests are read, and no digest is checked."""
    store, found = FileStore(directory), []
    for stamp, size, key, slot in sorted(store.items(), reverse=True):
        try:
            created, manifest = _manifest(store, key, slot)
        except (OSError, DamagedError, ValueError) as error:
            found.append(Listed(key, slot, size, 0.0, stamp / 1e9, trouble=str(error)))
            continue
        rows = [row["kernel"] for row in manifest.get("entries", ()) if isinstance(row, dict) and "kernel" in row]
        names = dict.fromkeys([*(row.get("name", "?") for row in rows), *manifest.get("kernels", ())])
        language = rows[0].get("language", "") if rows else "jit" if manifest.get("kernels") else ""
        made, used = created / 1e9, max(stamp, created) / 1e9
        found.append(Listed(key, slot, size, made, used, tuple(names), language, _compiler(manifest)))
    return found


def damaged(directory: str) -> tuple[int, list[str]]:
    """Return how many entries there are, and one line for each whose size or digest is wrong. Takes none out."""
    store, count, found = FileStore(directory), 0, []
    for item in store.items():
        count += 1
        try:
            blob = store.read(item.key, item.slot)
            if blob is not None:
                entryfile.unpack(item.key, blob)
        except (OSError, DamagedError) as error:
            found.append(f"{item.key}.{item.slot}: {error}")
    return count, found


def beside(directory: str) -> dict[str, int]:
    """Return the bytes of what lies beside the entries, by the directory's name."""
    found = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name not in ("objects", "locks") and os.path.isdir(path):
            found[name] = sum(_size(os.path.join(place, file)) for place, _, files in os.walk(path) for file in files)
    return found


def _manifest(store: FileStore, key: str, slot: int) -> tuple[int, Mapping[str, Any]]:
    first = entryfile.head(store.read(key, slot, entryfile.HEAD_SIZE) or b"")
    text = (store.read(key, slot, entryfile.HEAD_SIZE + first.manifest) or b"")[entryfile.HEAD_SIZE :]
    manifest = json.loads(text)
    if not isinstance(manifest, dict):
        raise DamagedError("its manifest is no table")
    return first.created, manifest


def _compiler(manifest: Mapping[str, Any]) -> str:
    fields, command = manifest.get("fields", {}), manifest.get("command") or ["?"]
    version = fields.get("version") or fields.get("nvrtc") or ""
    if isinstance(version, list):
        return f"nvrtc {'.'.join(map(str, version))}"
    words = str(version).split(" version ")
    return f"{os.path.basename(command[0])}{f' {words[1].split()[0]}' if len(words) > 1 else ''}"


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
