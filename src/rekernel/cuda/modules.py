"""A cubin on the devices: loaded where it is first wanted, unloaded when nothing can launch it any more.

Unloading waits for the device, which a finalizer must not: a thread does it, started on demand.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rekernel import _native
from rekernel.cuda import missing
from rekernel.cuda.driver import CudaError, Driver
from rekernel.errors import JitError
from rekernel.locks import rlock

__all__ = ["DeviceError", "Loaded", "Module", "driver", "launcher"]


class DeviceError(JitError, RuntimeError):
    """What the CUDA driver said instead of launching or loading a kernel."""


_drivers: dict[int, Driver] = {}
"""By process: only the one that has started CUDA may use it."""
_launchers: list[Any] = []
_lock = rlock()


def driver() -> Driver:
    """Return the driver, started. ToolchainError says what is missing."""
    found = _drivers.get(os.getpid())
    if found is not None:
        return found
    with _lock:
        if _drivers and os.getpid() not in _drivers:
            raise missing.forked()
        try:
            return _drivers.setdefault(os.getpid(), Driver())
        except (OSError, CudaError) as error:
            raise missing.driver(error) from None


def launcher() -> Any:
    """Return the native extension's driver, through which kernels are launched. It need not be there to be made."""
    with _lock:
        if not _launchers:
            try:
                _launchers.append(_native.CudaDriver())
            except OSError as error:
                raise missing.driver(error) from None
        return _launchers[0]


@dataclass(frozen=True)
class Loaded:
    """A module in the context of a device."""

    module: int
    context: int
    driver: Driver


class Module:
    """A cubin, or PTX with its final zero."""

    def __init__(self, image: bytes, name: str) -> None:
        self._image, self._name = image, name
        self._loaded: dict[int, Loaded] = {}
        self._lock = rlock()
        made = weakref.finalize(self, _retire, self._loaded, os.getpid())
        made.atexit = False

    def on(self, device: int) -> Loaded:
        """Return the module on a device, loaded now if need be. DeviceError where the driver refuses it."""
        found = self._loaded.get(device)
        if found is not None:
            return found
        with self._lock:
            found = self._loaded.get(device)
            if found is None:
                using = driver()
                try:
                    context = using.context(device)
                    with using.inside(context):
                        found = Loaded(using.load(self._image), context, using)
                except CudaError as error:
                    raise DeviceError(f"{self._name} cannot be loaded on device {device}: {error}") from None
                self._loaded[device] = found
            return found

    def function(self, device: int, symbol: str) -> tuple[int, int]:
        """Return a kernel's function on a device, and the device's context."""
        loaded, using = self.on(device), driver()
        try:
            with using.inside(loaded.context):
                return using.function(loaded.module, symbol, device), loaded.context
        except CudaError as error:
            raise DeviceError(f"{self._name} has no kernel {symbol} on device {device}: {error}") from None


_retired: deque[Loaded] = deque()
_reaper: list[threading.Thread] = []
_ending: list[bool] = []


def _retire(loaded: dict[int, Loaded], pid: int) -> None:
    """Have modules unloaded; called by a finalizer, in any thread and at any moment, so it takes no lock."""
    if not loaded or pid != os.getpid() or _ending:
        return
    _retired.extend(loaded.values())
    if not _reaper:
        thread = threading.Thread(target=_reap, name="rekernel unloads CUDA modules", daemon=True)
        _reaper.append(thread)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, and the driver with it
            _reaper.clear()


def _reap() -> None:
    while True:
        while _retired:
            one = _retired.popleft()
            with suppress(CudaError), one.driver.inside(one.context):  # a dead context has nothing to unload
                one.driver.synchronize()
                one.driver.unload(one.module)
        _reaper.clear()
        if not _retired or _reaper:
            return
        _reaper.append(threading.current_thread())


atexit.register(_ending.append, True)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_retired.clear)
    os.register_at_fork(after_in_child=_reaper.clear)
