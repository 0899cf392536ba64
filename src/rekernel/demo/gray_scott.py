"""What the demo plays: the Gray-Scott model, the acts of the run, and how their texts are edited.

Two substances spread over a periodic square; ``v`` feeds on ``u`` (``u + 2 v -> 3 v``), ``u`` is fed at the
rate ``feed`` and ``v`` is removed at the rate ``feed + kill``. Small changes of this one short kernel give
very different pictures, which makes it a good thing to edit while it runs. The model is J. E. Pearson's in
*Complex patterns in a simple system* (Science 261, 1993), with a nine-point stencil and unit steps in space
and time.

Everything here is data: this file imports neither Taichi nor the loader. The texts are in `taichi_text` and
`cpp_text`; they do the same operations in the same order, so their states can be compared bit by bit.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]
Edit = tuple[str, str]
"""What was in the text once, and what is there instead."""

KERNEL_ID = "gray_scott"
STEPS_PER_CALL = 2
"""A call of ``step`` goes from buffer 0 to buffer 1 and back: the newest values are always in buffer 0."""
SIZE = 512
"""Cells a side in the texts as they are written."""


@dataclass(frozen=True)
class Text:
    """The model in one language, with the edits that are made to it."""

    language: str
    """As `KernelLoader.load` calls it."""
    title: str
    """As people call it."""
    first: str
    """The first version, for `SIZE` cells a side."""
    edits: Mapping[str, tuple[Edit, ...]]
    """What the acts name in `Act.edit`; each fits the text of the last version that loaded."""

    def sized(self, size: int) -> str:
        """The first version for a square of ``size`` cells a side; ``size`` must be a power of two."""
        return edited(self.first, ((f"n = {SIZE}", f"n = {size}"),))


class Move(Enum):
    """What happens to the kernel at the beginning of an act."""

    START = auto()
    """The first text is loaded and the field is sown."""
    SWAP = auto()
    """The text is edited and loaded while the state stays."""
    BREAK = auto()
    """The text is edited and the edit is wrong: nothing is swapped."""
    ROLLBACK = auto()
    """The version before the live one comes back."""


@dataclass(frozen=True)
class Act:
    """One stretch of the run: a move, then so many steps."""

    move: Move
    name: str
    """What the pattern is called in captions and in the table."""
    says: str
    """One sentence for the reader, before it happens."""
    change: str
    """A few words for the table."""
    steps: int
    """How many steps the act runs unless told otherwise."""
    edit: str = ""
    """Which of `Text.edits` is made to the text of the last version that loaded."""


ACTS = (
    Act(Move.START, "coral", "Load the first kernel and let it grow from a few seeds.", "first load", 2_600),
    Act(
        Move.SWAP,
        "flower",
        "Edit: 'kill' now varies over space, in the shape of a flower. The field stays as it is.",
        "'kill' varies over space",
        2_000,
        "flower",
    ),
    Act(
        Move.BREAK,
        "flower",
        "Edit again, with a typo. It is refused, and the run goes on with the kernel it has.",
        "typo: refused",
        2_400,
        "typo",
    ),
    Act(
        Move.SWAP,
        "whirl",
        "Edit once more, without typo: 'v' spreads faster along a spiral than across it.",
        "'v' diffuses along a spiral",
        3_400,
        "whirl",
    ),
    Act(
        Move.ROLLBACK,
        "flower",
        "The flower was nicer: roll back. Nothing is compiled, and the field still stays.",
        "rollback",
        3_600,
    ),
)


def sown(size: int, seed: int) -> tuple[Field, Field]:
    """``u`` and ``v`` at the start, each with two buffers: ``u`` everywhere, ``v`` in a few small squares.

    >>> u, v = sown(64, seed=1)
    >>> u.shape, u.dtype.name, bool(u.min() == 0.5), bool(0.25 <= v.max() < 0.35)
    ((2, 64, 64), 'float32', True, True)
    """
    rng = np.random.default_rng(seed)
    u, v = np.ones((2, size, size), np.float32), np.zeros((2, size, size), np.float32)
    for top, left in rng.integers(size, size=(size * size // 6144 + 2, 2)):
        square = np.ix_(range(2), (top + np.arange(8)) % size, (left + np.arange(8)) % size)
        u[square] = 0.5
        v[square] = 0.25 + 0.1 * rng.random((8, 8), np.float32)
    return u, v


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """The text after the edits; each must find its place exactly once.

    >>> edited("a = 1", (("1", "2"),))
    'a = 2'
    """
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"expected once in the text, found {text.count(old)} times: {old!r}")
        text = text.replace(old, new)
    return text


def changed_lines(old: str, new: str) -> list[tuple[int, str]]:
    r"""The lines that differ, each with its number and with ``-`` or ``+`` in front, and no others.

    Removed lines have their number in the old text, added lines in the new one.

    >>> changed_lines("a\nb\n", "a\nc\n")
    [(2, '- b'), (2, '+ c')]
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[tuple[int, str]] = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        lines += [(number + 1, f"- {before[number]}") for number in range(i1, i2)]
        lines += [(number + 1, f"+ {after[number]}") for number in range(j1, j2)]
    return lines
