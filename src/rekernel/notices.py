"""Notices of the operating system that something has changed in a directory, through the package watchfiles."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

from rekernel.errors import ToolchainError
from rekernel.journal import log

__all__ = ["Notices"]

STEP = 10
"""Milliseconds: changes that come closer together are told at once."""
TOGETHER = 50
"""Milliseconds after which changes are told although more of them come."""
POLLING = 200
"""Milliseconds between two looks where the system gives no notice."""


class Notices:
    """Waits for changes in some directories. What has changed is only a hint: the files are to be read."""

    def __init__(self, polling: bool | None = None) -> None:
        """Begin without directories; ToolchainError where watchfiles is missing.

        `polling`: whether to look again and again instead of asking the system; None: as ``WATCHFILES_FORCE_POLLING``
        says, else only where it is known to be needed.
        """
        try:
            from watchfiles._rust_notify import RustNotify
        except ImportError as error:
            raise ToolchainError(
                f"watching files needs the package watchfiles, which cannot be imported here ({error}); install it "
                'with: pip install "rekernel[watch]"   (python -m rekernel doctor)'
            ) from None
        self._make = RustNotify
        self.polling = _needed() if polling is None else polling
        self._notify: Any = None
        self._followed: dict[str, tuple[int, int]] = {}
        self._woken = threading.Event()

    def follow(self, directories: Iterable[str]) -> None:
        """Wait for changes in these directories from now on, as far as they exist."""
        wanted = {name: found for name in directories if (found := _identity(name)) is not None}
        if wanted == self._followed and (self._notify is not None or not wanted):
            return
        old, self._notify, self._followed = self._notify, None, {}
        try:
            if wanted:
                self._notify = self._begin(sorted(wanted))
                self._followed = wanted
        finally:
            if old is not None:
                old.close()

    def _begin(self, directories: list[str]) -> Any:
        try:
            return self._make(directories, False, self.polling, POLLING, False, True)
        except FileNotFoundError:  # gone meanwhile: the next look finds out
            return None
        except (OSError, RuntimeError) as error:
            if not self.polling:
                log.warning("watching by looking again and again, for the system gives no notice: %s", error)
                self.polling = True
                return self._begin(directories)
            log.warning("no notice of changed files: %s", error)
            return None

    def wait(self, seconds: float) -> set[str]:
        """Return the names that have changed; none after `seconds`, or when `wake` is called."""
        if self._notify is None:
            self._woken.wait(seconds)
            return set()
        try:
            found = self._notify.watch(TOGETHER, STEP, max(1, int(seconds * 1000)), self._woken)
        except (OSError, RuntimeError):
            self.close()  # and begin anew at the next turn
            self._woken.wait(min(seconds, POLLING / 1000))
            return set()
        if found == "signal":  # Ctrl-C in the main thread: the native code has eaten the exception
            raise KeyboardInterrupt
        return {path for _kind, path in found} if isinstance(found, set) else set()

    def wake(self) -> None:
        """Let `wait` return, now or as soon as it is called."""
        self._woken.set()

    def hear(self) -> None:
        """Forget that `wake` was called: what it was called for is looked at now."""
        self._woken.clear()

    def close(self) -> None:
        """Give back what the system keeps for this."""
        old, self._notify, self._followed = self._notify, None, {}
        if old is not None:
            old.close()


def _needed() -> bool:
    """Whether to look again and again, as watchfiles itself decides: it is told to, or this is Windows' Linux."""
    told = os.environ.get("WATCHFILES_FORCE_POLLING")
    if told:
        return told.lower() not in ("false", "disable", "disabled")
    return hasattr(os, "uname") and "microsoft-standard" in os.uname().release.lower()


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = os.stat(directory)
    except OSError:
        return None
    return found.st_dev, found.st_ino
