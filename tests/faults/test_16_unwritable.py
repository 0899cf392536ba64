"""Row 16: no HOME, no right to write, a file in the way, a full disk: one warning, and it works."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile

import pytest

from cachekit import NOBODY, Child, files_in, key_of, one_warning, posix
from rekernel import files
from rekernel.objcache import ObjectCache

K = key_of("k")


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    for name in ("REKERNEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "REKERNEL_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def works(cache: ObjectCache) -> bool:
    assert cache.lookup(K) is None
    with cache.building(K), cache.workdir() as path:
        assert os.path.isdir(path)
        published = cache.publish(K, {}, b"code")
    found = cache.lookup(K)
    return published and found is not None and found.data == b"code"


def _as(root, name, make):
    make(root / name)
    return str(root / name)


SURROUNDINGS = {
    "no home at all": lambda root: {"HOME": str(root / "nowhere")},
    "a cache directory that is a file": lambda root: {"REKERNEL_CACHE_DIR": _as(root, "f", lambda p: p.write_text(""))},
    "a home that is a file": lambda root: {"HOME": _as(root, "f", lambda p: p.write_text(""))},
    "below a file": lambda root: {"REKERNEL_CACHE_DIR": _as(root, "f", lambda p: p.write_text("")) + "/below"},
    "a device": lambda root: {"REKERNEL_CACHE_DIR": "/dev/null"},
    "a place where no directory can be made": lambda root: {"REKERNEL_CACHE_DIR": "/proc/none"},
    "a name that is too long": lambda root: {"XDG_CACHE_HOME": str(root / ("x" * 300))},
}


@posix
@pytest.mark.parametrize("row", SURROUNDINGS)
def test_one_warning_then_the_private_temporary_directory(surroundings, monkeypatch, row):
    for name, value in SURROUNDINGS[row](surroundings).items():
        monkeypatch.setenv(name, value)
        place = value
    with one_warning(place):
        cache = ObjectCache()
        assert works(cache)
    assert cache.directory == str(surroundings / "temporary" / f"rekernel-{os.geteuid()}")
    assert os.stat(cache.directory).st_mode & 0o777 == 0o700


def as_somebody_without_a_name() -> tuple[str, bool]:
    """As a user whom the table of users does not know, in a system where little can be written."""
    base = tempfile.mkdtemp(dir="/tmp")
    try:
        tempfile.tempdir = base
        for name in ("REKERNEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
            os.environ.pop(name, None)
        if os.geteuid() != NOBODY:
            os.environ["HOME"] = "/nonexistent"
        with one_warning("kernels are kept in"):
            cache = ObjectCache()
            good = works(cache)
        os.mkdir(f"{base}/fixed", 0o500)
        with one_warning("cannot be written"):
            good = good and ObjectCache(f"{base}/fixed").lookup(K) is not None  # from the temporary directory
        return str(cache.directory).removeprefix(base), good
    finally:
        shutil.rmtree(base)


@posix
def test_a_user_without_an_entry_and_a_read_only_directory():
    directory, good = Child(as_somebody_without_a_name, user=NOBODY).result()
    assert directory.startswith("/rekernel-")
    assert good


@posix
def test_when_the_temporary_directory_is_no_better_there_is_memory(surroundings, monkeypatch):
    monkeypatch.setenv("HOME", str(surroundings / "nowhere"))
    (surroundings / "temporary" / f"rekernel-{os.geteuid()}").write_text("in the way")
    with one_warning("in memory only"):
        cache = ObjectCache()
        assert works(cache)
    assert cache.directory is None


FULL = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EFBIG, errno.ENOMEM]


def full(number: int, call: str):
    """A system call that says at once that the disk is full; `open` only where a file is made."""
    true = getattr(os, call)

    def fails(first, *args, **more):
        if call == "open" and not args[0] & os.O_CREAT:
            return true(first, *args, **more)
        raise OSError(number, os.strerror(number))

    return fails


def full_at_the_end(number: int):
    """As on a network file system: a new file is written, and closing it says that there was no room."""
    true_open, true_close, new = os.open, os.close, set()

    def remember(path, flags, *args, **more):
        descriptor = true_open(path, flags, *args, **more)
        if flags & os.O_EXCL:
            new.add(descriptor)
        return descriptor

    def fails(descriptor):
        true_close(descriptor)
        if descriptor in new:
            new.remove(descriptor)
            raise OSError(number, os.strerror(number))

    return remember, fails


@pytest.mark.parametrize("number", FULL, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["write", "open", "replace", "mkdir", "close"])
def test_a_disk_that_fills_up_while_writing(surroundings, monkeypatch, number, call):
    cache = ObjectCache(surroundings / "cache")
    cache.publish(key_of("before"), {}, b"before")
    before = files_in(cache.directory)
    with monkeypatch.context() as patch:
        if call == "close":
            for name, replacement in zip(("open", "close"), full_at_the_end(number), strict=True):
                patch.setattr(files.os, name, replacement)
        else:
            patch.setattr(files.os, call, full(number, call))
        with one_warning("cannot be written"):
            assert not cache.publish(K, {}, b"code")
            assert not cache.publish(K, {}, b"code")
    assert files_in(cache.directory) == before
    assert cache.lookup(key_of("before")).data == b"before"
    assert works(cache)


def test_a_directory_for_a_build_is_found_elsewhere(surroundings, monkeypatch):
    cache = ObjectCache(surroundings / "cache")
    tmp = os.path.join(cache.directory, "tmp")
    true = os.mkdir

    def no_room(path, *args, **more):
        if str(path).startswith(tmp):
            raise OSError(errno.ENOSPC, "No space left on device")
        return true(path, *args, **more)

    monkeypatch.setattr(os, "mkdir", no_room)
    with cache.workdir() as path:
        assert path.startswith(str(surroundings / "temporary" / "rekernel-build-"))
    assert os.listdir(surroundings / "temporary") == []
