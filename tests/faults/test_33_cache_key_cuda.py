"""Faults 33 and 51, CUDA text: one key in every process and place, another for each architecture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rekernel import KernelLoader
from test_cuda_texts import Jit, load, pytestmark  # noqa: F401

PROGRAM = """
import os, sys
from types import SimpleNamespace
from rekernel import KernelLoader
from rekernel.objcache import ObjectCache
loader = KernelLoader(jit=SimpleNamespace(objcache=ObjectCache(sys.argv[1])))
loader.load("__constant__ int c;\\n__global__ void k(float *x) { x[0] = c; }", sys.argv[2], arch="sm_90",
            first_line=int(sys.argv[3]), filename=sys.argv[2] + ".cu")
print(loader._lives[sys.argv[2]].current.built.from_cache)
"""


def test_another_process_place_and_line_have_the_same_key(tmp_path: Path) -> None:
    seen = []
    for number in range(3):
        place = tmp_path / str(number)
        place.mkdir()
        env = {**os.environ, "PYTHONHASHSEED": str(number), "TMPDIR": str(place)}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "cache"), f"id{number}", str(number + 1)]
        done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.strip())
    assert seen == ["False", "True", "True"]


@pytest.mark.parametrize("pair", [("sm_80", "sm_86"), ("sm_100", "sm_103"), ("sm_120", "sm_121"), ("sm_90", "sm_90a")])
def test_architectures_share_nothing(pair: tuple[str, str], tmp_path: Path) -> None:
    made = [load("__global__ void k() {}", KernelLoader(jit=Jit(tmp_path)), arch=arch) for arch in (*pair, *pair)]
    assert [one.from_cache for one in made] == [False, False, True, True]
    assert len({one.private.key for one in made}) == 2
