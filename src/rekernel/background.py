"""Builds on threads of their own: the old version serves until the new one is ready."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from rekernel import building
from rekernel.events import first_line
from rekernel.publishing import record

if TYPE_CHECKING:
    from rekernel.jobs import Job
    from rekernel.loader import KernelLoader


@dataclass(eq=False)
class Running:
    """A build on its way."""

    thread: threading.Thread
    done: threading.Event
    """What to wait for: after Ctrl-C in `Thread.join`, Python up to 3.12 takes the thread for one that has ended."""
    process: int = field(default_factory=os.getpid)
    """A forked child has no such thread."""
    error: BaseException | None = None
    """What ended it, unless something later was started meanwhile."""


class Background:
    """Builds that run on threads of their own: last started wins."""

    def __init__(self) -> None:
        self.running: dict[str, Running] = {}
        self.errors: dict[str, BaseException] = {}
        self.tickets: dict[str, int] = {}

    def start(self, loader: KernelLoader, job: Job) -> ModuleType:
        """Start a build and return the module at once; the old version serves until the new one is ready."""
        if not job.language.threads:
            raise ValueError(
                f"background=True does nothing good for {job.language.name}: it holds the GIL while it compiles, "
                "so the program would stand still all the same; load without it"
            )
        kernel_id = job.kernel_id
        assert kernel_id is not None
        job.ahead = True
        job.still_wanted = self.ticket(kernel_id)
        live = record(loader, kernel_id)
        if live.current is None:
            live.removed = "it is still being built in the background (loader.wait() waits for it)"

        def work() -> None:
            try:
                building.run(loader, job)
            except BaseException as error:
                if job.still_wanted():
                    self.errors[kernel_id] = build.error = error
                    if live.current is None:
                        live.removed = f"its build failed: {first_line(error)}"
            finally:
                done.set()

        self.errors.pop(kernel_id, None)
        done = threading.Event()
        thread = threading.Thread(target=work, name=f"rekernel build {kernel_id}", daemon=True)
        self.running[kernel_id] = build = Running(thread, done)
        thread.start()
        return live.module

    def ticket(self, kernel_id: str) -> Callable[[], bool]:
        """Overtake all that was started for an id, and return what tells whether this is still the last."""
        mine = self.tickets[kernel_id] = self.tickets.get(kernel_id, 0) + 1
        return lambda: self.tickets[kernel_id] == mine

    def overtake(self, kernel_id: str) -> None:
        """Something that is not in the background was started later: older background results are dropped."""
        if kernel_id in self.tickets:
            self.tickets[kernel_id] += 1

    def wait(self, kernel_id: str | None, timeout: float | None) -> None:
        """Wait for builds; see ``KernelLoader.wait``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for name in [kernel_id] if kernel_id is not None else list(self.running):
            build = self.running.get(name)
            if build is None or build.thread is threading.current_thread():  # a callback of the build itself
                continue
            rest = None if deadline is None else max(0.0, deadline - time.monotonic())
            if build.process == os.getpid() and not build.done.wait(rest):
                raise TimeoutError(f"{name} is still being built after {timeout} s")
            if self.running.get(name) is build:
                self.running.pop(name, None)
            error = self.errors.pop(name, None)
            if error is not None:
                raise error
