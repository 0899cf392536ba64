"""Row 23: errors of shared file systems, at the first attempt or always, never fail a call."""

from __future__ import annotations

import errno
import os
import warnings

import pytest

from cachekit import data_of, key_of
from rekernel.errors import RekernelWarning
from rekernel.objcache import ObjectCache

K = key_of("k")
DATA = data_of("k")
NUMBERS = [errno.EEXIST, errno.ENOTEMPTY, errno.EBUSY, errno.ESTALE, errno.ENOENT, errno.EACCES, errno.EIO, errno.EINTR]
CALLS = ["replace", "rmdir", "open", "unlink", "mkdir", "stat", "scandir", "listdir", "read", "fstat", "utime", "close"]


def use(cache: ObjectCache) -> bytes:
    """What the JIT does: what was just built is used whether it could be kept or not."""
    found = cache.lookup(K)
    if found is not None:
        return found.data
    with cache.building(K):
        found = cache.lookup(K, again=True)
        if found is not None:
            return found.data
        with cache.workdir() as path, open(os.path.join(path, "unit.cpp"), "w") as stream:
            stream.write("int f();")
        cache.publish(K, {}, DATA)
    return DATA


def failing(call: str, number: int, times: float, root: str):
    """The true call, which fails at first for what is below `root` or is a descriptor."""
    true = getattr(os, call)
    left = [times]

    def fails(first, *args, **more):
        ours = str(first).startswith(root) and "unit.cpp" not in str(first)
        if (ours or (isinstance(first, int) and call != "close")) and left[0] > 0:
            left[0] -= 1
            raise OSError(number, os.strerror(number), str(first))
        return true(first, *args, **more)

    return fails


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_an_error_at_the_first_attempt(tmp_path, monkeypatch, call, number, warm):
    cache = ObjectCache(tmp_path / "cache")
    assert cache.directory
    if warm:
        use(cache)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", RekernelWarning)
        patch.setattr(os, call, failing(call, number, 1, str(tmp_path)))
        assert use(cache) == DATA
    assert use(cache) == DATA
    assert use(ObjectCache(tmp_path / "cache")) == DATA
    assert cache.verify().damaged == ()


@pytest.mark.parametrize("number", NUMBERS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["replace", "read", "fstat", "utime", "scandir", "unlink"])
def test_an_error_that_stays(tmp_path, monkeypatch, call, number):
    cache = ObjectCache(tmp_path / "cache")
    assert cache.directory
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        patch.setattr(os, call, failing(call, number, float("inf"), str(tmp_path)))
        assert [use(cache) for _ in range(3)] == [DATA] * 3
        assert cache.prune(size="1G") == 0
    assert len({str(w.message) for w in caught}) == len(caught) <= 3
    assert use(cache) == DATA


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EBUSY, errno.EEXIST, errno.ENOTEMPTY], ids=errno.errorcode.get)
def test_a_passing_error_at_the_rename_does_not_even_warn(tmp_path, monkeypatch, number):
    cache = ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(os, "replace", failing("replace", number, 1, str(tmp_path)))
    assert cache.publish(K, {}, DATA)
    assert cache.lookup(K).data == DATA


def test_errors_at_clearing_up_are_ignored(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    for call in ("rmdir", "unlink"):
        monkeypatch.setattr(os, call, failing(call, errno.EBUSY, float("inf"), str(tmp_path)))
    assert use(cache) == DATA
    with cache.workdir() as path:
        assert os.path.isdir(path)
    with cache.building(K) as turn:
        assert turn.held
    cache.prune(size=0)


def test_what_another_host_has_published_need_not_be_readable(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", RekernelWarning)
        patch.setattr(os, "read", failing("read", errno.ESTALE, float("inf"), str(tmp_path)))
        assert cache.lookup(K) is None
        assert cache.why(K) == "unreadable"
        assert cache.publish(K, {}, DATA)
    assert cache.lookup(K).data == DATA
