"""`CupyJit`: kernels to code for CUDA devices, through the object cache.

kernel -> text -> key -> objcache: hit, or NVRTC and publish -> a module on each device, on demand -> callable
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.errors import JitError
from rekernel.jit.base import JitBase, KernelWrapper
from rekernel.kernel import Kernel, Slot
from rekernel.launchgrid import LaunchGrid
from rekernel.modulebuilder import text_name
from rekernel.objcache import AUTO, ObjectCache
from rekernel.symbolic import is_symbolic, kernel_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rekernel.cachedir import Auto
    from rekernel.cuda.cubins import Order
    from rekernel.jit.obtain import Artefact

__all__ = ["CupyJit", "CupyKernelWrapper", "LaunchGrid", "release_captured"]

HEADER = "rekernel/launch.hpp"
_OWN = "rekernel entry points"


class CupyKernelWrapper(KernelWrapper):
    """A kernel that was compiled for CUDA devices: call it with arrays of CuPy, PyTorch or anything on a device.

    ``kernel[grid, block](...)``, ``kernel[grid, block, stream](...)``,
    ``kernel[grid, block, stream, shared_bytes](...)`` and ``kernel[LaunchGrid(...)](...)`` launch it on a grid of
    blocks. Kernels of pystencils know their grid and need no brackets. Without a stream it is PyTorch's current one if
    a tensor is among the arguments, else CuPy's. A call does not wait for the kernel.
    """

    __slots__ = ()

    @property
    def launch_config(self) -> Any:
        """The launch configuration of a kernel of pystencils, which may be changed; None for other kernels.

        It is pystencils' own object: ``kernel.launch_config.fit_block_size((32, 8, 1))``.
        """
        return self._details.get("launch_config")


_native.seal(CupyKernelWrapper)


class CupyJit(JitBase):
    """Compiles kernels for the CUDA devices of this machine.

    It takes kernels of pystencils for ``Target.CUDA``, and `Kernel` values in CUDA whose `slots` say, in the order of
    the ``__global__`` function, what each of its parameters is; the compiler confirms that. CUDA texts are loaded by
    `KernelLoader.load`.

    `objcache`: AUTO for the user's cache directory, a path, an `ObjectCache`, or None to keep nothing. `options`: those
    of NVRTC, such as ``"-use_fast_math"`` or ``"-Iinclude"``; ``"-arch=sm_90a"`` replaces the device's own
    architecture. With `debug`, code knows its lines, and every call waits for the kernel and raises what went wrong.

    Making one starts nothing. CuPy, NVRTC and the driver are looked for when they are first needed (ToolchainError).
    """

    def __init__(
        self,
        objcache: str | os.PathLike[str] | ObjectCache | Auto | None = AUTO,
        *,
        options: Sequence[str] = (),
        debug: bool = False,
    ) -> None:
        if isinstance(options, str):
            raise TypeError(f"options is a sequence of NVRTC's options, not one text: options=({options!r},)")
        self.objcache = objcache if isinstance(objcache, ObjectCache) else ObjectCache(objcache)
        self.options = tuple(options)
        self.debug = debug

    def compile(self, kernel: Any) -> CupyKernelWrapper:
        """Compile one kernel and return its callable; its code is loaded on a device when it is first called there.

        Raises KernelSourceError where NVRTC refuses the text, ToolchainError where CuPy, NVRTC or the driver is
        missing, JitError for what is no CUDA kernel.
        """
        from rekernel.cuda import cubins, nvrtc
        from rekernel.cuda.devices import devices
        from rekernel.cuda.modules import Module
        from rekernel.jit.calltable import rows

        given = _given(kernel)
        value = given.value
        parameters, slots = rows(value)  # raises where the table contradicts itself
        here = devices()
        known = cubins.about(self.objcache)
        own, options = _architecture(self.options)
        function = f"&{value.function or value.name}"

        def architecture(capability: int) -> str:
            return own or nvrtc.architecture(capability, known)

        order = cubins.Order(
            render(value), architecture(here.capability(here.current())), headers={HEADER: _header()},
            before=(HEADER,), options=(*options, *(["-lineinfo"] if self.debug else [])), expressions=(function,),
            subject=(value.language, value.name),
        )  # fmt: skip
        artefact = self._obtain(order, value)

        def image(arch: str) -> bytes:
            return artefact.data if arch == order.arch else self._obtain(replace(order, arch=arch), value).data

        launcher = _native.CudaKernel(
            here.native, value.name, parameters, slots, policy=value.policy, grid=given.grid,
            resolve=Module(image, architecture).resolver(artefact.manifest["names"][function]),
            checked=_wait if self.debug else None,
        )  # fmt: skip
        made = CupyKernelWrapper.over(
            value, launcher, ast=kernel, unit=order.text, target=order.arch, from_cache=artefact.from_cache,
            rebuilt_because=artefact.rebuilt_because, warnings=artefact.warnings, launch_config=given.config,
            machine=("ptx" if order.arch.startswith("compute") else "cubin", artefact.data),
        )  # fmt: skip
        assert isinstance(made, CupyKernelWrapper)
        return made

    def _obtain(self, order: Order, kernel: Kernel) -> Artefact:
        from rekernel.cuda import cubins
        from rekernel.jit.cpu import source_error
        from rekernel.product import CompileFailed

        try:
            return cubins.obtain(self.objcache, order)
        except CompileFailed as failure:
            raise source_error(failure, (kernel,)) from failure

    def __repr__(self) -> str:
        return f"<CupyJit {self.objcache!r}>"


@dataclass(frozen=True)
class _Given:
    """A kernel as it was given, and what computes its grid."""

    value: Kernel
    grid: Callable[..., Any] | None = None
    config: Any = None


def _given(kernel: Any) -> _Given:
    if isinstance(kernel, Kernel):
        if kernel.language != "cuda" and not (kernel.language == "stencil" and "__global__" in kernel.code):
            raise JitError(f"{kernel.name} is a {kernel.language} kernel; CupyJit compiles CUDA")
        if not kernel.slots and kernel.parameters:
            raise JitError(f"{kernel.name} has parameters and no slots, which say how they are passed")
        return _Given(kernel)
    if isinstance(kernel, str):
        raise JitError("CupyJit compiles Kernel values and kernels of pystencils; text is loaded by KernelLoader.load")
    if not is_symbolic(kernel):
        raise JitError(f"CupyJit compiles Kernel values, not {type(kernel).__module__}.{type(kernel).__qualname__}")
    if kernel.target.name == "HIP":
        raise JitError(f"{kernel.name} is made for HIP, AMD's GPUs; CupyJit compiles for CUDA (ps.Target.CUDA)")
    if not hasattr(kernel, "get_launch_configuration"):
        made_for = "a CPU" if kernel.target.is_cpu() else kernel.target.name
        raise JitError(f"{kernel.name} is made for {made_for}; CupyJit compiles for ps.Target.CUDA")
    from rekernel.jit.launching import grid_of, launch_needs

    config = kernel.get_launch_configuration()
    value, needs = launch_needs(config, kernel_of(kernel, gpu=True))
    return _Given(value, grid_of(config, value, needs), config)


def render(kernel: Kernel) -> str:
    """Return the text that NVRTC sees: the kernel's own, and a line that has its parameter table confirmed."""
    includes = "".join(f"#include {header}\n" for header in sorted(kernel.headers))
    rows = "".join(f", {_row(slot, kernel)}" for slot in kernel.slots)
    confirm = f"REKERNEL_CONFIRM(({kernel.function or kernel.name}){rows})"
    return f'{includes}#line 1 "{text_name(kernel)}"\n{kernel.code}\n#line 1 "{_OWN}"\n{confirm}\n'


