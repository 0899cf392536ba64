"""What the demo plays: one Gray-Scott kernel, the edits that are made to it, and the length of each act.

Two substances spread over a periodic square; ``v`` feeds on ``u`` (``u + 2 v -> 3 v``), ``u`` is fed at the
rate ``feed`` and ``v`` is removed at the rate ``feed + kill``. Small changes of this one short kernel give
very different pictures, which makes it a good thing to edit while it runs. The model is J. E. Pearson's in
*Complex patterns in a simple system* (Science 261, 1993), with a nine-point stencil and unit steps in space
and time.

Everything here is data: this file imports neither Taichi nor the loader.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import Enum, auto

KERNEL_ID = "gray_scott"
STEPS_PER_CALL = 2
"""A call of ``step`` goes from buffer 0 to buffer 1 and back: the newest values are always in buffer 0."""

FIRST_TEXT = """\
import taichi as ti

n = 512  # a power of two, see wrap
feed = 0.0545
u = ti.field(ti.f32, shape=(2, n, n))  # two buffers: a step reads one and writes the other
v = ti.field(ti.f32, shape=(2, n, n))


@ti.func
def wrap(i):
    return i & (n - 1)


@ti.func
def kill(i, j):
    return 0.0620


@ti.func
def laplacian(f: ti.template(), k: ti.template(), i, j):
    up, down, left, right = wrap(i - 1), wrap(i + 1), wrap(j - 1), wrap(j + 1)
    sides = f[k, up, j] + f[k, down, j] + f[k, i, left] + f[k, i, right]
    corners = f[k, up, left] + f[k, up, right] + f[k, down, left] + f[k, down, right]
    return 0.2 * sides + 0.05 * corners - f[k, i, j]


@ti.kernel
def seed():
    for i, j in ti.ndrange(n, n):
        u[0, i, j] = 1.0
        v[0, i, j] = 0.0
    ti.loop_config(serialize=True)  # one stream of random numbers: the same start on any number of threads
    for _ in range(n * n // 6144 + 2):
        top, left = int(ti.random() * n), int(ti.random() * n)
        for a, b in ti.ndrange(8, 8):
            i, j = wrap(top + a), wrap(left + b)
            u[0, i, j] = 0.50
            v[0, i, j] = 0.25 + 0.1 * ti.random()


@ti.kernel
def step():
    for k in ti.static(range(2)):
        for i, j in ti.ndrange(n, n):
            a, b = u[k, i, j], v[k, i, j]
            reaction = a * b * b
            u[1 - k, i, j] = a + laplacian(u, k, i, j) - reaction + feed * (1 - a)
            v[1 - k, i, j] = b + 0.5 * laplacian(v, k, i, j) + reaction - (feed + kill(i, j)) * b
"""

_KILL_EVERYWHERE = """\
@ti.func
def kill(i, j):
    return 0.0620
"""

# cos(6 angle) as a polynomial of cos(angle)**2: no trigonometry for each cell and step
_KILL_FLOWER = """\
@ti.func
def kill(i, j):
    x, y = 2 * (j + 0.5) / n - 1, 2 * (i + 0.5) / n - 1
    r2 = x * x + y * y
    c2 = x * x / r2
    petals = ((32 * c2 - 48) * c2 + 18) * c2 - 1  # cos(6 * angle)
    outside = ti.sqrt(r2) / (0.59 + 0.17 * petals)
    return 0.0562 + 0.0078 * ti.math.clamp(1.25 * outside - 0.75, 0.0, 1.0)
"""

_KILL_FOR_STRIPES = """\
@ti.func
def kill(i, j):
    return 0.0605


@ti.func
def whirl(f: ti.template(), k: ti.template(), i, j):  # more diffusion along a spiral, less across it
    x, y = j + 0.5 - n / 2, i + 0.5 - n / 2
    c, s = x * x - y * y, 2 * x * y  # r**2 times cosine and sine of twice the angle
    c, s = (-0.17 * c - 0.98 * s) / (x * x + y * y), (-0.17 * s + 0.98 * c) / (x * x + y * y)
    up, down, left, right = wrap(i - 1), wrap(i + 1), wrap(j - 1), wrap(j + 1)
    straight = f[k, i, left] + f[k, i, right] - f[k, up, j] - f[k, down, j]
    slanted = f[k, up, left] + f[k, down, right] - f[k, up, right] - f[k, down, left]
    return laplacian(f, k, i, j) + 0.15 * (c * straight + 0.5 * s * slanted)
"""

Edit = tuple[str, str]
"""What was in the text once, and what is there instead."""

FLOWER: tuple[Edit, ...] = (("feed = 0.0545", "feed = 0.0320"), (_KILL_EVERYWHERE, _KILL_FLOWER))
TYPO: tuple[Edit, ...] = (("0.5 * laplacian(v", "0.5 * lapalcian(v"),)
WHIRL: tuple[Edit, ...] = (
    ("feed = 0.0320", "feed = 0.0350"),
    (_KILL_FLOWER, _KILL_FOR_STRIPES),
    ("0.5 * laplacian(v", "0.5 * whirl(v"),
)


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
    edits: tuple[Edit, ...] = ()
    """Applied to the text of the last version that loaded."""


ACTS = (
    Act(Move.START, "coral", "Load the first kernel and let it grow from a few seeds.", "first load", 2_600),
    Act(
        Move.SWAP,
        "flower",
        "Edit: 'kill' now varies over space, in the shape of a flower. The field stays as it is.",
        "'kill' varies over space",
        2_000,
        FLOWER,
    ),
    Act(
        Move.BREAK,
        "flower",
        "Edit again, with a typo. It is refused, and the run goes on with the kernel it has.",
        "typo: refused",
        2_400,
        TYPO,
    ),
    Act(
        Move.SWAP,
        "whirl",
        "Edit once more, without typo: 'v' spreads faster along a spiral than across it.",
        "'v' diffuses along a spiral",
        3_400,
        WHIRL,
    ),
    Act(
        Move.ROLLBACK,
        "flower",
        "The flower was nicer: roll back. Nothing is compiled, and the field still stays.",
        "rollback",
        3_600,
    ),
)


def first_text(size: int) -> str:
    """The first version for a square of ``size`` cells a side; ``size`` must be a power of two."""
    return edited(FIRST_TEXT, (("n = 512 ", f"n = {size} "),))


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
