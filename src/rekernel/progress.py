"""A line that says what takes so long. Only for eyes: on a terminal, or in a notebook."""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
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
    say = _place()
    if say is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(say, title, done), name="rekernel progress", daemon=True)
    try:
        thread.start()
        yield
    finally:
        done.set()
        if thread.ident is not None:  # Ctrl-C may have come before it was started
            thread.join()


def _show(say: Callable[[str], None], title: str, done: threading.Event) -> None:
    began = time.monotonic()
    if done.wait(PATIENCE) or not _showing.acquire(blocking=False):
        return
    try:
        with suppress(OSError, ValueError):  # the terminal has gone
            while True:
                say(f"{title}: compiling, {time.monotonic() - began:.1f} s ...")
                if done.wait(_PAUSE):
                    break
            say("")
    finally:
        _showing.release()


def _place() -> Callable[[str], None] | None:
    """Return what shows a line where people look, in the place of the line before, or None."""
    if os.environ.get("REKERNEL_PROGRESS", "").strip() == "0":
        return None
    try:
        if sys.stderr.isatty():
            return _on_terminal(sys.stderr)
    except (AttributeError, ValueError):  # there is none, it is something else, or closed
        return None
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return _in_notebook(shell) if getattr(shell, "kernel", None) is not None else None


def _on_terminal(stream: Any) -> Callable[[str], None]:
    widest = 0

    def say(line: str) -> None:
        nonlocal widest
        widest = max(widest, len(line))
        stream.write(f"\r{line.ljust(widest)}\r{line}")
        stream.flush()

    return say


def _in_notebook(shell: Any) -> Callable[[str], None]:
    """One output of its own, which becomes empty; what is written to stderr would leave its red box behind."""
    transient, later = {"display_id": f"rekernel-{uuid.uuid4().hex}"}, False

    def say(line: str) -> None:
        nonlocal later
        shell.display_pub.publish({"text/plain": line}, transient=transient, update=later)
        later = True

    return say
