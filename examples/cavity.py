"""Lid-driven cavity: a lattice Boltzmann flow from symbols to a picture, its collision operator swapped on the way.

A square box is full of a fluid, and its lid moves to the right. The nine populations of each cell (D2Q9) collide and
stream in one kernel, which is derived from the few lines of symbols below. The run begins with the single relaxation
time operator (SRT, or BGK), and half way another one, with two relaxation times (TRT), takes its place: the text is
loaded again under the same id, and the loop, which holds the kernel, goes on with the populations as they are.

    python examples/cavity.py --size 128 --reynolds 1000 --picture cavity.png

Results of Ghia, Ghia and Shin (Journal of Computational Physics 48, 1982) for the horizontal velocity on the vertical
centre line are in `GHIA`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

import rekernel

LATTICE = """
f, g = ps.fields("f(9), g(9): double[2D]")
density, velocity = ps.fields("density, velocity(2): double[2D]")
omega, speed = sp.symbols("omega, speed")

_c = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
_w = [sp.Rational(4, 9)] + 4 * [sp.Rational(1, 9)] + 4 * [sp.Rational(1, 36)]
_opposite = [_c.index((-x, -y)) for x, y in _c]

_p = sp.symbols("p_:9")                       # the populations that have arrived in a cell
_rho, _ux, _uy = sp.symbols("rho, u_x, u_y")


def _moments(populations):
    momentum = [sum(c[axis] * p for c, p in zip(_c, populations)) for axis in (0, 1)]
    return [
        ps.Assignment(_rho, sum(populations)),
        ps.Assignment(_ux, momentum[0] / _rho),
        ps.Assignment(_uy, momentum[1] / _rho),
    ]


def _equilibrium(i):
    cu = _c[i][0] * _ux + _c[i][1] * _uy
    return _w[i] * _rho * (1 + 3 * cu + sp.Rational(9, 2) * cu**2 - sp.Rational(3, 2) * (_ux**2 + _uy**2))


_here = [f[0, 0](i) for i in range(9)]
moments = [
    *_moments(_here),
    ps.Assignment(density.center, _rho),
    ps.Assignment(velocity[0, 0](0), _ux),
    ps.Assignment(velocity[0, 0](1), _uy),
]


def _wall(inward, where, along=0):
    # Half way between the last cell and the layer outside of it: what leaves comes back, and takes the wall's
    # speed with it.
    back = [i for i in range(9) if _c[i][0] * inward[0] + _c[i][1] * inward[1] > 0]
    config = ps.CreateKernelConfig(iteration_slice=where, skip_independence_check=True)
    assignments = [
        ps.Assignment(f[-_c[i][0], -_c[i][1]](i), f[0, 0](_opposite[i]) + 6 * _w[i] * _c[i][0] * along) for i in back
    ]
    return {"assignments": assignments, "config": config}


left = _wall((1, 0), ps.make_slice[1:2, 1:-1])
right = _wall((-1, 0), ps.make_slice[-2:-1, 1:-1])
bottom = _wall((0, 1), ps.make_slice[1:-1, 1:2])
lid = _wall((0, -1), ps.make_slice[1:-1, -2:-1], along=speed)

_arrived = [ps.Assignment(_p[i], f[-x, -y](i)) for i, (x, y) in enumerate(_c)]
"""

SRT = """
_after = [_p[i] - omega * (_p[i] - _equilibrium(i)) for i in range(9)]
step = [*_arrived, *_moments(_p), *(ps.Assignment(g[0, 0](i), _after[i]) for i in range(9))]
"""

TRT = """
# Even and odd parts relax at rates of their own. This product of the two puts walls exactly half way between cells.
_magic = sp.Rational(3, 16)
_odd = 1 / (_magic / (1 / omega - sp.Rational(1, 2)) + sp.Rational(1, 2))
_rate = sp.Symbol("omega_odd")


def _relaxed(i):
    j = _opposite[i]
    mine, other = _p[i] - _equilibrium(i), _p[j] - _equilibrium(j)
    return _p[i] - omega * (mine + other) / 2 - _rate * (mine - other) / 2


step = [
    *_arrived,
    *_moments(_p),
    ps.Assignment(_rate, _odd),
    *(ps.Assignment(g[0, 0](i), _relaxed(i)) for i in range(9)),
]
"""

GHIA = {
    100: {
        0.9766: 0.84123, 0.9531: 0.68717, 0.8516: 0.23151, 0.7344: 0.00332, 0.6172: -0.13641, 0.5: -0.20581,
        0.4531: -0.21090, 0.2813: -0.15662, 0.1719: -0.10150, 0.1016: -0.06434, 0.0547: -0.03717,
    },
    1000: {
        0.9766: 0.65928, 0.9531: 0.46604, 0.8516: 0.33304, 0.7344: 0.18719, 0.6172: 0.05702, 0.5: -0.06080,
        0.4531: -0.10648, 0.2813: -0.27805, 0.1719: -0.38289, 0.1016: -0.29730, 0.0547: -0.18109,
    },
}  # fmt: skip
"""For a Reynolds number: height over the bottom, and horizontal velocity in units of the lid's."""


