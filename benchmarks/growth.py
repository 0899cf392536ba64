"""One peer in a process of its own: memory over many reloads, or the way from nothing to a first result.

``python growth.py PEER reloads COUNT call|load`` and ``python growth.py PEER first`` print one line of JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import sys
import time
from typing import Any

import peers  # with NumPy, so that no peer's import has to pay for it

WARM = 20


def resident() -> float:
    """Return the memory of this process that is in RAM, in MB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def settled() -> float:
    """Return the same after all garbage is gone and given back to the system."""
    gc.collect()
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
    return resident()


def reloads(name: str, count: int, call: bool) -> dict[str, Any]:
    """Reload changed texts; with `call`, call each one and compare it with NumPy."""
    peers.init()
    peer = peers.make(name)

    def one() -> None:
        constant = next(peers.fresh)
        peer.load(peers.ONE.format(c=constant), "step")
        if call:
            peers.step_once(peer, constant)

    for _ in range(WARM):
        one()
    raw_before, before = resident(), settled()
    start = time.perf_counter()
    for _ in range(count):
        one()
    spent = time.perf_counter() - start
    raw_after, after = resident(), settled()
    last = next(peers.fresh)  # the last word has a kernel that was really called, in both modes
    peer.load(peers.ONE.format(c=last), "step")
    peers.step_once(peer, last)
    return {
        "count": count,
        "before_mb": before,
        "grown_mb": after - before,
        "grown_raw_mb": raw_after - raw_before,
        "ms_each": spent / count * 1e3,
    }


def first(name: str) -> dict[str, Any]:
    """Measure the steps from a new process to a compared result."""
    marks = [time.perf_counter()]
    import taichi  # noqa: F401

    marks.append(time.perf_counter())
    peers.init()
    marks.append(time.perf_counter())
    peer = peers.make(name)
    marks.append(time.perf_counter())
    peer.load(peers.ONE.format(c=1), "step")
    marks.append(time.perf_counter())
    peers.step_once(peer, 1)
    marks.append(time.perf_counter())
    steps = [b - a for a, b in itertools.pairwise(marks)]
    names = ("import_taichi_ms", "init_ms", "import_peer_ms", "load_ms", "call_ms")
    found = {key: value * 1e3 for key, value in zip(names, steps, strict=True)}
    found["load_and_call_ms"] = found["load_ms"] + found["call_ms"]
    return found


if __name__ == "__main__":
    _, who, what, *rest = sys.argv
    result = first(who) if what == "first" else reloads(who, int(rest[0]), rest[1] == "call")
    print(json.dumps(result))
