"""Row 52 for C++ texts: nothing is loaded from where somebody else can write, and what is written is private."""

from __future__ import annotations

import os
import stat
import tempfile

import pytest

from cachekit import NOBODY, one_warning, posix
from cppkit import START, answer, load_with, needs_cpp
from support import run_python

pytestmark = [posix, needs_cpp]


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def planted(directory) -> None:
    """Fill a cache with a build of another text under the key of the honest one."""
    loader = load_with(directory)
    loader.load(answer(1), "k", optlevel="0")
    loader.load(answer(666), "k", optlevel="0")
    objects = [p for p in (directory / "objects").rglob("*") if p.is_file()]
    assert len(objects) == 2


WAYS = {
    "others may write": lambda d: d.chmod(0o777),
    "a group may write": lambda d: d.chmod(0o770),
    "somebody else's": lambda d: os.chown(d, NOBODY, NOBODY),
    "a link to what others may write": lambda d: (d.rename(d.with_name("real")), d.with_name("real").chmod(0o777),
                                                  d.symlink_to(d.with_name("real"))),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_cache_that_others_can_write_is_not_used(tmp_path, way):
    if way == "somebody else's" and os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    directory = tmp_path / "cache"
    planted(directory)
    WAYS[way](directory)
    loader = load_with(directory)
    with one_warning("cache"):
        assert loader.load(answer(1), "k", optlevel="0").f() == 1
    assert not loader.info("k").from_cache
    assert loader.jit.objcache.directory != str(directory)


def test_an_entry_that_others_could_have_written_is_built_again(tmp_path):
    directory = tmp_path / "cache"
    load_with(directory).load(answer(1), "k", optlevel="0")
    (path,) = (p for p in (directory / "objects").rglob("*") if p.is_file())
    path.chmod(0o666)
    loader = load_with(directory)
    with one_warning("damaged"):
        assert loader.load(answer(1), "k", optlevel="0").f() == 1
    assert not loader.info("k").from_cache


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_all_that_a_load_makes_is_private(tmp_path, mask):
    """Every directory is, and every file that is kept; those of a build are in a directory that is."""
    program = """
os.umask(int(sys.argv[2]))
loader.load("#include <cmath>\\n" + answer(1), "k", optlevel="0")
loader.load("double f(rekernel::Array<double, 1> x) { return x[0]; }", "d", debug=True)
found = []
for place, folders, names in os.walk(sys.argv[1]):
    found += [place] + ([os.path.join(place, name) for name in names] if "tmp" not in place else [])
print(sorted({oct(os.lstat(path).st_mode & 0o077) for path in found}), len(found) > 5)
"""
    assert run_python(START + program, str(tmp_path / "cache"), str(mask)).stdout == "['0o0'] True\n"
    assert stat.S_IMODE(os.stat(tmp_path / "cache").st_mode) == 0o700
