"""Row 5: a process that is killed while it builds or publishes leaves nothing that anybody waits for."""

from __future__ import annotations

import logging
import os
import random
import time
from pathlib import Path

import pytest

from cachekit import Child, data_of, files_in, key_of, posix
from rekernel import buildlock
from rekernel.objcache import ObjectCache

pytestmark = posix
K = key_of("k")


def build_for_ever(directory: str, ready: int) -> None:
    """What a program does: look, take the turn, work in a private directory, publish; over and over."""
    cache = ObjectCache(directory)
    number = 0
    while True:
        key = key_of(number % 7)
        if cache.lookup(key) is None:
            with cache.building(key), cache.workdir() as path:
                Path(path, "unit.cpp").write_text("int f();")
                cache.publish(key, {"number": number % 7}, data_of(number % 7, 50_000))
        if number == 3:
            os.write(ready, b"x")
        if number % 7 == 6:
            cache.prune(size=0)
        number += 1


def killed_at_a_random_moment(directory: str, random_: random.Random) -> None:
    reader, writer = os.pipe()
    child = Child(build_for_ever, directory, writer)
    os.close(writer)
    os.read(reader, 1)
    end = time.perf_counter() + random_.random() * 0.01
    while time.perf_counter() < end:
        pass
    child.kill()
    os.close(reader)


def test_a_hundred_kills_at_random_moments_and_the_next_one_works_at_once(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(buildlock, "TELL_AFTER", 0.0)  # any waiting would be told
    directory = str(tmp_path / "cache")
    random_ = random.Random(5)
    for _ in range(100):
        killed_at_a_random_moment(directory, random_)
        with caplog.at_level(logging.WARNING, "rekernel"):
            cache = ObjectCache(directory)
            for number in range(7):
                key = key_of(number)
                with cache.building(key) as turn:
                    assert turn.held
                    found = cache.lookup(key)
                    assert found is None or found.data == data_of(number, 50_000)
                    assert cache.publish(key, {"number": number}, data_of(number, 50_000))
                assert cache.lookup(key).data == data_of(number, 50_000)
        assert cache.stats.damaged == 0
        assert [name for name in files_in(directory) if not name.startswith("objects")] == ["CACHEDIR.TAG", "ledger"]
        assert os.listdir(Path(directory, "tmp")) == []
        cache.prune(size=0)
    assert caplog.records == []


def test_the_sum_is_right_again_after_a_count(tmp_path):
    directory = str(tmp_path / "cache")
    for seed in range(10):
        killed_at_a_random_moment(directory, random.Random(seed))
    cache = ObjectCache(directory)
    cache.prune()
    cache.publish(K, {}, b"x")
    total = cache._store.write(K, 0, b"x")
    assert total == sum(item.size for item in cache._store.items())


@pytest.mark.parametrize("content", [b"", b"12345", b"process 1 on here", b"\xff" * 1000])
def test_a_lock_file_means_nothing_unless_somebody_holds_it(tmp_path, content):
    locks = tmp_path / "cache" / "locks"
    locks.mkdir(parents=True)
    (locks / K).write_bytes(content)
    (locks / key_of("other")).write_bytes(content)
    (tmp_path / "cache").chmod(0o700)
    cache = ObjectCache(tmp_path / "cache")
    with cache.building(K) as turn:
        assert turn.held
        assert turn.waited == 0
    assert os.listdir(locks) == []
