"""``loader.hold()``: inside, a thread sees no swap that another thread makes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toy as toys
from rekernel import KernelLoader
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def text(factor: int) -> str:
    return f"factor := {factor}\nstep(x) = {factor} * x"


def elsewhere(act: Callable[..., Any], *arguments: Any) -> Any:
    """Do something on another thread and return what it gave."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(act(*arguments)))
    thread.start()
    thread.join()
    return results[0]


def test_a_foreign_swap_is_not_visible_inside(loader: KernelLoader) -> None:
    module = loader.load(text(1), "heat")
    step = module.step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        assert (step(1), module.step(1), module.factor, step.version) == (1, 1, 1, 1)


def test_a_foreign_swap_is_visible_after(loader: KernelLoader) -> None:
    module = loader.load(text(1), "heat")
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
    assert (module.step(1), module.factor) == (2, 2)


def test_other_threads_see_the_swap_at_once(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        assert elsewhere(step, 1) == 2


def test_many_foreign_swaps_leave_the_version_of_the_entry(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        for factor in range(2, 40):
            elsewhere(loader.load, text(factor), "heat")
        assert step(1) == 1
    assert step(1) == 39


def test_ones_own_swap_is_visible_inside(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        loader.load(text(2), "heat")
        assert step(1) == 2


def test_ones_own_swap_counts_after_a_foreign_one(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        loader.load(text(3), "heat")
        assert step(1) == 3


def test_loading_oneself_what_another_thread_has_loaded_makes_it_visible(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        loader.load(text(2), "heat")
        assert step(1) == 2


def test_loading_an_id_that_another_thread_has_loaded_first_works_inside(loader: KernelLoader) -> None:
    with loader.hold():
        elsewhere(loader.load, text(1), "heat")
        assert loader.load(text(1), "heat").step(1) == 1


def test_a_text_that_is_loaded_inside_uses_the_live_helper(loader: KernelLoader) -> None:
    helper = loader.load(text(1), "helper")
    with loader.hold():
        elsewhere(loader.load, text(2), "helper")
        top = loader.load("top(x) = h.step(x)", namespace={"h": helper}).top
    assert top(1) == 2
    loader.load(text(3), "helper")
    assert top(1) == 3


def test_a_foreign_unload_is_not_visible_inside(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.unload, "heat")
        assert step(1) == 1


def test_a_foreign_swap_of_a_helper_shows_neither_helper_nor_dependent(loader: KernelLoader) -> None:
    helper = loader.load(text(1), "helper")
    top = loader.load("top(x) = h.step(x)", namespace={"h": helper}).top
    with loader.hold():
        elsewhere(loader.load, text(2), "helper")
        assert (helper.step(1), top(1)) == (1, 1)
    assert (helper.step(1), top(1)) == (2, 2)


def test_a_version_from_before_the_hold_came_between_two_holds_is_not_mixed_up(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
    with loader.hold():
        elsewhere(loader.load, text(3), "heat")
        assert step(1) == 2


def test_holds_nest(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        with loader.hold():
            elsewhere(loader.load, text(2), "heat")
        assert step(1) == 1
    assert step(1) == 2


def test_a_hold_ends_with_an_exception(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step

    def time_step() -> None:
        with loader.hold():
            elsewhere(loader.load, text(2), "heat")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        time_step()
    assert step(1) == 2


def test_a_hold_on_one_loader_does_not_hold_another(loader: KernelLoader) -> None:
    with KernelLoader() as other:
        step = other.load(text(1), "heat").step
        with loader.hold():
            elsewhere(other.load, text(2), "heat")
            assert step(1) == 2


def test_two_holds_of_different_ages_see_different_versions(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    swapped, done = threading.Event(), threading.Event()
    seen: list[int] = []

    def younger() -> None:
        with loader.hold():
            swapped.set()
            assert done.wait(30)
            seen.append(step(1))

    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        thread = threading.Thread(target=younger)
        thread.start()
        assert swapped.wait(30)
        elsewhere(loader.load, text(3), "heat")
        done.set()
        thread.join()
        assert (step(1), seen) == (1, [2])
    assert step(1) == 3


def test_a_foreign_commit_is_put_off_until_the_hold_ends(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    toy.log.clear()
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        assert toy.done("commit") == []
    assert toy.done("commit") == [(2, 1)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_no_holds_of_threads_that_it_does_not_have(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with loader.hold():
            holding.set()
            assert done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(30)
    loader.load(text(2), "heat")
    assert step._cell.override
    child = os.fork()
    if child == 0:
        os._exit(int(step._cell.override or step(1) != 2))
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_after_the_last_hold_calls_are_direct_again(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    with loader.hold():
        elsewhere(loader.load, text(2), "heat")
        assert step._cell.override
    assert not step._cell.override
