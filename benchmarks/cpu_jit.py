"""What the CPU JIT costs: building, starting, calling, running; and what it leaves behind.

    python benchmarks/cpu_jit.py [--quick] [--json FILE] [--only WORD]

Peers are measured in the same run, samples taking turns: the compiler alone, C by hand through ctypes, NumPy,
pystencils. Texts change by a constant that reaches the result, which is compared with NumPy every time. The exit
status is 1 when a peer is missing or did not run, or something computed a wrong result. It never says anything about
speed: that is what ``ok`` and ``MISSED`` are for.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from samples import load_average, machine


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    samples: int = 20
    loops: int = 20_000
    sweeps: int = 100
    races: int = 5
    prebuilt: int = 10_000
    compiles: int = 500
    kills: int = 100

    @classmethod
    def quick(cls) -> Plan:
        return cls(loops=5_000, sweeps=20, races=2, compiles=200, kills=30)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer builds, processes and kills")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--only", metavar="WORD", help="only the figures whose function has WORD in its name")
    options = parser.parse_args()
    if missing := _missing():
        for name, command in missing.items():
            print(f"{name} did not run: {command}", file=sys.stderr)
        return 1
    import jitcalls
    import jitcold
    import jitlasting
    from jitrows import HEAD

    plan = Plan.quick() if options.quick else Plan()
    facts, began = _facts(), load_average()
    for key, value in facts.items():
        print(f"{key:<12} {value}")
    print(f"{'load average':<12} {began} at the beginning\n\n{HEAD}", flush=True)
    rows = []
    try:
        for measure in (*jitcold.ALL, *jitcalls.ALL, *jitlasting.ALL):
            if options.only is None or options.only in measure.__name__:
                print(f"-- {measure.__name__}", flush=True)
                for row in measure(plan):
                    rows.append(row)
                    print(row, flush=True)
    except (AssertionError, subprocess.CalledProcessError) as error:
        print(f"a peer did not run, or computed something wrong: {error}", file=sys.stderr)
        return 1
    ended = load_average()
    print(f"\nload average {ended} at the end")
    if options.json is not None:
        report = {"machine": facts, "load": [began, ended], "plan": vars(plan), "rows": [row.plain() for row in rows]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def _missing() -> dict[str, str]:
    """Return the peers that are not here, with what to do about it."""
    needs = {"pystencils": "pystencils==2.0", "numpy": "numpy", "rekernel": "."}
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
    if shutil.which("g++") is None:
        found["g++"] = "install it (Debian, Ubuntu: apt install g++)"
    return found


def _facts() -> dict[str, str]:
    facts = {name: value for name, value in machine().items() if not name.startswith("taichi")}
    facts["pystencils"] = metadata.version("pystencils")
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    facts["g++"] = version.split("\n")[0]
    return facts


if __name__ == "__main__":
    sys.exit(main())
