"""``rekernel cache``: what it shows is what is there; what it takes out is built again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cachekit import data_of, key_of
from commandkit import cache, call, call_json, here  # noqa: F401
from jitkernels import needs_compiler
from rekernel import cachelist
from rekernel.commands.cache import ago, bytes_said
from rekernel.objcache import ObjectCache


@pytest.fixture
def filled(cache: Path) -> ObjectCache:
    """A cache with entries as three languages publish them."""
    made = ObjectCache(cache)
    rows = [{"kernel": {"name": name, "language": "cpp"}} for name in ("step", "flux")]
    version = "gcc version 12.2.0 (Debian)"
    made.publish(
        key_of(1), {"entries": rows, "command": ["/usr/bin/g++", "-c"], "fields": {"version": version}}, data_of(1)
    )
    made.publish(key_of(2), {"kernels": ["mean"], "command": ["/usr/bin/clang++"]}, data_of(2, 90_000))
    cuda = [{"kernel": {"name": "fill", "language": "cuda"}}]
    made.publish(key_of(3), {"entries": cuda, "command": ["nvrtc"], "fields": {"nvrtc": [13, 0]}}, data_of(3))
    return made


def file_of(cache: Path, name: object) -> Path:
    return next(cache.glob(f"objects/*/*/{key_of(name)}.0"))


def test_info_counts_what_is_there(filled, cache, call, call_json):
    status, document = call_json("cache", "info")
    assert status == 0
    assert (document["directory"], document["entries"], document["limit"]) == (str(cache), 3, 1 << 30)
    assert document["size"] == sum(-(-p.stat().st_size // 4096) * 4096 for p in cache.glob("objects/*/*/*"))
    assert document["used_again"] == 0
    os.utime(file_of(cache, 1), (time.time() + 5, time.time() + 5))
    assert call_json("cache", "info")[1]["used_again"] == 1
    _status, out, _errors = call("cache", "info")
    assert str(cache) in out
    assert "REKERNEL_CACHE_SIZE" in out


def test_list_says_what_each_entry_is(filled, cache, call, call_json):
    entries = {tuple(one["kernels"]): one for one in call_json("cache", "list")[1]["entries"]}
    assert {names: (one["language"], one["compiler"]) for names, one in entries.items()} == {
        ("step", "flux"): ("cpp", "g++ 12.2.0"), ("mean",): ("jit", "clang++"), ("fill",): ("cuda", "nvrtc 13.0"),
    }  # fmt: skip
    assert entries["mean",]["size"] > entries["fill",]["size"]
    out = call("cache", "list")[1]
    assert "step, flux" in out
    assert key_of(1)[:8] in out


def test_list_is_sorted_by_use_and_takes_a_part_of_a_name(filled, cache, call_json):
    for number, name in enumerate((3, 1, 2)):
        os.utime(file_of(cache, name), (time.time() + number * 10, time.time() + number * 10))
    entries = call_json("cache", "list")[1]["entries"]
    assert [one["kernels"][0] for one in entries] == ["mean", "step", "fill"]
    assert [one["kernels"] for one in call_json("cache", "list", "flu")[1]["entries"]] == [["step", "flux"]]


def test_a_list_without_an_entry_says_so(filled, cache, call, call_json):
    assert call("cache", "list", "zzz")[1] == "no entry has a kernel with 'zzz' in its name\n"
    assert call_json("cache", "list", "zzz")[1]["entries"] == []
    ObjectCache(cache).prune(0)
    assert call("cache", "list")[1] == "the cache is empty\n"


def test_a_long_list_is_cut_unless_all_is_asked_for(cache, call, call_json):
    made = ObjectCache(cache)
    for number in range(45):
        made.publish(key_of(number), {"kernels": [f"k{number}"]}, data_of(number))
    assert "and 5 more: --all" in call("cache", "list")[1]
    assert len(call("cache", "list", "--all")[1].splitlines()) >= 47
    assert len(call_json("cache", "list")[1]["entries"]) == 45


@pytest.mark.parametrize("damage", [b"", b"rkentry\nnothing", b"x" * 5000], ids=["empty", "short", "other"])
def test_looking_never_fails_and_takes_nothing_out(damage, filled, cache, call, call_json):
    file_of(cache, 2).write_bytes(damage)
    assert call_json("cache", "info")[1]["unreadable"] == 1
    assert "unreadable" in call("cache", "list")[1]
    count, lines = cachelist.damaged(str(cache))
    assert (count, len(lines)) == (3, 1)
    assert file_of(cache, 2).read_bytes() == damage


def test_verify_takes_damaged_entries_out_and_says_so(filled, cache, call, call_json):
    assert call("cache", "verify")[0] == 0
    file = file_of(cache, 2)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    status, document = call_json("cache", "verify")
    assert (status, document["entries"]) == (1, 2)
    assert key_of(2) in document["damaged"][0]
    assert not file.exists()
    assert call("cache", "verify")[0] == 0


def test_prune_leaves_what_was_used_last(filled, cache, call_json):
    os.utime(file_of(cache, 2), (1e9, 1e9))
    status, document = call_json("cache", "prune", "40K")
    assert (status, document["removed"], document["entries"]) == (0, 1, 2)
    assert {one["kernels"][0] for one in call_json("cache", "list")[1]["entries"]} == {"step", "fill"}


def test_clear_does_nothing_by_itself_where_nobody_can_be_asked(filled, cache, call, call_json, monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    status, _out, errors = call("cache", "clear")
    sys.stdin.close()
    assert status == 2
    assert "3 entries" in errors
    assert "--yes" in errors
    assert call_json("cache", "clear")[0] == 2
    assert call_json("cache", "info")[1]["entries"] == 3


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 3), ("\n", 3)])
def test_clear_asks_a_person(answer, left, filled, cache):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    leader, follower = pty.openpty()
    os.write(leader, answer.encode())
    done = subprocess.run(
        [sys.executable, "-m", "rekernel", "cache", "clear"], stdin=follower, capture_output=True, text=True, timeout=60
    )
    os.close(leader)
    os.close(follower)
    assert "Take out 3 entries" in done.stdout
    assert done.returncode == (0 if left == 0 else 1)
    assert len(cachelist.listed(str(cache))) == left


def test_clear_takes_all_out_but_running_builds(filled, cache, call_json):
    for name in ("pch", "probes", "kin", "tmp"):
        (cache / name).mkdir(exist_ok=True)
        (cache / name / "file").write_text("x" * 100)
    status, document = call_json("cache", "clear", "--yes")
    assert (status, document["removed"]) == (0, 3)
    assert cachelist.listed(str(cache)) == []
    assert sorted(cachelist.beside(str(cache))) == ["tmp"]
    assert (cache / "tmp/file").exists()


@needs_compiler
def test_why_names_what_differs(here, cache, call, call_json):
    assert call_json("cache", "why", "heat.cpp")[1]["rows"][0]["hit"] is False
    assert call("build", "heat.cpp")[0] == 0
    assert call_json("cache", "why", "heat.cpp")[1]["rows"][0]["hit"] is True
    status, document = call_json("cache", "why", "heat.cpp", "-O", "optlevel=1")
    row = document["rows"][0]
    assert (status, row["hit"], row["field"]) == (0, False, "cxxflags")
    assert row["command"].startswith("python -m rekernel build heat.cpp ")
    assert "flags changed" in call("cache", "why", "heat.cpp", "-O", "optlevel=1")[1]


def test_without_a_directory_every_action_says_so(tmp_path, call, monkeypatch):
    from rekernel import cachedir

    monkeypatch.setattr(cachedir, "choose", lambda directory: cachedir.Place(None))
    for words in (["info"], ["list"], ["verify"], ["prune", "1M"], ["clear", "--yes"]):
        status, out, errors = call("cache", *words)
        assert (status, out) == (1, "")
        assert "there is no cache directory" in errors


def test_sizes_and_times_for_people():
    assert [bytes_said(n) for n in (0, 1023, 1024, 1 << 20, 5 << 30, 3 << 40)] == [
        "0 B", "1023 B", "1.0 KiB", "1.0 MiB", "5.0 GiB", "3.0 TiB",
    ]  # fmt: skip
    assert [ago(s) for s in (-1, 59, 60, 3599, 3600, 86399, 86400)] == [
        "0 s",
        "59 s",
        "1 min",
        "59 min",
        "1 h",
        "23 h",
        "1 d",
    ]
