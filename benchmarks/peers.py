"""Three ways to get a kernel from a text: bare Taichi, taichi-meta, rekernel. Each imports only what it needs."""

from __future__ import annotations

import importlib
import itertools
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Before Taichi is imported: no question to its server, no banner in the figures.
os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "False")

NAMES = ("bare Taichi", "taichi-meta", "rekernel")

ONE = """\
@ti.kernel
def step(x: ti.types.ndarray(dtype=ti.f32, ndim=1), k: ti.f32):
    for i in x:
        x[i] = k * x[i] + {c}
"""

CHECKED = """\
@ti.kernel
def three(x: ti.types.ndarray(dtype=ti.f32, ndim=1), n: ti.i32, k: ti.f32):
    for i in x:
        x[i] = k * x[i] + n + {c}
"""

#: A constant that no text had before: what one peer has compiled must never serve another.
fresh: Iterator[int] = itertools.count(1)


class WrongResultError(AssertionError):
    """A kernel computed something else than NumPy."""


class Bare:
    """Taichi alone: the text becomes a module with a linecache entry of its own, as if it came from a new file."""

    name = "bare Taichi"

    def __init__(self) -> None:
        import taichi

        self._ti = taichi
        self._numbers = itertools.count(1)
        self._modules: dict[str, types.ModuleType] = {}

    def load(self, text: str, kernel_id: str) -> None:
        number = next(self._numbers)
        filename = f"/bare/{kernel_id}_{number}.py"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        module = types.ModuleType(f"bare_{kernel_id}_{number}")
        module.__dict__.update(ti=self._ti, np=np, __file__=filename)
        sys.modules[module.__name__] = module
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
        old = self._modules.get(kernel_id)
        if old is not None:
            del sys.modules[old.__name__], linecache.cache[old.__dict__["__file__"]]
        self._modules[kernel_id] = module

    def kernel(self, kernel_id: str, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._modules[kernel_id], name)
        return found


class Meta:
    """taichi-meta, used as its documentation says."""

    name = "taichi-meta"

    def __init__(self) -> None:
        self.loader: Any = importlib.import_module("taichi_meta").MetaKernelLoader()

    def load(self, text: str, kernel_id: str) -> None:
        self.loader.compile_and_load(text, kernel_id)

    def kernel(self, kernel_id: str, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self.loader[kernel_id], name)
        return found


class Rekernel:
    """This project."""

    name = "rekernel"

    def __init__(self) -> None:
        self.loader: Any = importlib.import_module("rekernel").KernelLoader()

    def load(self, text: str, kernel_id: str) -> None:
        self.loader.load(text, kernel_id)

    def kernel(self, kernel_id: str, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self.loader[kernel_id], name)
        return found


Peer = Bare | Meta | Rekernel
_KINDS: dict[str, type[Peer]] = {kind.name: kind for kind in (Bare, Meta, Rekernel)}


def make(name: str) -> Peer:
    """Return the peer of that name; ImportError where it is not installed."""
    return _KINDS[name]()


def init() -> Any:
    """Start Taichi as every figure here has it: CPU, nothing from disk, silent."""
    import taichi as ti

    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    return ti


def array() -> Any:
    """Return a small array whose results are exact in float32."""
    return np.arange(64, dtype=np.float32)


def check(x: Any, expected: Any) -> None:
    """Compare with NumPy, bit for bit."""
    if not np.array_equal(x, expected):
        raise WrongResultError(f"got {x[:4]}..., NumPy has {expected[:4]}...")


def step_once(peer: Peer, constant: int, kernel_id: str = "step") -> None:
    """Call the kernel of `ONE` and compare."""
    x = array()
    peer.kernel(kernel_id, "step")(x, 2.0)
    check(x, np.float32(2) * array() + np.float32(constant))


def many(constants: list[int]) -> str:
    """Return one text with a kernel for each constant."""
    return "\n\n".join(ONE.format(c=c).replace("step", f"step{i}") for i, c in enumerate(constants))
