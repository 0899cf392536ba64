"""The moving window on the field: braille dots in the colours of the picture. Pure."""

from __future__ import annotations

import numpy as np
from rich.color import Color
from rich.style import Style
from rich.text import Text

from rekernel.demo.gray_scott import Field
from rekernel.demo.picture import colours

# A braille character is two dots wide and four high; these are its bits, row by row.
_BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_DOT_FROM = 0.2
"""A dot is set where ``v`` is above this."""


def window(field: Field, columns: int, rows: int) -> list[Text]:
    """The middle of the field over its whole width, in braille dots and in the colours of the picture.

    >>> [line.plain for line in window(np.eye(8, dtype=np.float32), 4, 1)]
    ['⠀⠑⢄⠀']
    """
    size = field.shape[0]
    across = (np.arange(2 * columns) + 0.5) * size / (2 * columns)
    high = min(4 * rows, 2 * columns)
    down = (np.arange(high - high % 4) + 0.5 - (high - high % 4) / 2) * size / (2 * columns) + size / 2
    values = field[np.ix_(down.astype(int) % size, across.astype(int))]
    cells = values.reshape(len(down) // 4, 4, columns, 2).swapaxes(1, 2)
    characters = ((cells > _DOT_FROM) * _BRAILLE).sum(axis=(2, 3)) + 0x2800
    # Few colours and only the brighter ones: dots on a dark terminal are dark already.
    table = [Style(color=Color.from_rgb(*map(int, rgb))) for rgb in colours(24)[10:]]
    tints = (np.clip(cells.max(axis=(2, 3)) / 0.42, 0, 0.999) * len(table)).astype(int)
    lines = []
    for line_characters, line_tints in zip(characters, tints, strict=True):
        line = Text(no_wrap=True)
        for character, tint in zip(line_characters, line_tints, strict=True):
            line.append(chr(character), table[tint])
        lines.append(line)
    return lines
