"""Header records: what makes them invalid, and what does not."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from rekernel import headers
from rekernel.headers import HeaderChangedError, record, valid, variant


def later(path: Path, seconds: float = 100) -> None:
    now = time.time() + seconds
    os.utime(path, (now, now))


@pytest.fixture
def tree(tmp_path) -> Path:
    """Two include directories, a system directory and a project, all older than the time that is distrusted."""
    for name in ("first", "second/sub", "system/sys", "project"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "second" / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "second" / "b.h").write_text("int b;\n")
    (tmp_path / "second" / "sub" / "c.h").write_text("int c;\n")
    (tmp_path / "system" / "cmath").write_text("double sin(double);\n")
    (tmp_path / "system" / "sys" / "types.h").write_text("typedef int t;\n")
    for path in (tmp_path, *tmp_path.rglob("*")):
        later(path, -2e6)  # otherwise what a test does next could have the very same time
    headers._contents.clear()
    headers._listings.clear()
    headers._accepted.clear()
    return tmp_path


def record_of(tree: Path, text: str = "") -> dict:
    user = [tree / "second" / name for name in ("a.h", "b.h", "sub/c.h")]
    system = [tree / "system" / "cmath", tree / "system" / "sys" / "types.h"]
    made = record(user, system, [tree / "first", tree / "second"], text=text)
    return {"headers": json.loads(json.dumps(made))}  # as it comes back from the cache


STAYS = {
    "nothing": lambda t: None,
    "a header has a new time": lambda t: later(t / "second" / "a.h"),
    "a header has an old time": lambda t: later(t / "second" / "a.h", -1e6),
    "a header is written again": lambda t: (t / "second" / "b.h").write_text("int b;\n"),
    "a header is another file with the same text": lambda t: (
        (t / "second" / "n.h").write_text("int b;\n"),
        (t / "second" / "n.h").replace(t / "second" / "b.h"),
    ),
    "a header that nobody asks for appears": lambda t: (t / "first" / "other.h").write_text(""),
    "a file that is no header appears": lambda t: (t / "first" / "a.o").write_text(""),
    "a shadow in a directory that is not searched": lambda t: (t / "project" / "a.h").write_text(""),
}

CHANGES = {
    "a header": (lambda t: (t / "second" / "a.h").write_text("int a;\n"), "header changed: .*a.h"),
    "an inner header": (lambda t: (t / "second" / "b.h").write_text("int B;\n"), "header changed: .*b.h"),
    "a header in a directory below": (
        lambda t: (t / "second" / "sub" / "c.h").write_text("int C;\n"),
        "header changed: .*c.h",
    ),
    "a header goes": (lambda t: (t / "second" / "b.h").unlink(), "header gone: .*b.h"),
    "a directory goes": (lambda t: (t / "second").rename(t / "third"), "header gone"),
    "a header becomes a directory": (
        lambda t: ((t / "second" / "b.h").unlink(), (t / "second" / "b.h").mkdir()),
        "header gone: .*b.h",
    ),
    "a system header grows": (lambda t: (t / "system" / "cmath").write_text("x" * 99), "header changed: .*cmath"),
    "a system header has a new time": (lambda t: later(t / "system" / "cmath"), "header changed: .*cmath"),
    "a system header goes": (lambda t: (t / "system" / "cmath").unlink(), "header gone: .*cmath"),
    "a shadow earlier on the path": (lambda t: (t / "first" / "b.h").write_text(""), "shadowed: .*first.b.h"),
    "a shadow of a system header": (lambda t: (t / "first" / "cmath").write_text(""), "shadowed: .*first.cmath"),
    "a shadow beside the one that includes": (lambda t: (t / "second" / "c.h").write_text(""), "shadowed: .*c.h"),
    "a shadow two levels deep": (
        lambda t: ((t / "first" / "sub").mkdir(), (t / "first" / "sub" / "c.h").write_text("")),
        "shadowed: .*first.sub",
    ),
    "a shadow as a link": (lambda t: (t / "first" / "b.h").symlink_to(t / "second" / "a.h"), "shadowed: .*b.h"),
}


@pytest.mark.parametrize("row", STAYS)
def test_it_stays_valid_when(tree, row):
    manifest = record_of(tree)
    STAYS[row](tree)
    assert valid(manifest) is None
    assert valid(manifest) is None


@pytest.mark.parametrize("age", ["young", "old", "young at first"])
@pytest.mark.parametrize("row", CHANGES)
def test_it_becomes_invalid_with(tree, row, age, monkeypatch):
    if age == "old":  # stamps are trusted
        monkeypatch.setattr(headers, "RACY_NS", -(10**12))
    manifest = record_of(tree)
    monkeypatch.setattr(headers, "RACY_NS", headers.RACY_NS if age == "young" else -(10**12))
    assert valid(manifest) is None
    manifest = headers.settled(manifest)
    assert valid(manifest) is None
    change, reason = CHANGES[row]
    change(tree)
    assert re.search(reason, str(valid(manifest)))


def test_what_has_grown_old_is_known_by_its_stamps(tree, monkeypatch):
    manifest = record_of(tree)
    assert not any(any(row[-4:]) for row in manifest["headers"]["user"])
    assert headers.settled(manifest) == manifest
    monkeypatch.setattr(headers, "RACY_NS", -(10**12))
    assert valid(manifest) is None
    now = headers.settled(manifest)
    assert all(any(row[-4:]) for kind in ("user", "directories") for row in now["headers"][kind])
    assert headers.settled(now) is now
    monkeypatch.setattr(headers, "_read", None)
    monkeypatch.setattr(headers, "_list", None)
    assert valid(now) is None
    assert variant(now) == variant(manifest)


def test_a_shadow_in_a_directory_that_exists_already(tree):
    (tree / "first" / "sys").mkdir()
    manifest = record_of(tree)
    (tree / "first" / "sys" / "types.h").write_text("")
    assert valid(manifest) == f"header may be shadowed: {tree / 'first' / 'sys' / 'types.h'}"


def test_an_include_directory_that_appears(tree):
    made = record([tree / "second" / "a.h"], [], [tree / "none", tree / "second"])
    (tree / "none").mkdir()
    assert valid({"headers": made}) is None
    (tree / "none" / "a.h").write_text("")
    assert "shadowed" in str(valid({"headers": made}))


def test_other_text_with_the_old_time_and_size_is_noticed(tree, monkeypatch):
    monkeypatch.setattr(headers, "RACY_NS", -(10**12))
    path = tree / "second" / "b.h"
    status = path.stat()
    manifest = record_of(tree)
    path.write_text("int B;\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert path.stat().st_size == status.st_size
    assert valid(manifest) == f"header changed: {path}"


def test_two_changes_in_the_same_tick_of_the_clock_are_noticed(tree, monkeypatch):
    path = tree / "second" / "b.h"
    stamp = headers._stamp(path.stat())
    monkeypatch.setattr(headers, "_stamp", lambda status: (1, status.st_size, stamp[2], stamp[3]))
    manifest = record_of(tree)
    path.write_text("int B;\n")
    assert valid(manifest) == f"header changed: {path}"


def test_a_header_that_is_new_and_unchanged_is_read_once_only(tree, monkeypatch):
    manifest = record_of(tree)
    path = tree / "second" / "a.h"
    later(path, -1e6)
    monkeypatch.setattr(headers, "RACY_NS", -(10**12))
    read = []
    monkeypatch.setattr(
        headers.key, "content", lambda data, true=headers.key.content: (read.append(data), true(data))[1]
    )
    assert valid(manifest) is None
    assert b'#include "b.h"\n' in read
    read.clear()
    assert valid(manifest) is None
    assert read == []


# --- __has_include ---------------------------------------------------------------------------------------------

ASKS = '#if __has_include("other.h")\n#endif\n'


def test_a_text_that_asks_depends_on_all_names(tree):
    manifest = record_of(tree, ASKS)
    assert valid(manifest) is None
    (tree / "first" / "other.h").write_text("")
    assert valid(manifest) == f"names changed: {tree / 'first'}"
    (tree / "first" / "other.h").unlink()
    assert valid(manifest) is None


def test_a_header_that_asks_does_so_too(tree):
    (tree / "second" / "b.h").write_text(ASKS)
    manifest = record_of(tree)
    (tree / "second" / "other.h").write_text("")
    assert valid(manifest) == f"names changed: {tree / 'second'}"


def test_files_that_are_no_headers_do_not_matter_even_then(tree):
    manifest = record_of(tree, ASKS)
    for name in ("a.o", ".a.h.swp", "note.ipynb", "a.py", "a.h~"):
        (tree / "first" / name).write_text("")
    assert valid(manifest) is None


def test_preprocessing_decides_and_its_answer_is_remembered(tree):
    manifest = record_of(tree, ASKS)
    (tree / "first" / "irrelevant.h").write_text("")
    asked = []
    assert valid(manifest, lambda: bool(asked.append(1))) == f"names changed: {tree / 'first'}"
    assert valid(manifest, lambda: not asked.append(1)) is None
    assert valid(manifest) is None
    assert len(asked) == 2
    (tree / "first" / "more.h").write_text("")
    assert valid(manifest) == f"names changed: {tree / 'first'}"


def test_preprocessing_is_not_asked_when_a_header_differs(tree):
    manifest = record_of(tree, ASKS)
    (tree / "first" / "other.h").write_text("")
    (tree / "second" / "b.h").write_text("int B;\n")
    assert valid(manifest, lambda: pytest.fail("asked")) == f"header changed: {tree / 'second' / 'b.h'}"


# --- recording -------------------------------------------------------------------------------------------------


def test_a_header_written_while_the_compiler_ran_is_not_recorded(tree):
    started = time.time_ns()
    later(tree / "second" / "a.h", 1)
    with pytest.raises(HeaderChangedError, match=r"a\.h was written while the compiler ran"):
        record([tree / "second" / "a.h"], started_ns=started)
    assert record([tree / "second" / "b.h"], started_ns=started)


def test_a_header_that_is_gone_is_not_recorded(tree):
    with pytest.raises(HeaderChangedError, match="missing"):
        record([tree / "missing.h"])
    with pytest.raises(HeaderChangedError, match="missing"):
        record([], [tree / "missing.h"])


def test_a_relative_name_is_recorded_from_the_root(tree, monkeypatch):
    monkeypatch.chdir(tree / "second")
    manifest = {"headers": record(["a.h", "./a.h", tree / "second" / "a.h"], [], ["."])}
    monkeypatch.chdir(tree)
    assert len(manifest["headers"]["user"]) == 1
    assert valid(manifest) is None


@pytest.mark.parametrize("name", ["a b.h", "ü.h", "\"'$x.h", "b\udcff.h", "x" * 200 + ".h"])
def test_names_of_headers(tree, name):
    (tree / "first" / name).write_text("1")
    manifest = {"headers": json.loads(json.dumps(record([tree / "first" / name], [], [tree / "first"])))}
    assert valid(manifest) is None
    (tree / "first" / name).write_text("2")
    assert str(valid(manifest)).startswith("header changed")


@pytest.mark.parametrize("manifest", [{}, {"headers": None}, {"headers": {}}])
def test_without_headers_all_is_valid(manifest):
    assert valid(manifest) is None
    assert len(variant(manifest)) == 16


def test_the_variant_follows_contents_not_times(tree):
    one = record_of(tree)
    later(tree / "second" / "a.h")
    assert variant(record_of(tree)) == variant(one)
    (tree / "second" / "a.h").write_text("int a;\n")
    two = record_of(tree)
    assert variant(two) != variant(one)
    later(tree / "system" / "cmath")
    assert variant(record_of(tree)) != variant(two)


def test_memory_is_bounded(tree, monkeypatch):
    monkeypatch.setattr(headers, "RACY_NS", -(10**12))
    monkeypatch.setattr(headers, "_LIMIT", 5)
    for number in range(30):
        path = tree / "first" / f"{number}.h"
        path.write_text("")
        assert record([path])
    assert len(headers._contents) <= 7
