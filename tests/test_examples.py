"""The C++ examples: each runs as it stands, does what NumPy does, and stays inside its arrays."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from jitkernels import needs_compiler
from rekernel import KernelLoader
from rekernel.jit import CpuJit

pytestmark = needs_compiler

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = ("heat", "particles", "filter")
SMALL = {
    "heat": ["--size", "24", "--steps", "20"],
    "particles": ["--size", "20", "--steps", "4"],
    "filter": ["--size", "32"],
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tests and the scripts they start share a cache that is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("examples")
        patch.setenv("REKERNEL_CACHE_DIR", str(place / "cache"))
        patch.setattr(sys.modules[__name__], "JIT", CpuJit(objcache=place / "cache"))
        yield


JIT: CpuJit | None = None


def script(name: str) -> ModuleType:
    """The example's Python file as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernels(name: str, debug: bool) -> ModuleType:
    return KernelLoader(jit=JIT).load_file(EXAMPLES / f"{name}.cpp", debug=debug)


# With debug=True an index outside an array is an IndexError: each test below is one for that, too.
checked = pytest.mark.parametrize("debug", [False, True], ids=["optimised", "checked"])


def run(name: str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", *arguments],
        cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_from_any_directory_and_leaves_nothing_there(name, tmp_path):
    assert run(name, *SMALL[name], cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_an_example_writes_its_picture(name, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it writes the pictures")
    assert "picture: p.png" in run(name, *SMALL[name], "--out", "p.png", cwd=tmp_path)
    with image.open(tmp_path / "p.png") as picture:
        assert np.asarray(picture).std() > 1


@pytest.mark.parametrize("name", [*NAMES, "cavity"])
def test_the_list_of_examples_names_each(name):
    assert f"({name}.py)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


# --- heat ------------------------------------------------------------------------------------------------------


def heated(now: np.ndarray, k: float, steps: int, burner: float = 0.0) -> tuple[np.ndarray, float]:
    """What heat.cpp does, by NumPy."""
    near = [abs(np.arange(n) - n // 2) < n // 8 for n in now.shape]
    warmed = burner * np.outer(*near)[1:-1, 1:-1]
    change = np.zeros(())
    for _ in range(steps):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        change = k * (around - 4 * now[1:-1, 1:-1]) + warmed
        now = now.copy()
        now[1:-1, 1:-1] += change
    return now, float(abs(change).max())


@checked
def test_heat_does_what_numpy_does(debug):
    example, module = script("heat"), kernels("heat", debug)
    start = np.random.default_rng(1).uniform(0, 100, (20, 31))
    dx = example.SIDE / (len(start) - 1)
    dt = 0.8 * module.longest_step(dx)
    now, change = example.run(module, start.copy(), dt, 25)
    wanted, wanted_change = heated(start, 0.8 * 0.25, 25)
    np.testing.assert_allclose(now, wanted, rtol=1e-12)
    assert change == pytest.approx(wanted_change, rel=1e-9)


@checked
def test_heat_goes_on_with_its_array_when_the_text_is_edited(debug):
    example, loader = script("heat"), KernelLoader(jit=JIT)
    module = loader.load_file(example.TEXT, debug=debug)
    dx = example.SIDE / 30
    dt = 0.9 * module.longest_step(dx)
    now, _ = example.run(module, example.plate(31), dt, 10)
    text = example.TEXT.read_text(encoding="utf-8")
    assert text.count(example.OLD) == 1
    loader.load(text.replace(example.OLD, example.NEW), "heat")
    assert module.step.version == 2
    now, _ = example.run(module, now, dt, 10)
    wanted, _ = heated(heated(example.plate(31), 0.225, 10)[0], 0.225, 10, 5 * dt)
    np.testing.assert_allclose(now, wanted, rtol=1e-12)
    assert now[15, 15] > 20 + 9 * 5 * dt / 2


def test_heat_prints_its_refused_edit_and_both_versions(tmp_path):
    printed = run("heat", *SMALL["heat"], cwd=tmp_path)
    assert "'td'" in printed.splitlines()[1]
    assert "heat v1 keeps running." in printed
    assert [line.split(":")[0] for line in printed.splitlines() if line.startswith("version")] == [
        "version 1",
        "version 2",
    ]


def test_heat_loses_nothing_inside_an_insulated_start():
    """A plate of one temperature stays as it is, to the last bit."""
    module = kernels("heat", False)
    now, following = np.full((9, 9), 37.5), np.full((9, 9), 37.5)
    assert module.step(following, now, 0.01, module.longest_step(0.01)) == 0
    assert (following == now).all()


# --- particles -------------------------------------------------------------------------------------------------

G, SOFTENING = 4.30091e-3, 0.05


def pairs(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors from star i to star j, and softened distances."""
    d = x[None] - x[:, None]
    return d, np.sqrt((d * d).sum(-1) + SOFTENING**2)


def pulled(x: np.ndarray, m: np.ndarray) -> np.ndarray:
    d, r = pairs(x)
    return G * (m[None, :, None] * d / r[..., None] ** 3).sum(axis=1)


def energies(x: np.ndarray, v: np.ndarray, m: np.ndarray) -> tuple[float, float]:
    _, r = pairs(x)
    each = -G * m[:, None] * m / r
    return float((0.5 * m * (v * v).sum(1)).sum()), float((each.sum() - np.trace(each)) / 2)


@checked
def test_particles_move_as_numpy_moves_them(debug):
    example, module = script("particles"), kernels("particles", debug)
    x, v, m = example.cluster(40)
    wanted_x, wanted_v, dt = x.copy(), v.copy(), 0.02
    example.run(module, x, v, m, dt, 5)
    for _ in range(5):
        wanted_v += dt / 2 * pulled(wanted_x, m)
        wanted_x += dt * wanted_v
        wanted_v += dt / 2 * pulled(wanted_x, m)
    np.testing.assert_allclose(x, wanted_x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(v, wanted_v, rtol=1e-9, atol=1e-12)


@checked
def test_particles_have_the_energies_that_numpy_finds(debug):
    example, module = script("particles"), kernels("particles", debug)
    x, v, m = example.cluster(60)
    kinetic, potential = energies(x, v, m)
    assert module.kinetic(v, m) == pytest.approx(kinetic, rel=1e-12)
    assert module.potential(x, m) == pytest.approx(potential, rel=1e-12)


def test_energy_and_momentum_are_conserved():
    example, module = script("particles"), kernels("particles", False)
    x, v, m = example.cluster(100)
    before = example.energy(module, x, v, m)
    example.run(module, x, v, m, 0.01, 300)
    assert example.energy(module, x, v, m) == pytest.approx(before, rel=1e-4)
    assert abs(m @ v).max() < 1e-10


def test_half_the_step_makes_a_quarter_of_the_error():
    """The leapfrog is of second order: two bodies on a wide ellipse."""
    example, module = script("particles"), kernels("particles", False)
    ends = []
    for steps in (200, 400, 6400):
        x, v, m = np.zeros((2, 3)), np.zeros((2, 3)), np.ones(2)
        x[:, 0], v[:, 1] = (-0.5, 0.5), (-0.03, 0.03)
        example.run(module, x, v, m, 10 / steps, steps)
        ends.append(x)
    errors = [abs(end - ends[2]).max() for end in ends[:2]]
    assert 3.5 < errors[0] / errors[1] < 4.5


@checked
def test_every_star_is_counted_once(debug):
    module = kernels("particles", debug)
    x = np.random.default_rng(2).normal(size=(20_000, 3))
    x[:4] = [[-2, -2, 0], [2, 2, 0], [-2.0001, 0, 0], [np.nan, 0, 0]]  # on the edges, outside, nowhere
    sky = np.zeros((7, 5), np.int64)
    outside = module.count(sky, x, 2.0)
    seen = x[(abs(x[:, :2]) <= 2).all(axis=1) & (x[:, :2] < 2).all(axis=1)]
    wanted, _, _ = np.histogram2d(seen[:, 0], seen[:, 1], bins=(7, 5), range=((-2, 2), (-2, 2)))
    assert sky.sum() + outside == len(x)
    assert (sky == wanted).all()


# --- filter ----------------------------------------------------------------------------------------------------


def around(image: np.ndarray, radius: int) -> np.ndarray:
    """For every pixel its square of neighbours, in front: [side * side, h, w, ...]; edges are repeated."""
    pad = [(radius, radius), (radius, radius)] + [(0, 0)] * (image.ndim - 2)
    wide, side, (h, w) = np.pad(image.astype(np.int64), pad, mode="edge"), 2 * radius + 1, image.shape[:2]
    return np.stack([wide[i : i + h, j : j + w] for i in range(side) for j in range(side)])


def blurred(image: np.ndarray, radius: int) -> np.ndarray:
    pixels = (2 * radius + 1) ** 2
    return (around(image, radius).sum(0) + pixels // 2) // pixels


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (19, 26, 3), np.uint8)


@checked
@pytest.mark.parametrize("radius", [0, 1, 4, 30])
def test_blur_is_the_mean_that_numpy_finds(debug, radius, image):
    out = np.zeros_like(image)
    kernels("filter", debug).blur(out, image, radius)
    assert (out == blurred(image, radius)).all()


@checked
def test_bilateral_is_the_weighted_mean_that_numpy_finds(debug, image):
    out, radius, near, like = np.zeros_like(image), 2, 1.5, 60.0
    kernels("filter", debug).bilateral(out, image, radius, near, like)
    i, j = np.divmod(np.arange(25), 5)
    distance = ((i - 2) ** 2 + (j - 2) ** 2)[:, None, None] / near**2
    values = around(image, radius)
    weights = np.exp(-0.5 * (distance + ((values - image.astype(int)) ** 2).sum(-1) / like**2))
    wanted = (weights[..., None] * values).sum(0) / weights.sum(0)[..., None]
    assert abs(out - wanted).max() < 0.501  # rounding, in float32


@checked
def test_edges_are_those_that_numpy_finds(debug, image):
    out = np.zeros(image.shape[:2], np.uint8)
    kernels("filter", debug).edges(out, image)
    bright = (image.astype(int) @ [299, 587, 114] + 500) // 1000
    sobel = np.array([1, 2, 1, 0, 0, 0, -1, -2, -1])
    down, right = (np.tensordot(weights, around(bright, 1), 1) for weights in (sobel, sobel.reshape(3, 3).T.ravel()))
    assert (out == np.minimum((abs(down) + abs(right)) // 4, 255)).all()


@checked
@pytest.mark.parametrize(
    "view",
    [
        np.s_[:, ::-1], np.s_[::-1], np.s_[4:15, 3:20], np.s_[::2, ::3], np.s_[..., 1:2], np.s_[..., ::-1], np.s_[5:5],
    ],
    ids=["mirrored", "upside down", "crop", "thinned", "green", "bgr", "nothing"],
)  # fmt: skip
def test_views_are_read_and_written_in_place(debug, view, image):
    out = np.full_like(image, 77)
    untouched = np.ones(image.shape, bool)
    untouched[view] = False
    kernels("filter", debug).blur(out[view], image[view], 1)
    assert (out[view] == (blurred(image[view], 1) if image[view].size else image[view])).all()
    assert (out[untouched] == 77).all()


def test_a_filter_over_its_own_image_is_refused(image):
    mine = image.copy()
    with pytest.raises(ValueError, match=r"out.*in|in.*out"):
        kernels("filter", False).blur(mine, mine, 1)
    assert (mine == image).all()
