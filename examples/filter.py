"""Image filters on whole images, crops, flips and channels, without a copy of any of them.

python filter.py --size 384 --out filtered.png
python filter.py --image photo.jpg --out filtered.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from rekernel import KernelLoader

TEXT = Path(__file__).with_name("filter.cpp")


def scene(size: int, seed: int = 1) -> np.ndarray:
    """A sky with a sun over a sea, and noise: uint8[size, 3 * size // 2, 3]."""
    height, width = size, 3 * size // 2
    y, x = np.mgrid[0:height, 0:width] / size
    image = np.stack([90 + 120 * y, 130 + 60 * y, 220 - 60 * y], axis=-1)
    image[(x - 1.0) ** 2 + (y - 0.3) ** 2 < 0.02] = 250, 220, 90
    image[y > 0.65 + 0.02 * np.sin(20 * x)] = 20, 70, 110
    image += np.random.default_rng(seed).normal(scale=12, size=image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def main(argv: list[str] | None = None) -> np.ndarray:
    """Read the command line, filter, write the picture; returns the parts beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=384, help="rows of the image that is made (default: %(default)s)")
    parser.add_argument("--image", type=Path, help="an image instead of the one that is made (needs Pillow)")
    parser.add_argument("--radius", type=int, default=3, help="of the filters, in pixels (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="a picture of image and results (needs Pillow)")
    options = parser.parse_args(argv)
    image = scene(options.size)
    if options.image:
        from PIL import Image

        image = np.asarray(Image.open(options.image).convert("RGB"))

    module = KernelLoader().load_file(TEXT)
    height, width, _ = image.shape
    blurred, smooth = np.empty_like(image), np.empty_like(image)
    lines = np.empty((height, width), np.uint8)
    calls = {
        "blur": lambda: module.blur(blurred, image, options.radius),
        "bilateral": lambda: module.bilateral(smooth, image, options.radius, 2.0, 40.0),
        "edges": lambda: module.edges(lines, smooth),
    }
    for name, call in calls.items():
        started = time.perf_counter()
        call()
        seconds = time.perf_counter() - started
        print(f"{name:10} {1e3 * seconds:8.2f} ms, {height * width / seconds / 1e6:8.1f} million pixels/s")

    flipped = np.empty_like(image)
    module.blur(flipped[:, ::-1], image[:, ::-1], options.radius)
    print(f"blurred as its mirror image: {np.count_nonzero(flipped != blurred)} values differ")
    censored = image.copy()
    window = np.s_[height // 4 : height // 2, width // 3 : 2 * width // 3]
    module.blur(censored[window], image[window], 3 * options.radius)
    print(
        f"blurred in a window only: {np.count_nonzero((censored != image).any(axis=2))} of {height * width} pixels changed"
    )
    green = image.copy()
    module.blur(green[..., 1:2], image[..., 1:2], options.radius)
    print(f"blurred in green only: {(green != image).sum(axis=(0, 1)).tolist()} values changed")

    parts = np.concatenate([image, smooth, np.repeat(lines[..., None], 3, axis=2), censored], axis=1)
    if options.out:
        from PIL import Image

        Image.fromarray(parts).save(options.out)
        print(f"picture: {options.out}")
    return parts


if __name__ == "__main__":
    main()
