"""Versions: numbers, history, rollback, and what is known of a failed load."""

from __future__ import annotations

import pytest

import rekernel
import toy as toys
from rekernel import KernelLoader, KernelNotFoundError, KernelSourceError
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def text(factor: int) -> str:
    return f"step(x) = {factor} * x"


@pytest.fixture
def three(loader: KernelLoader) -> KernelLoader:
    """A loader whose one id has three versions that multiply by 1, 2 and 3."""
    for factor in (1, 2, 3):
        loader.load(text(factor), "heat")
    return loader


# --- numbers ---------------------------------------------------------------------------------------------------


def test_versions_count_from_one(loader: KernelLoader) -> None:
    loader.load(text(1))
    assert loader.info().version == 1


def test_every_changed_load_counts_one_up(three: KernelLoader) -> None:
    assert three.info("heat").version == 3


def test_each_id_counts_for_itself(three: KernelLoader) -> None:
    three.load(text(1), "other")
    assert three.info("other").version == 1


def test_a_failed_load_has_no_number(three: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        three.load("step(x) = kk", "heat")
    three.load(text(4), "heat")
    assert three.info("heat").version == 4


def test_numbers_go_on_after_an_unload(three: KernelLoader) -> None:
    three.unload("heat")
    three.load(text(1), "heat")
    assert three.info("heat").version == 4


# --- rollback --------------------------------------------------------------------------------------------------


def test_rollback_brings_the_version_before_back_as_a_new_one(three: KernelLoader) -> None:
    module = three.rollback("heat")
    assert module is three["heat"]
    assert module.step(1) == 2
    assert three.info("heat").version == 4


def test_rollback_without_an_id_means_the_last_load(three: KernelLoader) -> None:
    three.rollback()
    assert three["heat"].step(1) == 2


def test_rollback_to_the_version_before_builds_nothing(toy: Toy, three: KernelLoader) -> None:
    toy.log.clear()
    three.rollback("heat")
    assert toy.done("build") == []


def test_a_second_rollback_goes_one_further(three: KernelLoader) -> None:
    three.rollback("heat")
    assert three.rollback("heat").step(1) == 1
    assert three.info("heat").version == 5


def test_a_rollback_past_the_first_version_says_that_there_is_none(three: KernelLoader) -> None:
    three.rollback("heat")
    three.rollback("heat")
    with pytest.raises(KernelNotFoundError, match="no version before"):
        three.rollback("heat")
    assert three["heat"].step(1) == 1


def test_a_rollback_after_a_new_load_goes_back_to_what_was_rolled_back_to(three: KernelLoader) -> None:
    three.rollback("heat")
    three.load(text(9), "heat")
    assert three.rollback("heat").step(1) == 2


def test_a_rollback_by_number_takes_that_version(three: KernelLoader) -> None:
    assert three.rollback("heat", 1).step(1) == 1
    assert three.history("heat")[-1].restores == 1


def test_a_rollback_by_number_goes_forward_too(three: KernelLoader) -> None:
    three.rollback("heat", 1)
    assert three.rollback("heat", 3).step(1) == 3


def test_a_rollback_to_the_live_version_changes_nothing(three: KernelLoader) -> None:
    three.rollback("heat", 3)
    assert three.info("heat").version == 3


def test_a_rollback_to_the_content_that_is_live_already_builds_nothing(toy: Toy, three: KernelLoader) -> None:
    three.rollback("heat")
    toy.log.clear()
    assert three.rollback("heat", 2).step(1) == 2
    assert toy.done("build") == []


@pytest.mark.parametrize("number", [0, -1, 4, 99])
def test_a_rollback_to_an_unknown_number_lists_the_known_ones(three: KernelLoader, number: int) -> None:
    with pytest.raises(KernelNotFoundError, match=f"no version {number} to go back to; it has v1, v2, v3"):
        three.rollback("heat", number)
    assert three.info("heat").version == 3


def test_a_rollback_to_a_version_that_is_not_held_builds_its_text_again(toy: Toy, three: KernelLoader) -> None:
    toy.log.clear()
    three.rollback("heat", 1)
    assert toy.done("build") == [("heat", 4)]


def test_a_rollback_brings_options_back(loader: KernelLoader) -> None:
    loader.load(text(1), scale=10)
    loader.load(text(1), scale=20)
    loader.load(text(2), scale=30)
    assert loader.rollback(version=1).step(1) == 10
    assert dict(loader.info().options) == {"scale": 10}


def test_a_rollback_brings_the_language_back(toy: Toy, loader: KernelLoader) -> None:
    play = Toy("play", mark="!")
    rekernel.languages.register(play)
    try:
        loader.load(text(1), "heat", language="toy")
        loader.load(text(2), "heat", language="play")
        assert loader.rollback("heat").step(1) == 1
        assert loader.info("heat").language == "toy"
    finally:
        loader.unload("heat")
        rekernel.languages.unregister("play")


def test_the_text_is_live_after_a_rollback_so_loading_it_changes_nothing(three: KernelLoader) -> None:
    three.rollback("heat")
    three.load(text(2), "heat")
    assert three.info("heat").version == 4


# --- history, info and diff ------------------------------------------------------------------------------------


def test_the_history_is_oldest_first_and_marks_the_live_version(three: KernelLoader) -> None:
    assert [(v.number, v.source, v.live) for v in three.history("heat")] == [
        (1, text(1), False),
        (2, text(2), False),
        (3, text(3), True),
    ]


def test_the_history_keeps_the_last_32(loader: KernelLoader) -> None:
    for factor in range(1, 36):
        loader.load(text(factor))
    assert [v.number for v in loader.history()] == list(range(4, 36))


def test_a_version_out_of_history_cannot_come_back(loader: KernelLoader) -> None:
    for factor in range(1, 36):
        loader.load(text(factor))
    with pytest.raises(KernelNotFoundError, match="no version 3 to go back to"):
        loader.rollback(version=3)
    assert loader.rollback(version=4).step(1) == 4


def test_the_oldest_version_in_history_stays_reachable_by_rollback_alone(loader: KernelLoader) -> None:
    for factor in range(1, 36):
        loader.load(text(factor))
    for factor in range(34, 20, -1):
        assert loader.rollback().step(1) == factor


def test_a_version_says_when_and_with_what_it_was_loaded(loader: KernelLoader) -> None:
    loader.load(text(1), "heat", scale=4)
    (version,) = loader.history("heat")
    assert (version.kernel_id, version.kernels, dict(version.options)) == ("heat", ("step",), {"scale": 4})
    assert version.loaded_at > 1.6e9


def test_info_tells_what_is_known(loader: KernelLoader) -> None:
    loader.load("step(x) = x\nskip big: it takes a struct", "heat", filename="heat.toy", scale=2)
    info = loader.info("heat")
    assert (info.kernel_id, info.version, info.language, info.filename) == ("heat", 1, "toy", "heat.toy")
    assert [str(kernel) for kernel in info.kernels] == ["step(x: float64)"]
    assert dict(info.skipped) == {"big": "it takes a struct"}
    assert info.notes == ("made by toy",)
    assert info.build_seconds >= 0
    assert (info.error, info.depends_on, info.history) == (None, (), loader.history("heat"))


def test_values_about_versions_cannot_be_changed(three: KernelLoader) -> None:
    for value in (three.info("heat"), three.history("heat")[0], three.stats()):
        with pytest.raises(AttributeError):
            value.version = value.number = value.ids = 0  # type: ignore[union-attr, misc]


def test_options_of_a_version_cannot_be_changed(loader: KernelLoader) -> None:
    loader.load(text(1), scale=2)
    with pytest.raises(TypeError):
        loader.info().options["scale"] = 3  # type: ignore[index]


def test_a_diff_goes_from_the_old_text_to_this_one(three: KernelLoader) -> None:
    assert three.info("heat").diff(1).split("\n") == [
        "--- heat v1",
        "+++ heat v3",
        "@@ -1 +1 @@",
        "-step(x) = 1 * x",
        "+step(x) = 3 * x",
    ]


def test_a_diff_with_an_unknown_version_lists_the_known_ones(three: KernelLoader) -> None:
    with pytest.raises(KernelNotFoundError, match="no version 7 in its history; it has v1, v2, v3"):
        three.info("heat").diff(7)


def test_the_info_of_a_pinned_kernel_is_that_of_its_version(three: KernelLoader) -> None:
    pinned = three["heat"].step.pinned()
    three.load(text(4), "heat")
    assert (rekernel.info(pinned).version, rekernel.info(pinned).source) == (3, text(3))


# --- failed loads ----------------------------------------------------------------------------------------------


def test_a_failed_load_is_parked_until_a_load_succeeds(three: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        three.load("step(x) = kk", "heat")
    assert three.info("heat").error is caught.value
    three.load(text(4), "heat")
    assert three.info("heat").error is None


def test_a_failed_load_of_a_text_that_does_not_read_is_parked_too(three: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        three.load("step(x) = 2 *", "heat")
    assert three.info("heat").error is caught.value


def test_loading_the_live_text_again_clears_a_parked_error(three: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        three.load("step(x) = kk", "heat")
    three.load(text(3), "heat")
    assert three.info("heat").error is None
    assert three.info("heat").version == 3


def test_the_last_of_several_failures_is_parked(three: KernelLoader) -> None:
    for name in ("kk", "qq"):
        with pytest.raises(KernelSourceError):
            three.load(f"step(x) = {name}", "heat")
    assert "'qq'" in str(three.info("heat").error)


def test_an_identical_text_that_failed_is_tried_again(three: KernelLoader) -> None:
    names: dict[str, int] = {}
    with pytest.raises(KernelSourceError):
        three.load("step(x) = kk * x", "heat", namespace=names)
    names["kk"] = 8
    assert three.load("step(x) = kk * x", "heat", namespace=names).step(1) == 8


def test_failures_are_counted(three: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        three.load("step(x) = kk", "heat")
    assert three.stats().failures == 1


def test_a_rollback_that_does_not_build_any_more_changes_nothing(loader: KernelLoader) -> None:
    names = {"k": 2}
    loader.load("step(x) = k * x", "heat", namespace=names)
    for factor in (5, 6):
        loader.load(text(factor), "heat")
    del names["k"]
    with pytest.raises(KernelSourceError) as caught:
        loader.rollback("heat", 1)
    assert loader["heat"].step(1) == 6
    assert (loader.info("heat").version, loader.info("heat").error) == (3, caught.value)
