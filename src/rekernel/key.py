"""The digest under which something built is kept: all that can change the result, labelled and delimited.

Pure: the same fields give the same digest in every process, whatever the hash seed, order or directory.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from enum import Enum
from pathlib import PurePath

__all__ = ["SCHEMA", "content", "digest"]

SCHEMA = 1
"""Part of every key. Raise it when the same fields begin to mean something else."""


def digest(fields: Iterable[tuple[str, object]]) -> str:
    """Return the key of labelled fields: 64 hexadecimal digits.

    Each value carries its type and length, so that ``("ab", "c")`` and ``("a", "bc")``, ``1``, ``True``,
    ``1.0`` and ``"1"`` are all different. A list equals a tuple; the order of labels, of a mapping and of a
    set means nothing. A value whose text could change between processes (any object that is not listed in
    `_encode`) is a TypeError: a `repr` may hold an address.

    >>> digest([("text", "int f();"), ("flags", ("-O3",))]) == digest([("flags", ["-O3"]), ("text", "int f();")])
    True
    >>> digest([("text", "int f();")]) == digest([("code", "int f();")])
    False
    """
    encoded: dict[str, bytes] = {}
    for label, value in fields:
        if label in encoded:
            raise ValueError(f"two fields are called {label!r}")
        try:
            encoded[label] = _encode(value)
        except TypeError as error:
            raise TypeError(f"field {label!r}: {error}") from None
    state = hashlib.blake2b(_encode(("rekernel", SCHEMA, len(encoded))), digest_size=32)
    for label in sorted(encoded):
        state.update(_encode(label))
        state.update(encoded[label])
    return state.hexdigest()


def content(data: bytes) -> str:
    """Return the digest of plain bytes: 64 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def _tagged(tag: bytes, payload: bytes) -> bytes:
    return tag + struct.pack("<Q", len(payload)) + payload


def _joined(tag: bytes, parts: Iterable[bytes]) -> bytes:
    return _tagged(tag, b"".join(parts))


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")  # file names may hold lone surrogates


def _record(value: object) -> bytes:
    pairs = [(f.name, getattr(value, f.name)) for f in fields_of(value)]  # type: ignore[arg-type]
    return _joined(b"r", [_encode(type(value).__qualname__), _encode(dict(pairs))])


# The first row that fits counts: bool before int, because True is an int, and enumerations before str and int.
_ROWS: tuple[tuple[type | tuple[type, ...], Callable[..., bytes]], ...] = (
    (type(None), lambda v: _tagged(b"n", b"")),
    (Enum, lambda v: _joined(b"e", [_encode(type(v).__qualname__), _encode(v.name)])),
    (bool, lambda v: _tagged(b"t", b"1" if v else b"0")),
    (int, lambda v: _tagged(b"i", b"%d" % v)),
    (float, lambda v: _tagged(b"f", struct.pack("<d", v))),  # by bits: -0.0 is not 0.0, NaN equals itself
    (complex, lambda v: _tagged(b"c", struct.pack("<dd", v.real, v.imag))),
    (str, lambda v: _tagged(b"s", _text(v))),
    ((bytes, bytearray, memoryview), lambda v: _tagged(b"b", bytes(v))),
    (PurePath, lambda v: _tagged(b"p", _text(str(v)))),
    ((tuple, list), lambda v: _joined(b"l", map(_encode, v))),
    (Mapping, lambda v: _joined(b"m", sorted(_encode(k) + _encode(x) for k, x in v.items()))),
    (Set, lambda v: _joined(b"u", sorted(map(_encode, v)))),
)


def _encode(value: object) -> bytes:
    for kind, encode in _ROWS:
        if isinstance(value, kind):
            return encode(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    raise TypeError(f"a {type(value).__name__} has no text that is the same in every process")
