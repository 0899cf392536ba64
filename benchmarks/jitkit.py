"""What the figures of the CPU JIT share: measuring, processes of their own, looking at what a process holds."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@dataclass
class Both:
    """A measurement of wall and CPU time, for `samples.interleaved`: it returns the first and keeps the second."""

    sample: Callable[[], tuple[float, float]]
    cpu: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        wall, cpu = self.sample()
        self.cpu.append(cpu)
        return wall


def timed(action: Callable[[], Any]) -> tuple[float, float]:
    """Return wall and CPU seconds of an action."""
    cpu, start = cpu_seconds(), time.perf_counter()
    action()
    return time.perf_counter() - start, cpu_seconds() - cpu


def child(*arguments: object, python: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
    """Start a process of its own: a function of ``jitchild.py``. It answers by lines of JSON."""
    command = [sys.executable, *python, str(Path(__file__).with_name("jitchild.py")), *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


@dataclass(frozen=True)
class Held:
    """What a process holds of the system."""

    descriptors: int
    mappings: int
    threads: int
    files: tuple[str, ...]
    resident_mb: float

    @classmethod
    def now(cls, *directories: str | os.PathLike[str]) -> Held:
        """Look, after all garbage is gone and its memory given back; `directories` are those of temporary files."""
        gc.collect()
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)
        lines = Path("/proc/self/status").read_text().splitlines()
        return cls(
            len(os.listdir("/proc/self/fd")),
            len(Path("/proc/self/maps").read_text().splitlines()),
            len(os.listdir("/proc/self/task")),
            tuple(sorted(str(path) for place in directories for path in Path(place).rglob("*"))),
            next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024,
        )
