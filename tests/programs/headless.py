"""Windows that nobody sees, for programs that were written around one.

The examples draw with ``ti.GUI``, ``ti.ui.Window`` and matplotlib. The classes here take their place in the
process that runs a program: they hand out a fixed number of frames and a scripted mouse, and they keep a digest
of everything drawn. Both sides of a comparison use them, so what is compared is the program and not the window.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import taichi as ti


class OutOfFramesError(Exception):
    """Raised by the frame after the last one, to leave loops that never look at ``running``."""


class Event:
    """One input event, with the attributes that both kinds of window give it."""

    def __init__(self, kind: object, key: str, pos: tuple[float, float]) -> None:
        self.type = kind
        self.key = key
        self.pos = pos
        self.modifier: list[str] = []
        self.delta = (0.0, 0.0)


class Session:
    """What the windows of one run share: the frame budget, the mouse and the record of what was drawn."""

    def __init__(self, frames: int, mouse: bool) -> None:
        self.frames = frames
        self.mouse = mouse
        self.drawn: list[str] = []

    def record(self, call: str, *args: object, **kwargs: object) -> None:
        """Note one drawing call as its name and a digest of everything it was given."""
        digest = hashlib.sha256()
        for value in (*args, *kwargs.items()):
            _feed(digest, value)
        self.drawn.append(f"{call} {digest.hexdigest()[:16]}")

    def cursor(self, frame: int) -> tuple[float, float]:
        """Where the mouse is: it moves to the upper right and comes back in on the other side."""
        return (0.33 + 0.07 * frame) % 1.0, (0.44 + 0.05 * frame) % 1.0


def _feed(digest: hashlib._Hash, value: object) -> None:
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, dict):
        for key, entry in sorted(value.items()):
            digest.update(str(key).encode())
            _feed(digest, entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            _feed(digest, entry)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (bool, int, float, str, np.generic)):
        digest.update(repr(value).encode())
    else:
        digest.update(type(value).__name__.encode())


class _Frames:
    """The clock of a window: counts frames, feeds the event queue, ends the run."""

    def __init__(self, session: Session, press: object, escape: str, button: str) -> None:
        self._session = session
        self._press = press
        self._escape = escape
        self._button = button
        self._queue: list[Event] = []
        self.frame = 0
        self.event: Event | None = None
        self.running = session.frames > 0
        self._begin_frame()

    def _begin_frame(self) -> None:
        if self.frame >= self._session.frames:
            self.running = False
            self._queue.append(Event(self._press, self._escape, self.get_cursor_pos()))
        elif self._session.mouse:
            self._queue.append(Event(self._press, self._button, self.get_cursor_pos()))

    def show(self, *args: object) -> None:
        self.frame += 1
        if self.frame > self._session.frames:
            raise OutOfFramesError
        self._begin_frame()

    def _accepts(self, event: Event, filters: tuple[object, ...]) -> bool:
        known = (event.type, event.key, (event.type, event.key))
        return not filters or any(f in known for f in filters)

    def get_events(self, *filters: object) -> list[Event]:
        events, self._queue = self._queue, []
        return [event for event in events if self._accepts(event, filters)]

    def get_event(self, *filters: object) -> bool:
        while self._queue:
            event = self._queue.pop(0)
            if self._accepts(event, filters):
                self.event = event
                return True
        return False

    def is_pressed(self, *keys: object) -> bool:
        return self._session.mouse and self._button in keys

    def get_cursor_pos(self) -> tuple[float, float]:
        return self._session.cursor(self.frame)


class Recorder:
    """A drawing surface: every call is recorded, none does anything."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    def __getattr__(self, call: str):
        if call.startswith("__"):
            raise AttributeError(call)
        return lambda *args, **kwargs: self._session.record(f"{self._name}.{call}", *args, **kwargs)


