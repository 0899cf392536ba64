"""The examples with symbolic stencils, at a small size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rekernel import KernelLoader, KernelSourceError

pytest.importorskip("pystencils", minversion="2.0", reason="pystencils 2 is not installed (rekernel[stencils])")

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def cavity() -> Any:
    spec = importlib.util.spec_from_file_location("cavity_example", EXAMPLES / "cavity.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # its dataclass looks itself up
        patch.setitem(sys.modules, spec.name, made)
        spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def flow(cavity: Any) -> Any:
    with KernelLoader() as loader:
        return cavity.run(size=32, reynolds=100, steps=10_000, loader=loader)


def test_mass_is_conserved_over_the_swap(flow: Any) -> None:
    assert len(flow.masses) == 3
    assert flow.masses == pytest.approx(3 * [32.0 * 32.0], rel=1e-12)


def test_the_second_operator_ran_as_a_new_version(flow: Any) -> None:
    assert flow.versions == [1, 2]


def test_the_centre_line_is_that_of_the_literature(cavity: Any, flow: Any) -> None:
    heights, expected = map(np.array, zip(*cavity.GHIA[100].items(), strict=True))
    assert np.abs(flow.profile(heights) - expected).max() < 0.02


def test_the_flow_goes_on_where_it_was_at_the_swap(cavity: Any) -> None:
    """Over a few steps the operators differ by little; a flow that began again would be far away."""
    with KernelLoader() as loader:
        one = cavity.run(size=32, steps=2000, operators=(cavity.SRT,), loader=loader)
        edited = cavity.run(size=32, steps=2000, operators=(cavity.SRT, cavity.SRT + "# edited\n"), loader=loader)
        swapped = cavity.run(size=32, steps=2000, operators=99 * (cavity.SRT,) + (cavity.TRT,), loader=loader)
        begun = cavity.run(size=32, steps=20, operators=(cavity.TRT,), loader=loader)
    assert np.array_equal(one.velocity, edited.velocity)
    assert not np.array_equal(one.velocity, swapped.velocity)
    far = np.abs(begun.velocity - one.velocity).mean()
    assert np.abs(swapped.velocity - one.velocity).mean() < 0.1 * far


def test_a_broken_operator_leaves_the_running_one(cavity: Any) -> None:
    with KernelLoader() as loader:
        cavity.run(size=16, steps=10, operators=(cavity.SRT,), loader=loader)
        step = loader["cavity"].step
        broken = cavity.LATTICE + cavity.SRT.replace("- omega *", "- omga *")
        with pytest.raises(KernelSourceError, match="name 'omga' is not defined; did you mean 'omega'") as caught:
            loader.load(broken, "cavity")
        assert caught.value.line == broken[: broken.index("omga")].count("\n") + 1
        assert step.version == 1


def test_the_picture_shows_speed_and_vorticity(cavity: Any, flow: Any) -> None:
    image = cavity.picture(flow, pixels=64)
    assert (image.shape, image.dtype) == ((64, 144, 3), np.uint8)
    left, right = image[:, :64].astype(int), image[:, -64:].astype(int)
    assert left[1].mean() < left[32].mean()  # the fluid is fast, and dark, below the lid
    assert right[1, 32, 2] > right[1, 32, 0]  # and turns clockwise there


def test_the_command_line_prints_the_profile(cavity: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cavity.main(["--size", "8", "--steps", "20"])
    printed = capsys.readouterr().out
    assert printed.startswith("mass 64.000000 -> 64.000000 -> 64.000000\nkernel versions [1, 2]")
    assert printed.count("Ghia et al.") == 11
