"""Row 6: many processes publish, read and clear the same entries; every entry is whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cachekit import data_of, key_of, posix, together
from rekernel.objcache import ObjectCache

pytestmark = posix


def get(cache: ObjectCache, name: object, builds: Path) -> bytes:
    """What the JIT does; each build leaves a file with the number of its process."""
    key = key_of(name)
    found = cache.lookup(key)
    if found is None:
        with cache.building(key):
            found = cache.lookup(key, again=True)
            if found is None:
                with cache.workdir() as path:
                    Path(path, "unit.cpp").write_text("int f();")
                    (builds / f"{name}-{os.getpid()}").touch()
                    data = data_of(name, 20_000)
                    cache.publish(key, {"name": name}, data)
                    return data
    return found.data


@pytest.mark.parametrize("count", [8, 16])
def test_one_new_kernel_in_many_processes_is_built_once(tmp_path, count):
    builds = tmp_path / "builds"
    builds.mkdir()

    def work(number: int) -> list[bool]:
        cache = ObjectCache(tmp_path / "cache")
        return [get(cache, name, builds) == data_of(name, 20_000) for name in range(20)]

    assert together(count, work) == [[True] * 20] * count
    assert len(os.listdir(builds)) == 20
    assert ObjectCache(tmp_path / "cache").verify().damaged == ()
    assert os.listdir(tmp_path / "cache" / "locks") == []
    assert os.listdir(tmp_path / "cache" / "tmp") == []


def test_all_publish_the_same_at_the_same_time(tmp_path):
    def work(number: int) -> int:
        cache = ObjectCache(tmp_path / "cache")
        for _ in range(50):
            cache.publish(key_of("k"), {}, data_of("k"))
            assert cache.lookup(key_of("k")).data == data_of("k")
        return cache.stats.damaged

    assert together(16, work) == [0] * 16
    assert ObjectCache(tmp_path / "cache").verify().entries == 1


def test_one_of_them_clears_all_the_time(tmp_path):
    builds = tmp_path / "builds"
    builds.mkdir()

    def work(number: int) -> bool:
        cache = ObjectCache(tmp_path / "cache")
        for turn in range(60):
            if number == 0:
                cache.prune(size=0)
            assert get(cache, turn % 4, builds) == data_of(turn % 4, 20_000)
        return cache.stats.damaged == 0

    assert together(8, work) == [True] * 8
    assert ObjectCache(tmp_path / "cache").verify().damaged == ()


def test_variants_of_one_key_from_many_processes_are_all_whole(tmp_path):
    def work(number: int) -> bool:
        cache = ObjectCache(tmp_path / "cache")
        manifest = {"headers": {"user": [["/a.h", str(number), 0, 0, 0, 0]]}, "number": number}
        for _ in range(30):
            cache.publish(key_of("k"), manifest, data_of(number))
            found = cache.lookup(key_of("k"), lambda m: None if m["number"] == number else "other")
            assert found is None or found.data == data_of(number)
        return cache.stats.damaged == 0

    assert together(8, work) == [True] * 8
    assert 1 <= ObjectCache(tmp_path / "cache").verify().entries <= 8
