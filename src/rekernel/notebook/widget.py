"""`rekernel.view`: a live picture of a field, with play and pause, the versions of its kernels and the last error.

The steps run in the kernel's own thread, between the cells: in slices of 10 ms on its event loop. So a step sees
what the cells define, and a cell that runs pauses the picture for as long as it takes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rekernel import colours as colour_maps
from rekernel.frames import rendered
from rekernel.notebook.host import interruptible, page_for, register, running_loop, soon
from rekernel.notebook.pace import Pace, Watchers
from rekernel.notebook.pictures import Picture, picture
from rekernel.notebook.used import Function, kernels_used, newest
from rekernel.notebook.versions import shown_versions
from rekernel.values import ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

SLICE = 0.01
"""Seconds of steps between two looks at what else the kernel has to do."""

Target = tuple["KernelLoader", str]


class FieldView:
    """A live picture of a field. Made by `rekernel.view`, which tells what each argument means.

    It plays only while a page shows it. In a `with` block, leaving it closes it; so does running its cell again.
    """

    def __init__(
        self, field: Any, step: Function | None = None, *, kernels: Sequence[Target] | None = None,
        limits: tuple[float, float] | None = None, colours: Any = "ember", size: int = 512,
        speed: float | None = None, fps: float = 30, play: bool = False,
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
        self._loop = running_loop()
        self._listening: dict[KernelLoader, Callable[[], None]] = {}
        self._picture = self._draw()
        self._undo = contextlib.ExitStack()
        weakref.finalize(self, self._undo.close).atexit = False
        self._listen()
        self._page = page_for(weakref.WeakMethod(self._heard), self._loop)
        self._undo.callback(self._page.close)
        self._send()
        register(self, self._undo)
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
        steps = f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        parts = [f"view of {rows}", steps, state, *filter(None, [used])]
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
        """Step and draw what is due, for 10 ms at most; return the time until there is more, or None to stop."""
        pace = self._pace
        now = time.perf_counter()
        waiting = self._watchers.waiting(now)
        if not self._playing or not self._watchers:
            return None
        end = now + SLICE
        try:
            with interruptible():
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
                remove = loader.on_reload(lambda event, heard=heard, loop=loop: soon(loop, heard, event))  # type: ignore[misc]
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
                with interruptible():
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


async def _play(of: weakref.ref[FieldView]) -> None:
    """Slice after slice, for as long as the view is there; between them the kernel does what else is to do."""
    while (seen := of()) is not None:
        pause = seen._slice()
        del seen
        if pause is None:
            return
        await asyncio.sleep(pause)


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
