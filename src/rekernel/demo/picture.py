"""The picture of a run: the field in colour, one panel for each act, side by side in a PNG.

Needs NumPy and Pillow; knows nothing of Taichi or of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Field = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]

# Control points from deep water to foam. Lightness rises all the way, so the order of the values can be
# read in grey too; the hue turns once, from blue over red to cream.
_STOPS = (
    (0.00, (9, 11, 28)),
    (0.14, (20, 24, 62)),
    (0.30, (62, 29, 99)),
    (0.46, (134, 38, 103)),
    (0.62, (210, 66, 82)),
    (0.76, (244, 122, 75)),
    (0.88, (252, 189, 112)),
    (1.00, (255, 247, 220)),
)
_BRIGHTEST = 0.42
"""The value of the field that gets the last colour; fixed, so that panels can be compared."""
_RELIEF = 4.0
"""How strongly slopes that face the upper left are lit."""

_PAPER = (15, 16, 24)
_FRAME = (92, 94, 112)
_INK = (240, 236, 226)
_FAINT = (158, 160, 178)

_PANEL = 512
"""Smaller fields are enlarged up to this width, by a whole number; the lengths below belong to it."""
_MARGIN, _GAP, _HEAD, _FOOT = 40, 24, 108, 132
_LARGE, _SMALL = 40, 29


@dataclass(frozen=True)
class Panel:
    """One square of the strip."""

    field: Field
    """The values, rows from top to bottom."""
    title: str
    """The first line under the panel, large."""
    note: str
    """The second line, small."""


def colours(size: int = 256) -> Pixels:
    """The colour map as a table of ``size`` RGB rows, dark to light.

    >>> table = colours()
    >>> table.shape, bool((np.diff(table.sum(axis=1, dtype=int)) >= 0).all())
    ((256, 3), True)
    """
    at = np.linspace(0.0, 1.0, size)
    stops = np.array([stop for stop, _ in _STOPS])
    channels = np.array([colour for _, colour in _STOPS], dtype=float)
    table = [np.interp(at, stops, channels[:, channel]) for channel in range(3)]
    return np.stack(table, axis=1).round().astype(np.uint8)


def paint(field: Field) -> Pixels:
    """The field in colour, lit from the upper left as if its values were heights.

    Values that are not finite, as a step that is too long leaves them, are shown like zero.
    """
    values = np.nan_to_num(field.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    level = np.clip(values / _BRIGHTEST, 0.0, 1.0)
    table = colours().astype(np.float64)
    base = table[(level * (len(table) - 1)).astype(np.intp)]
    down, right = np.gradient(level)
    light = np.clip(1.0 + _RELIEF * 0.25 * (down + right), 0.55, 1.35)
    painted: Pixels = np.clip(base * light[..., None], 0, 255).astype(np.uint8)
    return painted


def strip(panels: Sequence[Panel], heading: str, remark: str = "") -> Image.Image:
    """All panels side by side, each in a thin frame with its two lines, under one heading."""
    if not panels:
        raise ValueError("a strip needs at least one panel")
    pictures = [_enlarged(Image.fromarray(paint(panel.field))) for panel in panels]
    side = pictures[0].width
    margin, gap, head, foot, large, small = (
        max(1, length * side // _PANEL) for length in (_MARGIN, _GAP, _HEAD, _FOOT, _LARGE, _SMALL)
    )
    width = 2 * margin + len(panels) * side + (len(panels) - 1) * gap
    image = Image.new("RGB", (width, head + side + foot), _PAPER)
    draw = ImageDraw.Draw(image)
    title, note = ImageFont.load_default(large), ImageFont.load_default(small)
    draw.text((margin, head - small), heading, font=title, fill=_INK, anchor="ls")
    if len(panels) > 3:  # fewer leave no room for it beside the heading
        draw.text((width - margin, head - small), remark, font=note, fill=_FAINT, anchor="rs")
    for number, (panel, picture) in enumerate(zip(panels, pictures, strict=True)):
        left = margin + number * (side + gap)
        draw.rectangle((left - 2, head - 2, left + side + 1, head + side + 1), outline=_FRAME)
        image.paste(picture, (left, head))
        draw.text((left, head + side + large + small // 2), panel.title, font=title, fill=_INK, anchor="ls")
        draw.text((left, head + side + large + 2 * small), panel.note, font=note, fill=_FAINT, anchor="ls")
    return image


def save(path: Path, panels: Sequence[Panel], heading: str, remark: str = "") -> None:
    """Write the strip as PNG; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    strip(panels, heading, remark).save(path, format="PNG", optimize=True)


def _enlarged(picture: Image.Image) -> Image.Image:
    factor = max(1, _PANEL // picture.width)
    size = (picture.width * factor, picture.height * factor)
    return picture if factor == 1 else picture.resize(size, Image.Resampling.BICUBIC)
