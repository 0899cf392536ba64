"""The figures of `gpu.py` about a device's throughput, right results, and memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import cupy
import gputexts as texts
import numpy as np
from gpurows import Row, Rows, check, one
from samples import Figure, interleaved

from rekernel import KernelLoader
from rekernel.jit.gpu import CupyJit
from rekernel.launchgrid import LaunchGrid

# ---- throughput ----


def _events(run: Callable[[], None], loops: int) -> float:
    """Seconds of one run on the device."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record()
    for _ in range(loops):
        run()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end)) * 1e-3 / loops


def jacobi(count: int = 12, loops: int = 20, n: int = 8192) -> Rows:
    """5 points, float64, against the best of the hand-written kernel over blocks of several shapes."""
    loader = KernelLoader(jit=CupyJit(objcache=None))
    raw = cupy.RawKernel(texts.JACOBI, "jacobi", options=("-std=c++17",))
    pointers = loader.load(texts.JACOBI, "pointers").jacobi
    arrays = loader.load(texts.JACOBI_ARRAYS.replace("KIND", "Array"), "arrays").jacobi
    restrict = loader.load(texts.JACOBI_ARRAYS.replace("KIND", "RestrictArray"), "restrict").jacobi
    x, y, given = cupy.asarray(np.random.default_rng(1).random((n, n))), cupy.zeros((n, n)), np.int32(n)

    def grid(block: tuple[int, int]) -> LaunchGrid:
        return LaunchGrid.cover((n, n), block)

    def of(kind: str, block: tuple[int, int]) -> Callable[[], None]:
        where, shape = grid(block), (*block, 1)
        if kind == "raw":
            return lambda: raw(where.grid, shape, (y, x, given))
        if kind == "pointers":
            return lambda: pointers[where](y, x, n)
        return lambda: (arrays if kind == "arrays" else restrict)[where](y, x)

    expected = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    titles = {
        "raw": "cupy.RawKernel, by hand", "pointers": "rekernel, pointers",
        "arrays": "rekernel, Array", "restrict": "rekernel, RestrictArray",
    }  # fmt: skip
    todo: dict[str, Callable[[], float]] = {}
    for kind, title in titles.items():
        best = min(texts.BLOCKS, key=lambda block: min(_events(of(kind, block), 5) for _ in range(2)))
        y.fill(0)
        of(kind, best)()
        check(bool(cupy.allclose(y[1:-1, 1:-1], expected, rtol=1e-14, atol=0)), True, title)
        check(float(abs(y[0]).sum() + abs(y[:, 0]).sum()), 0.0, f"{title}, the border")
        run = of(kind, best)
        todo[f"{title}, block {best[0]} x {best[1]}"] = lambda run=run: _events(run, loops)
    del expected
    todo["copy"] = lambda: _events(lambda: cupy.copyto(y, x), loops)
    found = interleaved(todo, count)
    copy = found.pop("copy")
    bytes_moved, points = 16.0 * n * n, float((n - 2) ** 2)
    yield Row(
        "copy of 8192 x 8192 float64",
        "TB/s",
        Figure(bytes_moved / copy.minimum / 1e12, bytes_moved / copy.median / 1e12, copy.count),
    )
    base = next(iter(found.values()))
    for name, value in found.items():
        best_rate, rate = points / value.minimum / 1e9, points / value.median / 1e9
        ours = name.startswith("rekernel")
        yield Row(f"Jacobi: {name}", "GLUP/s", Figure(best_rate, rate, value.count),
                  0.98 * points / base.minimum / 1e9 if ours else None, least=True,
                  note=f"{bytes_moved / value.minimum / 1e12:.2f} TB/s, {base.minimum / value.minimum:.3f} of by hand")  # fmt: skip


# ---- always right, nothing held ----


def numbers(count: int = 10_000) -> Rows:
    """Wrong results of calls with a fresh number each."""
    kernel = KernelLoader(jit=CupyJit(objcache=None)).load(texts.PUT, "put").put
    given, x = np.random.default_rng().standard_normal(count), cupy.zeros(count)
    for at in range(count):
        kernel[1, 1](x, at, float(given[at]))
    yield Row(f"wrong results of {count} calls with a fresh float", "", one(float((x.get() != given).sum())), 0)


def held(count: int = 1000) -> Rows:
    """Bytes of the device that are held after calls with fresh arrays of 8 MiB."""
    kernel = KernelLoader(jit=CupyJit(objcache=None)).load(texts.SUM, "put").put
    pool, y = cupy.get_default_memory_pool(), cupy.zeros(1 << 21, "float32")
    where, alive = LaunchGrid.cover(y.shape), []
    kernel[where](y, cupy.zeros_like(y), 1.0)
    gc.collect()
    before = pool.used_bytes()
    for number in range(count):
        x = cupy.full(y.shape, number, "float32")
        alive.append(weakref.ref(x))
        kernel[where](y, x, 2.0)
        del x
    yield Row(f"bytes held after {count} calls with fresh arrays of 8 MiB", "bytes", one(float(pool.used_bytes() - before)), 0,
              note=f"{sum(ref() is not None for ref in alive)} of them alive")  # fmt: skip
    check(bool((y == 2 * (count - 1)).all()), True, "the last call")


def reloads(count: int = 1000) -> Rows:
    """Memory over reloads under one id; each version has 1 MiB of its own on the device, so one that stays is seen."""
    from rekernel.cuda import modules

    loader, x = KernelLoader(jit=CupyJit(objcache=None)), cupy.zeros(1, "int32")

    def state() -> tuple[int, int]:
        gc.collect()
        modules.drain()
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(cupy.cuda.runtime.memGetInfo()[0]), int(file.read().split()[1]) * 4096

    for number in range(count + 100):
        if number == 100:
            free, resident = state()
        loader.load(texts.ROOMY.format(number), "m").put[1, 1](x)
        check(int(x[0]), number, "a reloaded kernel")
    free_after, resident_after = state()
    yield Row(f"device memory used by {count} reloads", "MiB", one((free - free_after) / 2**20), 8)
    yield Row(f"growth of the process over {count} reloads", "MiB", one((resident_after - resident) / 2**20))
