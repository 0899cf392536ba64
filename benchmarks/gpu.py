"""CuPy, bare NVRTC and rekernel side by side on a CUDA device: launches, edits, throughput, memory.

    python benchmarks/gpu.py [--quick] [--json FILE] [--only WORD]

One run, about a minute. Samples of the peers take turns; minimum and median are printed (of rates: the best and the
median). Every result is compared. What fails is told and the rest goes on; the exit status is then 1. It never says
anything about speed: ``ok`` and ``MISSED`` in the table do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import datetime, timezone
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SECONDS = 240
"""No new figure is begun after so long."""


def facts() -> dict[str, str]:
    """What has to be known to judge the figures."""
    import cupy
    from cupy_backends.cuda.libs import nvrtc
    from samples import load_average, machine

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    known = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "device": properties["name"].decode(),
        "driver": f"CUDA {cupy.cuda.runtime.driverGetVersion()}, runtime {cupy.cuda.runtime.runtimeGetVersion()}",
        "NVRTC": ".".join(map(str, nvrtc.getVersion())),
        **machine(),
        "load average": load_average(),
    }
    for name in ("cupy-cuda13x", "cupy-cuda12x", "torch", "numba-cuda", "pystencils"):
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            known[name] = "not installed"
    return known


def _commit() -> str:
    try:
        asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well, after each group")
    parser.add_argument("--only", metavar="WORD", help="only the figures whose function has WORD in its name")
    options = parser.parse_args()
    # CuPy keeps what it has compiled; a text that was compiled before is not what is measured here.
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
    if find_spec("cupy") is None:
        print("CuPy is not installed", file=sys.stderr)
        return 1
    begin, report = time.monotonic(), {"machine": facts(), "rows": [], "failed": {}}
    for key, value in report["machine"].items():
        print(f"{key:<14} {value}")
    print(f"\n{'':<66}{'minimum / median':>22}", flush=True)
    import gpufigures
    import gpurates

    for measure in (
        gpufigures.launches, gpufigures.cold, gpurates.jacobi, gpurates.numbers, gpurates.held, gpufigures.warm, gpurates.reloads,
    ):  # fmt: skip
        name = measure.__name__
        if options.only is not None and options.only not in name:
            continue
        if time.monotonic() - begin > SECONDS:
            report["failed"][name] = f"left out: {SECONDS} s had passed"
            continue
        try:
            for row in measure(*_counts(name) if options.quick else ()):
                report["rows"].append(row.plain())
                print(row, flush=True)
        except Exception:
            report["failed"][name] = traceback.format_exc()
            print(f"{name} FAILED\n{report['failed'][name]}", flush=True)
        _write(options.json, report)
    report["seconds"] = round(time.monotonic() - begin, 1)
    _write(options.json, report)
    print(f"\n{report['seconds']} s; failed or left out: {', '.join(report['failed']) or 'nothing'}")
    print("JSON " + json.dumps({key: value for key, value in report.items() if key != "machine"}))
    return 1 if report["failed"] else 0


def _counts(name: str) -> tuple[int, ...]:
    return {"launches": (8,), "cold": (8,), "warm": (3,), "jacobi": (5,), "numbers": (2000,), "held": (200,)}.get(
        name, (200,)
    )


def _write(path: Path | None, report: dict[str, Any]) -> None:
    if path is not None:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
