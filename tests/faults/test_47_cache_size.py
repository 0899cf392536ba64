"""Row 47: the cache stays near its limit, drops what was not used for longest, and takes nothing from a reader."""

from __future__ import annotations

import os
from pathlib import Path

from cachekit import data_of, key_of, posix, together
from rekernel.objcache import ObjectCache

LIMIT = 1 << 20
SIZE = 20_000


def bytes_in(directory: Path) -> int:
    total = 0
    for path in (directory / "objects").rglob("*.*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


@posix
def test_two_hundred_kernels_from_four_processes(tmp_path):
    directory = tmp_path / "cache"

    def work(number: int) -> tuple[int, bool]:
        cache = ObjectCache(directory, size=LIMIT)
        most, held = 0, []
        for one in range(50):
            name = (number, one)
            cache.publish(key_of(name), {"name": list(name)}, data_of(name, SIZE))
            found = cache.lookup(key_of(name))  # another process may just have taken it out
            held.append((name, found))
            if one % 5 == number:
                most = max(most, bytes_in(directory))
        whole = all(found is None or found.data == data_of(name, SIZE) for name, found in held)
        return most, whole and cache.stats.damaged == 0

    results = together(4, work)
    assert all(whole for _, whole in results)
    assert max(most for most, _ in results) < LIMIT * 1.3
    left = ObjectCache(directory, size=LIMIT).verify()
    assert LIMIT * 0.7 < left.size <= LIMIT
    assert left.damaged == ()


def test_what_is_used_stays_and_the_stamp_is_our_own(tmp_path):
    cache = ObjectCache(tmp_path / "cache", size=LIMIT)
    for number in range(200):
        cache.publish(key_of(number), {}, data_of(number, SIZE))
        assert cache.lookup(key_of(0)), number  # used all the time
        for path in (tmp_path / "cache" / "objects").rglob("*.*") if number == 20 else ():
            os.utime(path, ns=(0, path.stat().st_mtime_ns))  # the time of reading means nothing
    there = [number for number in range(200) if cache.lookup(key_of(number))]
    assert there[0] == 0
    assert there[1:] == list(range(there[1], 200))
    assert len(there) > 30


@posix
def test_a_reader_never_sees_half_an_entry_while_others_evict(tmp_path):
    def work(number: int) -> int:
        cache = ObjectCache(tmp_path / "cache", size=10 * 24_576)
        for one in range(200):
            name = (number * 7 + one) % 25
            found = cache.lookup(key_of(name))
            if found is None:
                cache.publish(key_of(name), {}, data_of(name, SIZE))
            else:
                assert found.data == data_of(name, SIZE)
        return cache.stats.damaged

    assert together(6, work) == [0] * 6


def test_a_smaller_limit_counts_from_the_next_publication(tmp_path):
    large = ObjectCache(tmp_path / "cache", size="10M")
    for number in range(100):
        large.publish(key_of(number), {}, data_of(number, SIZE))
    small = ObjectCache(tmp_path / "cache", size="500K")
    small.publish(key_of("new"), {}, data_of("new", SIZE))
    assert small.verify().size <= 500 << 10
    assert small.lookup(key_of("new")).data == data_of("new", SIZE)