@dataclass(frozen=True)
class Flow:
    """The state at the end of a run, without the layer of cells around the box. The first axis is x."""

    density: np.ndarray
    velocity: np.ndarray
    """In units of the lid's speed; shape (n, n, 2)."""
    masses: list[float]
    """At the beginning, at each swap of the operator, and at the end."""
    versions: list[int]
    """Of the kernel, at the same times."""
    seconds: float

    def profile(self, heights: np.ndarray) -> np.ndarray:
        """Return the horizontal velocity on the vertical centre line."""
        n = len(self.density)
        middle = 0.5 * (self.velocity[(n - 1) // 2, :, 0] + self.velocity[n // 2, :, 0])
        places = np.concatenate([[0.0], (np.arange(n) + 0.5) / n, [1.0]])
        return np.interp(heights, places, np.concatenate([[0.0], middle, [1.0]]))


def run(
    size: int = 64,
    reynolds: float = 100.0,
    steps: int | None = None,
    operators: tuple[str, ...] = (SRT, TRT),
    speed: float = 0.1,
    loader: rekernel.KernelLoader | None = None,
) -> Flow:
    """Run a cavity of `size` times `size` cells; each operator has its share of the steps."""
    loader = rekernel.KernelLoader() if loader is None else loader
    steps = steps or round(40 * size / speed)
    omega = 1.0 / (3.0 * speed * size / reynolds + 0.5)
    weights = np.array([4 / 9, *4 * [1 / 9], *4 * [1 / 36]])
    f = np.tile(weights, (size + 2, size + 2, 1))
    g = f.copy()
    density, velocity = np.ones((size + 2, size + 2)), np.zeros((size + 2, size + 2, 2))

    def mass() -> float:
        return float(f[1:-1, 1:-1].sum())

    masses, versions, started = [mass()], [], time.perf_counter()
    for operator in operators:
        flow = loader.load(LATTICE + operator, "cavity")
        step, walls, lid = flow.step, (flow.left, flow.right, flow.bottom), flow.lid
        for _ in range(steps // len(operators)):
            for wall in walls:
                wall(f=f)
            lid(f=f, speed=speed)
            step(f=f, g=g, omega=omega)
            f, g = g, f
        masses.append(mass())
        versions.append(step.version)
    flow.moments(f=f, density=density, velocity=velocity)
    seconds = time.perf_counter() - started
    return Flow(density[1:-1, 1:-1], velocity[1:-1, 1:-1] / speed, masses, versions, seconds)


def picture(flow: Flow, pixels: int = 640) -> np.ndarray:
    """Return speed (left) and vorticity (right) with stream lines, as an image of bytes."""
    n = len(flow.density)
    u, v = flow.velocity[..., 0], flow.velocity[..., 1]
    stream = np.cumsum(u, axis=1) / n
    vorticity = np.gradient(v, 1 / n, axis=0) - np.gradient(u, 1 / n, axis=1)
    blues = np.array([[247, 251, 255], [158, 202, 225], [66, 146, 198], [8, 81, 156], [8, 29, 88]], float)
    signed = np.array([[33, 102, 172], [146, 197, 222], [247, 247, 247], [244, 165, 130], [178, 24, 43]], float)
    panels = [
        _panel(np.hypot(u, v), stream, blues, 0.0, 0.8, pixels),
        _panel(vorticity, stream, signed, -6.0, 6.0, pixels),
    ]
    gap = np.full((pixels, 16, 3), 255, np.uint8)
    return np.concatenate([panels[0], gap, panels[1]], axis=1)


def _panel(value: np.ndarray, stream: np.ndarray, colours: np.ndarray, low: float, high: float, pixels: int):
    big, lines = _enlarged(value, pixels), _enlarged(stream, pixels)
    at = np.clip((big - low) / (high - low), 0.0, 1.0)
    stops = np.linspace(0.0, 1.0, len(colours))
    image = np.stack([np.interp(at, stops, colours[:, band]) for band in range(3)], axis=-1)
    # Levels are evenly spaced in the cube root, so that the weak eddies in the corners show, too.
    levels = np.floor(12 * np.cbrt(lines / np.abs(lines).max()))
    edge = np.zeros(levels.shape, bool)
    edge[:-1] |= levels[:-1] != levels[1:]
    edge[:, :-1] |= levels[:, :-1] != levels[:, 1:]
    image[edge] *= 0.55
    return image.swapaxes(0, 1)[::-1].astype(np.uint8)


def _enlarged(value: np.ndarray, pixels: int) -> np.ndarray:
    """Interpolate linearly to so many pixels along each axis."""
    n = len(value)
    places = np.clip((np.arange(pixels) + 0.5) * n / pixels - 0.5, 0, n - 1)
    lower = np.minimum(places.astype(int), n - 2)
    part = places - lower
    rows = value[lower] * (1 - part)[:, None] + value[lower + 1] * part[:, None]
    return rows[:, lower] * (1 - part) + rows[:, lower + 1] * part


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="lid-driven cavity with a collision operator swapped during the run")
    parser.add_argument("--size", type=int, default=64, help="cells along each side (64)")
    parser.add_argument("--reynolds", type=float, default=100.0, help="Reynolds number (100)")
    parser.add_argument("--steps", type=int, help="time steps; long enough for a steady flow if not given")
    parser.add_argument("--picture", help="where to write a picture (needs Pillow)")
    chosen = parser.parse_args(arguments)
    flow = run(chosen.size, chosen.reynolds, chosen.steps)
    print(f"mass {flow.masses[0]:.6f} -> {' -> '.join(f'{mass:.6f}' for mass in flow.masses[1:])}")
    print(f"kernel versions {flow.versions}, {flow.seconds:.1f} s")
    for height, expected in GHIA.get(round(chosen.reynolds), {}).items():
        found = float(flow.profile(np.array([height]))[0])
        print(f"  u({height:.4f}) = {found:8.5f}   Ghia et al.: {expected:8.5f}")
    if chosen.picture:
        from PIL import Image

        Image.fromarray(picture(flow)).save(chosen.picture, optimize=True)


if __name__ == "__main__":
    main()
