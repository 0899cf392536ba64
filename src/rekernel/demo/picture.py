"""The picture of a run: the field in colour, a strip for each language with one panel for each act, in a PNG.

Needs NumPy and Pillow; knows nothing of Taichi or of kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from rekernel.colours import EMBER, table
from rekernel.demo.gray_scott import Field

Pixels = npt.NDArray[np.uint8]

_BRIGHTEST = 0.42
"""The value of the field that gets the last colour; fixed, so that panels can be compared."""
_RELIEF = 4.0
"""How strongly slopes that face the upper left are lit."""

_PAPER = (15, 16, 24)
_FRAME = (92, 94, 112)
_INK = (240, 236, 226)
_FAINT = (158, 160, 178)
_ACCENT = (252, 189, 112)

_PANEL = 512
"""Smaller fields are enlarged up to this width, by a whole number; the lengths below belong to it."""
_MARGIN, _GAP, _HEAD, _LABEL, _FOOT = 40, 24, 84, 68, 124
_LARGE, _SMALL = 40, 29


@dataclass(frozen=True)
class Panel:
    """One square of a strip."""

    field: Field
    """The values, rows from top to bottom."""
    title: str
    """The first line under the panel, large."""
    note: str
    """The second line, small."""


@dataclass(frozen=True)
class Strip:
    """The panels of one language."""

    label: str
    """Above its left end."""
    note: str
    """Above its right end."""
    panels: Sequence[Panel]


def colours(size: int = 256) -> Pixels:
    """The colour map as a table of ``size`` RGB rows, dark to light.

    >>> shades = colours()
    >>> shades.shape, bool((np.diff(shades.sum(axis=1, dtype=int)) >= 0).all())
    ((256, 3), True)
    """
    return table(EMBER, size)


def paint(field: Field) -> Pixels:
    """The field in colour, lit from the upper left as if its values were heights.

    Values that are not finite, as a step that is too long leaves them, are shown like zero.
    """
    values = np.nan_to_num(field.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    level = np.clip(values / _BRIGHTEST, 0.0, 1.0)
    shades = colours().astype(np.float64)
    base = shades[(level * (len(shades) - 1)).astype(np.intp)]
    down, right = np.gradient(level)
    light = np.clip(1.0 + _RELIEF * 0.25 * (down + right), 0.55, 1.35)
    painted: Pixels = np.clip(base * light[..., None], 0, 255).astype(np.uint8)
    return painted


def sheet(strips: Sequence[Strip], heading: str, remark: str = "") -> Image.Image:
    """The strips one below the other, under one heading; each panel in a thin frame with its two lines."""
    if not strips or not strips[0].panels:
        raise ValueError("a sheet needs at least one panel")
    rows = [[_enlarged(Image.fromarray(paint(panel.field))) for panel in strip.panels] for strip in strips]
    side = rows[0][0].width
    margin, gap, head, label, foot, large, small = (
        max(1, length * side // _PANEL) for length in (_MARGIN, _GAP, _HEAD, _LABEL, _FOOT, _LARGE, _SMALL)
    )
    most = max(map(len, rows))
    width = 2 * margin + most * side + (most - 1) * gap
    image = Image.new("RGB", (width, head + len(rows) * (label + side + foot)), _PAPER)
    draw = ImageDraw.Draw(image)
    title, note = ImageFont.load_default(large), ImageFont.load_default(small)
    draw.text((margin, head - small // 2), heading, font=title, fill=_INK, anchor="ls")
    if most > 3:  # fewer leave no room for it beside the heading
        draw.text((width - margin, head - small // 2), remark, font=note, fill=_FAINT, anchor="rs")
    for row, (strip, pictures) in enumerate(zip(strips, rows, strict=True)):
        top = head + label + row * (label + side + foot)
        draw.text((margin, top - small // 2), strip.label, font=title, fill=_ACCENT, anchor="ls")
        draw.text((width - margin, top - small // 2), strip.note, font=title, fill=_ACCENT, anchor="rs")
        for number, (panel, picture) in enumerate(zip(strip.panels, pictures, strict=True)):
            left = margin + number * (side + gap)
            draw.rectangle((left - 2, top - 2, left + side + 1, top + side + 1), outline=_FRAME)
            image.paste(picture, (left, top))
            draw.text((left, top + side + large + small // 3), panel.title, font=title, fill=_INK, anchor="ls")
            draw.text((left, top + side + large + 2 * small - 4), panel.note, font=note, fill=_FAINT, anchor="ls")
    return image


def save(path: Path, strips: Sequence[Strip], heading: str, remark: str = "") -> None:
    """Write the sheet as PNG; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet(strips, heading, remark).save(path, format="PNG", optimize=True)


def _enlarged(picture: Image.Image) -> Image.Image:
    factor = max(1, _PANEL // picture.width)
    size = (picture.width * factor, picture.height * factor)
    return picture if factor == 1 else picture.resize(size, Image.Resampling.BICUBIC)
