"""Row 23 for C++ texts: a file system that fails, once or always, never fails a load."""

from __future__ import annotations

import errno
import os
import warnings

import pytest

from cppkit import answer, load_with, needs_cpp
from rekernel import RekernelWarning

pytestmark = needs_cpp

NUMBERS = [errno.EEXIST, errno.ENOTEMPTY, errno.EBUSY, errno.ESTALE, errno.ENOENT, errno.EIO]
CALLS = ["replace", "rmdir", "unlink", "mkdir", "scandir", "utime", "fstat"]


def failing(call: str, number: int, times: float, root: str):
    """The true call, which fails at first for what is below `root`."""
    true, left = getattr(os, call), [times]

    def fails(first, *args, **more):
        if str(first).startswith(root) and left[0] > 0:
            left[0] -= 1
            raise OSError(number, os.strerror(number), str(first))
        return true(first, *args, **more)

    return fails


@pytest.mark.parametrize("times", [1, float("inf")], ids=["once", "always"])
@pytest.mark.parametrize("call", CALLS)
def test_a_load_goes_on(tmp_path, monkeypatch, call, times):
    for place, number in enumerate(NUMBERS):
        directory = tmp_path / str(place)
        loader = load_with(directory / "cache")
        assert loader.jit.objcache.directory  # what is opened is there
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", RekernelWarning)
            patch.setattr(os, call, failing(call, number, times, str(directory)))
            assert loader.load(answer(number), "k", optlevel="0").f() == number
        assert loader.load(answer(1), "k").f() == 1
        assert load_with(directory / "cache").load(answer(number), "k", optlevel="0").f() == number
