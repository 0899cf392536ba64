"""Row 16 for C++ texts: no place to write is one warning, and the text runs."""

from __future__ import annotations

import errno
import os
import tempfile

import pytest

from cachekit import NOBODY, Child, one_warning, posix
from cppkit import CpuJit, GccInfo, answer, load_with, needs_cpp
from rekernel import KernelLoader, files

pytestmark = [posix, needs_cpp]


def load_twice(loader: KernelLoader) -> tuple[int, int]:
    return loader.load(answer(1), "k", optlevel="0").f(), loader.load(answer(2), "k").f()


def as_nobody() -> tuple[int, int]:
    for name in ("HOME", "XDG_CACHE_HOME", "REKERNEL_CACHE_DIR"):
        os.environ.pop(name, None)
    os.environ["HOME"] = "/nonexistent"
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        tempfile.tempdir = place
        os.chdir(place)
        with one_warning("kernels are kept in"):
            return load_twice(KernelLoader(jit=CpuJit(GccInfo())))


def test_a_user_without_a_home_and_without_a_name():
    assert Child(as_nobody, user=NOBODY).result() == (1, 2)


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/none", "/dev/null"])
def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch, place):
    (tmp_path / "a file").write_text("")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    directory = {"a file": tmp_path / "a file", "below a file": tmp_path / "a file" / "x"}.get(place, place)
    with one_warning(str(directory)):
        assert load_twice(load_with(directory)) == (1, 2)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS], ids=errno.errorcode.get)
def test_a_disk_that_is_full_when_an_entry_is_written(tmp_path, monkeypatch, number):
    def full(path: str, *_: object) -> None:
        raise OSError(number, os.strerror(number), path)

    loader = load_with(tmp_path / "cache")
    with monkeypatch.context() as patch:
        patch.setattr(files, "write", full)
        with one_warning("cannot be written"):
            assert load_twice(loader) == (1, 2)
    assert loader.load(answer(3), "k").f() == 3