class Panel(Recorder):
    """The widgets of a ``ti.ui`` window: every value stays as the program set it, no button is pressed."""

    @contextmanager
    def sub_window(self, *args: object) -> Iterator[Panel]:
        yield self

    def button(self, text: str) -> bool:
        return False

    def checkbox(self, text: str, value: bool) -> bool:
        return value

    def slider_float(self, text: str, value: float, *bounds: float) -> float:
        return value

    slider_int = color_edit_3 = slider_float


class Widget:
    """What ``ti.GUI.slider`` and ``ti.GUI.label`` return."""

    def __init__(self, value: float) -> None:
        self.value = value


def gui_class(session: Session) -> type:
    """A class with the interface of ``ti.GUI`` that draws into ``session``."""

    class HeadlessGUI(_Frames):
        def __init__(self, name="Taichi", res=512, background_color=0, **options) -> None:
            super().__init__(session, ti_gui.PRESS, ti_gui.ESCAPE, ti_gui.LMB)
            self.name = name
            self.res = (res, res) if isinstance(res, int) else tuple(res)

        def slider(self, text, minimum, maximum, step=1) -> Widget:
            return Widget(minimum)

        def label(self, text) -> Widget:
            return Widget(0.0)

        def button(self, text, event_name=None) -> str:
            return event_name or f"WidgetButton_{text}"

        def close(self) -> None:
            self.running = False

        def __getattr__(self, call):
            return getattr(Recorder(session, "gui"), call)

    ti_gui = ti.GUI
    for name, value in vars(ti_gui).items():
        if name.isupper():
            setattr(HeadlessGUI, name, value)
    return HeadlessGUI


def window_class(session: Session) -> type:
    """A class with the interface of ``ti.ui.Window`` that draws into ``session``."""

    class HeadlessWindow(_Frames):
        def __init__(self, name, res, **options) -> None:
            super().__init__(session, ti.ui.PRESS, ti.ui.ESCAPE, ti.ui.LMB)
            self.res = tuple(res)

        def get_canvas(self) -> Recorder:
            return Recorder(session, "canvas")

        def get_scene(self) -> Recorder:
            return Recorder(session, "scene")

        def get_gui(self) -> Panel:
            return Panel(session, "panel")

        def get_window_shape(self) -> tuple[int, ...]:
            return self.res

        def save_image(self, path: str) -> None:
            session.record("window.save_image", path)

    return HeadlessWindow


def camera_class(session: Session) -> type:
    """A class with the interface of ``ti.ui.Camera``."""

    class HeadlessCamera(Recorder):
        def __init__(self) -> None:
            super().__init__(session, "camera")
            self.curr_position = ti.Vector([0.0, 0.0, 0.0])
            self.curr_lookat = ti.Vector([0.0, 0.0, -1.0])

    return HeadlessCamera


class VideoManager(Recorder):
    """Records the frames of a film instead of calling an encoder."""

    def get_output_filename(self, suffix: str) -> str:
        return f"video{suffix}"


class Absent(types.ModuleType):
    """A module, or anything got from one, that accepts every use and does nothing."""

    __path__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> Absent:
        return Absent(self.__name__)

    __getitem__ = __call__


def install(session: Session, absent: tuple[str, ...] = ()) -> None:
    """Put the stand-ins in place for the rest of this process, and one for each module in ``absent``."""
    ti.GUI = gui_class(session)
    ti.ui.Window = window_class(session)
    ti.ui.Camera = camera_class(session)
    ti.tools.VideoManager = lambda **options: VideoManager(session, "video")
    ti.tools.imshow = lambda image, *title: session.record("imshow", image)
    # Image files as raw arrays: what the real writer writes depends on the imaging package it finds.
    ti.tools.imwrite = lambda image, path: _write_raw(path, image)
    ti.tools.imread = lambda path: np.load(path)
    for name in absent:
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:i]), Absent(".".join(parts[:i])))


def _write_raw(path: str, image: object) -> None:
    with open(path, "wb") as file:
        np.save(file, image.to_numpy() if hasattr(image, "to_numpy") else image)
