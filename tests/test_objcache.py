"""The object cache: find, publish, variants, reasons, eviction, and that trouble is only a miss."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import pytest

import rekernel
from cachekit import Child, data_of, entry_file, files_in, key_of, one_warning, posix
from rekernel import files, objcache, objstore, workdirs
from rekernel.errors import RekernelWarning
from rekernel.objcache import AUTO, CacheStats, Entry, ObjectCache

K = key_of("k")


@pytest.fixture
def cache(tmp_path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


def manifest_of(number: int) -> dict:
    """One that differs from others by its headers, as far as the cache can see."""
    return {"headers": {"user": [[f"/a{number}.h", "d", 1, 2, 3, 4]]}, "number": number}


def wants(number: int):
    return lambda manifest: None if manifest["number"] == number else f"header changed: /a{number}.h"


def test_making_one_touches_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    cache = ObjectCache()
    assert repr(cache) == "<ObjectCache AUTO: 0 hits, 0 misses>"
    assert cache.stats == CacheStats()
    assert os.listdir(tmp_path) == []
    assert cache.directory == str(tmp_path / "cache")
    assert repr(cache) == f"<ObjectCache {tmp_path / 'cache'}: 0 hits, 0 misses>"


def test_importing_touches_nothing_and_starts_nothing():
    names = "buildlock cachedir cachestats entryfile files headers key ledger objcache objstore variants workdirs"
    code = (
        "import sys, rekernel\n"
        "seen = []\n"
        "watched = 'os.mkdir os.scandir os.remove subprocess.Popen os.fork _thread.start_new_thread'.split()\n"
        "sys.addaudithook(lambda e, a: seen.append((e, a)) if e in watched else None)\n"
        f"import {', '.join('rekernel.' + name for name in names.split())}\n"
        "print([one for one in seen if 'pycache' not in str(one)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_published_is_found(cache):
    assert cache.lookup(K) is None
    assert cache.why(K) == "new"
    assert cache.publish(K, {"flags": ["-O3"]}, b"code")
    assert cache.lookup(K) == Entry(K, {"flags": ["-O3"]}, b"code")
    assert cache.why(K) is None
    assert cache.stats == CacheStats(hits=1, misses=1, published=1, reasons={"new": 1})


def test_another_object_and_another_process_find_it(cache, tmp_path):
    cache.publish(K, {}, b"code")
    assert ObjectCache(tmp_path / "cache").lookup(K).data == b"code"
    code = (
        f"from rekernel.objcache import ObjectCache; print(ObjectCache({str(tmp_path / 'cache')!r}).lookup({K!r}).data)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "b'code'\n"


@pytest.mark.parametrize("data", [b"", b"x", bytes(3_000_000), bytearray(b"abc"), memoryview(b"abc")])
def test_any_data(cache, data):
    cache.publish(K, {}, data)
    assert cache.lookup(K).data == bytes(data)


@pytest.mark.parametrize("key", ["", "../../x", "k" * 64, "ABCDEF0123456789", K + "/..", "0" * 129, "ab\n" + "0" * 61])
def test_a_key_is_never_a_path(cache, key):
    for use in (cache.lookup, lambda k: cache.publish(k, {}, b""), lambda k: cache.building(k).__enter__()):
        with pytest.raises(ValueError, match="key"):
            use(key)


def test_a_manifest_that_cannot_be_kept_is_the_callers_mistake(cache):
    with pytest.raises(TypeError):
        cache.publish(K, {"a": object()}, b"")


def test_without_a_cache_nothing_is_kept(tmp_path):
    cache = ObjectCache(None)
    assert not cache.publish(K, {}, b"x")
    assert cache.lookup(K) is None
    assert cache.why(K) == "no cache"
    assert cache.directory is None
    assert (cache.prune(), cache.verify().entries) == (0, 0)
    with cache.building(K) as turn, cache.workdir() as path:
        assert not turn.held
        assert os.path.isdir(path)
    assert not os.path.exists(path)


def test_without_a_cache_what_dead_builds_have_left_goes_too(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pid, started, host = workdirs.mark().split("-")
    (tmp_path / f"{objcache.TEMPORARY}{pid}-{int(started) + 1}-{host}-ab").mkdir()
    (tmp_path / "others").mkdir()
    with ObjectCache(None).workdir() as path:
        assert sorted(os.listdir(tmp_path)) == sorted(["others", os.path.basename(path)])


# --- several entries under one key -----------------------------------------------------------------------------


def test_the_first_that_is_valid_is_returned(cache):
    for number in range(3):
        cache.publish(K, manifest_of(number), b"%d" % number)
    for number in (2, 0, 1, 0):
        assert cache.lookup(K, wants(number)).data == b"%d" % number
    assert cache.lookup(K, wants(7)) is None
    assert cache.why(K) == "header changed: /a7.h"
    assert cache.stats.reasons == {"header changed: /a7.h": 1}


def test_the_reason_is_that_of_the_latest(cache):
    for number in (1, 0, 2):
        cache.publish(K, manifest_of(number), b"")
    cache.lookup(K, lambda manifest: f"header changed: {manifest['number']}")
    assert cache.why(K) == "header changed: 2"


def test_the_same_headers_take_the_same_place(cache):
    for number in range(5):
        cache.publish(K, manifest_of(1) | {"try": number}, b"%d" % number)
    assert len(list(Path(cache.directory, "objects").rglob("*.*"))) == 1
    assert cache.lookup(K).data == b"4"


def test_there_are_eight_at_most_and_the_oldest_gives_way(cache):
    for number in range(10):
        cache.publish(K, manifest_of(number), b"")
    assert [number for number in range(10) if cache.lookup(K, wants(number))] == list(range(2, 10))


def test_one_in_the_middle_that_goes_does_not_hide_others(cache):
    for number in range(3):
        cache.publish(K, manifest_of(number), b"")
    entry_file(cache, K, 0).unlink()
    assert cache.lookup(K, wants(2))


def test_a_check_that_fails_is_a_miss(cache):
    cache.publish(K, {}, b"")
    assert cache.lookup(K, wants(1)) is None
    assert cache.why(K) == "cannot be checked: KeyError: 'number'"


def test_the_second_look_counts_once(cache):
    cache.lookup(K)
    cache.lookup(K, again=True)
    assert (cache.stats.hits, cache.stats.misses) == (0, 1)
    cache.publish(K, {}, b"")
    cache.lookup(K, again=True)
    assert (cache.stats.hits, cache.stats.misses, cache.stats.reasons) == (1, 0, {})


def test_reasons_are_bounded(cache, monkeypatch):
    monkeypatch.setattr("rekernel.cachestats.KEPT", 10)
    cache.publish(K, {}, b"")
    for number in range(50):
        cache.lookup(K, lambda _, number=number: f"header changed: {number}")
        cache.lookup(key_of(number))
    assert len(cache.stats.reasons) <= 11
    assert sum(cache.stats.reasons.values()) == cache.stats.misses == 100
    assert cache.why(key_of(49))
    assert cache.why(key_of(0)) is None


# --- size ------------------------------------------------------------------------------------------------------


def test_the_size_comes_from_the_argument_the_variable_or_is_a_gigabyte(tmp_path, monkeypatch):
    monkeypatch.delenv("REKERNEL_CACHE_SIZE", raising=False)
    assert ObjectCache(tmp_path).size == 1 << 30
    monkeypatch.setenv("REKERNEL_CACHE_SIZE", "5M")
    assert ObjectCache(tmp_path).size == 5 << 20
    assert ObjectCache(tmp_path, size="1K").size == 1024
    assert ObjectCache(tmp_path, size=7).size == 7
    with pytest.raises(ValueError, match="lots"):
        ObjectCache(tmp_path, size="lots")


def test_a_size_that_is_not_understood_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("REKERNEL_CACHE_SIZE", "lots")
    with one_warning("REKERNEL_CACHE_SIZE"):
        cache = ObjectCache(tmp_path / "c")
        assert cache.publish(K, {}, b"x")
        assert cache.size == 1 << 30


def test_the_least_recently_used_goes_first(tmp_path):
    cache = ObjectCache(tmp_path / "c", size=10 * 4096)
    for number in range(8):
        cache.publish(key_of(number), {}, b"x")
    cache.lookup(key_of(0))
    for number in range(8, 11):
        cache.publish(key_of(number), {}, b"x")
    there = [number for number in range(11) if cache.lookup(key_of(number))]
    assert there == [0, 4, 5, 6, 7, 8, 9, 10]
    assert cache.stats.evicted == 3


def test_an_object_larger_than_the_cache_is_not_kept(tmp_path):
    cache = ObjectCache(tmp_path / "c", size=1000)
    with one_warning("larger than the whole cache"):
        assert not cache.publish(K, {}, bytes(2000))
        assert not cache.publish(K, {}, bytes(2000))


def test_a_cache_of_no_size_keeps_nothing_and_says_nothing(tmp_path):
    assert not ObjectCache(tmp_path / "c", size=0).publish(K, {}, b"x")


def test_pruning_to_nothing_empties_it(cache):
    for number in range(5):
        cache.publish(key_of(number), {}, b"x")
    assert cache.prune() == 0
    assert cache.prune(size=0) == 5
    assert cache.lookup(K) is None
    assert cache.verify().entries == 0
    assert cache.publish(K, {}, b"x")


def test_what_was_found_stays_when_its_entry_goes(cache):
    cache.publish(K, {}, b"code")
    entry = cache.lookup(K)
    cache.prune(size=0)
    assert entry.data == b"code"


def test_verify_takes_out_what_is_damaged(cache):
    for number in range(4):
        cache.publish(key_of(number), {}, data_of(number))
    path = entry_file(cache, key_of(2))
    path.write_bytes(path.read_bytes()[:-1])
    found = cache.verify()
    assert (found.entries, found.size) == (3, 3 * 8192)
    [line] = found.damaged
    assert line.startswith(f"{path.name}: it has ")
    assert not path.exists()
    assert cache.verify().damaged == ()


# --- trouble ---------------------------------------------------------------------------------------------------


@pytest.fixture
def nowhere(tmp_path, monkeypatch) -> Path:
    """No directory can be used: files are in the way."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    return tmp_path / "file"


