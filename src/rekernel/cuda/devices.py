"""The driver and its devices, found when they are first needed, and what is missing where they are not.

A process that was forked from one that had used CUDA cannot use it; every way to the driver says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from rekernel import _native, locks
from rekernel.cuda import missing
from rekernel.cuda.driver import CudaError, Driver

__all__ = ["Devices", "devices", "inherited", "use"]

_LIBRARY = "libcuda.so.1"
_lock = locks.rlock()
_found: list[Devices] = []
_inherited = False


class Devices:
    """The driver of this process: for loading code, and for the native extension's launches."""

    def __init__(self, path: str) -> None:
        self.driver = Driver(path)
        self.native = _native.CudaDriver(path)
        self.count = self.driver.count()
        if not self.count:
            raise CudaError("cuDeviceGetCount", 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")
        self._capabilities: dict[int, int] = {}
        self._contexts: dict[int, int] = {}

    def capability(self, device: int) -> int:
        """Return the compute capability of a device: 90 for 9.0."""
        if device not in self._capabilities:
            self._capabilities[device] = self.driver.capability(device)
        return self._capabilities[device]

    def context(self, device: int) -> int:
        """Return the primary context of a device. It is made where nobody has used the device yet."""
        with _lock:
            if device not in self._contexts:
                self._contexts[device] = self.driver.context(device)
            return self._contexts[device]

    def current(self) -> int:
        """Return the device that this thread uses: that of its context, else CuPy's."""
        device = self.driver.current_device()
        return _cupys() if device is None else device

    def checked(self, device: int, stream: int) -> None:
        """Wait for a stream; CudaError where what runs on it has failed."""
        with self.driver.inside(self.context(device)):
            self.driver.synchronize_stream(stream)


def devices() -> Devices:
    """Return the driver of this process. ToolchainError where it is missing, or cannot be used after a fork."""
    if _inherited:
        raise missing.forked()
    with _lock:
        if not _found:
            try:
                _found.append(Devices(_LIBRARY))
            except (OSError, CudaError, AttributeError) as error:
                raise missing.driver(error) from error
        return _found[0]


def inherited() -> bool:
    """Return whether this process was forked from one that had used CUDA."""
    return _inherited


def use(path: str) -> Callable[[], None]:
    """Use another driver library from now on, for tests; return what goes back."""
    global _LIBRARY
    before, found = _LIBRARY, _found[:]
    _LIBRARY = path
    _found.clear()

    def back() -> None:
        global _LIBRARY
        _LIBRARY = before
        _found[:] = found

    return back


def _cupys() -> int:
    try:
        from cupy_backends.cuda.api import runtime

        return int(runtime.getDevice())
    except Exception:  # without CuPy, or one that does not work: the first device
        return 0


def _mark() -> None:
    global _inherited
    _inherited = _inherited or bool(_found)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark)
