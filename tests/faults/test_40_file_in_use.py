"""Row 40: a file that another process has open (Windows): the writer leaves it, the reader tries again."""

from __future__ import annotations

import errno
import os
import warnings

import pytest

from cachekit import data_of, entry_file, key_of, one_warning
from rekernel.errors import RekernelWarning
from rekernel.objcache import ObjectCache

K = key_of("k")
DATA = data_of("k")


def in_use(call: str, times: float, part: str = K):
    true, left = getattr(os, call), [times]

    def fails(first, *args, **more):
        if part in str((first, *args)) and left[0] > 0:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "The process cannot access the file", str(first))
        return true(first, *args, **more)

    return fails


def test_the_writer_treats_it_as_written_by_somebody_else(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    monkeypatch.setattr(os, "replace", in_use("replace", float("inf")))
    assert cache.publish(K, {}, DATA)  # without a warning: it is there
    assert cache.lookup(K).data == DATA


def test_the_writer_says_so_when_nothing_is_there(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    monkeypatch.setattr(os, "replace", in_use("replace", float("inf")))
    with one_warning("cannot be written"):
        assert not cache.publish(K, {}, DATA)
        assert not cache.publish(K, {}, DATA)
    assert os.listdir(os.path.join(cache.directory, "tmp")) == []


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_reader_tries_again(tmp_path, monkeypatch, times):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    monkeypatch.setattr(os, "open", in_use("open", times))
    assert cache.lookup(K).data == DATA


def test_the_reader_gives_up_and_what_is_built_is_used(tmp_path, monkeypatch):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", RekernelWarning)
        for call in ("open", "unlink", "replace", "rename"):
            patch.setattr(os, call, in_use(call, float("inf"), f"{K}."))
        assert cache.lookup(K) is None
        assert cache.why(K) == "unreadable"
        assert cache.publish(K, {}, DATA) is False
    assert cache.lookup(K).data == DATA


def test_an_entry_that_is_open_is_never_written_to(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, DATA)
    with entry_file(cache, K).open("rb") as stream:
        whole = stream.read()
        stream.seek(0)
        cache.publish(K, {}, data_of("other"))
        assert stream.read() == whole
        stream.seek(0)
        cache.prune(size=0)
        assert stream.read() == whole
