"""Row 46: only the content of a file matters, not its times. Here: `load_file`; watching has its own tests."""

from __future__ import annotations

import contextlib
import os

import pytest

import rekernel
from support import times


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "k.py"
    made.write_text(times(3))
    return made


def restore(path, before):
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)


def test_the_same_time_and_size(loader, path):
    module = loader.load_file(path)
    assert module.f(1) == 3
    before = path.stat()
    for factor in (4, 5, 6):
        path.write_text(times(factor))
        restore(path, before)
        loader.load_file(path)
        assert module.f(1) == factor
    assert loader.info("k").version == 4


def test_an_older_time(loader, path):
    module = loader.load_file(path)
    path.write_text(times(4))
    os.utime(path, (1, 1))
    loader.load_file(path)
    assert module.f(1) == 4


def test_a_new_time_alone_is_no_reload(loader, path):
    loader.load_file(path)
    for stamp in (1, 10**9, 4 * 10**9):
        os.utime(path, (stamp, stamp))
        loader.load_file(path)
    assert loader.info("k").version == 1
    assert loader.stats().unchanged == 3


def test_replaced_deleted_and_made_again_and_linked(loader, path, tmp_path):
    module = loader.load_file(path)
    other = tmp_path / "other"
    other.write_text(times(4))
    os.replace(other, path)
    assert loader.load_file(path).f(1) == 4
    path.unlink()
    with pytest.raises(FileNotFoundError):
        loader.load_file(path)
    assert module.f(2) == 8
    path.write_text(times(5))
    assert loader.load_file(path).f(1) == 5
    for factor in (6, 7):
        (tmp_path / f"target{factor}").write_text(times(factor))
        link = tmp_path / "link"
        link.symlink_to(tmp_path / f"target{factor}")
        os.replace(link, path)
        assert loader.load_file(path).f(1) == factor


def test_a_half_written_file_leaves_the_old_version(loader, path):
    module = loader.load_file(path)
    whole = times(4) + times(5, "g") + "# ü\n"
    data = whole.encode()
    for end in range(1, len(data)):
        path.write_bytes(data[:end])
        with contextlib.suppress(rekernel.RekernelError, ValueError):
            loader.load_file(path)
        assert module.f(1) in (3, 4)
    path.write_bytes(data)
    loader.load_file(path)
    assert (module.f(1), module.g(1)) == (4, 5)


def test_bytes_that_are_no_text_are_named(loader, path):
    module = loader.load_file(path)
    path.write_bytes(b"# one\n# \xff\n" + times(4).encode())
    with pytest.raises(ValueError, match=r"k\.py:2.*UTF-8"):
        loader.load_file(path)
    assert module.f(1) == 3


def test_ten_saves_in_a_row(loader, path):
    module = loader.load_file(path)
    for factor in range(10, 20):
        path.write_text(times(factor))
    loader.load_file(path)
    assert module.f(1) == 19
    assert loader.info("k").version == 2
