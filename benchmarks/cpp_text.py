"""What C++ text costs: from a text that nobody has seen to its first result, and every load after that.

    python benchmarks/cpp_text.py [--quick] [--json FILE] [--only WORD]

Peers are measured in the same run, samples taking turns: the compiler alone, and numba, cppyy and PyTorch's load_inline
where they are installed (a line says which are not). Texts change by a constant that reaches the result, which is
compared with NumPy every time. The exit status is 1 when g++ is missing or something computed a wrong result. It never
says anything about speed: that is what ``ok`` and ``MISSED`` are for.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from jitrows import HEAD
from samples import load_average, machine


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    samples: int = 20
    sweeps: int = 200

    @classmethod
    def quick(cls) -> Plan:
        return cls(samples=8, sweeps=60)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--only", metavar="WORD", help="only the figures whose function has WORD in its name")
    options = parser.parse_args()
    if shutil.which("g++") is None:
        print("g++ is missing; install it (Debian, Ubuntu: apt install g++)", file=sys.stderr)
        return 1
    import cppfigures

    plan = Plan.quick() if options.quick else Plan()
    facts, began = machine(), load_average()
    for key, value in facts.items():
        print(f"{key:<12} {value}")
    print(f"{'load average':<12} {began} at the beginning\n\n{HEAD}", flush=True)
    rows = []
    try:
        for measure in cppfigures.ALL:
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


if __name__ == "__main__":
    sys.exit(main())
