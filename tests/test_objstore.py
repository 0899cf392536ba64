"""Stores: both do the same; files appear whole, and their sum is known."""

from __future__ import annotations

import errno
import os

import pytest

from cachekit import files_in, key_of, together
from rekernel import files, ledger
from rekernel.entryfile import DamagedError
from rekernel.ledger import RECORD, Ledger
from rekernel.objstore import FileStore, MemoryStore

K, L = key_of("k"), key_of("l")


@pytest.fixture(params=["files", "memory"])
def store(request, tmp_path):
    return FileStore(str(tmp_path)) if request.param == "files" else MemoryStore()


def test_what_is_written_is_read(store):
    assert store.read(K, 0) is None
    store.write(K, 0, b"one")
    store.write(K, 1, b"two")
    assert (store.read(K, 0), store.read(K, 1), store.read(L, 0)) == (b"one", b"two", None)
    assert store.read(K, 0, 2) == b"on"
    store.write(K, 0, b"again")
    assert store.read(K, 0) == b"again"


def test_what_is_discarded_is_gone(store):
    store.write(K, 0, b"one")
    store.discard(K, 0)
    store.discard(L, 0)
    assert store.read(K, 0) is None
    assert list(store.items()) == []


def test_items_know_size_and_use(store):
    store.write(K, 0, b"x" * 5000)
    store.write(L, 3, b"x")
    first, second = sorted(store.items())
    assert (first.key, first.slot, first.size) == (K, 0, 8192)
    assert (second.key, second.slot, second.size) == (L, 3, 4096)
    store.used(K, 0)
    assert [item.key for item in sorted(store.items())] == [L, K]
    store.used(key_of("missing"), 0)


def test_the_sum_is_returned(store):
    store.counted(0)
    store.write(K, 0, b"x")
    assert store.write(L, 0, b"x" * 5000) == 4096 + 8192


def test_a_new_directory_asks_for_a_count(tmp_path):
    store = FileStore(str(tmp_path))
    assert store.write(K, 0, b"x") is None
    store.counted(4096)
    assert store.write(K, 1, b"x") == 8192
    assert store.write(K, 1, b"xx") == 8192  # in place of the one before
    assert FileStore(str(tmp_path)).write(K, 2, b"x") == 12288


def test_nothing_but_entries_stays(tmp_path):
    store = FileStore(str(tmp_path))
    store.write(K, 0, b"x")
    assert files_in(tmp_path) == sorted(["ledger", f"objects/{K[0]}/{K[1]}/{K}.0"])


@pytest.mark.parametrize("content", [b"", b"+", b"nonsense and more than one record", b"\0" * 100, b"ffff\n" * 9])
def test_a_damaged_sum_asks_for_a_count(tmp_path, content):
    (tmp_path / "ledger").write_bytes(content)
    one = Ledger(str(tmp_path / "ledger"), str(tmp_path))
    assert one.add(5) is None
    one.reset(10)
    assert one.add(5) == 15
    assert one.add(-3) == 12


def test_a_long_sum_is_shortened_and_sometimes_counted_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RECORDS", 10)
    monkeypatch.setattr(ledger, "CARRIED", 3)
    one = Ledger(str(tmp_path / "ledger"), str(tmp_path))
    one.reset(0)
    sums = [one.add(1) for _ in range(45)]
    first = sums.index(None)
    assert sums[:first] == list(range(1, first + 1))
    assert 30 < first < 45
    assert os.path.getsize(tmp_path / "ledger") < 20 * RECORD


def test_several_processes_have_one_sum(tmp_path):
    Ledger(str(tmp_path / "ledger"), str(tmp_path)).reset(0)

    def work(number):
        mine = Ledger(str(tmp_path / "ledger"), str(tmp_path))
        return max(mine.add(1) for _ in range(100))

    assert max(together(4, work)) == 400


def test_a_removed_directory_is_made_again(tmp_path):
    store = FileStore(str(tmp_path / "cache"))
    store.write(K, 0, b"x")
    os.rename(tmp_path / "cache", tmp_path / "gone")
    assert store.read(K, 0) is None
    store.write(K, 0, b"y")
    assert store.read(K, 0) == b"y"
    assert os.stat(tmp_path / "cache").st_mode & 0o777 == 0o700


def test_a_symbolic_link_is_no_entry(tmp_path):
    store = FileStore(str(tmp_path))
    store.write(K, 0, b"x")
    os.symlink(store.path(K, 0), store.path(K, 1))
    with pytest.raises(DamagedError, match="link"):
        store.read(K, 1)


def test_a_pipe_is_no_entry_and_nobody_waits_for_it(tmp_path):
    store = FileStore(str(tmp_path))
    store.write(K, 0, b"x")
    os.mkfifo(store.path(K, 1))
    with pytest.raises(DamagedError, match="no file"):
        store.read(K, 1)


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    store = FileStore(str(tmp_path))
    true = os.write

    def full(descriptor, data):
        if len(data) < 3000:
            raise OSError(errno.ENOSPC, "No space left on device")
        return true(descriptor, data[:2000])

    monkeypatch.setattr(files.os, "write", full)
    with pytest.raises(OSError, match="No space"):
        store.write(K, 0, b"x" * 5000)
    assert files_in(tmp_path) == []


def test_an_interrupt_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FileStore(str(tmp_path)).write(K, 0, b"x")
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("times", [1, 3])
def test_trouble_that_passes_is_not_noticed(times):
    attempts = []

    def action():
        attempts.append(1)
        if len(attempts) <= times:
            raise OSError(errno.ESTALE, "Stale file handle")
        return "done"

    assert files.persist(action) == "done"


def test_trouble_that_stays_is_told():
    attempts = []

    def action():
        attempts.append(1)
        raise OSError(errno.ESTALE, "Stale file handle")

    with pytest.raises(OSError, match="Stale"):
        files.persist(action)
    assert len(attempts) == 4
