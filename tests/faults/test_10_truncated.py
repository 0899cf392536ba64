"""Row 10: whatever happened to a file of the cache: one warning, a miss, and it works again."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import pytest

from cachekit import NOBODY, Child, data_of, entry_file, key_of, one_warning, posix
from rekernel.objcache import ObjectCache

K = key_of("k")
DATA = data_of("k")


def _cut(path: Path, length: int) -> None:
    with path.open("r+b") as stream:
        stream.truncate(length)


def _flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def _as(path: Path, make) -> None:
    path.unlink()
    make(path)


def _full_directory(path: Path) -> None:
    (path / "a" / "b").mkdir(parents=True)
    (path / "a" / "c").write_text("")


DAMAGE = {
    "cut to nothing": lambda p: _cut(p, 0),
    "cut inside the head": lambda p: _cut(p, 50),
    "cut in half": lambda p: _cut(p, p.stat().st_size // 2),
    "cut by 100 bytes": lambda p: _cut(p, p.stat().st_size - 100),
    "cut by a byte": lambda p: _cut(p, p.stat().st_size - 1),
    "a hole as long as it was": lambda p: (_cut(p, 0), os.truncate(p, len(DATA) + 200)),
    "longer by a byte": lambda p: p.write_bytes(p.read_bytes() + b"x"),
    "a bit in the head": lambda p: _flip(p, 3),
    "a bit in the lengths": lambda p: _flip(p, 20),
    "a bit in the digest": lambda p: _flip(p, 80),
    "a bit in the manifest": lambda p: _flip(p, 95),
    "a bit in the data": lambda p: _flip(p, -10),
    "something else": lambda p: p.write_bytes(b"\x7fELF" + bytes(5000)),
    "an entry of another key": lambda p: shutil.copy(p.parent / "other", p),
    "a directory": lambda p: _as(p, Path.mkdir),
    "a full directory": lambda p: _as(p, _full_directory),
    "a dangling link": lambda p: _as(p, lambda q: q.symlink_to("nowhere")),
    "a link to a whole entry": lambda p: (p.rename(p.parent / "x"), p.symlink_to(p.parent / "x")),
    "a link to itself": lambda p: _as(p, lambda q: q.symlink_to(q)),
    "a pipe": lambda p: _as(p, os.mkfifo),
    "one that others can write": lambda p: p.chmod(0o666),
}


@posix
@pytest.mark.parametrize("row", DAMAGE)
def test_a_damaged_entry_is_a_warning_a_miss_and_then_works(tmp_path, row):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(key_of("other"), {}, data_of("other"))
    cache.publish(K, {"flags": []}, DATA)
    path = entry_file(cache, K)
    shutil.copy(entry_file(cache, key_of("other")), path.parent / "other")
    DAMAGE[row](path)

    with one_warning("damaged"):
        assert cache.lookup(K) is None
        assert cache.why(K) == "damaged"
        assert cache.lookup(K) is None
        assert cache.why(K) == "new"  # it was taken out: no loop
    assert cache.publish(K, {"flags": []}, DATA)
    assert cache.lookup(K).data == DATA
    assert cache.stats.damaged == 1


def unreadable(directory: str) -> tuple[str, bool]:
    os.mkdir(directory, 0o700)
    cache = ObjectCache(os.path.join(directory, "cache"))
    cache.publish(K, {}, DATA)
    entry_file(cache, K).chmod(0)
    with one_warning("cannot be read"):
        assert cache.lookup(K) is None
        why = cache.why(K)
        assert cache.publish(K, {}, DATA)
        good = cache.lookup(K).data == DATA
    shutil.rmtree(directory)
    return why, good


@posix
def test_an_entry_without_the_right_to_read(tmp_path):
    directory = f"/tmp/rekernel-test-{os.getpid()}" if os.geteuid() == 0 else str(tmp_path / "x")
    assert Child(unreadable, directory, user=NOBODY).result() == ("unreadable", True)


@posix
def test_damage_that_cannot_be_repaired_is_no_loop(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    entry_file(cache, K).write_bytes(b"")

    def fails(*_, **__):
        raise OSError(30, "Read-only file system")

    for name in ("unlink", "replace", "rename", "mkdir"):
        monkeypatch.setattr(os, name, fails)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert cache.lookup(K) is None
            assert not cache.publish(K, {}, DATA)
    assert len(caught) == 2  # one for reading, one for writing


OTHERS = ["ledger", "CACHEDIR.TAG", "locks", "tmp", "objects", f"objects/{K[0]}", f"objects/{K[0]}/{K[1]}"]


@pytest.mark.parametrize("kind", ["empty file", "file", "link", "missing", "directory"])
@pytest.mark.parametrize("name", OTHERS)
def test_anything_else_in_the_directory_can_be_damaged_too(tmp_path, name, kind):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    path = Path(cache.directory, name)
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    if kind.endswith("file"):
        path.write_bytes(b"" if kind == "empty file" else b"nonsense\n" * 9)
    elif kind == "link":
        path.symlink_to("nowhere")
    elif kind == "directory":
        path.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for again in (cache, ObjectCache(tmp_path / "cache")):
            with again.building(K), again.workdir() as work:
                assert os.path.isdir(work)
                found = again.lookup(K)
                assert found is None or found.data == DATA
                published = again.publish(K, {}, DATA)
            assert again.lookup(K) is not None or not published
    assert len(caught) <= 4
    if kind in ("missing", "directory"):
        assert published
