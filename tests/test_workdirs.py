"""Directories of running and of dead processes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cachekit import Child, posix
from rekernel import workdirs
from rekernel.workdirs import mark, sweep, workdir


def test_it_is_private_and_gone_at_the_end(tmp_path):
    with workdir([(str(tmp_path / "tmp"), "")]) as path:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
        assert os.path.basename(path).startswith(mark())
        Path(path, "a.cpp").write_text("")
        Path(path, "below").mkdir()
        Path(path, "below", "b.o").write_text("")
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_it_is_gone_after(tmp_path, error):
    def build() -> None:
        with workdir([(str(tmp_path), "")]) as path:
            Path(path, "a.cpp").write_text("")
            raise error

    with pytest.raises(error):
        build()
    assert os.listdir(tmp_path) == []


def test_the_next_place_is_taken_where_the_first_does_not_work(tmp_path):
    (tmp_path / "file").write_text("")
    with workdir([(str(tmp_path / "file"), ""), (str(tmp_path), "build-")]) as path:
        assert path.startswith(str(tmp_path / "build-"))
    with pytest.raises(OSError, match=r"no directory for a build can be made \(tried: .*file"):
        workdir([(str(tmp_path / "file"), "")]).__enter__()


def test_two_builds_have_two(tmp_path):
    with workdir([(str(tmp_path), "")]) as one, workdir([(str(tmp_path), "")]) as two:
        assert one != two


@posix
def test_a_child_forked_inside_leaves_it(tmp_path):
    with workdir([(str(tmp_path), "")]) as path:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            assert os.path.isdir(path)
    if not pid:
        os._exit(0)
    assert not os.path.isdir(path)


@posix
def test_what_a_killed_process_has_left_is_removed_and_the_rest_stays(tmp_path):
    ready, write_ready = os.pipe()
    never, write_never = os.pipe()

    def work() -> None:
        with workdir([(str(tmp_path), "")]) as path:
            Path(path, "a.cpp").write_text("")
            os.write(write_ready, b"x")
            os.read(never, 1)

    child = Child(work)
    os.read(ready, 1)
    with workdir([(str(tmp_path), "")]) as mine:
        assert sweep(str(tmp_path)) == 0  # it lives
        child.kill()
        assert sweep(str(tmp_path)) == 1
        assert os.listdir(tmp_path) == [os.path.basename(mine)]
    for descriptor in (ready, write_ready, never, write_never):
        os.close(descriptor)


def test_a_number_that_was_given_to_another_process_is_known_by_its_start(tmp_path):
    pid, started, host = mark().split("-")
    (tmp_path / f"{pid}-{int(started) + 1}-{host}-ab").mkdir()
    if int(started):
        assert sweep(str(tmp_path)) == 1
    (tmp_path / f"{mark()}-ab").mkdir()
    assert sweep(str(tmp_path)) == 0


@pytest.mark.parametrize("name", ["1-1-00000000-ab", "stranger", "a-b-c-d"])
def test_what_is_of_another_host_or_nobody_goes_after_a_day(tmp_path, name):
    (tmp_path / name).mkdir()
    assert sweep(str(tmp_path)) == 0
    os.utime(tmp_path / name, (0, 0))
    assert sweep(str(tmp_path)) == 1


def test_only_names_with_the_prefix_are_looked_at(tmp_path):
    for name in ("others", "build-1-1-00000000-ab"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    assert sweep(str(tmp_path), "build-") == 1
    assert os.listdir(tmp_path) == ["others"]


def test_without_proc_a_process_is_known_by_its_number(monkeypatch):
    monkeypatch.setattr(workdirs, "_started", lambda pid: None)
    assert workdirs._alive(os.getpid(), 0)
    assert not workdirs._alive(2**22 + 1, 0)
    assert workdirs._alive(2**80, 0)


def test_a_missing_directory_is_empty(tmp_path):
    assert sweep(str(tmp_path / "missing")) == 0
