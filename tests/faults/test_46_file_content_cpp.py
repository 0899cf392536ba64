"""Row 46 for C++ texts: `load_file` compiles exactly what the file holds, whatever its times say."""

from __future__ import annotations

import os

import pytest

import rekernel
from cppkit import answer, hits, load_with, needs_cpp

pytestmark = needs_cpp


@pytest.fixture
def loader(tmp_path):
    with load_with(tmp_path / "cache") as made:
        yield made


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "k.cpp"
    made.write_text(answer(3))
    return made


def in_place(path, text):
    with path.open("r+") as file:
        file.write(text)
        file.truncate()


def renamed(path, text):
    other = path.with_name("other")
    other.write_text(text)
    os.replace(other, path)


def anew(path, text):
    path.unlink()
    path.write_text(text)


def linked(path, text):
    other = path.with_name(f"target{abs(hash(text))}")
    other.write_text(text)
    path.unlink()
    path.symlink_to(other)


@pytest.mark.parametrize("save", [in_place, renamed, anew, linked])
@pytest.mark.parametrize("stamp", ["same", "older", "new"])
def test_every_way_of_saving_is_seen(loader, path, save, stamp):
    f = loader.load_file(path, optlevel="0").f
    for number in (4, 5, 3):
        before = path.stat()
        save(path, answer(number))
        if stamp != "new":
            os.utime(path, ns=(1, before.st_mtime_ns - (10**9 if stamp == "older" else 0)))
        loader.load_file(path)
        assert f() == number
    assert loader.info("k").version == 4


def test_a_new_time_alone_compiles_nothing(loader, path):
    loader.load_file(path)
    before = hits(loader)
    for stamp in (1, 10**9, 4 * 10**9):
        os.utime(path, (stamp, stamp))
        loader.load_file(path)
    assert (hits(loader), loader.info("k").version) == (before, 1)


def test_a_half_written_file_is_an_error_and_the_old_version_serves(loader, path):
    f = loader.load_file(path).f
    path.write_text("int f() { return ")
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load_file(path)
    assert caught.value.filename == str(path)
    assert f() == 3
    path.write_text(answer(5))
    loader.load_file(path)
    assert f() == 5


@pytest.mark.parametrize(
    "content", [b"\xff\xfeint f() { return 1; }", b"int f() { return '\xe4'; }\n"], ids=["utf-16", "latin-1"]
)
def test_a_file_in_another_encoding_says_so(loader, path, content):
    f = loader.load_file(path).f
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"k\.cpp:1: not UTF-8"):
        loader.load_file(path)
    assert f() == 3


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
def test_ends_of_lines_and_a_mark_do_not_matter(loader, path, ends):
    path.write_bytes(b"\xef\xbb\xbf" + ends.join([b"int f()", b"{", b"    return 8; // end", b"}"]))
    assert loader.load_file(path).f() == 8
