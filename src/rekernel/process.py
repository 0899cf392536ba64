"""Running compilers, in work directories that nobody else sees and that are gone afterwards.

A compiler gets a process group of its own, so that Ctrl-C reaches Python first; Python then ends the whole group.
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from rekernel.locks import unbroken

SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH")
"""Variables that hold lists of directories in which compilers look."""
CHANGING = (
    *SEARCHED, "GCC_EXEC_PREFIX", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS", "CLANG_CONFIG_FILE_SYSTEM_DIR",
    "LD_LIBRARY_PATH", "LD_RUN_PATH", "LD_PRELOAD", "LDEMULATION", "GNUTARGET", "MACOSX_DEPLOYMENT_TARGET", "SDKROOT",
    "SOURCE_DATE_EPOCH",
)  # fmt: skip
"""Variables that can change what a compiler or linker makes of the same text."""
_DROPPED = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COLORS", "LANGUAGE", "TMP", "TEMP", "GCC_COMPARE_DEBUG")
_NAME = re.compile(r"work-([0-9a-f]{8})-(\d+)-(\d+)-(\d+)")
_FOREIGN_AGE = 24 * 3600
"""After how many seconds a work directory of another machine counts as left behind."""

_numbers = itertools.count()
_running: dict[int, subprocess.Popen[bytes]] = {}
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


def environment(directory: str) -> dict[str, str]:
    """Return the environment of a compiler that runs in `directory`: messages in English, temporary files inside."""
    env = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    for name in SEARCHED:
        if name in env:
            env[name] = os.pathsep.join(os.path.abspath(entry) for entry in env[name].split(os.pathsep))
    return {**env, "LC_ALL": "C", "TMPDIR": directory}


def changing_variables() -> tuple[tuple[str, str], ...]:
    """Return the variables that are set and can change what a compiler makes of a text."""
    return tuple((name, os.environ[name]) for name in CHANGING if name in os.environ)


def run(
    command: Sequence[str], directory: str, env: Mapping[str, str] | None = None, *, background: bool = False
) -> Finished:
    """Run a program in a work directory and wait for it. Any exception, Ctrl-C too, ends its whole process group.

    The output goes through a file, for a process that stays behind could hold a pipe open for ever.
    """
    process: subprocess.Popen[bytes] | None = None
    start = time.perf_counter()
    name = os.path.join(directory, f"output{next(_numbers)}")
    try:
        with open(name, "w+b") as file:
            with unbroken():
                process = subprocess.Popen(
                    command, cwd=directory, env=environment(directory) if env is None else env,
                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
                _running[process.pid] = process
            if background:
                with suppress(OSError):
                    os.setpriority(os.PRIO_PGRP, process.pid, 10)
            process.wait()
            file.seek(0)
            output = file.read().decode("utf-8", "backslashreplace")
    except BaseException:
        if process is not None:
            with unbroken():
                end_group(process)
        raise
    finally:
        if process is not None:
            _running.pop(process.pid, None)
    return Finished(tuple(command), process.returncode, output, time.perf_counter() - start)


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
        with unbroken():
            directory = _make(None if root is None else os.fspath(root))
        yield directory
    finally:
        with unbroken():
            _remove(directory)


def sweep(root: str) -> None:
    """Remove the work directories that processes which no longer run have left below `root`."""
    with suppress(OSError):
        for entry in os.scandir(root):
            match = _NAME.fullmatch(entry.name)
            if match and _left_behind(entry, *match.groups()[:3]):
                shutil.rmtree(entry.path, ignore_errors=True)


def _left_behind(entry: os.DirEntry[str], world: str, pid: str, started: str) -> bool:
    if world != _world():  # another machine or container: its process numbers mean nothing here
        with suppress(OSError):
            return time.time() - entry.stat(follow_symlinks=False).st_mtime > _FOREIGN_AGE
        return False
    return start_time(int(pid)) != int(started)


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is no such process.

    A number of a process comes back after a while; number and start together do not.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
        return int(text[text.rindex(b")") :].split()[20])
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return None
    except (OSError, ValueError):
        return None
    try:  # no /proc: only whether it lives
        os.kill(pid, 0)
    except PermissionError:
        return 0
    except OSError:
        return None
    return 0


@cache
def _world() -> str:
    """Return a short name of this machine since its boot and of its space of process numbers."""
    parts = [os.uname().nodename]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return blake2b("\n".join(parts).encode(), digest_size=4).hexdigest()


def _make(root: str | None) -> str:
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
        _swept.add((pid, root))
        sweep(root)
    directory = os.path.join(root, f"work-{_world()}-{pid}-{start_time(pid) or 0}-{next(_numbers)}")
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
        shutil.rmtree(directory, ignore_errors=True)
        _directories.pop(directory, None)


def _clean_up() -> None:
    """At exit: end what threads of the background still run, and take their files along."""
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
