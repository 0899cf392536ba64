"""Compiled code on devices: a cubin, its modules, its kernels and variables.

::

    cubin -> a module on each device, when something is first launched or read there -> unloaded with the last kernel

A launch goes from the native extension to the driver; what is here is asked once for each device.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.cuda import devices
from rekernel.errors import ToolchainError
from rekernel.jit.calltable import rows
from rekernel.languages.cpp.building import one_of as one_of_several
from rekernel.languages.cuda import checked
from rekernel.languages.cuda.signature import arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rekernel.cuda.driver import Driver
    from rekernel.cuda.modules import Module
    from rekernel.languages import Request
    from rekernel.languages.cpp.signature import Entry
    from rekernel.languages.cuda.options import Settings

__all__ = ["Code", "capability", "kernel", "one_of"]


def capability() -> int:
    """Return the compute capability of the current device; a ToolchainError says what is missing."""
    try:
        here = devices.devices()
    except ToolchainError as error:
        raise ToolchainError(f"{error}\nto compile without a device, name its architecture: arch='sm_90'") from None
    return here.capability(here.current())


class Code:
    """The cubin of one version, loaded where it is wanted."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def resolver(self, symbol: str, captured: Callable[[], None]) -> Callable[[int], tuple[int, int, Any]]:
        """Return what tells where a kernel is on a device. `captured` is called when a launch is captured there."""
        find = self._module.resolver(symbol)
        return lambda device: (*find(device)[:2], captured)

    @contextmanager
    def _at(self, symbol: str, device: int | None) -> Iterator[tuple[Driver, int]]:
        """Give the driver and the address of a variable on a device, inside of the device's context."""
        here = devices.devices()
        number = here.current() if device is None else device
        loaded, driver = self._module.on(number), here.driver
        with driver.inside(here.context(number)):
            place, size = ctypes.c_uint64(), ctypes.c_size_t()
            handle = ctypes.c_void_p(loaded.module)
            driver.call("cuModuleGetGlobal_v2", ctypes.byref(place), ctypes.byref(size), handle, symbol.encode())
            yield driver, place.value

    def pointer(self, symbol: str, device: int | None) -> int:
        """Return the address of a variable."""
        with self._at(symbol, device) as (_driver, place):
            return place

    def write(self, symbol: str, data: bytes, device: int | None) -> None:
        """Write a variable when all that was started on the device is done."""
        with self._at(symbol, device) as (driver, place):
            driver.synchronize()
            driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(place), data, ctypes.c_size_t(len(data)))

    def read(self, symbol: str, size: int, device: int | None, stream: int | None = None) -> bytes:
        """Return a variable when all that was started on the device, or on one stream, is done."""
        with self._at(symbol, device) as (driver, place):
            if stream is None:
                driver.synchronize()
            else:
                driver.synchronize_stream(stream)
            room = ctypes.create_string_buffer(size)
            driver.call("cuMemcpyDtoH_v2", room, ctypes.c_uint64(place), ctypes.c_size_t(size))
            return room.raw


def kernel(code: Code, entry: Entry, request: Request, chosen: Settings, unit: str) -> Any:
    """Return what launches a kernel."""
    try:
        launcher = devices.devices().native
    except ToolchainError:
        if chosen.arch is None:
            raise
        return Unavailable(entry.kernel.name)
    parameters, slots = rows(entry.kernel)
    if chosen.allow_alias:
        parameters = tuple(_not_restrict(row) for row in parameters)
    kept = request.kept

    def captured() -> None:
        kept.append(code)

    return _native.CudaKernel(
        launcher, entry.kernel.name, parameters, slots, resolve=code.resolver(entry.symbol, captured),
        kernel_id=request.kernel_id, version=request.number,
        arguments=arguments(entry.kernel), checked=_check(code, entry, request, unit) if chosen.debug else None,
    )  # fmt: skip


def _not_restrict(row: Any) -> Any:
    return row if row[1] != "array" else (*row[:11], False, *row[12:])


def _check(code: Code, entry: Entry, request: Request, unit: str) -> Callable[[int, int], None]:
    """Return what waits for a launch and raises what it has noted."""
    kernel_id, name, source = request.kernel_id, entry.kernel.name, request.source

    def check(device: int, stream: int) -> None:
        if devices.devices().driver.is_capturing(stream):
            return  # nobody may wait; a replay of the graph is not checked
        note = checked.note_of(code.read(checked.SYMBOL, checked.SIZE, device, stream))
        if note is not None:
            code.write(checked.SYMBOL, bytes(checked.SIZE), device)
            raise checked.exception(note, kernel_id, name, source, lambda file: os.path.basename(file) == unit)

    return check


class Unavailable:
    """A kernel that was compiled for a device where there is none (``arch=``)."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Raise the ToolchainError that says what is missing."""
        self.refuse()

    def refuse(self) -> None:
        """Raise the ToolchainError that says what is missing."""
        devices.devices()
        raise ToolchainError(f"{self.__name__} was loaded when there was no CUDA device; load it again")


def one_of(name: str, pairs: Sequence[tuple[Entry, Any]]) -> Any:
    """Return what a handle launches: a kernel, or a choice among those of its name."""
    return pairs[0][1] if isinstance(pairs[0][1], Unavailable) else one_of_several(name, pairs)
