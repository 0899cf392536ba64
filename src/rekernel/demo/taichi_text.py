"""The Gray-Scott model as Taichi text, and the edits that are made to it. Pure data."""

from __future__ import annotations

from rekernel.demo.gray_scott import Text

_FIRST = """\
import taichi as ti

n = 512  # a power of two, see wrap
feed = 0.0545
trace = 1e-12  # of v, everywhere: nothing gets so small that processors are slow with it
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
def step():
    for k in ti.static(range(2)):
        for i, j in ti.ndrange(n, n):
            a, b = u[k, i, j], v[k, i, j]
            reaction = a * b * b
            u[1 - k, i, j] = a + laplacian(u, k, i, j) - reaction + feed * (1 - a)
            v[1 - k, i, j] = b + 0.5 * laplacian(v, k, i, j) + reaction - (feed + kill(i, j)) * b + trace
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

TAICHI = Text(
    "taichi",
    "Taichi",
    _FIRST,
    {
        "flower": (("feed = 0.0545", "feed = 0.0320"), (_KILL_EVERYWHERE, _KILL_FLOWER)),
        "typo": (("0.5 * laplacian(v", "0.5 * lapalcian(v"),),
        "whirl": (
            ("feed = 0.0320", "feed = 0.0350"),
            (_KILL_FLOWER, _KILL_FOR_STRIPES),
            ("0.5 * laplacian(v", "0.5 * whirl(v"),
        ),
    },
)
