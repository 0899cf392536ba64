"""What lasts: many processes at one cache, thousands of kernels in one process, processes that are killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from jitcold import read
from jitkit import child
from jitrows import Row, counted, scaled
from jitstencil import fresh

PROCESSES = 8
GROWTH_LIMIT_MB = 5
AT_ONCE_SECONDS = 5
"""Whoever waited for a lock of the dead would wait ten."""
SHIM = """\
#!/bin/sh
echo "$*" >> {log}
exec {real} "$@"
"""


def races(plan: Any) -> list[Row]:
    """Let eight processes ask for one new kernel at the same moment, and count how often a compiler compiled."""
    ours = [_race("race") for _ in range(plan.races)]
    theirs = [_race("race_pystencils")]
    rows = []
    for name, found, limit in (("rekernel", ours, 1), ("pystencils", theirs, None)):
        runs = [float(runs) for runs, _ in found]
        rows.append(scaled(f"{name}: compiler runs, {PROCESSES} processes, one kernel, most", "runs", [max(runs)],
                           limit=limit))  # fmt: skip
        rows.append(scaled("  time of the slowest", "ms", [slowest for _, slowest in found], 1e3))
    return rows


def _race(mode: str) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as place:
        log, shim = Path(place, "log"), Path(place, "shim", "g++")
        shim.parent.mkdir()
        shim.write_text(SHIM.format(log=log, real=shutil.which("g++")))
        shim.chmod(0o700)
        path, c = f"{shim.parent}{os.pathsep}{os.environ['PATH']}", next(fresh)
        processes = [child(mode, f"{place}/cache", c, PATH=path, CXX="") for _ in range(PROCESSES)]
        for process in processes:
            read(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        walls = [read(process)["wall"] for process in processes]
        for process in processes:
            process.communicate()
        words = [line.split() for line in log.read_text().splitlines()]
    # Whatever produces code from a source; questions about the compiler (-###, -E) produce none.
    runs = [line for line in words if any(w.endswith(".cpp") for w in line) and not {"-###", "-E"} & set(line)]
    return len(runs), max(walls)


def growth(plan: Any) -> list[Row]:
    """Load, call and replace thousands of kernels, and build hundreds, in a process of its own."""
    found = _own_process("growth", plan.prebuilt, plan.compiles)
    what = f"{plan.prebuilt} prebuilt kernels and {plan.compiles} builds"
    return [
        counted(f"{what}: growth", "MB", found["grown_mb"], limit=GROWTH_LIMIT_MB),
        *(counted(f"  {name} more than before", name, found[name], limit=0)
          for name in ("descriptors", "mappings", "threads", "files")),
        counted("  time to load, call and replace a prebuilt kernel", "us", found["load_us"]),
        counted("  time of a build", "ms", found["build_ms"]),
        counted("  alive at once that gave their own answer", "versions", found["alive"], limit=50, least=True),
    ]  # fmt: skip


def kills(plan: Any) -> list[Row]:
    """Kill processes at random moments of building and publishing; the next one has to work by itself, at once."""
    found = _own_process("kills", plan.kills)
    return [
        counted("killed at random moments", "processes", found["killed"], note=found["when"]),
        scaled("  the next run, same kernel: time to result", "ms", found["next"], 1e3),
        scaled("  the longest of them", "s", [max(found["next"])], limit=AT_ONCE_SECONDS),
        scaled("  a run that nobody disturbs", "ms", found["alone"], 1e3),
        counted("  next runs that failed, warned or told of waiting", "runs", found["bad"], limit=0),
        counted("  files left over after the next start", "files", found["left"], limit=0),
    ]


def _own_process(mode: str, *arguments: object) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, str(Path(__file__).with_name("jitholds.py")), mode, *map(str, arguments)]
        environment = {**os.environ, "TMPDIR": place}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            return read(process)


ALL = (races, growth, kills)
