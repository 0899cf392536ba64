"""A star cluster: sums over threads (reductions), counts that threads share (atomics), conserved energy.

python particles.py --size 1000 --steps 200 --out cluster.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from types import ModuleType

import numpy as np

from rekernel import KernelLoader

TEXT = Path(__file__).with_name("particles.cpp")
MYR = 0.9778  # million years in a pc/(km/s)


def cluster(size: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (pc), velocities (km/s) and masses (solar masses) of stars at rest as a whole."""
    rng = np.random.default_rng(seed)
    x, v, m = rng.normal(size=(size, 3)), rng.normal(scale=0.7, size=(size, 3)), rng.uniform(0.2, 2.0, size)
    for values in (x, v):
        values -= m @ values / m.sum()
    return x, v, m


def energy(module: ModuleType, x: np.ndarray, v: np.ndarray, m: np.ndarray) -> float:
    """Kinetic and potential energy together, in solar masses (km/s)**2."""
    total: float = module.kinetic(v, m) + module.potential(x, m)
    return total


def run(module: ModuleType, x: np.ndarray, v: np.ndarray, m: np.ndarray, dt: float, steps: int) -> None:
    """That many steps of the leapfrog: half a kick, a drift, half a kick. In place."""
    for _ in range(steps):
        module.kick(v, x, m, dt / 2)
        module.drift(x, v, dt)
        module.kick(v, x, m, dt / 2)


def main(argv: list[str] | None = None) -> np.ndarray:
    """Read the command line, run, write the picture; returns the map of stars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000, help="stars (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="steps of 0.01 Myr (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a picture of the map (needs Pillow)")
    options = parser.parse_args(argv)

    # Without the flag, sqrt may have to set errno, and its loop is not turned into vector instructions.
    module = KernelLoader().load_file(TEXT, flags="-fno-math-errno")
    x, v, m = cluster(options.size)
    before, dt = energy(module, x, v, m), 0.01 / MYR
    started = time.perf_counter()
    run(module, x, v, m, dt, options.steps)
    seconds = time.perf_counter() - started
    after = energy(module, x, v, m)
    pairs = 2 * options.steps * options.size**2
    print(
        f"{options.size} stars, {options.steps} steps in {seconds:.3f} s: {pairs / seconds / 1e6:,.0f} million pairs/s"
    )
    print(f"energy {before:.6g} -> {after:.6g} Msun (km/s)^2, relative change {after / before - 1:.2e}")
    print(f"virial ratio {-2 * module.kinetic(v, m) / module.potential(x, m):.3f} (1 in equilibrium)")

    sky = np.zeros((64, 64), np.int64)
    outside = module.count(sky, x, 4.0)
    print(f"map of 8 x 8 pc: {sky.sum()} stars inside, {outside} outside, at most {sky.max()} in a cell")
    if options.out:
        from PIL import Image

        shade = np.sqrt(sky / max(sky.max(), 1)).repeat(8, 0).repeat(8, 1)
        Image.fromarray((255 * shade).astype(np.uint8)).save(options.out)
        print(f"picture: {options.out}")
    return sky


if __name__ == "__main__":
    main()
