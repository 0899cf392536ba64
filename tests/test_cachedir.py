"""Where the cache is: the order of places, what is refused, sizes."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import stat
import tempfile
from pathlib import Path

import pytest

from cachekit import NOBODY, Child, posix
from rekernel import cachedir
from rekernel.cachedir import AUTO, choose, parse_size, prepare, refusal


@pytest.fixture
def home(tmp_path, monkeypatch):
    made = tmp_path / "home"
    made.mkdir()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return made


def temporary(home) -> str:
    return str(home.parent / "temporary" / f"rekernel-{os.geteuid()}")


ORDER = {
    "the variable of ours first": (("REKERNEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"), "ours"),
    "then the one of the platform": (("XDG_CACHE_HOME", "HOME"), "xdg/rekernel"),
    "then the home directory": (("HOME",), "home/.cache/rekernel"),
}


@pytest.mark.parametrize("row", ORDER)
def test_the_order_of_places(home, row):
    root = home.parent
    everything = {
        "REKERNEL_CACHE_DIR": str(root / "ours"),
        "XDG_CACHE_HOME": str(root / "xdg"),
        "HOME": str(home),
    }
    names, expected = ORDER[row]
    place = choose(AUTO, {name: everything[name] for name in names})
    assert place.path == str(root / expected)
    assert place.warning is None


def test_an_argument_comes_before_everything(home):
    place = choose(home / "mine", {"REKERNEL_CACHE_DIR": str(home / "other")})
    assert place.path == str(home / "mine")
    assert not (home / "other").exists()


def test_an_empty_variable_is_none(home):
    assert choose(AUTO, {"REKERNEL_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": str(home)}).path == str(
        home / ".cache" / "rekernel"
    )


def test_a_relative_directory_of_the_platform_is_ignored(home):
    assert choose(AUTO, {"XDG_CACHE_HOME": "cache", "HOME": str(home)}).path == str(home / ".cache" / "rekernel")


def test_a_relative_path_stays_when_the_working_directory_changes(home, monkeypatch):
    monkeypatch.chdir(home)
    assert choose(AUTO, {"REKERNEL_CACHE_DIR": "here"}).path == str(home / "here")


def test_a_tilde_is_the_home_directory(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    assert choose(AUTO, {"REKERNEL_CACHE_DIR": "~/kernels"}).path == str(home / "kernels")


def test_all_that_it_makes_is_private_whatever_the_umask_says(home):
    before = os.umask(0)
    try:
        path = choose(AUTO, {"REKERNEL_CACHE_DIR": str(home / "a" / "b" / "c")}).path
    finally:
        os.umask(before)
    assert path is not None
    for directory in (Path(path), *Path(path).parents[:2]):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_programs_that_make_backups_are_told(home):
    path = choose(home / "c").path
    assert Path(path, "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")


def _file(path: Path) -> None:
    path.write_text("in the way")


def _in_a_file(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("in the way")


def _open_to_all(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def _open_to_the_group(path: Path) -> None:
    path.mkdir()
    path.chmod(0o770)


def _sticky(path: Path) -> None:
    path.mkdir()
    path.chmod(0o1777)


def _parent_open_to_all(path: Path) -> None:
    path.parent.chmod(0o777)


def _link_into_a_place_for_all(path: Path) -> None:
    shared = path.parent / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "mine").mkdir(0o700)
    path.symlink_to(shared / "mine")


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere" / "at all")


def _loop(path: Path) -> None:
    path.symlink_to(path)


REFUSED = {
    "a file": (_file, "file"),
    "below a file": (_in_a_file, "directory|exists"),
    "everybody can write": (_open_to_all, "others can write to it .mode 0777"),
    "the group can write": (_open_to_the_group, "others can write to it .mode 0770"),
    "everybody can write, and it is sticky": (_sticky, "others can write"),
    "everybody can rename it": (_parent_open_to_all, "everybody can rename it"),
    "a link to where everybody can write": (_link_into_a_place_for_all, "link into .*shared"),
    "a link to nowhere": (_dangling, "link to .*nowhere.*does not exist"),
    "a link to itself": (_loop, "exists|symbolic"),
}


@posix
@pytest.mark.parametrize("row", REFUSED)
def test_it_is_refused_with_a_reason_and_a_private_one_is_taken(home, row):
    prepare_row, reason = REFUSED[row]
    path = home / "in" / "cache"
    path.parent.mkdir()
    prepare_row(path)
    place = choose(AUTO, {"REKERNEL_CACHE_DIR": str(path)})
    assert place.path == temporary(home)
    assert place.warning is not None
    assert f"{path} (REKERNEL_CACHE_DIR)" in place.warning
    assert place.path in place.warning
    [(_, why)] = place.tried
    assert re.search(reason, why, re.IGNORECASE), why


@posix
def test_what_belongs_to_another_user_is_refused(home):
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    path = home / "cache"
    path.mkdir(0o700)
    os.chown(path, NOBODY, NOBODY)
    [(_, why)] = choose(path).tried
    assert why == f"it belongs to user {NOBODY}, and this process is user 0"
    os.chown(path, 0, 0)
    path.rmdir()
    path.symlink_to(home)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    [(_, why)] = choose(path).tried
    assert why == f"it is a link that belongs to user {NOBODY}"


@posix
def test_a_link_of_ones_own_to_ones_own_is_good(home):
    (home / "disk").mkdir()
    (home / "cache").symlink_to(home / "disk" / "cache")
    assert choose(home / "cache").path == str(home / "disk" / "cache")


def test_one_that_others_can_read_is_good(home):
    (home / "cache").mkdir()
    (home / "cache").chmod(0o755)
    assert choose(home / "cache").warning is None


def test_a_sticky_parent_is_good(home):
    home.chmod(0o1777)
    assert choose(home / "cache").warning is None


def _tried_where_nothing_can_be_written() -> list[str]:
    base = tempfile.mkdtemp(dir="/tmp")
    try:
        os.mkdir(f"{base}/cache", 0o500)
        os.mkdir(f"{base}/closed", 0o500)
        return [choose(f"{base}/{name}").tried[0][1] for name in ("cache", "closed/cache")]
    finally:
        shutil.rmtree(base)


@posix
def test_a_directory_without_the_right_to_write_is_refused(home):
    assert Child(_tried_where_nothing_can_be_written, user=NOBODY).result() == [
        "it cannot be written",
        "Permission denied",
    ]


def test_a_home_that_does_not_exist_is_not_made(home):
    place = choose(AUTO, {"HOME": str(home / "missing")})
    assert place.path == temporary(home)
    assert not (home / "missing").exists()
    assert "does not exist" in str(place.warning)


def test_without_home_and_without_an_entry_in_the_table_of_users(home, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    place = choose(AUTO, {})
    assert place.path == temporary(home)
    assert "HOME is not set" in str(place.warning)


def test_when_nothing_can_be_used_all_places_are_named(home):
    Path(temporary(home)).write_text("in the way")
    (home / "cache").write_text("in the way")
    place = choose(home / "cache")
    assert place.path is None
    assert str(home / "cache") in str(place.warning)
    assert temporary(home) in str(place.warning)
    assert "in memory only" in str(place.warning)
    assert "REKERNEL_CACHE_DIR" in str(place.warning)


def test_without_a_temporary_directory(home, monkeypatch):
    def missing():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", missing)
    place = choose(AUTO, {"HOME": str(home / "missing")})
    assert place.path is None
    assert "No usable temporary directory found" in str(place.warning)


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_names_that_no_directory_can_have(home, name):
    place = choose(str(home / name))
    assert place.path == temporary(home)


@pytest.mark.parametrize("name", ["a b", "ü", "\"'$x;", "x" * 200, "b\udcff", "日本"])
def test_names_that_a_directory_can_have(home, name):
    assert choose(str(home / name)).warning is None


def test_it_can_be_asked_for_twice(home):
    assert prepare(str(home / "c")) == prepare(str(home / "c"))
    assert refusal(str(home / "c")) is None


SIZES = {
    "0": 0,
    "1000000": 1_000_000,
    "10K": 10 << 10,
    "500M": 500 << 20,
    "2G": 2 << 30,
    "1T": 1 << 40,
    "1.5g": 3 << 29,
    " 5 MiB ": 5 << 20,
    "5MB": 5 << 20,
    "7B": 7,
}


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text):
    assert parse_size(text) == SIZES[text]
    assert parse_size(SIZES[text]) == SIZES[text]


@pytest.mark.parametrize("text", ["", "G", "many", "1X", "-1", "-5M", "inf", "nan", "1e400"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="cache"):
        parse_size(text)


def test_auto_shows_itself_and_stays_one():
    assert repr(AUTO) == "AUTO"
    assert pickle.loads(pickle.dumps(AUTO)) is AUTO
    assert cachedir.Auto is type(AUTO)
