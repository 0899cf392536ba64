"""A line that says what takes so long. Only for eyes: on a terminal, or in a notebook."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rekernel.locks import rlock

__all__ = ["shown"]

PATIENCE = 0.5  # seconds before anything is shown
_PAUSE = 0.1
_showing = rlock()
"""One line at a time: of several builds, the first that takes long shows its own."""


@contextmanager
def shown(title: str) -> Iterator[None]:
    """Show ``heat v4 (cpp): compiling, 1.2 s ...`` while the block takes longer than half a second; then remove it.

    On a thread of its own, which ends with the block. ``REKERNEL_PROGRESS=0`` switches it off.
    """
    stream = _stream()
    if stream is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(stream, title, done), name="rekernel progress", daemon=True)
    try:
        thread.start()
        yield
    finally:
        done.set()
        if thread.ident is not None:  # Ctrl-C may have come before it was started
            thread.join()


def _show(stream: Any, title: str, done: threading.Event) -> None:
    began = time.monotonic()
    if done.wait(PATIENCE) or not _showing.acquire(blocking=False):
        return
    width = 0
    try:
        with suppress(OSError, ValueError):  # the terminal has gone
            while True:
                line = f"{title}: compiling, {time.monotonic() - began:.1f} s ..."
                width = max(width, len(line))
                stream.write(f"\r{line}")
                stream.flush()
                if done.wait(_PAUSE):
                    break
            stream.write(f"\r{' ' * width}\r")
            stream.flush()
    finally:
        _showing.release()


def _stream() -> Any:
    """Return where people look, or None."""
    if os.environ.get("REKERNEL_PROGRESS", "").strip() == "0":
        return None
    stream = sys.stderr
    try:
        if stream is None or stream.isatty():
            return stream
    except (AttributeError, ValueError):  # something else, or closed
        return None
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return stream if getattr(shell, "kernel", None) is not None else None
