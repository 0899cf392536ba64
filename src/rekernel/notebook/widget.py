"""`rekernel.view`: a live picture of a field, with play and pause, the versions of its kernels and the last error.

The steps run in the kernel's own thread, between the cells: in slices of 20 ms on its event loop. So a step sees
what the cells define, and a cell that runs pauses the picture for as long as it takes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from rekernel import colours as colour_maps
from rekernel.errors import RekernelError, ToolchainError
from rekernel.frames import rendered
from rekernel.handle import KernelHandle
from rekernel.notebook.pace import Pace, Watchers
from rekernel.notebook.pictures import Picture, picture, shape_of
from rekernel.notebook.used import Function, kernels_used, newest, record_of
from rekernel.notebook.versions import shown_versions
from rekernel.values import ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

SLICE = 0.02
"""Seconds of steps between two looks at what else the kernel has to do."""

Target = tuple["KernelLoader", str]


class FieldView:
    """A live picture of a field. Made by `rekernel.view`, which tells what each argument means.

    It plays only while a page shows it. In a `with` block, leaving it closes it; so does running its cell again.
    """

    def __init__(
        self, field: Any, step: Function | None = None, *, kernels: Sequence[Target] | None = None,
        limits: tuple[float, float] | None = None, colours: Any = "ember", size: int = 512,
        speed: float | None = None, fps: float = 30, play: bool = False, make_page: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.limits = limits
        """The values of the first and the last colour, or None for the field's extremes."""
        self.steps = 0
        """How many steps this view has made."""
        self._field, self._step = newest(field), newest(step)
        self._given, self._size = kernels, size
        self._colours = colour_maps.chosen(colours)
        self._ramp = [f"rgb({r},{g},{b})" for r, g, b in self._colours[::17].tolist()]
        self._pace, self._watchers = Pace(fps, speed), Watchers()
        self._playing = self._closed = False
        self._error: BaseException | None = None
        self._failed: Any = None  # what the step was when it failed
        self._load_errors: dict[str, BaseException] = {}
        self._frame, self._drawn_at = 0, -1
        self._task: asyncio.Task[None] | None = None
        self._loop = _running_loop()
        self._listening: dict[KernelLoader, Callable[[], None]] = {}
        self._picture = self._draw()
        self._undo = contextlib.ExitStack()
        weakref.finalize(self, self._undo.close).atexit = False
        self._listen()
        self._page = _page(make_page, weakref.WeakMethod(self._heard), self._loop)
        self._undo.callback(self._page.close)
        self._send()
        _register(self, self._undo)
        if play:
            self.play()

    # --- for the user ----------------------------------------------------------------------------------------

    @property
    def playing(self) -> bool:
        """Whether it plays, or will as soon as a page shows it."""
        return self._playing

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or the cell that made it was run again."""
        return self._closed

    @property
    def error(self) -> BaseException | None:
        """What the last step or the last load of a kernel raised, until it is put right."""
        return self._error or next(iter(self._load_errors.values()), None)

    @property
    def speed(self) -> float | None:
        """Steps a second, or None for as many as there is time for. Can be set."""
        return self._pace.speed

    @speed.setter
    def speed(self, value: float | None) -> None:
        if value is not None and not value > 0:
            raise ValueError(f"speed is a number of steps a second, or None for full speed; got {value!r}")
        self._pace.speed = value
        self._pace.start(time.perf_counter())
        self._tell()

    @property
    def widget(self) -> Any:
        """The widget of the page, to put it into a box of ipywidgets."""
        return self._page

    def play(self) -> None:
        """Step and draw, between the cells, for as long as a page shows the picture."""
        self._must_be_open()
        if self._loop is None:
            raise RuntimeError("a view plays in a notebook, on the kernel's event loop; here: advance(steps), png()")
        self._error, self._playing = None, True
        self._pace.start(time.perf_counter())
        self._wake()
        self._tell()

    def pause(self) -> None:
        """Stop stepping; `play` goes on from there."""
        self._playing = False
        self._pace.rate = None
        self._tell()

    def advance(self, steps: int = 1) -> None:
        """Make so many steps now, in this cell, and show the picture after them. What a step raises comes out."""
        self._must_be_open()
        if self._step() is None and steps:
            raise ValueError("this view has no step; make it with rekernel.view(field, step)")
        for _ in range(steps):
            self._step()()
            self.steps += 1
        self._error = None
        self._send(self._draw())

    def png(self) -> bytes:
        """Return the picture of the field as it is now, a PNG of a pixel a cell (fewer if it is very large)."""
        return self._draw().png

    def close(self) -> None:
        """Stop, and take the picture from the page."""
        if not self._closed:
            self._playing, self._closed = False, True
            self._undo.close()

    def __enter__(self) -> FieldView:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        rows = " x ".join(map(str, self._picture.shape))
        used = ", ".join(f"{name} v{loader.info(name).version}" for loader, name in self._targets() if name in loader)
        state = "closed" if self._closed else "playing" if self._playing else "paused"
        parts = [f"view of {rows}", f"{self.steps:,} step{'' if self.steps == 1 else 's'}", state, *filter(None, [used])]
        hint = "" if self._loop is not None else "; a notebook shows it live, here: advance(steps), png()"
        return f"<{', '.join(parts)}{hint}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """What a notebook shows: the widget; a page that knows no widgets shows the picture as it is now."""
        data: dict[str, Any] = {"text/plain": repr(self)}
        made = None if self._closed or self._loop is None else self._page._repr_mimebundle_()
        if made is None:
            return data
        bundle, metadata = made
        still = base64.b64encode(self._picture.png).decode()
        return {**bundle, **data, "image/png": still}, metadata

    # --- drawing and sending ---------------------------------------------------------------------------------

    def _must_be_open(self) -> None:
        if self._closed:
            raise RuntimeError("this view is closed; run the cell that makes it again")

    def _draw(self) -> Picture:
        field = self._field()
        if callable(field) and not hasattr(field, "to_numpy") and not hasattr(field, "shape"):
            field = field()
        made = picture(field, self.limits, self._colours)
        self._drawn_at = self.steps
        return made

    def _send(self, made: Picture | None = None) -> None:
        """Send a picture, or the one that is there."""
        self._picture = made or self._picture
        self._frame += 1
        self._watchers.sent(self._frame, time.perf_counter())
        self._page.show(self._picture.png, self._frame, self._state())

    def _tell(self) -> None:
        if not self._closed:
            self._page.tell(self._state())

    def _state(self) -> dict[str, Any]:
        """All that the page shows beside the picture."""
        shown = self._picture
        rate = self._pace.rate
        return {
            "playing": self._playing,
            "steps_itself": self._step() is not None,
            "steps": self.steps,
            "rate": None if rate is None or not self._playing else f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}",
            "speed": self._pace.speed or 0,
            "size": self._size,
            "shape": list(shown.shape[:2]),
            "limits": None if shown.limits is None else [f"{limit:.4g}" for limit in shown.limits],
            "ramp": self._ramp,
            "not_finite": shown.not_finite,
            "kernels": [shown_versions(loader, name) for loader, name in self._targets() if name in loader],
            "error": self._shown_error(),
        }

    def _shown_error(self) -> dict[str, str] | None:
        if self._error is not None:
            return {"title": "A step failed; paused.", "text": _block(self._error)}
        for name, error in self._load_errors.items():
            return {"title": f"The last edit of {name} was refused.", "text": str(error)}
        return None

    # --- playing ---------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """See that a task runs if there is something to play and somebody who looks."""
        if self._playing and self._watchers and self._loop is not None and (self._task is None or self._task.done()):
            self._task = self._loop.create_task(_play(weakref.ref(self)))

    def _slice(self) -> float | None:
        """Step and draw what is due, for 20 ms at most; return the time until there is more, or None to stop."""
        pace = self._pace
        now = time.perf_counter()
        waiting = self._watchers.waiting(now)
        if not self._playing or not self._watchers:
            return None
        end = now + SLICE
        try:
            with _interruptible():
                step = self._step()
                while step is not None and pace.step_due(now):
                    step()
                    self.steps += 1
                    pace.stepped()
                    now = time.perf_counter()
                    if now >= end:
                        break
                measured = step is not None and pace.measure(now, self.steps)
                if not waiting and pace.picture_due(now) and (step is None or self._drawn_at != self.steps):
                    self._send(self._draw())
                    pace.drawn(now)
                elif measured:
                    self._tell()
        except (Exception, KeyboardInterrupt) as error:
            self._fail(error)
            return None
        return pace.pause(time.perf_counter(), step is not None, step is None or self._drawn_at != self.steps, waiting)

    def _fail(self, error: BaseException) -> None:
        """Pause, and show why; a reload of a kernel, or a new definition of the step, goes on from here."""
        self._error, self._failed = error, self._step()
        error.__traceback__ = _outside(error.__traceback__)
        self._pace.rate = None
        self._playing = False
        with contextlib.suppress(Exception):
            self._picture = self._draw()
        self._send()

    # --- what happens elsewhere ------------------------------------------------------------------------------

    def _targets(self) -> list[Target]:
        if self._given is not None:
            return list(self._given)
        used = kernels_used([self._step(), self._field()])
        return [(loader, live.kernel_id) for live in used if (loader := live.loader()) is not None]

    def _listen(self) -> None:
        """Follow the loaders of the kernels that are used now."""
        for loader, _ in self._targets():
            if loader not in self._listening:
                heard, loop = weakref.WeakMethod(self._reloaded), self._loop
                remove = loader.on_reload(lambda event, heard=heard, loop=loop: _soon(loop, heard, event))  # type: ignore[misc]
                self._listening[loader] = remove
                self._undo.callback(remove)

    def _reloaded(self, event: ReloadEvent) -> None:
        if self._closed or event.kernel_id not in [name for _, name in self._targets()]:
            return
        self._load_errors.pop(event.kernel_id, None)
        if event.kind == "failed" and event.error is not None:
            self._load_errors[event.kernel_id] = event.error
        elif event.kind != "unloaded" and self._error is not None:
            self._go_on()
        self._tell()

    def _go_on(self) -> None:
        """Play again after an error whose reason may be gone; if it is not, the next step says so."""
        if self._loop is not None and not isinstance(self._error, KeyboardInterrupt):
            self.play()

    def _after_cell(self) -> None:
        """A cell was run: it may have changed the field, the step, or which kernels there are."""
        if self._closed:
            return
        self._listen()
        if self._error is not None and self._step() is not self._failed:
            self._go_on()
        elif not self._playing:
            with contextlib.suppress(Exception):  # a cell that is half way to something; playing would tell
                made = self._draw()
                if made != self._picture:
                    self._send(made)
                    return
        self._tell()

    def _heard(self, message: dict[str, Any]) -> None:
        """Do what a page asks for."""
        if self._closed:
            return
        view, does = str(message.get("view")), message.get("does")
        self._watchers.came(view, message.get("frame", 0))
        try:
            if does == "hide":
                self._watchers.went(view)
            elif does == "play":
                self.play()
            elif does == "pause":
                self.pause()
            elif does == "step":
                self._playing = False
                with _interruptible():
                    self.advance()
            elif does == "speed":
                self.speed = message["speed"] or None
            elif does == "roll back":
                for loader, name in self._targets():
                    if name == message["id"]:
                        loader.rollback(name, message["version"])
        except (Exception, KeyboardInterrupt) as error:
            self._fail(error)
        self._wake()


def view(
    field: Any, step: Function | None = None, *,
    kernel: str | ModuleType | KernelHandle | Sequence[Any] | None = None, loader: KernelLoader | None = None,
    limits: tuple[float, float] | None = None, colours: Any = "ember", size: int = 512, speed: float | None = None,
    fps: float = 30, play: bool = False,
) -> FieldView:  # fmt: skip
    """Show a field as a live picture in a notebook, which steps while you edit the kernels.

    `field`: a two-dimensional array of NumPy or CuPy, a Taichi field or ndarray, or a function that returns one (so
    that two buffers can be swapped); an array of shape (rows, columns, 3) is shown as an image. Row 0 is on top.
    `step`: a function without arguments that does one step, in the kernel's thread between the cells. Defining a
    function of the same name again replaces it.

    `kernel`: the ids, modules or handles whose versions are listed; without it, those that `step` and `field` use.
    `loader`: where ids are looked up, `rekernel.kernels` if not given. `limits`: the values of the first and the
    last colour; without them the extremes of each picture. `colours`: ``ember``, ``balance``, ``grey``, a table of
    RGB rows, or a colour map of Matplotlib; NaN and infinities are green. `size`: the longer side on the page, in
    pixels. `speed`: steps a second at most; `fps`: pictures a second at most. `play=True` starts at once.

    A step that raises pauses the picture and shows the error; the next good load goes on by itself. Raises
    ToolchainError where ``rekernel[notebook]`` is not installed, ValueError or TypeError for a field that is no
    picture.

    >>> import numpy as np
    >>> a = np.zeros((64, 64))
    >>> def step():
    ...     a[32, 32] += 1
    >>> w = view(a, step)  # in a notebook, as the last line of a cell: w
    >>> w.advance(3)
    >>> w
    <view of 64 x 64, 3 steps, paused; a notebook shows it live, here: advance(steps), png()>
    >>> w.close()
    """
    if step is not None and not callable(step):
        raise TypeError(f"step is a function without arguments; got {type(step).__name__}")
    for name, value in (("size", size), ("fps", fps), ("speed", speed)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} is a number above 0; got {value!r}")
    return FieldView(
        field, step, kernels=_named(kernel, loader), limits=limits, colours=colours, size=size, speed=speed, fps=fps,
        play=play,
    )  # fmt: skip


def _named(kernel: Any, loader: KernelLoader | None) -> list[Target] | None:
    """What the user names, as loaders and ids."""
    if kernel is None:
        return None
    named: list[Target] = []
    for one in kernel if isinstance(kernel, list | tuple) else [kernel]:
        live = record_of(one)
        if isinstance(one, str):
            if loader is None:
                from rekernel.default import kernels as loader
            loader[one]  # an unknown id is the user's mistake now, not a picture without versions later
            named.append((loader, one))
        elif live is not None and (its := live.loader()) is not None:
            named.append((its, live.kernel_id))
        else:
            raise TypeError(f"kernel is an id, or a module or kernel that a loader gave out; got {type(one).__name__}")
    return named


def _page(make: Callable[..., Any] | None, heard: weakref.WeakMethod[Any], loop: Any) -> Any:
    """The page's side. What it says comes on any thread (a subshell, in JupyterLab) and is heard on the loop's."""
    if make is None:
        try:
            from rekernel.notebook.page import Page as make
        except ImportError as error:
            raise ToolchainError(
                f"a view needs anywidget, which cannot be imported ({error}): pip install \"rekernel[notebook]\""
                "\nto see what is there: python -m rekernel doctor"
            ) from error
    return make(lambda message: _soon(loop, heard, message))


def _soon(loop: asyncio.AbstractEventLoop | None, method: weakref.WeakMethod[Any], *arguments: Any) -> None:
    """Call a method of an object that may be gone, on the thread of the loop."""

    def call() -> None:
        bound = method()
        if bound is not None:
            bound(*arguments)

    if loop is None:
        call()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(call)


async def _play(of: weakref.ref[FieldView]) -> None:
    """Slice after slice, for as long as the view is there; between them the kernel does what else is to do."""
    while (seen := of()) is not None:
        pause = seen._slice()
        del seen
        if pause is None:
            return
        await asyncio.sleep(pause)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let the interrupt button end a step that hangs: between cells, a kernel ignores it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this file in front."""
    while traceback is not None and traceback.tb_frame.f_globals is globals():
        traceback = traceback.tb_next
    return traceback


def _block(error: BaseException) -> str:
    """An error as it is shown: the block of ours; else the user's frames and what it says."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "\n".join(rendered(error))


_of_cells: dict[str, tuple[str, list[weakref.ref[FieldView]]]] = {}
"""For each cell: the request that ran it last, and the views which that made."""


def _register(made: FieldView, undo: contextlib.ExitStack) -> None:
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
