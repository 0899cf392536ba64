"""What the tests of pystencils' kernels share: kernels from symbols, compiled by our JIT or by pystencils' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rekernel.compilers import GccInfo
from rekernel.jit import CpuJit

ps = pytest.importorskip("pystencils", minversion="2.0", reason="pystencils 2 is not installed (rekernel[stencils])")
sp = pytest.importorskip("sympy", reason="SymPy, which comes with pystencils, is not installed")

JIT = CpuJit()

#: What the processor must have for a target of pystencils.
_FLAGS = {"X86_SSE": "sse4_2", "X86_AVX": "avx2", "X86_AVX512": "avx512vl", "X86_AVX512_FP16": "avx512_fp16"}


def config(*, vector: str | None = None, **options: Any) -> Any:
    """A configuration with our JIT; `vector` names a target for which the inner loop is vectorised.

    Options of the CPU are given with underscores: ``openmp_enable=True``, ``loop_blocking=(8, 8)``.
    """
    made = ps.CreateKernelConfig(jit=JIT)
    if vector is not None:
        made.target = ps.Target[vector]
        made.cpu.vectorize.enable = True
    for name, value in options.items():
        place: Any = made
        if name in ("loop_blocking", "use_cacheline_zeroing"):
            place = made.cpu
        for category in ("openmp", "vectorize"):
            if name.startswith(f"{category}_"):
                place, name = getattr(made.cpu, category), name[len(category) + 1 :]
        setattr(place, name, value)
    return made


def build(assignments: Any, **options: Any) -> Any:
    """Generate a kernel and compile it with our JIT, as a user of pystencils does."""
    return ps.create_kernel(assignments, config(**options)).compile()


def theirs(kernel: Any, directory: Path) -> Any:
    """Compile a kernel by pystencils' own JIT, with the flags of ours."""
    from pystencils.jit.cpu import GccInfo as TheirInfo

    info = TheirInfo(optlevel="3", extra_cxxflags=["-ffp-contract=off"])
    assert "-O3" in GccInfo().cxxflags()
    return ps.jit.CpuJit(info, directory).compile(kernel)


def vectors() -> list[Any]:
    """The vector targets, those that this processor lacks skipped."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text(encoding="utf-8").split() if info.exists() else []
    return [
        pytest.param(name, marks=[] if flag in flags else pytest.mark.skip(reason=f"this processor has no {flag}"))
        for name, flag in _FLAGS.items()
    ]


def numbers(*shape: int, dtype: Any = "float64", seed: int = 1) -> np.ndarray:
    """Random numbers that are exact in every type: small integers for integers, eighths for the others."""
    drawn = np.random.default_rng(seed).integers(1, 9, shape)
    return (drawn if np.dtype(dtype).kind in "iu" else drawn / 8).astype(dtype)
