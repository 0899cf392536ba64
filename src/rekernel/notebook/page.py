"""The side of a view that a notebook page sees: traits that travel to it, messages that come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

_HERE = Path(__file__).parent


class Page(anywidget.AnyWidget):
    """A picture and the state of its controls. The page acknowledges every picture (see `field.js`)."""

    _esm = (_HERE / "field.js").read_text(encoding="utf-8")
    _css = (_HERE / "field.css").read_text(encoding="utf-8")

    picture = traitlets.Bytes().tag(sync=True)
    """A PNG."""
    frame = traitlets.Int(0).tag(sync=True)
    """The picture's number; changes last, so that a page which sees it has the picture, too."""
    state = traitlets.Dict().tag(sync=True)
    """What the controls show, as `FieldView` writes it."""

    def __init__(self, answer: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.on_msg(lambda _, content, buffers: answer(content))

    def show(self, png: bytes, frame: int, state: dict[str, Any]) -> None:
        """Send a picture with the state that belongs to it, in one message."""
        with self.hold_sync():
            self.picture, self.frame, self.state = png, frame, state

    def tell(self, state: dict[str, Any]) -> None:
        """Send the state alone."""
        self.state = state
