"""What the tests of C++ texts share: loaders with a cache of their own, small texts, compilers that can be watched."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from rekernel import KernelLoader, _native
from rekernel.compilers import CompilerInfo, GccInfo
from rekernel.errors import ToolchainError
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from rekernel.probe import probe

START = """
import os, sys, threading, time
import numpy as np
import rekernel
from cppkit import *
loader = load_with(sys.argv[1])
"""
"""What a program in a process of its own begins with; its first argument is the directory of the cache."""


@functools.cache
def has_gcc() -> bool:
    """Whether g++ is here. It is not asked: this is imported by every program that a test starts."""
    return shutil.which("g++") is not None


@functools.cache
def _has_reader() -> bool:
    try:
        import tree_sitter_cpp  # noqa: F401
    except ImportError:
        return False
    return True


needs_cpp = pytest.mark.skipif(
    not has_gcc() or not _has_reader(), reason="C++ texts need g++ and the reader (tree-sitter-cpp) here"
)
linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")


def load_with(directory: str | os.PathLike[str] | None, info: CompilerInfo | None = None) -> KernelLoader:
    """Return an empty loader that compiles with g++ (or another) and keeps what it builds in a directory."""
    return KernelLoader(jit=CpuJit(info or GccInfo(), ObjectCache(directory)))


def answer(number: object, name: str = "f") -> str:
    """Return the text of a kernel that returns a number."""
    return f"int {name}() {{ return {number}; }}\n"


def hits(loader: KernelLoader) -> tuple[int, int]:
    """Return how often the cache of a loader had what was asked for, and how often not."""
    stats = loader.jit.objcache.stats
    return stats.hits, stats.misses


class Shim:
    """A compiler that notes every compile of a text, and may be told to wait at a gate before it."""

    def __init__(self, directory: Path, body: str = "") -> None:
        directory.mkdir(exist_ok=True)
        self.log, self.gate, self.path = directory / "log", directory / "gate", directory / "g++"
        self.log.write_text("")
        real = shutil.which("g++")
        self.path.write_text(
            f'#!/bin/sh\ncase "$*" in *-###*|*--version*) exec {real} "$@";; esac\n'
            f'case "$*" in *" -c kernel.cpp "*) echo "$$ $*" >> "{self.log}"; {body}\n'
            f'while [ -e "{self.gate}" ]; do sleep 0.02; done;; esac\nexec {real} "$@"\n'
        )
        self.path.chmod(0o755)

    @property
    def info(self) -> GccInfo:
        """The compiler's description."""
        return GccInfo(command=str(self.path))

    def close(self) -> None:
        """Let the next compiles wait."""
        self.gate.touch()

    def open(self) -> None:
        """Let them go on."""
        self.gate.unlink()

    def calls(self) -> list[str]:
        """Return the number of the process of every compile so far."""
        return [line.split()[0] for line in self.log.read_text().splitlines()]

    def wait_for(self, calls: int) -> None:
        """Return when so many compiles have begun."""
        until(lambda: len(self.calls()) >= calls)


def until(happened: Any, seconds: float = 60.0) -> None:
    """Return when something has happened; the test fails where it never does."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def left_in(directory: str | os.PathLike[str]) -> list[str]:
    """Return the files of a cache that are neither entries nor what every cache has."""
    kept = ("objects", "ledger", "kin", "CACHEDIR.TAG", "probes", "pch")
    found = (path.relative_to(directory) for path in Path(directory).rglob("*") if not path.is_dir())
    return sorted(str(path) for path in found if path.parts[0] not in kept)


def living_children(pid: int) -> list[str]:
    """Return the commands of the living processes that a process has started."""
    done = subprocess.run(["ps", "-o", "args=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if not line.startswith("ps ")]


__all__ = [
    "START", "CpuJit", "GccInfo", "KernelLoader", "ObjectCache", "Shim", "ToolchainError", "_native", "answer",
    "has_gcc", "hits", "left_in", "linux", "living_children", "load_with", "needs_cpp", "probe", "until",
]  # fmt: skip
