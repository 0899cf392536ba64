"""Row 10 for C++ texts: a damaged entry is built again with one warning, and nothing damaged is ever loaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cachekit import one_warning, posix
from cppkit import load_with, needs_cpp

pytestmark = [posix, needs_cpp]

TEXT = "int f(int n) { return n + 40; }\nint other() { return 1; }\n"


def entry(directory: Path) -> Path:
    (found,) = (path for path in (directory / "objects").rglob("*") if path.is_file())
    return found


def flip(position):
    def deed(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[position] ^= 0x20
        path.write_bytes(content)

    return deed


DAMAGE = {
    "empty": lambda p: p.write_bytes(b""),
    "half": lambda p: os.truncate(p, p.stat().st_size // 2),
    "100 bytes less": lambda p: os.truncate(p, p.stat().st_size - 100),
    "one byte more": lambda p: p.write_bytes(p.read_bytes() + b"\0"),
    "a bit of the library": flip(-500),
    "a bit of the manifest": flip(120),
    "a bit of the head": flip(5),
    "a directory": lambda p: (p.unlink(), p.mkdir()),
    "a dangling link": lambda p: (p.unlink(), p.symlink_to("nowhere")),
}


@pytest.mark.parametrize("row", DAMAGE)
def test_a_damaged_entry_is_one_warning_and_a_build(tmp_path, row):
    directory = tmp_path / "cache"
    load_with(directory).load(TEXT, "k", optlevel="0")
    DAMAGE[row](entry(directory))
    loader = load_with(directory)
    with one_warning("damaged"):
        module = loader.load(TEXT, "k", optlevel="0")
    info = loader.info("k")
    assert (module.f(2), module.other(), info.from_cache, info.rebuilt_because) == (42, 1, False, "damaged")
    again = load_with(directory)
    assert again.load(TEXT, "k", optlevel="0").f(2) == 42
    assert again.info("k").from_cache
