"""Heat in a plate: the kernel is edited while the simulation runs, and its arrays go on.

    python heat.py --size 256 --steps 4000 --out heat.png

Half way a burner is put under the plate by editing the text of `heat.cpp`; the first attempt has a typo.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from types import ModuleType

import numpy as np

import rekernel
from rekernel import KernelLoader, KernelSourceError

TEXT = Path(__file__).with_name("heat.cpp")
SIDE = 0.2  # m

# What an editor would do to the text: a burner under the middle of the plate warms it by 5 K a second.
OLD = "            next(i, j) = now(i, j) + change;\n"
NEW = """\
            bool burner = std::abs(i - rows / 2) < rows / 8 && std::abs(j - columns / 2) < columns / 8;
            if (burner) change += 5 * dt;
            next(i, j) = now(i, j) + change;
"""


def plate(size: int) -> np.ndarray:
    """Cold, with one hot edge: 20 degrees, and 100 at the top."""
    temperature = np.full((size, size), 20.0)
    temperature[0] = 100.0
    return temperature


def run(module: ModuleType, now: np.ndarray, dt: float, steps: int) -> tuple[np.ndarray, float]:
    """That many steps of dt seconds; returns the temperatures, and the last largest change in K."""
    dx, following, change = SIDE / (now.shape[0] - 1), now.copy(), 0.0
    for _ in range(steps):
        change = module.step(following, now, dx, dt)
        now, following = following, now
    return now, change


def report(module: ModuleType, now: np.ndarray, dt: float, steps: int) -> np.ndarray:
    """The same, with a line about it."""
    started = time.perf_counter()
    now, change = run(module, now, dt, steps)
    seconds = time.perf_counter() - started
    print(
        f"version {module.step.version}: {steps} steps, {steps * dt:.2f} s of the plate in {seconds:.3f} s; "
        f"{now.size * steps / seconds / 1e6:,.0f} million cells/s; "
        f"mean {now.mean():.3f} C, residual {change / dt:.4g} K/s"
    )
    return now


def main(argv: list[str] | None = None) -> np.ndarray:
    """Read the command line, run, write the picture; returns the temperatures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="cells a side (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=4000, help="steps, half of them with the burner (%(default)s)")
    parser.add_argument("--out", type=Path, help="a picture (needs Pillow)")
    options = parser.parse_args(argv)

    loader = KernelLoader()
    heat = loader.load_file(TEXT)
    dt = 0.9 * heat.longest_step(SIDE / (options.size - 1))
    now = report(heat, plate(options.size), dt, options.steps // 2)

    text = TEXT.read_text(encoding="utf-8")
    try:
        loader.load(text.replace(OLD, NEW.replace("+= 5 * dt", "+= 5 * td")), "heat")
    except KernelSourceError as error:
        print(error)
    started = time.perf_counter()
    loader.load(text.replace(OLD, NEW), "heat")
    how = "found in the cache" if rekernel.info(heat).from_cache else "compiled"
    print(f"edited: {1e3 * (time.perf_counter() - started):.1f} ms from the text to the new version ({how})")
    now = report(heat, now, dt, options.steps - options.steps // 2)  # the same module, the same array

    if options.out:
        from PIL import Image

        shade = np.clip((now - 20) / 100, 0, 1)
        picture = np.stack([np.clip(3 * shade - channel, 0, 1) for channel in range(3)], axis=-1)
        Image.fromarray((255 * picture).astype(np.uint8)).save(options.out)
        print(f"picture: {options.out}")
    return now


if __name__ == "__main__":
    main()