def test_where_there_is_no_directory_entries_live_in_memory(nowhere):
    cache = ObjectCache(nowhere)
    with one_warning("in memory only"):
        assert cache.publish(K, {}, b"code")
        assert cache.lookup(K).data == b"code"
    assert cache.directory is None
    assert repr(cache) == "<ObjectCache in memory: 1 hits, 0 misses>"
    with cache.building(K) as turn:
        assert not turn.held


def test_memory_is_bounded_too(nowhere, monkeypatch):
    monkeypatch.setattr(objcache, "MEMORY", 10 * 4096)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RekernelWarning)
        cache = ObjectCache(nowhere)
        for number in range(30):
            cache.publish(key_of(number), {}, b"x")
    assert 8 <= cache.verify().entries <= 10
    assert cache.lookup(key_of(29))


def test_too_many_open_files_is_a_miss_and_takes_nothing_out(cache, monkeypatch):
    cache.publish(K, {}, b"code")
    true = os.open

    def fails(path, *args, **more):
        if K in str(path):
            raise OSError(errno.EMFILE, "Too many open files")
        return true(path, *args, **more)

    with monkeypatch.context() as patch, one_warning("Too many open files"):
        patch.setattr(objstore.os, "open", fails)
        assert cache.lookup(K) is None
        assert cache.lookup(K) is None
        assert cache.why(K) == "unreadable"
    assert cache.lookup(K).data == b"code"


