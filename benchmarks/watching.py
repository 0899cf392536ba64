"""From a save to the swap: what watching adds to the build, beside the same build without watching, in one run.

pip install ".[watch]"                    # and a g++
python benchmarks/watching.py --quick     # half a minute
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import rekernel
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache

LIMIT_MS = 150.0
"""What watching may add to a build."""
BOUND = 60.0


def text(number: int) -> str:
    """Return a text that nobody has compiled, with some work for the compiler."""
    body = "".join(f"double part{i}(double x) {{ return x * {number + i}.5 + {i}; }}\n" for i in range(30))
    return f"#include <cmath>\n{body}int f() {{ return {number}; }}\n"


def until(condition: Callable[[], bool]) -> None:
    """Call a condition again and again until it holds."""
    end = time.perf_counter() + BOUND
    while not condition():
        if time.perf_counter() > end:
            sys.exit("a reload did not come")
        time.sleep(0.001)


def row(name: str, samples: list[float], limit: float | None = None) -> dict[str, object]:
    """Print and return one figure in milliseconds."""
    least, middle = 1e3 * min(samples), 1e3 * statistics.median(samples)
    verdict = "" if limit is None else "ok" if least <= limit and middle <= limit else "MISSED"
    print(f"{name:<44} {least:9.1f} {middle:9.1f}  {verdict}")
    return {"name": name, "min_ms": least, "median_ms": middle, "limit_ms": limit, "verdict": verdict}


def main() -> int:
    """Run the figures; the exit status is 1 when something computed a wrong result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 samples instead of 30")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    samples = 10 if arguments.quick else 30
    with tempfile.TemporaryDirectory() as place:
        rows = measure(Path(place), samples)
    if arguments.json:
        arguments.json.write_text(json.dumps({"load": os.getloadavg(), "rows": rows}, indent=2), encoding="utf-8")
    return 0


def measure(place: Path, samples: int) -> list[dict[str, object]]:
    """Measure in turns: a build by hand, a save under the watch."""
    path, numbers = place / "k.cpp", iter(range(1000, 100_000))
    path.write_text(text(next(numbers)), encoding="utf-8")
    loader = rekernel.KernelLoader(jit=CpuJit(objcache=ObjectCache(place / "cache")))
    f = loader.load_file(path).f
    builds, saves, over, burst = [], [], [], []
    for _ in range(samples):
        number = next(numbers)
        started = time.perf_counter()
        loader.load(text(number), "by_hand")
        builds.append(time.perf_counter() - started)
        with loader.watch():
            number = next(numbers)
            changed = text(number)
            started = time.perf_counter()
            path.write_text(changed, encoding="utf-8")
            until(lambda number=number: f() == number)
            saves.append(time.perf_counter() - started)
            over.append(saves[-1] - builds[-1])
            for _ in range(10):
                number = next(numbers)
                path.write_text(text(number), encoding="utf-8")
                time.sleep(0.02)
            started = time.perf_counter() - 0.02
            until(lambda number=number: f() == number)
            burst.append(time.perf_counter() - started - builds[-1])
    print(f"load average {os.getloadavg()[0]:.1f}, {samples} samples, milliseconds      minimum    median")
    rows = [
        row("the build alone, by hand", builds),
        row("save to swap", saves),
        row("save to swap, over the build of its turn", over, LIMIT_MS),
        row("last of ten saves to swap, over the build", burst, LIMIT_MS),
    ]
    misses, events = loader.jit.objcache.stats.misses, []
    with loader.watch() as watch:
        loader.on_reload(events.append)
        for _ in range(10):
            path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
            time.sleep(0.05)
        wanted = watch.turns + 2
        until(lambda: watch.turns >= wanted)
    built = loader.jit.objcache.stats.misses - misses
    print(
        f"ten unchanged saves: {len(events)} events, {built} builds  {'ok' if not events and not built else 'MISSED'}"
    )
    loader.cleanup_all()
    return [*rows, {"name": "ten unchanged saves", "events": len(events), "builds": built}]


if __name__ == "__main__":
    sys.exit(main())
