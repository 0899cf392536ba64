"""From a field to a PNG: values to colours, images as they are. Needs NumPy and Pillow; no notebook."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rekernel.colours import Table

Array = npt.NDArray[Any]
Limits = tuple[float, float] | None

MOST = 1024
"""Longer sides are thinned out before anything is computed: nobody sees more, and a page need not load more."""

_NOT_FINITE = (57, 255, 130)
"""The colour of NaN and of infinities: a green that none of the colour maps has."""


@dataclass(frozen=True)
class Picture:
    """A field as it is shown."""

    png: bytes
    shape: tuple[int, ...]
    """Of the field, before thinning out."""
    limits: Limits
    """The values of the first and the last colour; None for an image."""
    not_finite: int = 0
    """How many of the shown values are NaN or infinite."""


def values_of(field: Any) -> Array:
    """Return a field as a NumPy array, thinned out to at most `MOST` a side.

    Takes NumPy arrays, Taichi fields and ndarrays, CuPy arrays and all that NumPy can read. Raises TypeError for
    what is no array of numbers, and ValueError for one that is neither two-dimensional nor an image.
    """
    found = field.to_numpy() if hasattr(field, "to_numpy") else field
    shape = getattr(found, "shape", None)
    if not isinstance(shape, tuple):
        found = np.asarray(found)
        shape = found.shape
    if not (len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))) or 0 in shape:
        raise ValueError(
            f"a view shows a field of shape (rows, columns), or an image of (rows, columns, 3); this one is {shape}"
        )
    step = -(-max(shape[:2]) // MOST)
    found = found[::step, ::step]
    if hasattr(found, "__cuda_array_interface__") and hasattr(found, "get"):
        found = found.get()  # CuPy: only what is shown leaves the device
    values = np.asarray(found)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"a view shows numbers; this field has dtype {values.dtype}")
    return values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values


def shape_of(field: Any) -> tuple[int, ...]:
    """Return the shape that the field has for its owner."""
    return tuple(getattr(field, "shape", None) or np.shape(field))


def picture(field: Any, limits: Limits, colours: Table) -> Picture:
    r"""Return a field in colour: `limits` are the values of the first and the last one, or None for its extremes.

    An image of shape (rows, columns, 3 or 4) is shown as it is: ``uint8``, or floats from 0 to 1 (or `limits`).

    >>> from rekernel.colours import chosen
    >>> made = picture(np.arange(6.0).reshape(2, 3), None, chosen("grey"))
    >>> made.png[:4], made.shape, made.limits
    (b'\x89PNG', (2, 3), (0.0, 5.0))
    """
    values = values_of(field)
    if values.ndim == 3:
        return Picture(_png(_image(values, limits)), shape_of(field), None)
    finite = np.isfinite(values)
    missing = int(finite.size - np.count_nonzero(finite))
    if limits is None:
        seen = values[finite] if missing else values
        limits = (float(seen.min()), float(seen.max())) if seen.size else (0.0, 1.0)
    low, high = limits
    half = high / 2 - low / 2  # halves, so that no width is too large for a float
    wide = values.astype(np.result_type(values, np.float32), copy=False)
    level = (wide / 2 - low / 2) * (254 / half) if half > 0 else np.zeros(values.shape)
    # The last of 256 entries is the colour of what is not finite.
    index = np.where(finite, np.clip(np.nan_to_num(level), 0, 254), 255).round().astype(np.uint8)
    return Picture(_png(index, colours), shape_of(field), (low, high), missing)


def _image(values: Array, limits: Limits) -> Array:
    if values.dtype == np.uint8:
        return values
    low, high = limits or (0.0, 1.0)
    level = (np.nan_to_num(values.astype(np.float64)) - low) / ((high - low) or 1.0)
    return (255 * np.clip(level, 0, 1)).round().astype(np.uint8)


def _png(pixels: Array, colours: Table | None = None) -> bytes:
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    if colours is not None:
        at = np.linspace(0, len(colours) - 1, 255).round().astype(int)
        image.putpalette([*colours[at].ravel().tolist(), *_NOT_FINITE])
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=1)  # quick: it travels to a page of the same machine, mostly
    return out.getvalue()
