"""Calling and running: the way into a compiled kernel, and what the compiled code does with large arrays."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jitcold import ask
from jitkit import child
from jitrows import Row, ratio, scaled
from jitstencil import W, arrays, by_hand, check, expected, fresh, kernel, small, text
from samples import interleaved, per_call

from rekernel import CpuJit, GccInfo

NS = 1e9
LIMITS = {
    "positional, GIL kept": 150, "keyword, GIL kept": 250, "positional, GIL released": 250,
    "keyword, GIL released": 350, "memoryview": 1500, "DLPack": 1500,
}  # fmt: skip
"""Nanoseconds. The GIL is released where the arrays together hold 16,384 elements: here 128 x 128 twice."""
SIDE = 4096
"""Two arrays of 128 MiB: no cache holds them."""
HAND_LIMIT = 0.97


class Exchanged:
    """An array that can be had by DLPack only. The methods are NumPy's own, so that no Python frame is measured."""

    __dlpack__: Any = None  # the class has to have the names, as that of a tensor has
    __dlpack_device__: Any = None

    def __init__(self, array: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def calls(plan: Any) -> list[Row]:
    """Call a kernel with two 2-D arrays and a float, all checks included; it writes one number."""
    c = next(fresh)
    with tempfile.TemporaryDirectory() as place, child("pystencils", place) as server:
        ask(server, f"cold {next(fresh)}")
        wrapper = CpuJit(GccInfo(), None).compile(small(c))
        positional, keyword = "f(dst, src, 0.25)", "f(dst=dst, src=src, w=0.25)"
        kept, released = arrays(4), arrays(128)
        views, tensors = map(memoryview, kept), map(Exchanged, kept)
        rows = {
            "positional, GIL kept": (positional, *kept), "keyword, GIL kept": (keyword, *kept),
            "positional, GIL released": (positional, *released), "keyword, GIL released": (keyword, *released),
            "memoryview": (positional, *views), "DLPack": (positional, *tensors),
        }  # fmt: skip
        todo: dict[str, Callable[[], float]] = {}
        for name, (statement, dst, src) in rows.items():
            written, read = released if "released" in name else kept
            wanted = W * read[-1, 0] + c
            timer = per_call(statement, plan.loops, f=wrapper, dst=dst, src=src)
            todo[name] = _compared(timer, written, wanted)
        a, b, out = (np.ones((4, 4)) for _ in range(3))
        todo["numpy.add(a, b, out=out)"] = per_call("add(a, b, out=out)", plan.loops, add=np.add, a=a, b=b, out=out)
        todo["pystencils' wrapper"] = lambda: float(ask(server, f"call {plan.loops}")["each"])
        found = interleaved(todo, plan.samples)
        assert server.stdin is not None
        server.stdin.close()
    return [
        scaled(f"call, {name}", "ns", figure, NS, limit=LIMITS.get(name), judged=("minimum", "median"))
        for name, figure in found.items()
    ]


def throughput(plan: Any) -> list[Row]:
    """Run the stencil over large arrays: ours, and the same C by hand, through ctypes."""
    rows = []
    dst, src = arrays(SIDE)
    with tempfile.TemporaryDirectory() as place:
        for threads in (1, 2):
            c, openmp = next(fresh), threads == 2
            source = Path(place, f"hand{threads}.cpp")
            source.write_text(text(c, openmp=openmp))
            callables: dict[str, Any] = {"rekernel": CpuJit(GccInfo(), None).compile(kernel(c, openmp=openmp))}
            for name in ("the same C by hand", "the same C once more"):  # the second says how much is noise
                library = Path(place, f"{name}, {threads}.so")
                flags = ["-O3", "-march=native", "-shared", "-fPIC", *["-fopenmp"] * openmp]
                subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
                callables[name] = by_hand(library)
            todo = {name: _sweep(call, dst, src, c) for name, call in callables.items()}
            found = interleaved(todo, plan.sweeps)
            hand, again = found["the same C by hand"], found["the same C once more"]
            for name, figure in found.items():
                rows.append(scaled(f"{SIDE} x {SIDE}, threads: {threads}, {name}", "ms", figure, 1e3))
            title = f"  speed of rekernel over that by hand, threads: {threads}"
            rows.append(ratio(title, hand, found["rekernel"], limit=HAND_LIMIT, least=True))
            rows.append(ratio("  the same C once more over that by hand", hand, again))
    return rows


def _compared(timer: Callable[[], float], written: Any, wanted: float) -> Callable[[], float]:
    def measure() -> float:
        written[-1, 0] = -1
        spent = timer()
        check(written[-1, 0], wanted)
        return spent

    return measure


def _sweep(call: Callable[[Any, Any, float], Any], dst: Any, src: Any, c: float) -> Callable[[], float]:
    state = {"w": W}

    def measure() -> float:
        state["w"] = w = state["w"] + 1 / 64  # another result every time
        dst[::256] = 0
        start = time.perf_counter()
        call(dst, src, w)
        spent = time.perf_counter() - start
        for row in range(256, SIDE - 1, 256):
            check(dst[row : row + 1, 1:-1], expected(src[row - 1 : row + 2], c, w))
        return spent

    return measure


ALL = (calls, throughput)
