"""Builds on threads of their own: the old version serves until the new one is ready."""

from __future__ import annotations

import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING

from rekernel import building
from rekernel.events import first_line
from rekernel.publishing import record

if TYPE_CHECKING:
    from rekernel.jobs import Job
    from rekernel.loader import KernelLoader


class Background:
    """Builds that run on threads of their own: last started wins."""

    def __init__(self) -> None:
        self.running: dict[str, threading.Thread] = {}
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
        ticket = self.tickets[kernel_id] = self.tickets.get(kernel_id, 0) + 1
        job.ahead = True
        job.still_wanted = lambda: self.tickets[kernel_id] == ticket
        live = record(loader, kernel_id)
        if live.current is None:
            live.removed = "it is still being built in the background (loader.wait() waits for it)"

        def work() -> None:
            try:
                building.run(loader, job)
            except BaseException as error:
                if job.still_wanted():
                    self.errors[kernel_id] = error
                    if live.current is None:
                        live.removed = f"its build failed: {first_line(error)}"

        self.errors.pop(kernel_id, None)
        thread = threading.Thread(target=work, name=f"rekernel build {kernel_id}", daemon=True)
        self.running[kernel_id] = thread
        thread.start()
        return live.module

    def overtake(self, kernel_id: str) -> None:
        """Something that is not in the background was started later: older background results are dropped."""
        if kernel_id in self.tickets:
            self.tickets[kernel_id] += 1

    def wait(self, kernel_id: str | None, timeout: float | None) -> None:
        """Wait for builds; see ``KernelLoader.wait``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for name in [kernel_id] if kernel_id is not None else list(self.running):
            thread = self.running.get(name)
            if thread is None or thread is threading.current_thread():  # a callback of the build itself
                continue
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise TimeoutError(f"{name} is still being built after {timeout} s")
            if self.running.get(name) is thread:
                self.running.pop(name, None)
            error = self.errors.pop(name, None)
            if error is not None:
                raise error
