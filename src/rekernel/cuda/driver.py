"""The CUDA driver's functions that load and unload code, by ctypes. Each raises where CUDA says no.

Launches do not go through here: the native extension calls the driver itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["RELAXED", "CudaError", "Driver"]

RELAXED = 2
"""The stream capture mode in which a thread may do what a capture of another thread forbids by default."""

_SHARED_STATIC, _SHARED_MOST = 1, 8  # attributes of a function
_MAJOR, _MINOR, _SHARED_OPTIN = 75, 76, 97  # attributes of a device
_CAPTURING = range(900, 910)


class CudaError(RuntimeError):
    """What the driver answered instead of success."""

    def __init__(self, function: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{function}: {name} ({code}){': ' if text else ''}{text}")
        self.function, self.code, self.name = function, code, name

    @property
    def capturing(self) -> bool:
        """Whether it is refused only because a stream is being captured."""
        return self.code in _CAPTURING


class Driver:
    """libcuda, initialised. OSError where it cannot be loaded, CudaError where there is no device for it."""

    def __init__(self, path: str = "libcuda.so.1") -> None:
        self._library = ctypes.CDLL(path)
        self.call("cuInit", 0)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function of the driver; CudaError unless it succeeds. The GIL is released meanwhile."""
        code = getattr(self._library, function)(*arguments)
        if code:
            raise CudaError(function, code, self._said("cuGetErrorName", code), self._said("cuGetErrorString", code))

    def _said(self, function: str, code: int) -> str:
        text = ctypes.c_char_p()
        with suppress(AttributeError):
            getattr(self._library, function)(code, ctypes.byref(text))
        return (text.value or b"").decode("utf-8", "replace") or ("" if function.endswith("String") else "CUDA error")

    def count(self) -> int:
        """Return how many devices there are."""
        found = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(found))
        return found.value

    def attribute(self, device: int, number: int) -> int:
        """Return an attribute of a device."""
        found = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(found), number, self._device(device))
        return found.value

    def capability(self, device: int) -> int:
        """Return the compute capability of a device: 90 for 9.0."""
        return 10 * self.attribute(device, _MAJOR) + self.attribute(device, _MINOR)

    def current_device(self) -> int | None:
        """Return the device of this thread's current context, or None where there is none."""
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            return None
        self.call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    def context(self, device: int) -> int:
        """Return the primary context of a device, which CuPy and PyTorch use, too. It is retained for ever."""
        made = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(made), self._device(device))
        return made.value or 0

    @contextmanager
    def inside(self, context: int) -> Iterator[None]:
        """Make a context the current one for a block, in which captures of streams are left alone."""
        mode = ctypes.c_int(RELAXED)
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(context))
        try:
            self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
            try:
                yield
            finally:
                self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def load(self, image: bytes) -> int:
        """Load a cubin, or PTX with its final zero, into the current context; return the module."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        return module.value or 0

    def unload(self, module: int) -> None:
        """Unload a module of the current context."""
        self.call("cuModuleUnload", ctypes.c_void_p(module))

    def function(self, module: int, name: str, device: int) -> int:
        """Return a kernel of a module. It may use all the dynamic shared memory that the device has."""
        found = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(found), ctypes.c_void_p(module), name.encode())
        with suppress(CudaError, AttributeError):  # then it is limited to 48 KiB
            used = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(used), _SHARED_STATIC, found)
            most = self.attribute(device, _SHARED_OPTIN) - used.value
            if most > 0:
                self.call("cuFuncSetAttribute", found, _SHARED_MOST, most)
        return found.value or 0

    def synchronize(self) -> None:
        """Wait for all that was started in the current context."""
        self.call("cuCtxSynchronize")

    def synchronize_stream(self, stream: int) -> None:
        """Wait for all that was started on a stream."""
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def is_capturing(self, stream: int) -> bool:
        """Return whether a stream is being captured into a graph, or may not be asked because another is."""
        status = ctypes.c_int()
        try:
            self.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        except CudaError as error:
            if error.capturing:
                return True
            raise
        return bool(status.value)

    def _device(self, number: int) -> int:
        found = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(found), number)
        return found.value
