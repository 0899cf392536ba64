"""The figures of `gpu.py` that are times: launches, edits, new processes. Peers take turns."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy
import gputexts as texts
import numpy as np
from cupy_backends.cuda.api import driver
from gpurows import Row, Rows, check, cubin, synchronize
from samples import Figure, interleaved, per_call

from rekernel import KernelLoader
from rekernel.jit.gpu import CupyJit

# ---- launches ----


def launches(count: int = 25, loops: int = 2000) -> Rows:
    """The way into a small kernel: two arrays, three numbers."""
    loader = KernelLoader(jit=CupyJit(objcache=None))
    pointers = loader.load(texts.POINTERS, "pointers").small
    arrays = loader.load(texts.ARRAYS, "arrays").small
    raw = cupy.RawKernel(texts.POINTERS, "small", options=("-std=c++17",))
    y, x = cupy.zeros(32), cupy.ones(32)
    given = (y, x, np.float64(2.0), np.float64(1.0), np.int64(32))
    grid, block, names = (1,), (32,), {"y": y, "x": x}
    todo = {
        "cupy.RawKernel, arguments prebuilt": per_call("k(g, b, a)", loops, k=raw, g=grid, b=block, a=given),
        "rekernel, pointers, k[1, 32](...)": per_call("k[1, 32](y, x, 2.0, 1.0, 32)", loops, k=pointers, **names),
        "rekernel, Array, k[1, 32](...)": per_call("k[1, 32](y, x, 2.0, 1.0, 32)", loops, k=arrays, **names),
        "rekernel, Array, held k[1, 32]": per_call("k(y, x, 2.0, 1.0, 32)", loops, k=arrays[1, 32], **names),
    }
    if find_spec("torch"):
        import torch

        names = {
            "y": torch.zeros(32, dtype=torch.float64, device="cuda"),
            "x": torch.ones(32, dtype=torch.float64, device="cuda"),
        }
        todo["rekernel, Array, torch tensors"] = per_call("k[1, 32](y, x, 2.0, 1.0, 32)", loops, k=arrays, **names)
    if find_spec("numba") and find_spec("numba.cuda"):
        from numba import cuda

        names = {"y": cuda.to_device(np.zeros(32)), "x": cuda.to_device(np.ones(32))}
        todo["rekernel, Array, Numba's arrays"] = per_call("k[1, 32](y, x, 2.0, 1.0, 32)", loops, k=arrays, **names)
    floor = _floor(y, x)
    if floor is not None:
        todo["cuLaunchKernel in a loop in C"] = lambda: floor(loops)

    def settled(measure: Callable[[], float]) -> Callable[[], float]:
        def run() -> float:
            synchronize()
            found = measure()
            synchronize()
            return found

        return run

    for measure in todo.values():
        measure()  # warm
    for kernel in (pointers, arrays):
        y.fill(0)
        kernel[1, 32](y, x, 2.0, 1.0, 32)
        check(float(y.sum()), 96.0, "the small kernel")
    found = interleaved({name: settled(measure) for name, measure in todo.items()}, count)
    base = found["cupy.RawKernel, arguments prebuilt"]
    for name, value in found.items():
        ours = name.startswith("rekernel")
        limit = None if not ours else 1.1 * base.minimum + (3e-6 if "torch" in name or "Numba" in name else 0)
        yield Row(f"launch: {name}", "us", value.times(1e6), None if limit is None else 1e6 * limit,
                  note=f"{value.minimum / base.minimum:.2f} / {value.median / base.median:.2f} of RawKernel" if ours else "")  # fmt: skip


def _floor(y: Any, x: Any) -> Callable[[int], float] | None:
    """The driver alone: the same launch, again and again, from C. None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    directory = tempfile.mkdtemp()
    source, library = Path(directory, "floor.c"), Path(directory, "floor.so")
    source.write_text(texts.FLOOR, encoding="ascii")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    code = ctypes.CDLL(str(library))
    code.seconds.restype = ctypes.c_double
    module = cupy.cuda.function.Module()
    module.load(cubin(texts.POINTERS, ("-std=c++17",)))
    function = driver.moduleGetFunction(module.ptr, "small")
    held: tuple[Any, ...] = (
        ctypes.c_void_p(y.data.ptr), ctypes.c_void_p(x.data.ptr), ctypes.c_double(2), ctypes.c_double(1), ctypes.c_int64(32),
    )  # fmt: skip
    parameters = (ctypes.c_void_p * 5)(*(ctypes.addressof(each) for each in held))
    launch = ctypes.cast(ctypes.CDLL("libcuda.so.1").cuLaunchKernel, ctypes.c_void_p)

    def seconds(loops: int) -> float:
        assert held
        assert module
        return float(code.seconds(launch, ctypes.c_void_p(function), parameters, loops))

    return seconds


