"""The two halves of the demo: the same model through Taichi and through C++, each with a loader of its own."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rekernel import KernelLoader, ToolchainError
from rekernel.demo.cpp_text import CPP
from rekernel.demo.gray_scott import KERNEL_ID, Field, Text
from rekernel.demo.taichi_text import TAICHI


class Side(ABC):
    """One language: the text as it stands, the live module, and the state that its kernel works on."""

    model: Text
    loader: KernelLoader
    release: str
    """What runs it, for example ``Taichi 1.7.4``."""

    def __init__(self, size: int) -> None:
        self.text = self.model.sized(size)
        self.module: Any = None

    @property
    def title(self) -> str:
        """What people call the language."""
        return self.model.title

    def load(self, text: str) -> None:
        """Load the text; what was live stays so where it is refused (KernelSourceError)."""
        self.module = self.loader.load(text, KERNEL_ID, language=self.model.language)
        self.text = text

    def version(self) -> int:
        """The number of the live version."""
        return next(version.number for version in self.loader.history(KERNEL_ID) if version.live)

    @abstractmethod
    def begin(self, u: Field, v: Field) -> Callable[[], object]:
        """Take a copy of the state, and ``step`` from the module once; returns what one call of it is."""

    @abstractmethod
    def state(self) -> tuple[Field, Field]:
        """Copies of ``u`` and ``v`` with both buffers, when all steps are done."""

    def sync(self) -> None:  # noqa: B027  (calls that return when they are done need nothing)
        """Wait until all calls are done."""


class TaichiSide(Side):
    """Through Taichi: the state is in its fields."""

    model = TAICHI

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.loader = KernelLoader()
        # Taichi reads both early: no banner, and no question to the network about its version.
        os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "False")
        os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")
        self.ti: Any = importlib.import_module("taichi")
        self.release = f"Taichi {'.'.join(map(str, self.ti.__version__))}"
        with contextlib.redirect_stdout(io.StringIO()):  # one more line of banner that has no switch
            # Without the offline cache every edit is really compiled, so the times are those of a new edit.
            # Without fast_math it rounds as C++ does, operation by operation.
            self.ti.init(arch=self.ti.cpu, offline_cache=False, fast_math=False, log_level=self.ti.ERROR)

    def begin(self, u: Field, v: Field) -> Callable[[], object]:
        """Fill the fields; the callable follows every swap."""
        self.module.u.from_numpy(u)
        self.module.v.from_numpy(v)
        step: Callable[[], object] = self.module.step
        return step

    def state(self) -> tuple[Field, Field]:
        """Read the fields."""
        return self.module.u.to_numpy(), self.module.v.to_numpy()

    def sync(self) -> None:
        """Kernels of Taichi may return before they are done."""
        self.ti.sync()


class CppSide(Side):
    """Through the C++ compiler of this machine: the state is in NumPy arrays."""

    model = CPP

    def __init__(self, size: int) -> None:
        super().__init__(size)
        from rekernel.jit import CpuJit
        from rekernel.probe import probe

        # Threads that wait between two steps would otherwise take time from Taichi's.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        jit = CpuJit(objcache=None)  # without a cache every edit is really compiled
        found = probe(jit.compiler_info)
        self.release = f"C++ through {found.kind} {'.'.join(map(str, found.number))}"
        self.loader = KernelLoader(jit=jit)

    def begin(self, u: Field, v: Field) -> Callable[[], object]:
        """Copy the arrays; the callable follows every swap."""
        self.u, self.v, step = u.copy(), v.copy(), self.module.step
        return lambda: step(self.u, self.v)

    def state(self) -> tuple[Field, Field]:
        """Copy the arrays."""
        return self.u.copy(), self.v.copy()


def sides(size: int) -> tuple[list[Side], list[str]]:
    """The halves that can run here, and for each other one a sentence that says what it needs."""
    ready: list[Side] = []
    absent: list[str] = []
    if importlib.util.find_spec("taichi") is None:
        python = (
            ", with Python 3.10 to 3.13, as it has no packages for newer ones" if sys.version_info >= (3, 14) else ""
        )
        absent.append(f'The Taichi half needs taichi: pip install "rekernel[taichi]"{python}.')
    else:
        ready.append(TaichiSide(size))
    try:
        ready.append(CppSide(size))
    except ToolchainError as error:
        absent.append(f"The C++ half needs a C++ compiler: {error}")
    return ready, absent