def test_each_kind_of_trouble_is_told_once(cache, monkeypatch):
    def fails(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files.os, "replace", fails)
    with one_warning("cannot be written"):
        for number in range(3):
            assert not cache.publish(key_of(number), {}, b"x")


def test_a_warning_made_an_error_does_not_spoil_the_cache(cache):
    cache.publish(K, {}, b"code")
    entry_file(cache, K).write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RekernelWarning):
            cache.lookup(K)
    assert cache.lookup(K) is None
    assert cache.publish(K, {}, b"code")
    assert cache.lookup(K).data == b"code"


# --- threads and fork ------------------------------------------------------------------------------------------


def test_many_threads_use_one(cache):
    wrong = []

    def work() -> None:
        for number in range(40):
            key = key_of(number % 5)
            found = cache.lookup(key)
            if found is not None and found.data != data_of(number % 5):
                wrong.append(number)
            cache.publish(key, {}, data_of(number % 5))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.stats.hits + cache.stats.misses == cache.stats.published == 320


@posix
def test_a_child_forked_while_a_thread_holds_every_lock_goes_on(cache):
    cache.publish(K, {}, b"code")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock, cache._counted._lock, cache._store._ledger._lock, cache.building(key_of("other")):
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def work():
        with cache.building(K) as turn, cache.workdir():
            return cache.lookup(K).data, turn.held, cache.publish(key_of("new"), {}, b"x")

    try:
        assert Child(work).result() == (b"code", True, True)
    finally:
        done.set()
        thread.join()


def test_waiting_too_long_is_told_and_goes_on(cache, monkeypatch):
    monkeypatch.setattr(objcache, "PATIENCE", 0.01)
    with cache.building(K) as one, one_warning(f"process {os.getpid()} on "), cache.building(K) as two:
        assert (one.held, two.held) == (True, False)


def test_the_patience_follows_the_longest_build(cache, monkeypatch):
    seen = []
    true = objcache.buildlock.turn
    monkeypatch.setattr(
        objcache.buildlock, "turn", lambda path, patience: (seen.append(patience), true(path, patience))[1]
    )
    with cache.building(K):
        pass
    cache._longest = 20.0
    with cache.building(K):
        pass
    assert seen == [10.0, 60.0]


def test_nothing_is_left_in_a_used_directory(cache):
    cache.publish(K, {}, b"code")
    with cache.building(K), cache.workdir() as path:
        Path(path, "a.cpp").write_text("")
    assert files_in(cache.directory) == sorted(["CACHEDIR.TAG", "ledger", f"objects/{K[0]}/{K[1]}/{K}.0"])


def test_the_public_class_is_documented():
    for name in ("lookup", "publish", "prune", "verify", "stats", "why", "building", "workdir", "directory", "size"):
        assert getattr(ObjectCache, name).__doc__
    assert AUTO is rekernel.cachedir.AUTO
