"""The simulation of ``python -m rekernel demo`` on a CUDA device, at 4096 x 4096, swapped while it runs.

    python benchmarks/gpu_demo.py [--size 4096] [--steps 14000] [--out gpu_demo.png] [--json FILE]

As CUDA text, as a GPU stencil (pystencils) and through Taichi on CUDA, where these packages are. Prints steps a second and
how long each swap took, from the edited text to a kernel that has run once, and draws the field: all of it, made smaller,
and 512 x 512 cells of its middle.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cupy
import numpy as np
from gpudemotexts import CUDA, STENCIL

from rekernel import KernelLoader, KernelSourceError
from rekernel.demo.gray_scott import ACTS, KERNEL_ID, Field, Move, Text, edited, sown
from rekernel.jit.gpu import CupyJit
from rekernel.launchgrid import LaunchGrid

STEPS_PER_CALL = 2
SHOWN = 512
"""Pixels a side of what is drawn."""
SYNCHRONISE = 200
"""Calls after which the host waits, so that the queue does not grow."""


class CudaSide:
    """CUDA text, the state in CuPy arrays of two buffers."""

    model: Text = CUDA

    def __init__(self, size: int) -> None:
        self.loader = KernelLoader(jit=CupyJit(objcache=None))  # every edit is really compiled
        self.text, self.grid = self.first(size), LaunchGrid.cover((size, size), (64, 4))

    def first(self, size: int) -> str:
        return self.model.sized(size)

    def load(self, text: str) -> None:
        self.module = self.loader.load(text, KERNEL_ID, language=self.model.language)
        self.text = text

    def begin(self, u: Field, v: Field) -> Callable[[], object]:
        """Copy the state there; return what does two steps. It follows every swap."""
        self.u, self.v, step = cupy.asarray(u), cupy.asarray(v), self.module.step[self.grid]

        def call() -> None:
            step(self.u, self.v, 0)
            step(self.u, self.v, 1)

        return call

    def sync(self) -> None:
        cupy.cuda.Device().synchronize()

    def state(self) -> Field:
        found: Field = self.v[0].get()
        return found


class StencilSide(CudaSide):
    """A GPU stencil of pystencils, the state in arrays that take turns."""

    model = STENCIL
    changes = MappingProxyType({"flower": "other 'feed' and 'kill'", "whirl": "others again"})

    def first(self, size: int) -> str:
        return self.model.first  # it has no size of its own

    def begin(self, u: Field, v: Field) -> Callable[[], object]:
        self.u, self.v = cupy.asarray(u), cupy.asarray(v)
        step, (u0, u1), (v0, v1) = self.module.step, self.u, self.v

        def call() -> None:
            step(u=u0, v=v0, a=u1, b=v1)
            step(u=u1, v=v1, a=u0, b=v0)

        return call


def taichi_side(size: int) -> Any:
    """The Taichi half of the demo, on CUDA."""
    from rekernel.demo.sides import TaichiSide

    class OnCuda(TaichiSide):
        def __init__(self, size: int) -> None:
            super().__init__(size)
            self.ti.init(arch=self.ti.cuda, offline_cache=False, log_level=self.ti.ERROR)
            arch = str(self.ti.lang.impl.current_cfg().arch)
            if "cuda" not in arch:
                raise RuntimeError(f"Taichi has chosen {arch} in the place of CUDA")

        def state(self) -> Any:
            return super().state()[1][0]

    return OnCuda(size)


def small_check() -> str:
    """The CUDA text on 128 x 128 cells against NumPy, 20 steps: the greatest difference, in words."""
    size = 128
    u, v = sown(size, seed=3)
    side = CudaSide(size)
    side.load(side.text)
    call = side.begin(u, v)
    for _ in range(10):
        call()
    side.sync()
    a, b = u[0].astype(np.float64), v[0].astype(np.float64)

    def laplacian(f: Any) -> Any:
        moved = {(i, j): np.roll(f, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        straight = moved[1, 0] + moved[-1, 0] + moved[0, 1] + moved[0, -1]
        slanted = moved[1, 1] + moved[1, -1] + moved[-1, 1] + moved[-1, -1]
        return 0.2 * straight + 0.05 * slanted - f

    for _ in range(20):
        reaction = a * b * b
        a, b = (
            a + laplacian(a) - reaction + 0.0545 * (1 - a),
            b + 0.5 * laplacian(b) + reaction - (0.0545 + 0.0620) * b + 1e-12,
        )
    off = float(np.abs(side.state() - b).max())
    if not off < 1e-5:
        raise RuntimeError(f"the CUDA text is off from NumPy by {off:g}")
    return f"CUDA text against NumPy (float64), 128 x 128, 20 steps: off by at most {off:.1e}"


def play(side: Any, size: int, steps: int) -> dict[str, Any]:
    """Run the acts; return rows for the table, and the field at the end of each act."""
    rows, fields, call = [], [], None
    total = sum(act.steps for act in ACTS)
    for act in ACTS:
        change = getattr(side, "changes", {}).get(act.edit, act.change)
        refused, begin = "", time.perf_counter()
        if act.move is Move.START:
            side.load(side.text)
            loaded = time.perf_counter()
            call = side.begin(*sown(size, seed=7))
            begin += time.perf_counter() - loaded  # the state is not part of the swap
        elif act.move is Move.ROLLBACK:
            side.loader.rollback(KERNEL_ID)
        else:
            try:
                side.load(edited(side.text, side.model.edits[act.edit]))
            except KernelSourceError as error:
                refused = str(error).splitlines()[0]
        assert call is not None
        call()
        side.sync()
        swap = time.perf_counter() - begin
        if (act.move is Move.BREAK) != bool(refused):
            raise RuntimeError(f"{change}: {'was refused: ' + refused if refused else 'was not refused'}")
        count = max(1, act.steps * steps // total // STEPS_PER_CALL)
        begin = time.perf_counter()
        for number in range(count):
            call()
            if number % SYNCHRONISE == 0:
                side.sync()
        side.sync()
        rate = count * STEPS_PER_CALL / (time.perf_counter() - begin)
        field = side.state()
        if not np.isfinite(field).all():
            raise RuntimeError(f"{change}: the field is not finite")
        rows.append({
            "act": change, "swap_ms": 1e3 * swap, "steps_per_s": rate, "glups": rate * size * size / 1e9,
            "mean_of_v": float(field.mean()), "refused": refused,
        })  # fmt: skip
        fields.append(field)
        print(f"{side.model.title:<12} {change:<32} swap {1e3 * swap:8.1f} ms  {rate:9.0f} steps/s  "
              f"{rate * size * size / 1e9:6.1f} GLUP/s  {refused}", flush=True)  # fmt: skip
    return {"rows": rows, "fields": fields}


def smaller(field: Field) -> Field:
    """The field, each pixel the mean of a square of cells."""
    factor = max(1, len(field) // SHOWN)
    side = len(field) // factor
    return field[: side * factor, : side * factor].reshape(side, factor, side, factor).mean((1, 3), dtype=np.float32)


def middle(field: Field) -> Field:
    """The cells around the middle."""
    first = max(0, (len(field) - SHOWN) // 2)
    return field[first : first + SHOWN, first : first + SHOWN]


def draw(path: Path, found: dict[str, Any], size: int) -> None:
    """Draw two strips for each language: the whole field, and its middle."""
    from rekernel.demo.picture import Panel, Strip, save

    strips = []
    for title, run in found.items():
        for part, shown in (("all of it", smaller), (f"{SHOWN} x {SHOWN} cells of the middle", middle)):
            panels = [
                Panel(shown(field), row["act"], f"{row['swap_ms']:.0f} ms, then {row['steps_per_s']:,.0f} steps/s")
                for field, row in zip(run["fields"], run["rows"], strict=True)
            ]
            strips.append(Strip(title, part, panels))
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    save(path, strips, f"Gray-Scott, {size} x {size}, edited while it runs", f"{device}, float32")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=4096, help="cells a side, a power of two")
    parser.add_argument("--steps", type=int, default=14_000, help="in all, for each language")
    parser.add_argument("--out", type=Path, default=Path("gpu_demo.png"), help="the picture")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table to FILE as well")
    options = parser.parse_args()
    print(small_check(), flush=True)
    sides: list[tuple[str, str, Callable[[int], Any]]] = [
        ("CUDA", "cupy", CudaSide), ("GPU stencil", "pystencils", StencilSide), ("Taichi", "taichi", taichi_side),
    ]  # fmt: skip
    found: dict[str, Any] = {}
    absent: dict[str, str] = {}
    failed = False
    for title, needs, make in sides:
        if find_spec(needs) is None:
            absent[title] = f"not run: {needs} is not installed"
            print(f"{title:<12} {absent[title]}", flush=True)
            continue
        try:
            importlib.import_module(needs)
            found[title] = play(make(options.size), options.size, options.steps)
        except Exception:
            failed, absent[title] = True, traceback.format_exc()
            print(f"{title:<12} FAILED\n{absent[title]}", flush=True)
    if options.json is not None:
        table = {title: run["rows"] for title, run in found.items()}
        report = {"size": options.size, "languages": table, "not run": absent}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if found and find_spec("PIL") is None:
        print("no picture: Pillow is not installed")
    elif found:
        draw(options.out, found, options.size)
        print(f"picture: {options.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
