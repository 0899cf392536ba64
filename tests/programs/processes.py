"""Runs the programs that the tests compare, each in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from programs.row import Row

HERE = Path(__file__).parent
TIME_LIMIT = 240
"""Seconds for one process; on a slow machine a cold compilation of the largest kernels takes about 20."""


@dataclass
class Result:
    """What one process left behind."""

    arrays: dict[str, np.ndarray]
    output: str


@dataclass
class Runs:
    """Starts processes, each row once, and hands out their results."""

    folder: Path
    pool: ThreadPoolExecutor
    started: dict[tuple[str, tuple[str, ...]], Future[list[Result]]] = field(default_factory=dict)

    def start(self, row: Row, modes: tuple[str, ...]) -> Future[list[Result]]:
        """Run a row in these modes, one after the other: the first fills Taichi's cache for the rest."""
        key = (row.id, modes)
        if key not in self.started:
            self.started[key] = self.pool.submit(self._run_all, row, modes)
        return self.started[key]

    def _run_all(self, row: Row, modes: tuple[str, ...]) -> list[Result]:
        folder = self.folder / "-".join((*row.id.split("/"), modes[-1])).replace(" ", "_")
        return [self._run(row, mode, folder) for mode in modes]

    def _run(self, row: Row, mode: str, folder: Path) -> Result:
        work = folder / mode
        work.mkdir(parents=True)
        out, state = folder / f"{mode}.npz", folder / "state.npz"
        command = [sys.executable, str(HERE / "driver.py"), row.id, mode, str(out), str(state)]
        try:
            process = subprocess.run(
                command,
                cwd=work,
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            pytest.fail(f"{row.id}, {mode}: still running after {TIME_LIMIT} s", pytrace=False)
        if process.returncode:
            pytest.fail(f"{row.id}, {mode}: exit {process.returncode}\n{process.stderr[-6000:]}", pytrace=False)
        with np.load(out) as arrays:
            result = Result(dict(arrays), process.stdout)
        if mode == "until":
            with np.load(state) as arrays:
                result.arrays |= {f"at the change: {name}": value for name, value in arrays.items()}
        return result

    def _environment(self) -> dict[str, str]:
        # One thread: sums by atomic additions then come in one order, and results can be compared bit by bit.
        arm = platform.machine().lower() in ("arm64", "aarch64")
        return os.environ | {
            "TI_ARCH": "arm64" if arm else "x64",
            "TI_CPU_MAX_NUM_THREADS": "1",
            "TI_OFFLINE_CACHE": "1",
            "TI_OFFLINE_CACHE_FILE_PATH": str(self.folder / "taichi-cache"),
            "TI_LOG_LEVEL": "warn",
            "TI_SKIP_VERSION_CHECK": "ON",
            "ENABLE_TAICHI_HEADER_PRINT": "False",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
