"""One cache entry as bytes: a head with lengths and digest, a manifest in JSON, the data.

Pure. The digest stands in front and also covers the key, so that an entry under another name is damaged, too.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = 1
MAGIC = b"rkentry\n"
_HEAD = struct.Struct("<8sIIQQQ16s32s")
HEAD_SIZE = _HEAD.size


class DamagedError(Exception):
    """Bytes that are no whole entry of this key."""


@dataclass(frozen=True)
class Head:
    """What the first bytes of an entry say."""

    variant: bytes
    """Tells entries of one key apart: 16 bytes."""
    created: int
    """When it was made, in nanoseconds since 1970."""
    manifest: int
    """The length of the manifest in bytes."""
    data: int
    """The length of the data in bytes."""
    digest: bytes
    """Of key, head, manifest and data: 32 bytes."""

    @property
    def size(self) -> int:
        """The length of the whole entry in bytes."""
        return HEAD_SIZE + self.manifest + self.data


@dataclass(frozen=True)
class Unpacked:
    """A whole entry whose digest was right."""

    head: Head
    manifest: dict[str, Any]
    data: bytes


def pack(key: str, variant: bytes, created: int, manifest: Mapping[str, Any], data: bytes) -> bytes:
    """Return the bytes of an entry."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode("ascii")
    lengths = (len(text), len(data))
    digest = _digest(key, variant, created, text, data)
    return _HEAD.pack(MAGIC, FORMAT, 0, *lengths, created, variant, digest) + text + data


def head(blob: bytes) -> Head:
    """Read the head; whether the rest fits is not known yet."""
    if len(blob) < HEAD_SIZE:
        raise DamagedError(f"{len(blob)} bytes are too few")
    magic, number, zero, manifest, data, created, variant, digest = _HEAD.unpack_from(blob)
    if magic != MAGIC or zero:
        raise DamagedError("it does not begin like an entry")
    if number != FORMAT:
        raise DamagedError(f"it has format {number}, not {FORMAT}")
    return Head(variant, created, manifest, data, digest)


def unpack(key: str, blob: bytes) -> Unpacked:
    """Return what an entry holds, or raise `DamagedError`: by size first, then by digest."""
    first = head(blob)
    if len(blob) != first.size:
        raise DamagedError(f"it has {len(blob)} bytes instead of {first.size}")
    middle = HEAD_SIZE + first.manifest
    text, data = blob[HEAD_SIZE:middle], blob[middle:]
    if _digest(key, first.variant, first.created, text, data) != first.digest:
        raise DamagedError("its digest is wrong")
    try:
        manifest = json.loads(text)
    except ValueError as error:  # only from a writer with a fault of its own: the digest was right
        raise DamagedError(f"its manifest cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise DamagedError("its manifest is no table")
    return Unpacked(first, manifest, data)


def _digest(key: str, variant: bytes, created: int, text: bytes, data: bytes) -> bytes:
    prefix = f"{FORMAT} {key} {created} {len(text)} {len(data)}\n".encode()
    state = hashlib.blake2b(prefix, digest_size=32)
    for part in (variant, text, data):
        state.update(part)
    return state.digest()
