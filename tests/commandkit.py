"""What the tests of the command line share: texts, a cache of their own, and ways to call it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekernel import ToolchainError
from rekernel.__main__ import main
from rekernel.jit import CpuJit, cpu

HEAT = """// One step.
void step(rekernel::Array<double, 2> next, rekernel::Array<const double, 2> now, double k) {
    for (int64_t i = 1; i < now.shape(0) - 1; ++i)
        for (int64_t j = 1; j < now.shape(1) - 1; ++j)
            next(i, j) = now(i, j) + k * (now(i - 1, j) + now(i + 1, j) - 2 * now(i, j));
}
"""
BROKEN = "void broken(rekernel::Array<double, 1> x) {\n    x(0) = yy;\n}\n"
STENCIL = """import pystencils as ps
f, g = ps.fields("f, g: double[2D]")
mean = ps.Assignment(g.center, 0.5 * (f[1, 0] + f[-1, 0]))
twice = ps.Assignment(g.center, 2 * f.center)
"""
TAICHI = """print("the text says something")
@ti.kernel
def scale(x: ti.types.ndarray(dtype=ti.f32, ndim=1), k: ti.f32):
    for i in x:
        x[i] *= k

@ti.kernel
def anything(x: ti.types.ndarray(ndim=1)):
    for i in x:
        x[i] = 2
"""


def needs_nvrtc() -> None:
    """Skip a test where CUDA texts cannot be compiled."""
    from rekernel.cuda import nvrtc

    try:
        nvrtc.api()
    except ToolchainError as error:
        pytest.skip(str(error).splitlines()[0])


def command(*words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rekernel", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=240,
        encoding="utf-8", stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "TI_SKIP_VERSION_CHECK": "ON", **env},
    )  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for the command line, in this process and in others."""
    place = tmp_path / "cache"
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(place))
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "ticache"))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cpu, "default_jit", functools.cache(CpuJit))  # another test has made it, over its own cache
    return place


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is the current one, with a text that is right and one that is wrong."""
    place = tmp_path / "texts"
    place.mkdir()
    monkeypatch.chdir(place)
    Path("heat.cpp").write_text(HEAT)
    Path("broken.cpp").write_text(BROKEN)
    return place


Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Called:
    """Call the command line in this process: status, output, errors."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(word) for word in words])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


@pytest.fixture
def call_json(call: Called) -> Callable[..., tuple[int, Any]]:
    """Call the command line for one JSON document: status, document."""

    def run(*words: object) -> tuple[int, Any]:
        status, out, _errors = call(*words, "--json")
        return status, json.loads(out)

    return run
