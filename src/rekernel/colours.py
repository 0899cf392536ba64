"""Colour maps: which colour a value gets, as tables of RGB rows. Needs NumPy only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.uint8]
"""RGB rows, ``uint8[n, 3]``: the colour of the lowest value first."""

Stops = tuple[tuple[float, tuple[int, int, int]], ...]

# From deep water to foam. Lightness rises all the way, so the order of the values can be read in grey too; the
# hue turns once, from blue over red to cream.
EMBER: Stops = (
    (0.00, (9, 11, 28)),
    (0.14, (20, 24, 62)),
    (0.30, (62, 29, 99)),
    (0.46, (134, 38, 103)),
    (0.62, (210, 66, 82)),
    (0.76, (244, 122, 75)),
    (0.88, (252, 189, 112)),
    (1.00, (255, 247, 220)),
)

# For values of both signs: the middle is pale, and both ends are equally dark.
BALANCE: Stops = (
    (0.00, (18, 40, 92)),
    (0.25, (66, 124, 186)),
    (0.42, (176, 208, 228)),
    (0.50, (244, 243, 240)),
    (0.58, (238, 196, 172)),
    (0.75, (204, 92, 70)),
    (1.00, (104, 14, 36)),
)

GREY: Stops = ((0.0, (0, 0, 0)), (1.0, (255, 255, 255)))

NAMES = {"ember": EMBER, "balance": BALANCE, "grey": GREY}


def table(stops: Stops, size: int = 256) -> Table:
    """Return `size` RGB rows between the stops.

    >>> table(GREY, 3).tolist()
    [[0, 0, 0], [128, 128, 128], [255, 255, 255]]
    """
    at = np.linspace(0.0, 1.0, size)
    where = [stop for stop, _ in stops]
    channels = np.array([colour for _, colour in stops], dtype=float)
    rows = [np.interp(at, where, channels[:, channel]) for channel in range(3)]
    shades: Table = np.stack(rows, axis=1).round().astype(np.uint8)
    return shades


def chosen(colours: Any, size: int = 256) -> Table:
    """Return the table of what a user may choose: a name, a table, or a colour map of Matplotlib.

    Raises ValueError for an unknown name and for a table of another shape.

    >>> chosen("grey", 2).tolist(), chosen([[255, 0, 0], [0, 0, 255]], 2).tolist()
    ([[0, 0, 0], [255, 255, 255]], [[255, 0, 0], [0, 0, 255]])
    """
    if isinstance(colours, str):
        if colours not in NAMES:
            raise ValueError(f"no colours are called {colours!r}; there are {', '.join(NAMES)}, or give a table")
        return table(NAMES[colours], size)
    if callable(colours):  # a colour map of Matplotlib: numbers from 0 to 1 in, RGBA from 0 to 1 out
        shades: Table = (255 * np.asarray(colours(np.linspace(0, 1, size)))[:, :3]).round().astype(np.uint8)
        return shades
    rows = np.asarray(colours)
    if rows.ndim != 2 or rows.shape[1] != 3 or len(rows) < 2 or rows.dtype.kind not in "iu":
        raise ValueError(f"a table of colours has rows of 3 whole numbers from 0 to 255; got {rows.dtype}{rows.shape}")
    at = np.linspace(0, len(rows) - 1, size).round().astype(int)
    picked: Table = np.clip(rows[at], 0, 255).astype(np.uint8)
    return picked