def _row(slot: Slot, kernel: Kernel) -> str:
    from rekernel.modulebuilder import row_of

    code, size, pointer = row_of(slot, {p.name: p for p in kernel.parameters})
    return f"REKERNEL_ROW('{code}', {size}, {int(pointer)})"


def _architecture(options: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the architecture that options name, and the other options."""
    own, rest = None, []
    words = iter(options)
    for word in words:
        flag, _, value = word.partition("=")
        if flag in ("-arch", "--gpu-architecture"):
            own = value or next(words, "")
        else:
            rest.append(word)
    return own, tuple(rest)


def release_captured() -> int:
    """Unload code that was kept because a launch of it was captured into a CUDA graph. Returns how many modules.

    Only code whose kernels are gone is concerned. Graphs that have such launches must not be launched any more.
    """
    from rekernel.cuda import modules

    return modules.release_captured()


def _wait(device: int, stream: int) -> None:
    """Wait for a launch, unless it is captured, and raise what went wrong in it."""
    from rekernel.cuda.devices import devices

    here = devices()
    if not here.driver.is_capturing(stream):
        here.checked(device, stream)


@cache
def _header() -> str:
    place = os.path.join(os.path.dirname(os.path.dirname(__file__)), "include", HEADER)
    with open(place, encoding="utf-8") as file:
        return file.read()
