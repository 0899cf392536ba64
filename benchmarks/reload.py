"""Bare Taichi, taichi-meta and rekernel side by side: what loading, reloading and calling a kernel costs.

    python benchmarks/reload.py [--quick] [--json FILE]

All figures of one run come from the same minutes of the same machine: samples of the peers take turns, each with
a text that nobody compiled before (a constant in it changes, and reaches the result, which is compared with NumPy
every time). The minimum and the median are printed. The exit status is 1 when a peer did not run or computed
something wrong, and never says anything about speed: that is what ``ok`` and ``MISSED`` in the table are for.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import calls
import figures
import peers
from samples import Figure, load_average, machine
from table import HEAD, Row


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    samples: int = 20
    cpu_samples: int = 60
    reloads: int = 2000
    processes: int = 20

    @classmethod
    def quick(cls) -> Plan:
        return cls(samples=20, cpu_samples=40, reloads=200, processes=3)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer reloads and processes: about two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--only", metavar="WORD", help="only the figures whose function has WORD in its name")
    options = parser.parse_args()
    if missing := _missing():
        for name, command in missing.items():
            print(f"{name} did not run: {command}", file=sys.stderr)
        return 1
    plan = Plan.quick() if options.quick else Plan()
    facts, began = machine(), load_average()
    for key, value in facts.items():
        print(f"{key:<12} {value}")
    print(f"{'load average':<12} {began} at the beginning\n\n{HEAD}", flush=True)
    rows: list[Row] = []
    try:
        peers.init()
        for measure in (*figures.ALL, *calls.ALL, growth, first_results):
            if options.only is None or options.only in measure.__name__:
                for row in measure(plan):
                    rows.append(row)
                    print("\n".join(row.lines()), flush=True)
    except (peers.WrongResultError, subprocess.CalledProcessError) as error:
        print(f"a peer did not run, or computed something wrong: {error}", file=sys.stderr)
        print(getattr(error, "stderr", "") or "", file=sys.stderr)
        return 1
    ended = load_average()
    print(f"\nload average {ended} at the end")
    if options.json is not None:
        report = {"machine": facts, "load": [began, ended], "plan": vars(plan), "rows": [row.plain() for row in rows]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def _missing() -> dict[str, str]:
    """Return the peers that are not installed, with what to do about it."""
    needs = {"taichi": "taichi==1.7.4", "taichi-meta": "taichi-meta==0.1.1", "rekernel": "."}
    found = {}
    for name, requirement in needs.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = f"pip install {requirement}"
            continue
        wanted = requirement.partition("==")[2]
        if wanted and installed != wanted:
            found[name] = f"pip install {requirement} (installed: {installed})"
    return found


def growth(plan: Plan) -> list[Row]:
    """Measure memory over many reloads, each peer in a process of its own."""
    rows = []
    for how, title in (("load", "never called"), ("call", "each called")):
        found = {name: _child(name, "reloads", str(plan.reloads), how) for name in peers.NAMES}

        def row(key: str, text: str, unit: str, limit: float | None = None, found: Any = found) -> Row:
            return Row(text, unit, {n: Figure.of([f[key]]) for n, f in found.items()}, limit)

        what = f"{plan.reloads} changed reloads, {title}"
        rows += [
            row("grown_mb", f"growth over {what}", "MB", 2.0 * plan.reloads / 2000 if how == "load" else None),
            row("grown_raw_mb", "  the same without collecting and trimming", "MB"),
            row("ms_each", "  time of each", "ms"),
        ]
    return rows


def first_results(plan: Plan) -> list[Row]:
    """Measure from a new process to a first result, processes taking turns."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in peers.NAMES}
    for _ in range(plan.processes):
        for name in peers.NAMES:
            found[name].append(_child(name, "first"))
    titles = {
        "import_peer_ms": "new process: import beside numpy and taichi",
        "load_ms": "new process: first load",
        "load_and_call_ms": "new process: first load and call",
        "import_taichi_ms": "  (import taichi)",
        "init_ms": "  (ti.init)",
    }
    return [Row(t, "ms", {n: Figure.of(s[key] for s in f) for n, f in found.items()}) for key, t in titles.items()]


def _child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("growth.py")), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
