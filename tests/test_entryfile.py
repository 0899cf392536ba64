"""An entry as bytes: whole, or damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachekit import key_of
from rekernel import entryfile
from rekernel.entryfile import HEAD_SIZE, DamagedError, head, pack, unpack

KEY = key_of("k")
BLOB = pack(KEY, b"v" * 16, 7, {"flags": ["-O3"], "name": "ü"}, b"machine code")


def test_what_is_packed_comes_out():
    found = unpack(KEY, BLOB)
    assert found.data == b"machine code"
    assert found.manifest == {"flags": ["-O3"], "name": "ü"}
    assert (found.head.variant, found.head.created) == (b"v" * 16, 7)
    assert found.head.size == len(BLOB)
    assert head(BLOB[:HEAD_SIZE]) == found.head


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text()), st.binary())
def test_any_content_comes_out(manifest, data):
    found = unpack(KEY, pack(KEY, bytes(16), 0, manifest, data))
    assert (found.manifest, found.data) == (manifest, data)


@pytest.mark.parametrize("position", range(len(BLOB)))
def test_a_flipped_bit_is_found_at_any_place(position):
    blob = bytearray(BLOB)
    blob[position] ^= 1 << position % 8
    with pytest.raises(DamagedError):
        unpack(KEY, bytes(blob))


@pytest.mark.parametrize("length", [*range(len(BLOB)), len(BLOB) + 1])
def test_any_other_length_is_found(length):
    with pytest.raises(DamagedError):
        unpack(KEY, (BLOB + b"x")[:length])


def test_an_entry_under_another_key_is_damaged():
    with pytest.raises(DamagedError, match="digest"):
        unpack(key_of("other"), BLOB)


def test_another_format_says_so(monkeypatch):
    monkeypatch.setattr(entryfile, "FORMAT", 2)
    with pytest.raises(DamagedError, match="format 1, not 2"):
        unpack(KEY, BLOB)


def test_a_manifest_that_json_cannot_hold_is_a_type_error():
    with pytest.raises(TypeError):
        pack(KEY, bytes(16), 0, {"a": object()}, b"")
