"""Running compilers, in work directories that nobody else sees and that are gone afterwards.

A compiler gets a process group of its own, so that Ctrl-C reaches Python first; Python then ends the whole group.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import stat
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from rekernel import workdirs
from rekernel.locks import rlock, unbroken

if TYPE_CHECKING:
    import subprocess

SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH")
"""Variables that hold lists of directories in which compilers look."""
CHANGING = (
    *SEARCHED, "GCC_EXEC_PREFIX", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS", "CLANG_CONFIG_FILE_SYSTEM_DIR",
    "LD_LIBRARY_PATH", "LD_RUN_PATH", "LD_PRELOAD", "LDEMULATION", "GNUTARGET", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT",
    "SOURCE_DATE_EPOCH",
)  # fmt: skip
"""Variables that can change what a compiler or linker makes of the same text."""
_DROPPED = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COLORS", "LANGUAGE", "TMP", "TEMP", "GCC_COMPARE_DEBUG")
_PREFIX = "work-"

_numbers = itertools.count()
_starting = rlock()
_ending: list[bool] = []
_running: dict[int, subprocess.Popen[bytes]] = {}
_threads: dict[int, threading.Thread] = {}
_abandoned: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_directories: dict[str, int] = {}
_swept: set[tuple[int, str]] = set()


@dataclass(frozen=True)
class Finished:
    """A program that has ended."""

    command: tuple[str, ...]
    """The command."""
    returncode: int
    """0 where all went well; minus the signal's number for one that a signal ended."""
    output: str
    """All that it wrote, errors included."""
    seconds: float
    """How long it took."""


def environment(directory: str, variables: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Return the environment of a compiler that runs in `directory`: messages in English, temporary files inside.

    `variables` are what it gets besides those of the process, or instead of them.
    """
    env = {name: value for name, value in {**os.environ, **dict(variables)}.items() if name not in _DROPPED}
    for name in SEARCHED:
        if name in env:
            env[name] = os.pathsep.join(os.path.abspath(entry) for entry in env[name].split(os.pathsep))
    return {**env, "LC_ALL": "C", "TMPDIR": directory}


def changing_variables(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables that can change what a compiler makes of a text, and those that are `given` for it."""
    ours = {name: os.environ[name] for name in CHANGING if name in os.environ}
    return tuple({**ours, **dict(sorted(given.items()))}.items())


def run(
    command: Sequence[str], directory: str, env: Mapping[str, str] | None = None, *, background: bool = False
) -> Finished:
    """Run a program in a work directory and wait for it. Any exception, Ctrl-C too, ends its whole process group.

    The output goes through a file, for a process that stays behind could hold a pipe open for ever.
    """
    import subprocess  # here, so that a process which finds all in the cache does without

    process: subprocess.Popen[bytes] | None = None
    start = time.perf_counter()
    name = os.path.join(directory, f"output{next(_numbers)}")
    try:
        with open(name, "w+b") as file:
            with steady(), _starting:
                if _ending and threading.current_thread() is not threading.main_thread():
                    raise SystemExit  # the interpreter is about to stop this thread anyway
                _leave_if_abandoned()
                process = subprocess.Popen(
                    command, cwd=directory, env=environment(directory) if env is None else env,
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                _threads[process.pid] = threading.current_thread()
                _running[process.pid] = process
            if background:
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, process.pid, 10)
            process.wait()
            _leave_if_abandoned()
            file.seek(0)
            output = file.read().decode("utf-8", "backslashreplace")
    except BaseException:
        if process is not None:
            with steady():
                end_group(process)
        raise
    finally:
        if process is not None:
            _running.pop(process.pid, None)
            _threads.pop(process.pid, None)
    return Finished(tuple(command), process.returncode, output, time.perf_counter() - start)


def abandon(thread: threading.Thread) -> None:
    """End what a thread runs, for nobody wants it any more: it gets SystemExit, and so at every later `run`."""
    with _starting:
        _abandoned.add(thread)
        for process in list(_running.values()):
            if _threads.get(process.pid) is thread:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)


def _leave_if_abandoned() -> None:
    if threading.current_thread() in _abandoned:
        raise SystemExit


@contextmanager
def steady() -> Iterator[None]:
    """Let signals wait whose handlers may raise: a process must not start, or a file appear, without being noted."""
    with unbroken(), _deferred(signal.SIGTERM), _deferred(signal.SIGHUP), _deferred(signal.SIGALRM):
        yield


@contextmanager
def _deferred(number: signal.Signals) -> Iterator[None]:
    handler = signal.getsignal(number)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[FrameType | None] = []
    signal.signal(number, lambda _number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if came:
            handler(number, came[0])


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a compiler and all that it started."""
    # Until it is waited for, its number cannot belong to another process.
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def working(root: str | os.PathLike[str] | None) -> Iterator[str]:
    """Give a private directory below `root` (or where that cannot be, the system's) that is removed afterwards."""
    directory = ""
    try:
        with steady():
            directory = _make(None if root is None else os.fspath(root))
        yield directory
    finally:
        with steady():
            _remove(directory)


def _make(root: str | None) -> str:
    import tempfile

    # Read-only, full, a file, somebody else's: the system's directory for temporary files will do.
    for place in (root, os.path.join(tempfile.gettempdir(), f"rekernel-{os.geteuid()}")):
        if place is not None:
            with suppress(OSError):
                return _make_in(place)
    directory = tempfile.mkdtemp(prefix="rekernel-")
    _directories[directory] = os.getpid()
    return directory


def _make_in(root: str) -> str:
    pid = os.getpid()
    os.makedirs(root, mode=0o700, exist_ok=True)
    if not private(root):
        raise PermissionError(root)
    if (pid, root) not in _swept:
        if len(_swept) > 100:  # roots that came and went
            _swept.clear()
        _swept.add((pid, root))
        workdirs.sweep(root, _PREFIX)
    directory = os.path.join(root, f"{_PREFIX}{workdirs.mark()}-{next(_numbers):x}")
    os.mkdir(directory, 0o700)
    _directories[directory] = pid
    return directory


def private(directory: str) -> bool:
    """Return whether a directory is ours and nobody else can write to it."""
    try:
        status = os.stat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _remove(directory: str) -> None:
    if directory:
        import shutil

        shutil.rmtree(directory, ignore_errors=True)
        _directories.pop(directory, None)


def _clean_up() -> None:
    """At exit: end what threads of the background still run, and take their files along."""
    with _starting:
        _ending.append(True)
        for process in list(_running.values()):
            end_group(process)
    for directory, pid in list(_directories.items()):
        if pid == os.getpid():
            _remove(directory)


def _forget() -> None:
    # In a forked child: compilers and directories belong to the parent.
    _running.clear()
    _directories.clear()


atexit.register(_clean_up)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
