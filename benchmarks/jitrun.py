"""One run of figures: arguments, machine facts, rows as they come, and the report. Shared by the programs with peers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jitrows import HEAD, Row
from samples import load_average


def arguments(doc: str | None, quick: str) -> argparse.Namespace:
    """Read the command line; `quick` says what ``--quick`` leaves out."""
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--only", metavar="WORD", help="only the figures whose function has WORD in its name")
    return parser.parse_args()


def run(
    options: argparse.Namespace, plan: Any, facts: Mapping[str, str], figures: Iterable[Callable[[Any], list[Row]]]
) -> int:
    """Measure, print and report; return the exit status."""
    began = load_average()
    for key, value in facts.items():
        print(f"{key:<12} {value}")
    print(f"{'load average':<12} {began} at the beginning\n\n{HEAD}", flush=True)
    rows = []
    try:
        for measure in figures:
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
