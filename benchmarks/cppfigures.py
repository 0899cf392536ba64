"""The figures of C++ text, a function each, and their targets."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cppsamples
import numpy as np
from jitkit import Both, timed
from jitrows import Row, counted, ratio, scaled
from jitstencil import W, arrays, check, expected, fresh
from samples import Figure, interleaved

from rekernel import CpuJit, GccInfo, KernelLoader

BARE_LIMIT, CMATH_LIMIT, UNCHANGED_LIMIT_US, THROUGHPUT_LIMIT = 1.3, 1.6, 20, 0.98

numbers = itertools.count()


def cold(plan: Any) -> list[Row]:
    """Load texts that nobody has seen and call them, under one id: each replaces the one before."""
    with tempfile.TemporaryDirectory() as place:
        loader = KernelLoader(jit=CpuJit(GccInfo(), f"{place}/cache"))
        for text in (cppsamples.pointers(0.5), cppsamples.pointers(0.5, cmath=True)):
            loader.load(text, "warm-up")
        headers = loader.jit.precompiled()
        headers.wait()
        todo: dict[str, Both] = {
            "g++ -c, bare": Both(lambda: _compiler(place)),
            "g++ -c, <cmath>": Both(lambda: _compiler(place, cmath=True)),
            "rekernel, pointers": Both(lambda: _ours(loader, cppsamples.pointers)),
            "rekernel, Array": Both(lambda: _ours(loader, cppsamples.arrays)),
            "rekernel, <cmath>": Both(lambda: _ours(loader, lambda c: cppsamples.pointers(c, cmath=True))),
            "rekernel, 300 lines": Both(lambda: _ours(loader, cppsamples.long_text)),
        }
        if cppsamples.installed("numba"):
            todo["numba"] = Both(lambda: _peer(lambda c: cppsamples.numba_stencil(c)))
        if cppsamples.installed("cppyy"):
            todo["cppyy"] = Both(lambda: _peer(lambda c: cppsamples.cppyy_stencil(c, next(numbers))))
        wall = interleaved(todo, plan.samples)
        slow = _load_inline(place)
    cpu = {name: Figure.of(one.cpu) for name, one in todo.items()}
    rows = [scaled(f"{name}, {what}", "ms", found[name], 1e3)
            for name in todo for what, found in (("wall", wall), ("CPU", cpu))]  # fmt: skip
    rows += slow
    for what, found in (("wall", wall), ("CPU", cpu)):
        bare = found["g++ -c, bare"]
        for name, limit in (("pointers", BARE_LIMIT), ("Array", None), ("<cmath>", CMATH_LIMIT)):
            title = f"{name}: never seen text to first result over g++ -c of the bare, {what}"
            rows.append(ratio(title, found[f"rekernel, {name}"], bare, limit=limit))
    for name in ("numba", "cppyy"):
        if name not in todo:
            print(f"{name} is not installed: pip install {name}", flush=True)
    return rows


def _ours(loader: KernelLoader, text: Callable[[float], str]) -> tuple[float, float]:
    c, (dst, src) = next(fresh), arrays()
    source = text(c)
    shape = src.shape if "ny" in source else ()
    found = timed(lambda: loader.load(source, "stencil").stencil(dst, src, W, *shape))
    check(dst[1:-1, 1:-1], expected(src, c))
    return found


def _compiler(place: str, cmath: bool = False) -> tuple[float, float]:
    Path(place, "bare.cpp").write_text(cppsamples.pointers(next(fresh), cmath=cmath))
    command = ["g++", "-O3", "-march=native", "-c", "bare.cpp", "-o", "bare.o"]
    return timed(lambda: subprocess.run(command, cwd=place, check=True))


def _peer(make: Callable[[float], Callable[..., Any]]) -> tuple[float, float]:
    c, (dst, src) = next(fresh), arrays()
    found = timed(lambda: make(c)(dst, src, W))
    check(dst[1:-1, 1:-1], expected(src, c))
    return found


def _load_inline(place: str) -> list[Row]:
    if not cppsamples.installed("torch", "ninja"):
        print("load_inline is not installed: pip install torch ninja", flush=True)
        return []
    wall, cpu = _peer(lambda c: cppsamples.load_inline_stencil(c, next(numbers), place))
    return [counted("load_inline, wall", "ms", wall * 1e3), counted("load_inline, CPU", "ms", cpu * 1e3)]


def again(plan: Any) -> list[Row]:
    """Load what is live already, with and without a header of the user's; and go back and forth between two texts."""
    with tempfile.TemporaryDirectory() as place:
        loader = KernelLoader(jit=CpuJit(GccInfo(), f"{place}/cache"))
        text = cppsamples.arrays(next(fresh))
        Path(place, "own.h").write_text("#define OWN 1\n")
        with_header = f'#include "own.h"\n{text}'
        Path(place, "heat.cpp").write_text(with_header)
        loader.load(text, "plain")
        loader.load(with_header, "header", include_dirs=[place])
        loader.load_file(f"{place}/heat.cpp")
        todo = {
            "text": lambda: loader.load(text, "plain"),
            "text with a header": lambda: loader.load(with_header, "header"),
            "load_file with a header": lambda: loader.load_file(f"{place}/heat.cpp"),
        }
        loops = 300
        times = interleaved({name: (lambda do=do: _per_call(do, loops)) for name, do in todo.items()}, plan.samples)
        rows = [scaled(f"unchanged load, {name}", "us", times[name], 1e6, limit=UNCHANGED_LIMIT_US) for name in todo]
        other = cppsamples.arrays(next(fresh))
        back = []
        before = None
        for number in range(2 * plan.samples):
            start = time.perf_counter()
            loader.load((other, text)[number % 2], "plain")
            if number == 0:
                before = loader.jit.objcache.stats.published
            else:
                back.append(time.perf_counter() - start)
        compiled = loader.jit.objcache.stats.published - before
        rows.append(scaled("A to B to A, the third load and later", "us", back, 1e6))
        rows.append(counted("  compilers run by these", "times", compiled, limit=0))
    return rows


