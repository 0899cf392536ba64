"""Row 9 for C++ texts: whatever happens to the files of the cache, live kernels go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cachekit import Child, posix
from cppkit import answer, load_with, needs_cpp

pytestmark = [posix, needs_cpp]

TEXT = """
#include <cmath>
static int calls;
int f() { return ++calls; }
void fill(rekernel::Array<double, 1> x) { for (int64_t i = 0; i < x.size(); ++i) x[i] = std::sqrt(double(i)); }
"""


def entries(directory: Path) -> list[Path]:
    return [path for path in (directory / "objects").rglob("*") if path.is_file()]


def overwrite(directory: Path) -> None:
    for path in entries(directory):
        path.write_bytes(b"\0" * path.stat().st_size)


def cut(directory: Path) -> None:
    for path in entries(directory):
        with path.open("r+b") as stream:
            stream.truncate(10)


DEEDS = {
    "overwritten in place": overwrite,
    "cut short": cut,
    "removed": shutil.rmtree,
    "pruned by another process": lambda d: Child(lambda: load_with(d).jit.objcache.prune(size=0)).result(),
    "built again by another process": lambda d: (
        shutil.rmtree(d), Child(lambda: load_with(d).load(TEXT, "k").f()).result()),
}  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.filterwarnings("ignore:a damaged entry:rekernel.RekernelWarning")
def test_live_and_pinned_kernels_do_not_depend_on_the_files(tmp_path, deed):
    directory = tmp_path / "cache"
    with load_with(directory) as loader:
        module = loader.load(TEXT, "k")
        f, pinned = module.f, module.f.pinned()
        assert (f(), pinned()) == (1, 2)
        DEEDS[deed](directory)
        assert [f() for _ in range(100)] == list(range(3, 103))
        loader.load(answer(50), "k")
        assert (f(), pinned()) == (50, 103)
        loader.load(TEXT, "k")  # from memory, its static as it was
        assert f() == 104
        loader.unload("k")
        assert pinned() == 105
        assert load_with(directory).load(TEXT, "k").f() == 1
