"""Helpers of several test files: texts of small kernels, and programs in processes of their own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

START = """
import numpy as np
import taichi as ti
import rekernel
from support import *
ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
loader = rekernel.KernelLoader()
"""
"""What a program in a process of its own begins with, where it needs Taichi."""


def run_python(
    code: str, *arguments: str, timeout: float = 120, cwd: str | Path | None = None, returncode: int = 0, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new process and return what it printed; another exit code, or a hang, fails the test."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        cwd=cwd, timeout=timeout, capture_output=True, text=True, encoding="utf-8", check=False,
        env={
            **os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTHONIOENCODING": "utf-8",
            "PYTHONFAULTHANDLER": "1", "TI_SKIP_VERSION_CHECK": "ON", "ENABLE_TAICHI_HEADER_PRINT": "False", **env,
        },
    )  # fmt: skip
    assert process.returncode == returncode, f"exit {process.returncode}\n{process.stdout}\n{process.stderr}"
    return process


def held() -> dict[str, int]:
    """Count what this process holds and must give back with a library: descriptors, mappings of files, threads.

    Mappings without a file are not counted. They are memory, of which the interpreter takes another arena when it
    likes: a busy machine, where a compiler runs longer and other threads start, is enough. The sizes tell of leaks there.
    """
    for _ in range(3):
        gc.collect()
    mapped = [line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines()]
    return {
        "fds": len(os.listdir("/proc/self/fd")),
        "maps": sum(bool(name) and name[0].startswith("/") for name in mapped),
        "tasks": len(os.listdir("/proc/self/task")),
    }


def own_places(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a kernel's cache, settings and run-time files below `place`, away from the user's."""
    for variable in (
        "REKERNEL_CACHE_DIR", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
    ):  # fmt: skip
        monkeypatch.setenv(variable, str(place / variable))
        (place / variable).mkdir(mode=0o700)


def lines_of(process: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines that a program printed itself, without Taichi's greeting."""
    return [line for line in process.stdout.splitlines() if not line.startswith("[Taichi]")]


def times(factor: object, name: str = "f") -> str:
    """Return the text of a kernel ``f(n)`` = `factor` * n that is compiled anew for every n."""
    return f"@ti.kernel\ndef {name}(n: ti.template()) -> ti.f32:\n    return {factor} * n\n"


def scale(factor: object, name: str = "f") -> str:
    """Return the text of a kernel that multiplies any array of one dimension by `factor`, in place."""
    return f"@ti.kernel\ndef {name}(x: ti.types.ndarray(ndim=1)):\n    for i in x:\n        x[i] *= {factor}\n"
