"""Row 5 for C++ texts: a process that is killed while its text is built stops nobody, and what it left goes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cachekit import Child, posix
from cppkit import Shim, answer, left_in, load_with, needs_cpp, until

pytestmark = [posix, needs_cpp]


def load(directory: str, number: int) -> int:
    return load_with(directory).load(answer(number), "k", optlevel="0").f()


def test_kills_at_random_moments_of_a_load_and_the_next_process_works_at_once(tmp_path):
    moments, directory = random.Random(5), str(tmp_path / "cache")
    start = time.perf_counter()
    assert Child(load, directory, 0).result() == 0
    usual = time.perf_counter() - start
    for number in range(1, 16):
        victim = Child(load, directory, number)
        time.sleep(moments.random() * usual)
        victim.kill()
        assert Child(load, directory, number).result() == number
    assert Child(load, directory, 0).result() == 0
    assert left_in(directory) == []


@pytest.mark.parametrize("who", ["python", "compiler"])
def test_a_kill_while_the_compiler_runs(tmp_path, who):
    shim, directory = Shim(tmp_path / "bin"), tmp_path / "cache"
    shim.close()
    program = (
        "import sys, rekernel\nfrom cppkit import *\n"
        f"m = load_with({str(directory)!r}, GccInfo(command={str(shim.path)!r})).load({answer(7)!r}, 'k')\nprint(m.f())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    victim = subprocess.Popen([sys.executable, "-c", program], env=env, stdout=-1, stderr=-1, text=True)
    shim.wait_for(1)
    compiler = int(shim.calls()[0])
    os.kill(victim.pid if who == "python" else compiler, signal.SIGKILL)
    said, error = victim.communicate(timeout=60)
    assert victim.returncode != 0
    if who == "compiler":
        assert "ToolchainError" in error
        assert "signal" in error or "killed" in error.lower()
    shim.open()
    assert load_with(directory, shim.info).load(answer(7), "k").f() == 7
    if who == "python":
        until(
            lambda: (
                not os.path.exists(f"/proc/{compiler}") or Path(f"/proc/{compiler}/stat").read_text().split()[2] == "Z"
            )
        )
        load_with(directory, shim.info).load(answer(8), "k")
    assert left_in(directory) == []
    assert said == ""
