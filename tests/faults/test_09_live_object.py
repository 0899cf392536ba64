"""Row 9: what runs is a private copy: nothing that happens to the cache can break a kernel that is loaded."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from jitkernels import constant, needs_compiler, state
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from support import run_python


def entries(cache: Path) -> list[Path]:
    return [path for path in (cache / "objects").rglob("*") if path.is_file()]


def overwrite(cache):
    for path in entries(cache):
        path.chmod(0o600)
        path.write_bytes(b"\0" * path.stat().st_size)


def cut(cache):
    for path in entries(cache):
        path.chmod(0o600)
        os.truncate(path, 100)


def touch(cache):
    for path in entries(cache):
        os.utime(path)


def remove(cache):
    for path in entries(cache):
        path.unlink()


def replace(cache):
    for path in entries(cache):
        other = path.with_name("other")
        other.write_bytes(b"no library at all")
        os.replace(other, path)


HARM = {
    "overwritten": overwrite,
    "cut": cut,
    "touched": touch,
    "removed": remove,
    "replaced": replace,
    "gone": shutil.rmtree,
}


@needs_compiler
@pytest.mark.filterwarnings("ignore:.*kernel cache")
@pytest.mark.parametrize("how", HARM)
def test_a_loaded_kernel_runs_on(tmp_path, how):
    cache = tmp_path / "cache"
    built = CpuJit(objcache=cache).compile(state(1))
    found = CpuJit(objcache=cache).compile(state(1))
    assert found.from_cache
    assert [built() // 1000000, found() // 1000000] == [1, 1]
    assert entries(cache)
    HARM[how](cache)
    assert [built() // 1000000 for _ in range(100)] == list(range(2, 102))
    assert found() == 2002002
    again = CpuJit(objcache=cache).compile(state(1))
    assert again() == 1001001
    assert again.from_cache == (how == "touched")


@needs_compiler
def test_another_process_writes_while_this_one_calls(tmp_path):
    program = """
import sys
from jitkernels import constant
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
for turn in range(20):
    cache = ObjectCache(sys.argv[1])
    assert CpuJit(objcache=cache).compile(constant(turn % 2))() == turn % 2
    cache.prune(size=0)
print("done")
"""
    wrapper = CpuJit(objcache=tmp_path).compile(constant(1))
    said = []
    other = threading.Thread(target=lambda: said.append(run_python(program, str(tmp_path)).stdout))
    other.start()
    calls = 0
    while other.is_alive() or not calls:
        assert wrapper() == 1
        calls += 1
    other.join()
    assert said == ["done\n"]


@needs_compiler
@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
def test_no_file_of_the_cache_is_mapped(tmp_path):
    wrapper = CpuJit(objcache=tmp_path / "cache").compile(constant(3))
    maps = Path("/proc/self/maps").read_text()
    assert str(tmp_path) not in maps
    assert wrapper() == 3


@needs_compiler
def test_eviction_does_not_touch_what_is_loaded(tmp_path):
    cache = ObjectCache(tmp_path, size=60_000)
    wrappers = [CpuJit(objcache=cache).compile(constant(n)) for n in range(12)]
    assert cache.stats.evicted > 0
    assert [wrapper() for wrapper in wrappers] == list(range(12))
