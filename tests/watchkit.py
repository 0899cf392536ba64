"""What the tests of watching share: a clock that can be stopped, ways of saving a file, waiting with a bound."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekernel.settling import Times
from rekernel.values import ReloadEvent
from rekernel.watch import Watch

watchfiles = pytest.importorskip("watchfiles", reason="watchfiles is not installed")

BOUND = 60.0
"""Seconds that a busy machine may take for anything here."""


class Clock:
    """Seconds that can be stopped: while they stand, nothing settles, however slowly the test goes on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.offset = 0.0
        self.stopped: float | None = None

    def __call__(self) -> float:
        with self.lock:
            return self.stopped if self.stopped is not None else time.monotonic() + self.offset

    def stop(self) -> None:
        now = self()
        with self.lock:
            self.stopped = now

    def go(self) -> None:
        with self.lock:
            assert self.stopped is not None
            self.offset, self.stopped = self.stopped - time.monotonic(), None


def until(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until a condition holds, and return what it gives; fail after `BOUND`."""
    end = time.monotonic() + BOUND
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {BOUND} s for {what or condition}"
        time.sleep(0.005)
    return found


class Watching:
    """A watch whose clock can be stopped, and all that its loader tells."""

    def __init__(self, loader: Any, *paths: Any, times: Times | None = None) -> None:
        self.clock, self.loader, self.events = Clock(), loader, []
        loader.on_reload(self.events.append)
        self.watch = Watch(loader, paths, times=times, clock=self.clock)

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()

    def kinds(self, kernel_id: str | None = None) -> list[str]:
        """What has happened to an id, or to all, in order."""
        return [event.kind for event in list(self.events) if kernel_id in (None, event.kernel_id)]

    def last(self, kernel_id: str, kind: str) -> ReloadEvent:
        """Wait for an event, and return the last one of this kind."""

        def found() -> ReloadEvent | None:
            fitting = [event for event in list(self.events) if (event.kernel_id, event.kind) == (kernel_id, kind)]
            return fitting[-1] if fitting else None

        return until(found, f"{kernel_id} {kind}")

    def quiet(self) -> None:
        """Wait until the watch has looked at all that was saved before, and has nothing left to do."""

        def idle() -> bool:
            return all(text.attempt is None and text.due() is None for text in self.watch._all_texts())

        def turned() -> None:
            wanted = self.watch.turns + 2  # one may be under way
            until(lambda: (self.watch.poke(), self.watch.turns >= wanted)[1], "two turns of the watch")

        turned()
        until(idle, "an idle watch")
        turned()  # an error is told in the turn in which its text becomes idle


# --- ways of saving: each leaves the last text of `texts` in the file, and some of them others before it --------------


def in_place(path: Path, texts: list[str]) -> None:
    for text in texts:
        with path.open("r+b") as file:
            file.write(text.encode())
            file.truncate()


def two_chunks(path: Path, texts: list[str]) -> None:
    data = texts[-1].encode()
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        time.sleep(0.05)
        file.write(data[len(data) // 2 :])


def renamed(path: Path, texts: list[str]) -> None:
    for text in texts:
        other = path.with_name(f".{path.name}.swp")
        other.write_text(text)
        os.replace(other, path)


def anew(path: Path, texts: list[str]) -> None:
    for text in texts:
        path.unlink()
        time.sleep(0.02)
        path.write_text(text)


def burst(path: Path, texts: list[str]) -> None:
    for text in [*texts, *texts, *texts][-10:]:
        path.write_text(text)
        time.sleep(0.05)


def same_time_and_size(path: Path, texts: list[str]) -> None:
    before = path.stat()
    path.write_text(texts[-1].ljust(before.st_size - 1) + "\n" if before.st_size >= len(texts[-1]) else texts[-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def older(path: Path, texts: list[str]) -> None:
    path.write_text(texts[-1])
    os.utime(path, (1, 1))


def linked(path: Path, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        target = path.parent / f"targets{number}" / "target"
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
        link = path.with_name("new link")
        link.symlink_to(target)
        os.replace(link, path)


WAYS = {way.__name__: way for way in (in_place, two_chunks, renamed, anew, burst, same_time_and_size, older, linked)}
