"""Row 52: nothing is read from where another user can write, and what we make is for this user alone."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from cachekit import NOBODY, data_of, entry_file, key_of, one_warning, posix
from rekernel.entryfile import pack
from rekernel.objcache import ObjectCache

pytestmark = posix
K = key_of("k")
EVIL = pack(K, bytes(16), 1, {}, b"evil")
needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def plant(directory: Path, mode: int = 0o600) -> Path:
    path = directory / "objects" / K[0] / K[1] / f"{K}.0"
    path.parent.mkdir(parents=True)
    path.write_bytes(EVIL)
    path.chmod(mode)
    return path


def _open_to_all(path: Path) -> None:
    path.mkdir()
    plant(path)
    path.chmod(0o777)


def _owned_by_another(path: Path) -> None:
    path.mkdir(0o700)
    plant(path)
    for one in (path, *path.rglob("*")):
        os.chown(one, NOBODY, NOBODY)


def _link_into_tmp(path: Path) -> None:
    shared = path.parent / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "planted").mkdir(0o700)
    plant(shared / "planted")
    path.symlink_to(shared / "planted")


def _below_what_all_can_rename(path: Path) -> None:
    path.mkdir(0o700, parents=True)
    plant(path)
    path.parent.chmod(0o777)


BEFORE = {
    "mode 0777": _open_to_all,
    "another owner": _owned_by_another,
    "a link into a directory for all": _link_into_tmp,
    "below a directory that all can write": _below_what_all_can_rename,
}


@pytest.mark.parametrize("row", BEFORE)
def test_a_directory_that_was_there_before_is_refused(tmp_path, temporary, row):
    if row == "another owner" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    directory = tmp_path / "in" / "cache"
    directory.parent.mkdir()
    BEFORE[row](directory)
    with one_warning(str(directory)):
        cache = ObjectCache(directory)
        assert cache.lookup(K) is None
        assert cache.why(K) == "new"
        assert cache.publish(K, {}, b"good")
        assert cache.lookup(K).data == b"good"
    assert cache.directory == str(temporary / f"rekernel-{os.geteuid()}")


def test_a_planted_temporary_directory_is_refused_too(tmp_path, temporary):
    (tmp_path / "file").write_text("")
    planted = temporary / f"rekernel-{os.geteuid()}"
    planted.mkdir()
    plant(planted)
    planted.chmod(0o777)
    with one_warning("in memory only"):
        assert ObjectCache(tmp_path / "file").lookup(K) is None


@needs_root
def test_a_file_of_another_user_in_a_good_directory_is_taken_out(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    path = plant(Path(cache.directory))
    os.chown(path, NOBODY, NOBODY)
    with one_warning("another user made it"):
        assert cache.lookup(K) is None
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o622])
def test_a_file_that_others_can_write_is_taken_out(tmp_path, mode):
    cache = ObjectCache(tmp_path / "cache")
    path = plant(Path(cache.directory), mode)
    with one_warning("can write to it"):
        assert cache.lookup(K) is None
    assert not path.exists()


@needs_root
def test_a_directory_that_is_exchanged_while_the_program_runs(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    cache.publish(K, {}, b"good")
    os.rename(tmp_path / "cache", tmp_path / "away")
    _owned_by_another(tmp_path / "cache")
    with one_warning("another user made it"):
        assert cache.lookup(K) is None


def test_all_that_is_made_is_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        cache = ObjectCache(tmp_path / "a" / "cache")
        cache.publish(K, {}, data_of("k"))
        with cache.building(K), cache.workdir() as work:
            made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
            modes = {p: stat.S_IMODE(p.stat().st_mode) for p in made if p.name != "CACHEDIR.TAG"}
            assert Path(work) in modes
    finally:
        os.umask(before)
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert all(mode & 0o077 == 0 for mode in modes.values())
    assert stat.S_IMODE(entry_file(cache, K).stat().st_mode) == 0o600


def test_nothing_is_unpickled():
    import rekernel

    names = "objcache variants objstore entryfile files ledger headers key cachedir workdirs buildlock"
    texts = [Path(rekernel.__file__).with_name(f"{name}.py").read_text() for name in names.split()]
    assert not [text for text in texts if "pickle" in text or "marshal" in text or "eval(" in text]
