"""Cubins on devices: loaded where and when they are first needed, unloaded after the last kernel that uses them.

A module must not go while a kernel of it runs, and waiting for that must not hold up whoever drops the last handle,
who may even be in the middle of a capture. So a thread of ours waits and unloads.
"""

from __future__ import annotations

import _thread
import os
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event

from rekernel import locks
from rekernel.cuda import devices as found
from rekernel.cuda.devices import Devices
from rekernel.cuda.driver import CudaError

__all__ = ["Module", "drain", "release_captured"]

_PAUSE = 0.05  # seconds between two looks at a context that is being captured
_RETRIES = 1200

Image = Callable[[str], bytes]
"""Gives the code for an architecture (``sm_90``), which may be compiled for it now."""
Resolved = tuple[int, int, Callable[[], None]]
"""A function, its context, and what to call when a launch of it is captured into a graph."""


@dataclass(eq=False)
class _Loaded:
    """A module on one device."""

    devices: Devices
    device: int
    module: int
    captured: bool = False
    """A graph that may be launched at any later time uses its code."""

    def keep(self) -> None:
        """Note that a launch was captured."""
        self.captured = True


class Module:
    """The code of one version, for every device on which it is called.

    `image`: the code by architecture; `architecture`: that of a compute capability (90 gives ``sm_90``). The module
    lives as long as this object or something that `resolver` made.
    """

    def __init__(self, image: Image, architecture: Callable[[int], str]) -> None:
        self._image, self._architecture = image, architecture
        self._loaded: dict[int, _Loaded] = {}
        self._lock = locks.rlock()
        weakref.finalize(self, _retire, self._loaded).atexit = False  # then the driver takes everything back

    def resolver(self, name: str) -> Callable[[int], Resolved]:
        """Return what finds the kernel of a lowered name on a device: what a `_native.CudaKernel` asks once for each.

        It raises ToolchainError without a driver, CudaError where the code cannot be loaded.
        """

        def resolve(device: int) -> Resolved:
            loaded = self.on(device)
            context = loaded.devices.context(device)
            with loaded.devices.driver.inside(context):
                function = loaded.devices.driver.function(loaded.module, name, device)
            return function, context, loaded.keep

        return resolve

    def on(self, device: int) -> _Loaded:
        """Return the module on a device; loaded, if it is not there yet."""
        with self._lock:
            known = self._loaded.get(device)
            if known is None:
                here = found.devices()
                data = self._image(self._architecture(here.capability(device)))
                with here.driver.inside(here.context(device)):
                    known = self._loaded[device] = _Loaded(here, device, here.driver.load(data))
            return known

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices on which it is loaded."""
        return tuple(self._loaded)


class _Reaper:
    """Unloads modules on its own thread, which is started with the first of them.

    Nothing here takes a lock: it is called from the garbage collector, which may run anywhere.
    """

    def __init__(self) -> None:
        self.waiting: SimpleQueue[_Loaded | Event] = SimpleQueue()
        self.kept: list[_Loaded] = []
        self.running = False

    def take(self, item: _Loaded | Event) -> None:
        self.waiting.put(item)
        if not self.running:
            self.running = True
            # Not threading.Thread, which takes locks to start and waits.
            _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while True:
            item = self.waiting.get()
            if isinstance(item, Event):
                item.set()
            elif item.captured:
                self.kept.append(item)
            else:
                _unload(item)


_reaper = _Reaper()


def _retire(loaded: dict[int, _Loaded]) -> None:
    if not found.inherited():
        for one in loaded.values():
            _reaper.take(one)
    loaded.clear()


def _unload(loaded: _Loaded) -> None:
    """Unload a module; a context that has failed takes its modules along.

    The driver itself waits until nothing runs that uses it. Waiting for the context here as well would end the captures
    of other threads.
    """
    driver, context = loaded.devices.driver, loaded.devices.context(loaded.device)
    for _ in range(_RETRIES):
        try:
            with driver.inside(context):
                driver.unload(loaded.module)
            return
        except CudaError as error:
            if not error.capturing:
                return
            time.sleep(_PAUSE)  # it is being captured now


def release_captured() -> int:
    """Unload the retired modules that were kept because a launch was captured into a graph. Returns how many.

    Graphs that use them must not be launched any more.
    """
    drain()
    kept, _reaper.kept[:] = _reaper.kept[:], []
    for one in kept:
        one.captured = False
        _reaper.take(one)
    drain()
    return len(kept)


def drain(timeout: float | None = 60.0) -> bool:
    """Wait until every module that was retired before is unloaded; return whether it is."""
    if found.inherited() or not _reaper.running:
        return True
    done = Event()
    _reaper.take(done)
    return done.wait(timeout)


def _forget() -> None:
    global _reaper
    _reaper = _Reaper()  # its thread stayed in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
