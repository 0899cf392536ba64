"""Timing of calls: off it is not there, on it counts every call that returned, in room that does not grow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import toy as toys
from rekernel import KernelHandle, KernelLoader, _native

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

NAMES = ["calls", "failures", "timed", "seconds", "mean", "min", "p50", "p95", "p99", "max"]


def handle_of(function: Callable[..., Any]) -> _native.Handle:
    cell = _native.Cell()
    _native.swap([(cell, (function,), None)])
    return _native.Handle(cell, 0, "kernel")


def busy(seconds: float) -> float:
    """Take that long, by the clock that is measured with; return how long it was."""
    began = time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        pass
    return now - began


def test_without_timing_there_are_only_counts(loader: KernelLoader) -> None:
    step: KernelHandle = loader.load("step(x) = x", "heat").step
    step(1)
    assert step.stats == {"calls": 1, "failures": 0}


def test_with_timing_there_are_the_times_in_order(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.timing()
    for number in range(100):
        step(number)
    stats = step.stats
    assert list(stats) == NAMES
    assert (stats["calls"], stats["timed"]) == (100, 100)
    assert 0 < stats["min"] <= stats["p50"] <= stats["p95"] <= stats["p99"] <= stats["max"] <= stats["seconds"]
    assert stats["mean"] == stats["seconds"] / 100


def test_timing_holds_for_ids_and_kernels_that_come_later_and_for_pinned_ones(loader: KernelLoader) -> None:
    loader.timing()
    module = loader.load("step(x) = x", "heat")
    loader.load("step(x) = x\nnew(x) = x", "heat")
    other = loader.load("step(x) = x", "other").step
    pinned = module.step.pinned()
    for handle in (module.step, module.new, other, pinned):
        handle(1)
        assert handle.stats["timed"] == 1


def test_timing_reaches_a_pinned_kernel_that_is_there_already(loader: KernelLoader) -> None:
    pinned = loader.load("step(x) = x", "heat").step.pinned()
    loader.timing()
    pinned(1)
    assert pinned.stats["timed"] == 1


def test_timing_is_that_of_one_loader(loader: KernelLoader) -> None:
    with KernelLoader() as other:
        step = other.load("step(x) = x", "heat", language="toy").step
        loader.timing()
        step(1)
        assert "timed" not in step.stats


def test_switching_it_off_keeps_what_was_measured_and_on_begins_anew(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.timing()
    step(1)
    loader.timing(False)
    before = step.stats
    step(1)
    assert step.stats == {**before, "calls": 2}
    loader.timing(True)
    assert step.stats == {"calls": 2, "failures": 0}
    step(1)
    assert (step.stats["calls"], step.stats["timed"]) == (3, 1)


def test_an_id_that_was_unloaded_and_comes_back_is_timed(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.unload("heat")
    loader.timing()
    loader.load("step(x) = 2 * x", "heat")
    step(1)
    assert step.stats["timed"] == 1


def test_calls_that_raise_are_failures_and_not_timed(loader: KernelLoader) -> None:
    step = loader.load("step(x) = 1 / x", "heat").step
    loader.timing()
    step(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            step(0)
    stats = step.stats
    assert (stats["calls"], stats["failures"], stats["timed"]) == (4, 3, 1)


def test_a_time_is_that_of_the_call() -> None:
    handle = handle_of(busy)
    handle._timed = True
    began = time.perf_counter()
    inside = handle(0.005)
    outside = time.perf_counter() - began
    times = handle._times
    assert times is not None
    count, total, least, p50, *_, most = times
    assert count == 1
    assert inside <= total <= outside
    assert least == p50 == most == total  # one call: a percentile is never outside of what was measured


@pytest.mark.parametrize("seconds", [2e-5, 3e-4, 5e-3])
def test_a_percentile_is_right_within_a_thirtysecond(seconds: float) -> None:
    """Of many calls of one length and a longer one, the middle is that length, as near as the buckets are."""
    handle = handle_of(busy)
    handle._timed = True
    lengths = sorted(handle(seconds) for _ in range(21))
    times = handle._times
    assert times is not None
    _, _, least, p50, _, _, most = times
    # What the handle sees is longer than what the function saw by the way in and out.
    assert lengths[10] * (1 - 1 / 32) <= p50
    assert least <= p50 <= most


def test_a_kernel_that_switches_timing_on_or_off_is_no_trap() -> None:
    handle: Any = None

    def switch(on: bool) -> None:
        handle._timed = on

    handle = handle_of(switch)
    handle(True)  # the call that switches it on began without a time
    assert handle._times is None
    handle(True)  # begins anew inside: its own end is the first
    assert handle._times[0] == 1
    handle(False)
    assert (handle._timed, handle._times[0]) == (False, 1)


def test_no_call_is_lost_between_threads() -> None:
    handle = handle_of(abs)
    handle._timed = True
    ready = threading.Barrier(5)

    def work() -> None:
        ready.wait(30)
        for number in range(5000):
            handle(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait(30)
    for _ in range(200):
        assert handle._times is None or handle._times[0] <= 20000
    for thread in threads:
        thread.join(60)
    assert handle._times is not None
    assert (handle.calls, handle._times[0]) == (20000, 20000)


def test_what_is_no_truth_value_is_refused_and_changes_nothing() -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise ZeroDivisionError("undecided")

    handle: Any = handle_of(abs)
    with pytest.raises(ZeroDivisionError, match="undecided"):
        handle._timed = Undecided()
    assert handle._timed is False


def test_deleting_the_switch_switches_it_off() -> None:
    handle = handle_of(abs)
    handle._timed = True
    del handle._timed
    assert handle._timed is False


def test_a_thousand_handles_that_come_and_go_leave_nothing(loader: KernelLoader) -> None:
    loader.timing()
    step = loader.load("step(x) = x", "heat").step
    for _ in range(1000):
        step.pinned()(1)
    assert len(loader._lives["heat"].pins) == 0


def test_the_stats_of_a_compiled_kernel_without_a_loader_are_counts() -> None:
    from rekernel import Kernel, KernelWrapper

    wrapper = KernelWrapper.over(Kernel("f", (), "cpp"), lambda: None)
    wrapper()
    assert wrapper.stats == {"calls": 1, "failures": 0}