def _per_call(do: Callable[[], Any], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        do()
    return (time.perf_counter() - start) / loops


PAIRS = """
void raw1(float *y, const float *x, float a, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] += a * x[i]; }
void array1(rekernel::Array<float, 1> y, rekernel::Array<const float, 1> x, float a) {
    for (int64_t i = 0; i < x.shape(0); ++i) y[i] += a * x[i];
}
void raw2(double *dst, const double *src, int64_t ny, int64_t nx) {
    for (int64_t y = 1; y < ny - 1; ++y)
        for (int64_t x = 1; x < nx - 1; ++x)
            dst[y * nx + x] = 0.25 * (src[(y - 1) * nx + x] + src[(y + 1) * nx + x] + src[y * nx + x - 1]
                                      + src[y * nx + x + 1]);
}
void array2(rekernel::Array<double, 2> dst, rekernel::Array<const double, 2> src) {
    for (int64_t y = 1; y < src.shape(0) - 1; ++y)
        for (int64_t x = 1; x < src.shape(1) - 1; ++x)
            dst(y, x) = 0.25 * (src(y - 1, x) + src(y + 1, x) + src(y, x - 1) + src(y, x + 1));
}
void raw3(double *dst, const double *src, int64_t nz, int64_t ny, int64_t nx) {
    for (int64_t z = 1; z < nz - 1; ++z)
        for (int64_t y = 1; y < ny - 1; ++y)
            for (int64_t x = 1; x < nx - 1; ++x) {
                int64_t c = (z * ny + y) * nx + x;
                dst[c] = src[c - 1] + src[c + 1] + src[c - nx] + src[c + nx] + src[c - nx * ny] + src[c + nx * ny]
                         - 6 * src[c];
            }
}
void array3(rekernel::Array<double, 3> dst, rekernel::Array<const double, 3> src) {
    for (int64_t z = 1; z < src.shape(0) - 1; ++z)
        for (int64_t y = 1; y < src.shape(1) - 1; ++y)
            for (int64_t x = 1; x < src.shape(2) - 1; ++x)
                dst(z, y, x) = src(z, y, x - 1) + src(z, y, x + 1) + src(z, y - 1, x) + src(z, y + 1, x)
                               + src(z - 1, y, x) + src(z + 1, y, x) - 6 * src(z, y, x);
}
void reference3(rekernel::Array<double, 3> dst, const rekernel::Array<const double, 3> &src) {
    for (int64_t z = 1; z < src.shape(0) - 1; ++z)
        for (int64_t y = 1; y < src.shape(1) - 1; ++y)
            for (int64_t x = 1; x < src.shape(2) - 1; ++x)
                dst(z, y, x) = src(z, y, x - 1) + src(z, y, x + 1) + src(z, y - 1, x) + src(z, y + 1, x)
                               + src(z - 1, y, x) + src(z + 1, y, x) - 6 * src(z, y, x);
}
"""


def throughput(plan: Any) -> list[Row]:
    """Run the same loops over raw pointers and over `rekernel::Array`; the best of all sweeps counts."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        m = KernelLoader(jit=CpuJit(GccInfo(), f"{place}/cache")).load(PAIRS)
        for name, shape, dtype in (
            ("axpy, 100,000", (100_000,), np.float32),
            ("Jacobi, 1024 x 1024", (1024, 1024), np.float64),
            ("Laplace, 96 x 96 x 96", (96, 96, 96), np.float64),
        ):
            rank = len(shape)
            dst, src = np.zeros(shape, dtype), np.random.default_rng(1).random(shape).astype(dtype)
            raw, array = getattr(m, f"raw{rank}"), getattr(m, f"array{rank}")
            more = (0.5,) if rank == 1 else ()
            todo = {
                "raw": lambda raw=raw, dst=dst, src=src, more=more, shape=shape: _once(raw, dst, src, *more, *shape),
                "array": lambda array=array, dst=dst, src=src, more=more: _once(array, dst, src, *more),
            }
            if rank == 3:
                todo["array by reference"] = lambda dst=dst, src=src: _once(m.reference3, dst, src)
            found = interleaved(todo, plan.sweeps)
            one, other = np.zeros(shape, dtype), np.zeros(shape, dtype)
            raw(one, src, *more, *shape)
            array(other, src, *more)
            check(one, other)
            rows += [scaled(f"{name}: {kind}", "us", found[kind], 1e6) for kind in found]
            rows.append(
                ratio(f"{name}: Array's throughput over raw pointers'", found["raw"], found["array"],
                      limit=THROUGHPUT_LIMIT, least=True)
            )  # fmt: skip
    return rows


def _once(kernel: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    kernel(*arguments)
    return time.perf_counter() - start


ALL = (cold, again, throughput)
