"""``background=True``: the old version serves, the last started build wins, `wait` tells what happened."""

from __future__ import annotations

import threading

import pytest

import toy as toys
from rekernel import KernelLoader, KernelRemovedError, KernelSourceError, ReloadEvent
from toy import Gate, Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def text(factor: int) -> str:
    return f"step(x) = {factor} * x"


def start(toy: Toy, loader: KernelLoader, source: str) -> Gate:
    """Start a background build and return when it stands at its gate."""
    gate = toy.gate(source)
    loader.load(source, "heat", background=True)
    gate.wait_until_entered()
    return gate


def overtaken(loader: KernelLoader) -> threading.Event:
    """Return what is set when something in the foreground has been started that is to win."""
    told, overtake = threading.Event(), loader._background.overtake

    def noticed(kernel_id: str) -> None:
        overtake(kernel_id)
        told.set()

    loader._background.overtake = noticed  # type: ignore[method-assign]
    return told


def test_the_old_version_serves_until_the_new_one_is_ready(toy: Toy, loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    gate = start(toy, loader, text(2))
    assert step(1) == 1
    gate.opened.set()
    loader.wait()
    assert step(1) == 2


def test_load_returns_the_module_at_once(toy: Toy, loader: KernelLoader) -> None:
    module = loader.load(text(1), "heat")
    gate = toy.gate(text(2))
    assert loader.load(text(2), "heat", background=True) is module
    gate.opened.set()
    loader.wait("heat")


def test_a_first_build_says_that_it_is_not_ready(toy: Toy, loader: KernelLoader) -> None:
    gate = toy.gate(text(1))
    module = loader.load(text(1), "heat", background=True)
    with pytest.raises(KernelRemovedError, match=r"still being built .*loader\.wait\(\)"):
        _ = module.step
    gate.opened.set()
    loader.wait("heat")
    assert module.step(1) == 1


def test_a_language_that_cannot_build_on_threads_refuses(
    toy: Toy, loader: KernelLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "threads", False)
    with pytest.raises(ValueError, match="background=True does nothing good for toy"):
        loader.load(text(1), background=True)
    assert len(loader) == 0


def test_wait_without_a_build_returns(loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    loader.wait()
    loader.wait("heat")


def test_wait_waits_for_every_id(toy: Toy, loader: KernelLoader) -> None:
    for kernel_id in ("a", "b", "c"):
        loader.load(text(1), kernel_id, background=True)
    loader.wait()
    assert sorted(loader) == ["a", "b", "c"]


def test_wait_has_a_timeout(toy: Toy, loader: KernelLoader) -> None:
    gate = start(toy, loader, text(1))
    with pytest.raises(TimeoutError, match=r"heat is still being built after 0\.01 s"):
        loader.wait("heat", timeout=0.01)
    gate.opened.set()
    loader.wait("heat")


def test_wait_raises_what_the_build_raised(loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    loader.load("step(x) = kk", "heat", background=True)
    with pytest.raises(KernelSourceError, match="'kk' is not defined"):
        loader.wait("heat")
    assert loader["heat"].step(1) == 1
    assert isinstance(loader.info("heat").error, KernelSourceError)


def test_wait_raises_an_error_once(loader: KernelLoader) -> None:
    loader.load("step(x) = kk", "heat", background=True)
    with pytest.raises(KernelSourceError):
        loader.wait()
    loader.wait()


def test_a_text_that_does_not_read_fails_at_once(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = 2 *", "heat", background=True)


def test_a_first_build_that_failed_says_so(loader: KernelLoader) -> None:
    module = loader.load("step(x) = kk", "heat", background=True)
    with pytest.raises(KernelSourceError):
        loader.wait()
    with pytest.raises(KernelRemovedError, match=r"its build failed: .*'kk' is not defined"):
        _ = module.step


def test_the_last_started_background_build_wins(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    first = start(toy, loader, text(2))
    loader.load(text(3), "heat", background=True)
    first.opened.set()
    loader.wait()
    assert loader["heat"].step(1) == 3


def test_the_result_of_an_older_build_is_dropped(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    first = start(toy, loader, text(2))
    loader.load(text(3), "heat", background=True)
    first.opened.set()
    loader.wait()
    assert [version.source for version in loader.history("heat")] == [text(1), text(3)]


def test_what_is_dropped_is_retired(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    first = start(toy, loader, text(2))
    loader.load(text(3), "heat", background=True)
    first.opened.set()
    loader.wait()
    assert toy.done("retire") == [(2,)]


def test_the_error_of_an_older_build_is_dropped(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    events: list[ReloadEvent] = []
    loader.on_reload(events.append)
    first = start(toy, loader, "step(x) = kk")
    loader.load(text(3), "heat", background=True)
    first.opened.set()
    loader.wait()
    assert [event.kind for event in events] == ["loaded"]


def test_a_foreground_load_wins_over_an_older_background_build(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    gate = start(toy, loader, text(2))
    started = overtaken(loader)
    thread = threading.Thread(target=loader.load, args=(text(3), "heat"))
    thread.start()
    assert started.wait(30)
    gate.opened.set()
    thread.join()
    loader.wait()
    assert [version.source for version in loader.history("heat")] == [text(1), text(3)]


def test_loading_the_live_text_wins_over_an_older_background_build(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    gate = start(toy, loader, text(2))
    loader.load(text(1), "heat")
    gate.opened.set()
    loader.wait()
    assert loader["heat"].step(1) == 1
    assert loader.info("heat").version == 1


def test_an_unload_wins_over_an_older_background_build(toy: Toy, loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    gate = start(toy, loader, text(2))
    started = overtaken(loader)
    thread = threading.Thread(target=loader.unload, args=("heat",))
    thread.start()
    assert started.wait(30)
    gate.opened.set()
    thread.join()
    loader.wait()
    assert "heat" not in loader
    with pytest.raises(KernelRemovedError):
        step(1)


def test_a_background_load_of_the_live_text_builds_nothing(toy: Toy, loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    loader.load(text(1), "heat", background=True)
    loader.wait()
    assert len(toy.done("build")) == 1


def test_builds_of_different_ids_run_side_by_side(toy: Toy, loader: KernelLoader) -> None:
    gates = [toy.gate(text(1)), toy.gate(text(2))]
    loader.load(text(1), "a", background=True)
    loader.load(text(2), "b", background=True)
    for gate in gates:
        gate.wait_until_entered()
    for gate in gates:
        gate.opened.set()
    loader.wait()
    assert (loader["a"].step(1), loader["b"].step(1)) == (1, 2)


def test_a_build_of_another_id_does_not_wait_for_a_background_build(toy: Toy, loader: KernelLoader) -> None:
    gate = start(toy, loader, text(1))
    assert loader.load(text(2), "other").step(1) == 2
    gate.opened.set()
    loader.wait()


def test_the_callback_of_a_background_build_may_wait(loader: KernelLoader) -> None:
    loader.on_reload(lambda event: loader.wait())
    loader.load(text(1), "heat", background=True)
    loader.wait()
    assert loader["heat"].step(1) == 1


def test_options_of_a_background_build_stay_with_the_id(loader: KernelLoader) -> None:
    loader.load(text(1), "heat", background=True, scale=10)
    loader.wait()
    assert loader.load(text(2), "heat").step(1) == 20
