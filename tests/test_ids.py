"""Ids: derived from the text where none is given, kept over edits, never touching what the user named."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import toy as toys
from rekernel import KernelLoader, KernelNotFoundError, KernelSourceError, RekernelWarning

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

STEP = "step(x) = 2 * x"
FLUX = "flux(x) = -x"


def test_the_id_is_the_name_of_the_first_kernel(loader: KernelLoader) -> None:
    loader.load(f"shift := 1\n{STEP}\n{FLUX}")
    assert list(loader) == ["step"]


def test_a_text_without_kernels_takes_the_name_of_a_function(loader: KernelLoader) -> None:
    loader.load("func twice(x) = 2 * x")
    assert list(loader) == ["twice"]


def test_a_text_without_kernels_replaces_itself(loader: KernelLoader) -> None:
    loader.load("func twice(x) = 2 * x")
    loader.load("func twice(x) = x + x")
    assert list(loader) == ["twice"]
    assert loader.info("twice").version == 2


def test_a_text_with_nothing_to_derive_from_asks_for_an_id(loader: KernelLoader) -> None:
    with pytest.raises(ValueError, match="pass kernel_id="):
        loader.load("shift := 1", language="toy")


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param("step(x) = 3 * x\nflux(x) = x", id="another body"),
        pytest.param("step(x) = 3 * x", id="a kernel removed"),
        pytest.param("flux(x) = x", id="the first kernel removed"),
        pytest.param("new(x) = x\nstep(x) = 3 * x\nflux(x) = x", id="a kernel added before"),
        pytest.param("flux(x) = x\nstep(x) = 3 * x", id="another order"),
        pytest.param("advance(x) = 3 * x\nflux(x) = x", id="the first kernel renamed"),
    ],
)
def test_an_edited_text_keeps_the_derived_id(loader: KernelLoader, edit: str) -> None:
    loader.load(f"{STEP}\n{FLUX}")
    loader.load(edit)
    assert list(loader) == ["step"]
    assert loader.info("step").version == 2


def test_a_chain_of_renamings_keeps_the_id(loader: KernelLoader) -> None:
    for text in ("a(x) = x\nb(x) = x", "b(x) = x\nc(x) = x", "c(x) = x\nd(x) = x"):
        loader.load(text)
    assert list(loader) == ["a"]
    assert loader.info().version == 3


def test_the_first_name_in_the_text_that_an_id_holds_decides(loader: KernelLoader) -> None:
    loader.load("a(x) = x")
    loader.load("b(x) = x")
    loader.load("new(x) = x\nb(x) = 2 * x\na(x) = 2 * x")
    assert (loader.info("a").version, loader.info("b").version) == (1, 2)


def test_an_id_that_the_user_gave_is_never_replaced_by_a_text_without_one(loader: KernelLoader) -> None:
    mine = loader.load(STEP, "step")
    loader.load("step(x) = 3 * x")
    assert list(loader) == ["step", "step_2"]
    assert mine.step(1) == 2


def test_a_derived_id_counts_up_past_all_taken_ones(loader: KernelLoader) -> None:
    for kernel_id in ("step", "step_2"):
        loader.load(STEP, kernel_id)
    loader.load("step(x) = 3 * x")
    loader.load("step(x) = 4 * x")
    assert list(loader) == ["step", "step_2", "step_3"]
    assert loader.info("step_3").version == 2


def test_a_kernel_inside_an_id_that_the_user_gave_is_not_replaced(loader: KernelLoader) -> None:
    loader.load(STEP, "heat")
    loader.load("step(x) = 3 * x")
    assert list(loader) == ["heat", "step"]


def test_an_id_derived_in_another_language_is_not_replaced(loader: KernelLoader) -> None:
    from rekernel import languages

    languages.register(toys.Toy("play", mark="!"))
    try:
        loader.load(STEP)
        loader.load(f"# !\n{STEP}", language="play")
        assert list(loader) == ["step", "step_2"]
        loader.cleanup_all()
    finally:
        languages.unregister("play")


def test_replacing_a_derived_id_from_another_origin_warns_and_names_both(loader: KernelLoader) -> None:
    loader.load(STEP, filename="a.toy")
    with pytest.warns(RekernelWarning, match=r"'step' from a\.toy was replaced .* from b\.toy.*kernel_id="):
        loader.load("step(x) = 3 * x", filename="b.toy")


def test_the_warning_of_another_origin_points_at_the_users_line(loader: KernelLoader) -> None:
    loader.load(STEP, filename="a.toy")
    with pytest.warns(RekernelWarning) as caught:
        loader.load("step(x) = 3 * x", filename="b.toy")
    assert caught[0].filename == __file__


def test_replacing_from_the_same_origin_does_not_warn(loader: KernelLoader) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.load(STEP, filename="a.toy")
        loader.load("step(x) = 3 * x", filename="a.toy")


def test_a_broken_edit_of_a_derived_id_is_parked_there(loader: KernelLoader) -> None:
    loader.load(STEP)
    with pytest.raises(KernelSourceError) as caught:
        loader.load("step(x) = kk")
    assert caught.value.kernel_id == "step"
    assert loader.info("step").error is caught.value


# --- loader[None] ----------------------------------------------------------------------------------------------


def test_none_means_the_last_successful_load(loader: KernelLoader) -> None:
    first = loader.load(STEP)
    second = loader.load(FLUX)
    assert loader[None] is second
    loader.compile_and_load("step(x) = 3 * x")
    assert loader[None] is first


def test_none_also_follows_a_load_that_changed_nothing(loader: KernelLoader) -> None:
    first = loader.load(STEP)
    loader.load(FLUX)
    loader.load(STEP)
    assert loader[None] is first


def test_none_is_not_moved_by_a_failure(loader: KernelLoader) -> None:
    loader.load(STEP)
    second = loader.load(FLUX)
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = kk")
    assert loader[None] is second


def test_none_is_not_moved_by_a_rollback(loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.load("step(x) = 3 * x")
    second = loader.load(FLUX)
    loader.rollback("step")
    assert loader[None] is second


def test_none_is_not_moved_by_a_background_build(loader: KernelLoader) -> None:
    first = loader.load(STEP)
    loader.load(FLUX, background=True)
    loader.wait()
    assert loader[None] is first


def test_none_is_not_moved_by_a_dependent_that_is_rebuilt(loader: KernelLoader) -> None:
    helper = loader.load(STEP)
    loader.load("twice(x) = step(x) + step(x)", namespace={"step": helper.step})
    loader.load("step(x) = 3 * x")
    assert loader[None] is helper


def test_after_an_unload_none_means_the_one_before(loader: KernelLoader) -> None:
    first = loader.load(STEP)
    loader.load(FLUX)
    loader.unload("flux")
    assert loader[None] is first


def test_none_of_an_empty_loader_is_the_error_of_an_unknown_id(loader: KernelLoader) -> None:
    with pytest.raises(KernelNotFoundError, match="nothing is loaded yet"):
        loader[None]


def test_none_of_an_emptied_loader_is_the_error_of_an_unknown_id(loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.cleanup_all()
    with pytest.raises(KernelNotFoundError):
        loader[None]


# --- ids are data ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel_id", ["numpy", "../../etc/passwd", "a b", "x.y", "ключ", "😀", "-rf", "a\nb", "%s{0}"])
def test_any_name_is_an_id_and_leaves_modules_alone(loader: KernelLoader, kernel_id: str) -> None:
    before = dict(sys.modules)
    assert loader.load(STEP, kernel_id).step(1) == 2
    assert list(loader) == [kernel_id]
    assert {name: m for name, m in sys.modules.items() if name in before} == before
    assert kernel_id in before or kernel_id not in sys.modules


def test_the_id_numpy_leaves_numpy_alone() -> None:
    """In a fresh process, because a broken numpy would spoil this one."""
    code = (
        "import sys, numpy, rekernel, toy\n"
        "rekernel.languages.register(toy.Toy())\n"
        "rekernel.kernels.load('zeros(n) = n', 'numpy')\n"
        "import numpy as again\n"
        "assert again is numpy and again.zeros(3).sum() == 0\n"
        "assert rekernel.kernels['numpy'].zeros(3) == 3\n"
    )
    path = {"PYTHONPATH": toys.__file__.rsplit("/", 1)[0]}
    subprocess.run([sys.executable, "-c", code], check=True, env={**path, "PATH": ""}, timeout=60)
