"""What a view needs of the kernel that it runs in: its event loop, its interrupts, and which cell runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rekernel.errors import ToolchainError

if TYPE_CHECKING:
    from rekernel.notebook.widget import FieldView

Loop = asyncio.AbstractEventLoop


def running_loop() -> Loop | None:
    """Return the loop of this thread: in a notebook's cell, the one that its kernel runs on."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let the interrupt button end a step that hangs: between cells, a kernel ignores it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def page_for(heard: weakref.WeakMethod[Any], loop: Loop | None) -> Any:
    """Make the page's side. What it says comes on any thread (a subshell, in JupyterLab) and is heard on the loop's."""
    try:
        from rekernel.notebook.page import Page
    except ImportError as error:
        raise ToolchainError(
            f'a view needs anywidget, which cannot be imported ({error}): pip install "rekernel[notebook]"'
            "\nto see what is there: python -m rekernel doctor"
        ) from error
    return Page(lambda message: soon(loop, heard, message))


def soon(loop: Loop | None, method: weakref.WeakMethod[Any], *arguments: Any) -> None:
    """Call a method of an object that may be gone, on the thread of the loop."""

    def call() -> None:
        bound = method()
        if bound is not None:
            bound(*arguments)

    if loop is None:
        call()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(call)


_of_cells: dict[str, tuple[str, list[weakref.ref[FieldView]]]] = {}
"""For each cell: the request that ran it last, and the views which that made."""


def register(made: FieldView, undo: contextlib.ExitStack) -> None:
    """Close what earlier runs of this cell made, and tell the view of cells that are run."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return
    after = weakref.WeakMethod(made._after_cell)

    def told(*_: Any) -> None:
        bound = after()
        if bound is not None:
            bound()

    shell.events.register("post_run_cell", told)
    undo.callback(_forget, shell, told)
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell = parent.get("metadata", {}).get("cellId")
    if cell is None:
        return
    request = parent["header"]["msg_id"]
    last, views = _of_cells.get(cell, (request, []))
    if last != request:
        for old in views:
            if (one := old()) is not None:
                one.close()
        views = []
    _of_cells[cell] = (request, [*views, weakref.ref(made)])


def _forget(shell: Any, told: Callable[..., None]) -> None:
    with contextlib.suppress(ValueError):
        shell.events.unregister("post_run_cell", told)
