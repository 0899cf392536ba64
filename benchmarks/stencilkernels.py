"""The symbolic kernels of the figures of stencils, their arrays, and how the two just-in-time compilers are made."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pystencils as ps
import sympy as sp

NAMES = ("5-point", "D3Q19", "vectorised")
fresh: Iterator[float] = (1 + n / 4096 for n in itertools.count(int(time.time()) % 100_000 * 100 + os.getpid() % 100))


def kernel(name: str, c: float) -> Any:
    """Return a kernel of pystencils; `c` is a constant of it that no kernel had before."""
    if name == "D3Q19":
        return _lattice_boltzmann(c)
    src, dst = ps.fields("src, dst: double[2D]", layout="c")
    near = src[-1, 0] + src[1, 0] + src[0, -1] + src[0, 1]
    config = ps.CreateKernelConfig(ghost_layers=1)
    if name == "vectorised":
        config = ps.CreateKernelConfig(ghost_layers=1, target=vector_target())
        config.cpu.vectorize.enable = True
        config.cpu.vectorize.assume_inner_stride_one = True
    return ps.create_kernel(ps.Assignment(dst.center(), sp.Symbol("w") * near + c * src.center()), config)


def vector_target() -> Any:
    """Return the widest vector instructions of this machine."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = next((line.split() for line in file if line.startswith("flags")), [])
    return ps.Target.X86_AVX512 if "avx512vl" in flags else ps.Target.X86_AVX


def _lattice_boltzmann(c: float) -> Any:
    """A D3Q19 lattice Boltzmann step: stream (pull) and relax to equilibrium with rate w * c."""
    directions = [d for d in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, d)) < 3]
    weights = {0: sp.Rational(1, 3), 1: sp.Rational(1, 18), 2: sp.Rational(1, 36)}
    src, dst = ps.fields("src(19), dst(19): double[3D]", layout="fzyx")
    f = [src[tuple(-x for x in d)](i) for i, d in enumerate(directions)]
    rho, u = sp.Symbol("rho"), sp.symbols("u_:3")
    made = [ps.Assignment(rho, sum(f))]
    made += [ps.Assignment(u[a], sum(d[a] * f[i] for i, d in enumerate(directions)) / rho) for a in range(3)]
    for i, d in enumerate(directions):
        cu = sum(d[a] * u[a] for a in range(3))
        square = sum(x * x for x in u)
        equilibrium = (
            weights[sum(map(abs, d))] * rho * (1 + 3 * cu + sp.Rational(9, 2) * cu**2 - sp.Rational(3, 2) * square)
        )
        made.append(ps.Assignment(dst.center(i), f[i] + sp.Symbol("w") * c * (equilibrium - f[i])))
    return ps.create_kernel(made, ps.CreateKernelConfig(ghost_layers=1))


def arrays(name: str, n: int) -> dict[str, Any]:
    """Return the arguments of a call."""
    random = np.random.default_rng(1)
    if name == "D3Q19":
        shape = (19, n, n, n)  # fzyx: the index slowest, x fastest
        src = np.moveaxis(1 + 0.01 * random.random(shape), 0, -1).transpose(2, 1, 0, 3)
        dst = np.moveaxis(np.zeros(shape), 0, -1).transpose(2, 1, 0, 3)
        return {"src": src, "dst": dst, "w": 0.5}
    return {"src": random.random((n, n)), "dst": np.zeros((n, n)), "w": 0.25}


def reference(name: str, c: float, given: dict[str, Any]) -> Any:
    """Return what NumPy makes of it, for the 2-D stencils; None for the others."""
    if name == "D3Q19":
        return None
    s, w = given["src"], given["w"]
    return w * (s[:-2, 1:-1] + s[2:, 1:-1] + s[1:-1, :-2] + s[1:-1, 2:]) + c * s[1:-1, 1:-1]


def check(name: str, c: float, given: dict[str, Any]) -> None:
    """Raise AssertionError where a result is not NumPy's."""
    wanted = reference(name, c, given)
    if wanted is not None:
        np.testing.assert_allclose(given["dst"][1:-1, 1:-1], wanted, rtol=1e-12)
    else:  # mass: what leaves a cell comes into another
        inside = given["dst"][1:-1, 1:-1, 1:-1]
        assert np.isfinite(inside).all(), "D3Q19 gives no numbers"
        assert inside.any(), "D3Q19 has written nothing"


def pystencils_jit(directory: str) -> Any:
    """Return pystencils' own just-in-time compiler over a cache of its own."""
    from pystencils.jit import CpuJit

    os.makedirs(directory, exist_ok=True)
    return CpuJit(objcache=directory)


def our_jit(directory: str) -> Any:
    """Return ours."""
    from rekernel import CpuJit, GccInfo

    return CpuJit(GccInfo(), directory)
