"""``on_reload`` and the log: small events, in order, outside all locks."""

from __future__ import annotations

import logging
import threading

import pytest

import toy as toys
from rekernel import KernelLoader, KernelSourceError, ReloadEvent

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def text(factor: int) -> str:
    return f"step(x) = {factor} * x"


@pytest.fixture
def events(loader: KernelLoader) -> list[ReloadEvent]:
    made: list[ReloadEvent] = []
    loader.on_reload(made.append)
    return made


def told(events: list[ReloadEvent]) -> list[tuple[str, str, int | None]]:
    return [(event.kind, event.kernel_id, event.version) for event in events]


def test_a_load_is_told_with_its_kernels(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    loader.load(text(1), "heat")
    (event,) = events
    assert (event.kind, event.kernel_id, event.version, event.language) == ("loaded", "heat", 1, "toy")
    assert (event.kernels, event.notes, event.error) == (("step",), ("made by toy",), None)
    assert event.seconds > 0


def test_an_unchanged_load_is_not_told(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    for _ in range(3):
        loader.load(text(1), "heat")
    assert len(events) == 1


def test_a_version_that_comes_back_is_told_as_restored(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    for factor in (1, 2, 1):
        loader.load(text(factor), "heat")
    assert told(events)[-1] == ("restored", "heat", 3)


def test_a_rollback_is_told(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    loader.load(text(1), "heat")
    loader.load(text(2), "heat")
    loader.rollback("heat")
    assert told(events)[-1] == ("rolled back", "heat", 3)


def test_an_unload_is_told_with_the_version_that_went(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    loader.load(text(1), "heat")
    loader.unload("heat")
    assert told(events)[-1] == ("unloaded", "heat", 1)


def test_cleanup_all_tells_every_id(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    for kernel_id in ("a", "b"):
        loader.load(text(1), kernel_id)
    loader.cleanup_all()
    assert told(events)[2:] == [("unloaded", "a", 1), ("unloaded", "b", 1)]


def test_a_failure_is_told_with_its_error_and_the_version_that_goes_on(
    loader: KernelLoader, events: list[ReloadEvent]
) -> None:
    loader.load(text(1), "heat")
    with pytest.raises(KernelSourceError) as caught:
        loader.load("step(x) = kk", "heat")
    assert told(events)[-1] == ("failed", "heat", 1)
    assert events[-1].error is caught.value


def test_a_first_load_that_fails_is_told_without_a_version(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = 2 *", "heat")
    assert told(events) == [("failed", "heat", None)]


def test_a_rollback_that_fails_is_told(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    names = {"k": 2}
    loader.load("step(x) = k * x", "heat", namespace=names)
    for factor in (1, 2):
        loader.load(text(factor), "heat")
    names.clear()
    with pytest.raises(KernelSourceError):
        loader.rollback("heat", 1)
    assert told(events)[-1] == ("failed", "heat", 3)


def test_wrong_calls_of_load_are_no_events(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    with pytest.raises(TypeError):
        loader.load(text(1), "heat", scal=1)
    assert events == []


def test_dependents_are_told_after_their_helper(loader: KernelLoader, events: list[ReloadEvent]) -> None:
    z = loader.load(text(1), "z")
    a = loader.load("mid(x) = z.step(x)", "a", namespace={"z": z})
    loader.load("top(x) = a.mid(x)", "b", namespace={"a": a})
    events.clear()
    loader.load(text(2), "z")
    assert told(events) == [("loaded", "z", 2), ("loaded", "a", 2), ("loaded", "b", 2)]


def test_callbacks_run_in_the_order_they_came(loader: KernelLoader) -> None:
    order: list[int] = []
    for number in range(3):
        loader.on_reload(lambda event, number=number: order.append(number))  # type: ignore[misc]
    loader.load(text(1))
    assert order == [0, 1, 2]


def test_the_same_callback_may_come_twice_and_leave_once(loader: KernelLoader) -> None:
    seen: list[ReloadEvent] = []
    remove = loader.on_reload(seen.append)
    loader.on_reload(seen.append)
    remove()
    loader.load(text(1))
    assert len(seen) == 1


def test_a_callback_can_be_removed_twice(loader: KernelLoader) -> None:
    seen: list[ReloadEvent] = []
    remove = loader.on_reload(seen.append)
    remove()
    remove()
    loader.load(text(1))
    assert seen == []


def test_a_callback_may_remove_itself(loader: KernelLoader) -> None:
    seen: list[ReloadEvent] = []
    removals = [loader.on_reload(lambda event: (seen.append(event), removals[0]()))]  # type: ignore[arg-type]
    loader.load(text(1))
    loader.load(text(2))
    assert len(seen) == 1


def test_a_callback_that_raises_is_logged_and_stops_nothing(
    loader: KernelLoader, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: ReloadEvent) -> None:
        raise ZeroDivisionError("in the callback")

    loader.on_reload(broken)
    seen: list[ReloadEvent] = []
    loader.on_reload(seen.append)
    assert loader.load(text(1), "heat").step(1) == 1
    assert len(seen) == 1
    assert "an on_reload callback failed for heat" in caplog.text
    assert "ZeroDivisionError: in the callback" in caplog.text


def test_a_callback_sees_the_new_version(loader: KernelLoader) -> None:
    seen: list[int] = []
    loader.on_reload(lambda event: seen.append(loader["heat"].step(1)))
    loader.load(text(1), "heat")
    loader.load(text(2), "heat")
    assert seen == [1, 2]


def test_a_callback_may_load_the_same_id(loader: KernelLoader) -> None:
    def again(event: ReloadEvent) -> None:
        if event.version == 1:
            loader.load(text(5), "heat")

    loader.on_reload(again)
    assert loader.load(text(1), "heat").step(1) == 5


def test_a_callback_may_unload(loader: KernelLoader) -> None:
    loader.on_reload(lambda event: loader.unload("heat") if event.kind == "loaded" else None)
    loader.load(text(1), "heat")
    assert "heat" not in loader


def test_a_callback_runs_while_no_lock_is_held(loader: KernelLoader) -> None:
    """Another thread can load the same id, roll it back and unload it before the callback returns."""
    helper = loader.load(text(1), "helper")
    loader.load("top(x) = h.step(x)", "top", namespace={"h": helper})
    done: list[bool] = []

    def elsewhere() -> None:
        loader.load(text(3), "helper")
        loader.rollback("helper")
        loader.unload("top")

    def callback(event: ReloadEvent) -> None:
        remove()
        thread = threading.Thread(target=elsewhere, daemon=True)
        thread.start()
        thread.join(30)
        done.append(not thread.is_alive())

    remove = loader.on_reload(callback)
    loader.load(text(2), "helper")
    assert done == [True]


def test_a_failure_is_told_while_no_lock_is_held(loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    done: list[bool] = []

    def callback(event: ReloadEvent) -> None:
        remove()
        thread = threading.Thread(target=loader.load, args=(text(2), "heat"), daemon=True)
        thread.start()
        thread.join(30)
        done.append(not thread.is_alive())

    remove = loader.on_reload(callback)
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = kk", "heat")
    assert done == [True]


def test_an_unload_is_told_while_no_lock_is_held(loader: KernelLoader) -> None:
    loader.load(text(1), "heat")
    done: list[bool] = []

    def callback(event: ReloadEvent) -> None:
        remove()
        thread = threading.Thread(target=loader.load, args=(text(2), "heat"), daemon=True)
        thread.start()
        thread.join(30)
        done.append(not thread.is_alive())

    remove = loader.on_reload(callback)
    loader.unload("heat")
    assert done == [True]


# --- the log ---------------------------------------------------------------------------------------------------


def test_loads_are_logged_quietly_and_failures_as_warnings(
    loader: KernelLoader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rekernel")
    loader.load(text(1), "heat")
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = kk", "heat")
    first, second = caplog.records
    assert (first.levelname, second.levelname) == ("INFO", "WARNING")
    assert first.getMessage().startswith("heat v1 loaded; in ")
    assert second.getMessage() == ("heat v1 failed; heat v2 (toy), line 1, column 11: name 'kk' is not defined")


def test_a_log_record_carries_the_event(loader: KernelLoader, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rekernel")
    events: list[ReloadEvent] = []
    loader.on_reload(events.append)
    loader.load(text(1), "heat")
    assert caplog.records[0].rekernel is loader.log[0]  # type: ignore[attr-defined]
    assert (loader.log[0].kind, loader.log[0].version, events[0].version) == ("swapped", 1, 1)


def test_the_logger_is_silent_unless_asked() -> None:
    handlers = logging.getLogger("rekernel").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
