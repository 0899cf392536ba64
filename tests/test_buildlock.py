"""Locks that save double work: who holds them, who waits, what is left."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cachekit import Child, posix
from rekernel import buildlock
from rekernel.buildlock import remove_left, turn

pytestmark = posix


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "locks" / "k")


class Holder:
    """A child that holds the lock until it is told to end, or is killed."""

    def __init__(self, path: str) -> None:
        ready_reader, ready = os.pipe()
        end, self._end = os.pipe()

        def hold() -> bool:
            os.close(self._end)
            with turn(path, 5) as mine:
                os.write(ready, b"x")
                os.read(end, 1)
            return mine.held

        self.child = Child(hold)
        os.close(end)
        os.close(ready)
        os.read(ready_reader, 1)
        os.close(ready_reader)

    def finish(self) -> None:
        os.close(self._end)
        self.child.result()


def test_it_is_held_inside_and_nothing_is_left(path):
    with turn(path, 0) as mine:
        assert mine.held
        assert os.path.exists(path)
        assert repr(mine) == "<Turn held, waited 0.0 s>"
    assert not mine.held
    assert os.listdir(os.path.dirname(path)) == []


def test_two_threads_have_two_turns(path):
    with turn(path, 0), turn(path, 0) as other:
        assert not other.held
    with turn(path, 0) as mine:
        assert mine.held


def test_another_process_is_waited_for_only_so_long_and_is_named(path):
    holder = Holder(path)
    with turn(path, 0.01) as mine:
        assert not mine.held
        assert f"process {holder.child.pid} on " in mine.holder
        assert mine.trouble is None
    holder.finish()
    with turn(path, 0) as mine:
        assert mine.held


def test_a_message_tells_who_is_waited_for(path, caplog, monkeypatch):
    monkeypatch.setattr(buildlock, "TELL_AFTER", 0.0)
    holder = Holder(path)
    with caplog.at_level(logging.WARNING, "rekernel"), turn(path, 0.02):
        pass
    holder.finish()
    [record] = caplog.records
    assert f"process {holder.child.pid} on " in record.getMessage()
    assert path in record.getMessage()


def test_a_killed_holder_frees_it_at_once(path):
    holder = Holder(path)
    holder.child.kill()
    assert os.path.exists(path)
    with turn(path, 0) as mine:
        assert mine.held
    assert not os.path.exists(path)


def test_one_that_waits_gets_it_from_the_one_before(path):
    holder = Holder(path)
    got = []

    def wait() -> None:
        with turn(path, 60) as mine:
            got.append(mine.held)

    thread = threading.Thread(target=wait)
    thread.start()
    holder.finish()
    thread.join(60)
    assert got == [True]
    assert not os.path.exists(path)


def test_only_one_is_inside_at_a_time(path, tmp_path):
    count = tmp_path / "count"
    count.write_text("0")

    def work() -> int:
        held = 0
        for _ in range(20):
            with turn(path, 60) as mine:
                held += mine.held
                count.write_text(str(int(count.read_text()) + 1))
        return held

    children = [Child(work) for _ in range(6)]
    assert [child.result() for child in children] == [20] * 6
    assert count.read_text() == "120"
    assert not os.path.exists(path)


def test_a_forked_child_neither_keeps_nor_removes_it(path):
    end, write_end = os.pipe()
    with turn(path, 0) as mine:

        def stay() -> bool:
            os.close(write_end)
            os.read(end, 1)
            return mine.held

        child = Child(stay)
    with turn(path, 0) as again:  # although the child lives
        assert again.held
    os.close(write_end)
    os.close(end)
    assert child.result() is False


def test_a_child_that_leaves_the_block_leaves_the_lock_to_its_parent(path):
    with turn(path, 0):
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            assert os.path.exists(path)
            with turn(path, 0) as other:
                assert not other.held
    if not pid:
        os._exit(0)
    assert not os.path.exists(path)


def test_a_started_program_does_not_keep_it(path):
    with turn(path, 0):
        program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    with turn(path, 0) as mine:
        assert mine.held
    program.communicate(b"\n")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO, errno.ESTALE])
def test_a_file_system_without_locks_means_no_lock(path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(buildlock.fcntl, "flock", refuse)
    with turn(path, 60) as mine:
        assert not mine.held
        assert mine.trouble is not None
        assert mine.trouble.errno == number


def _as_file(path: Path) -> None:
    path.parent.parent.mkdir(exist_ok=True)
    path.parent.write_text("in the way")


def _as_directory(path: Path) -> None:
    path.mkdir(parents=True)


def _as_link(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("what", [_as_file, _as_directory, _as_link])
def test_something_in_the_way_means_no_lock(path, what):
    what(Path(path))
    with turn(path, 60) as mine:
        assert not mine.held
        assert mine.trouble is not None


def test_a_system_without_such_locks_means_no_lock(path, monkeypatch):
    monkeypatch.setattr(buildlock, "fcntl", None)
    with turn(path, 60) as mine:
        assert not mine.held
    assert remove_left(os.path.dirname(path)) == 0


def test_an_exception_frees_it(path):
    with pytest.raises(KeyboardInterrupt), turn(path, 0):
        raise KeyboardInterrupt
    assert not os.path.exists(path)
    assert not buildlock._open


def test_a_lock_that_is_removed_by_hand_is_made_anew(path):
    with turn(path, 0) as mine:
        os.unlink(path)
        with turn(path, 0) as other:
            assert other.held
        assert mine.held


def test_what_killed_holders_have_left_is_removed_and_what_is_held_stays(path):
    directory = os.path.dirname(path)
    Holder(path).child.kill()
    held = os.path.join(directory, "held")
    with turn(held, 0):
        assert remove_left(directory) == 1
        assert os.listdir(directory) == ["held"]
    assert remove_left(directory) == 0
    assert remove_left(os.path.join(directory, "missing")) == 0


def test_no_descriptor_stays_open(path):
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for _ in range(50):
        with turn(path, 0), turn(path, 0):
            pass
    after = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    assert len(after) == len(before)