# ---- from an edit to its result ----


def cold(count: int = 25) -> Rows:
    """From a text that nobody has seen to its first result, each replacing the one before."""
    directory = tempfile.mkdtemp()
    loader = KernelLoader(jit=CupyJit(objcache=directory))
    x, y = cupy.zeros(16), cupy.zeros(16)
    numbers = (np.float64(1.0), np.int32(16))

    def bare(*options: str) -> Callable[[], float]:
        def run() -> float:
            text, number = texts.fresh()
            begin = time.perf_counter()
            module = cupy.cuda.function.Module()
            module.load(cubin(text, ("-std=c++17", *options)))
            module.get_function("cold")((1,), (32,), (y, x, *numbers))
            synchronize()
            spent = time.perf_counter() - begin
            check(float(y[1]), number, "bare NVRTC")
            return spent

        return run

    def ours(kind: str) -> Callable[[], float]:
        def run() -> float:
            text, number = texts.fresh(kind)
            begin = time.perf_counter()
            module = loader.load(text, f"cold_{kind}", language="cuda")
            module.cold[1, 32](y, x, 1.0, 16)
            synchronize()
            spent = time.perf_counter() - begin
            check(float(y[1]), number, f"rekernel, {kind}")
            return spent

        return run

    def theirs() -> float:
        text, number = texts.fresh()
        begin = time.perf_counter()
        cupy.RawKernel(text, "cold", options=("-std=c++17",))((1,), (32,), (y, x, *numbers))
        synchronize()
        spent = time.perf_counter() - begin
        check(float(y[1]), number, "cupy.RawKernel")
        return spent

    todo = {
        "bare NVRTC, module, first call": bare(), "  the same with --minimal": bare("--minimal"),
        "rekernel, pointers": ours("pointers"), "rekernel, Array": ours("arrays"), "cupy.RawKernel": theirs,
    }  # fmt: skip
    for measure in todo.values():
        measure()
    found = interleaved(todo, count)
    base = found["bare NVRTC, module, first call"]
    for name, value in found.items():
        ours_too = name.startswith("rekernel")
        yield Row(f"edit to run, never seen: {name}", "ms", value.times(1e3), 1.25e3 * base.minimum if ours_too else None,
                  note=f"{value.minimum / base.minimum:.2f} / {value.median / base.median:.2f} of bare" if ours_too else "")  # fmt: skip
    text, number = texts.fresh()
    module = loader.load(text, "again", language="cuda")
    live = interleaved({"again": per_call("load(text, 'again', language='cuda')", 200, load=loader.load, text=text)}, 5)
    module.cold[1, 32](y, x, 1.0, 16)
    check(float(y[1]), number, "the unchanged text")
    yield Row("loading the text that is live", "us", live["again"].times(1e6))
    shutil.rmtree(directory, ignore_errors=True)


def warm(count: int = 10) -> Rows:
    """A new process that finds its kernel in the cache, after its context was made."""
    with tempfile.TemporaryDirectory() as directory:
        text, number = texts.fresh("arrays")
        path = Path(directory, "warm.cu")
        path.write_text(text, encoding="utf-8")
        command = [
            sys.executable,
            str(Path(__file__).with_name("gpuchild.py")),
            os.path.join(directory, "cache"),
            str(path),
            repr(number),
        ]
        found: list[dict[str, Any]] = []
        for turn in range(count + 1):
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
            if done.returncode:
                raise RuntimeError(f"a new process failed:\n{done.stderr}")
            result = json.loads(done.stdout.splitlines()[-1])
            check(result["right"], True, "a new process")
            check(bool(result["from_cache"]), turn > 0, "the cache of a new process")
            if turn:
                found.append(result)
    name = "warm cache, new process: after the context"
    yield Row(f"{name}, load and first result", "ms", Figure.of(f["load"] + f["call"] for f in found), 5.0)
    yield Row("  of this: load", "ms", Figure.of(f["load"] for f in found))
    yield Row("  of this: first call (module to the device) and result", "ms", Figure.of(f["call"] for f in found))
    yield Row(f"{name}, import rekernel included", "ms", Figure.of(f["all"] for f in found))
