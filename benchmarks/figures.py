"""The figures that are measured inside one process. Each function returns rows of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ownframes
import peers
from peers import ONE, Bare, Meta, Peer, Rekernel, fresh
from samples import Figure, interleaved, per_call
from table import Row, ratio

MS, US = 1e3, 1e6
OWN_LIMIT_MS = 1.5
CPU_LIMIT = 1.03
UNCHANGED_LIMIT_US = 5.0
HANDLE_LIMIT_US = 0.15
CHECKED_LIMIT_US = 1.0
UNCHANGED_KERNEL_MS = 2.0
MANY = 20


def _everybody(kernel_id: str = "step") -> dict[str, Peer]:
    """Make the peers; each has loaded and called one kernel already, so that nobody pays for a first time."""
    found = {name: peers.make(name) for name in peers.NAMES}
    for peer in found.values():
        _changed(peer, kernel_id)
    return found


def _changed(peer: Peer, kernel_id: str = "step", *, call: bool = True) -> None:
    constant = next(fresh)
    peer.load(ONE.format(c=constant), kernel_id)
    if call:
        peers.step_once(peer, constant, kernel_id)


def _timed(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> Callable[[], float]:
    def once() -> float:
        start = clock()
        action()
        return clock() - start

    return once


def loads(plan: Any) -> list[Row]:
    """Load under a new id, and reload a changed text, each with its first call."""
    everybody = _everybody()

    def new_id(peer: Peer) -> Callable[[], None]:
        return lambda: _changed(peer, f"id{next(fresh)}")

    first = interleaved({n: _timed(new_id(p)) for n, p in everybody.items()}, plan.samples)
    changed = interleaved({n: _timed(lambda p=p: _changed(p)) for n, p in everybody.items()}, plan.samples)
    return [
        Row("first load under a new id, and call", "ms", {n: f.times(MS) for n, f in first.items()}),
        Row("changed reload and call", "ms", {n: f.times(MS) for n, f in changed.items()}),
    ]


def cpu_time(plan: Any) -> list[Row]:
    """Compare process CPU time (all threads, Taichi's compiler included) of a changed load and its first call."""
    everybody = _everybody()
    todo = {n: _timed(lambda p=p: _changed(p), time.process_time) for n, p in everybody.items()}
    found = {n: f.times(MS) for n, f in interleaved(todo, plan.cpu_samples).items()}
    bare = found[Bare.name]
    limit = Figure(bare.minimum * CPU_LIMIT, bare.median * CPU_LIMIT, bare.count)
    row = Row("changed load and call: process CPU time", "ms", found, limit, f"<= {CPU_LIMIT} of bare Taichi")
    low, mid = ratio(row)
    row.note = f"rekernel over bare Taichi: minima {low:.3f}, medians {mid:.3f}"
    return [row]


def own_frames(plan: Any) -> list[Row]:
    """Measure what the loader itself adds to a changed load; see `ownframes` for the method."""
    import rekernel
    import taichi_meta

    rows = []
    for called, title in ((True, "live version was called"), (False, "live version never called")):
        everybody = _everybody("own")
        kept: dict[str, list[float]] = {}

        def measured(peer: Peer, borders: Any, kept: Any = kept, called: bool = called) -> Callable[[], float]:
            def once() -> float:
                constant = next(fresh)
                text = ONE.format(c=constant)
                with borders() as clock:
                    spent = clock.measure(lambda: peer.load(text, "own"))
                if called:
                    peers.step_once(peer, constant, "own")
                kept.setdefault(peer.name + " ast.parse", []).append(spent.get("ast.parse", 0.0))
                kept.setdefault(peer.name + " all", []).append(sum(spent.values()))
                return spent["own"]

            return once

        def traced(peer: Peer, package: Any, called: bool = called) -> Callable[[], float]:
            def once() -> float:
                constant = next(fresh)
                text = ONE.format(c=constant)
                spent = ownframes.profiled(lambda: peer.load(text, "own"), package)
                if called:
                    peers.step_once(peer, constant, "own")
                return spent

            return once

        if not called:
            for peer in everybody.values():
                _changed(peer, "own", call=False)
        todo = {
            Meta.name: measured(everybody[Meta.name], ownframes.borders_of_meta),
            Rekernel.name: measured(everybody[Rekernel.name], ownframes.borders_of_rekernel),
        }
        own = {n: f.times(MS) for n, f in interleaved(todo, plan.samples).items()}
        todo = {
            Meta.name: traced(everybody[Meta.name], taichi_meta),
            Rekernel.name: traced(everybody[Rekernel.name], rekernel),
        }
        traced_own = {n: f.times(MS) for n, f in interleaved(todo, plan.samples).items()}
        whole = {n: Figure.of(kept[f"{n} all"]).times(MS) for n in own}
        parse = Figure.of(kept[f"{Rekernel.name} ast.parse"]).times(MS)
        rows += [
            Row(f"own time in a changed load ({title})", "ms", own, OWN_LIMIT_MS, note=f"ast.parse beside it: {parse}"),
            Row("  the same by cProfile (inflated)", "ms", traced_own),
            Row("  the whole load, compiling included", "ms", whole),
        ]
    return rows


def unchanged(plan: Any) -> list[Row]:
    """Load the text again that is loaded already."""
    everybody = _everybody()
    loops = {Bare.name: 20, Meta.name: 20, Rekernel.name: 1000}
    texts = {}
    for name, peer in everybody.items():
        constant = next(fresh)
        texts[name] = ONE.format(c=constant)
        peer.load(texts[name], "step")
        peers.step_once(peer, constant)

    def again(name: str) -> Callable[[], float]:
        peer, text = everybody[name], texts[name]
        return lambda: per_call(lambda: peer.load(text, "step"), loops[name])

    def again_called(name: str) -> Callable[[], float]:
        peer, text = everybody[name], texts[name]
        x, kernel_id = peers.array(), "step"

        def once() -> None:
            peer.load(text, kernel_id)
            peer.kernel(kernel_id, "step")(x, 0.0)

        return _timed(once)

    alone = interleaved({n: again(n) for n in peers.NAMES}, plan.samples)
    called = interleaved({n: again_called(n) for n in peers.NAMES}, plan.samples)
    loader, text = everybody[Rekernel.name].loader, ONE.format(c=next(fresh))  # type: ignore[union-attr]
    loader.load(text)
    derived = {Rekernel.name: Figure.of(per_call(lambda: loader.load(text), 1000) for _ in range(plan.samples))}
    return [
        Row("unchanged reload", "us", {n: f.times(US) for n, f in alone.items()}, UNCHANGED_LIMIT_US),
        Row("  without an id", "us", {n: f.times(US) for n, f in derived.items()}, UNCHANGED_LIMIT_US),
        Row("  unchanged reload and call", "us", {n: f.times(US) for n, f in called.items()}),
    ]


def handles(plan: Any) -> list[Row]:
    """Measure the way to a callable that does nothing, without and with argument checks."""
    from rekernel import _native

    everybody = _everybody()
    constant = next(fresh)
    for peer in everybody.values():
        peer.load(peers.CHECKED.format(c=constant), "three")
    x = peers.array()

    def nothing(*args: Any) -> None:
        return None

    meta: Any = everybody[Meta.name]
    meta.loader["three"].nothing = nothing
    real = everybody[Rekernel.name].loader._lives["three"].current.built  # type: ignore[union-attr]
    made = real.entries["three"]
    version = made.owner
    package = version.package
    functions = _functions(version.tree)
    guard = _native.Guard(
        nothing, "three", _rows(package, made.call.__self__, functions), owner=version,
        runtime=(package.impl, package.runtime_name, "prog"), program=version.program, lock=_lock(),
        stale=made.stale, failed=made.failed,
    )  # fmt: skip
    plain, checked = _handle(abs), _handle(guard)
    loops = 20000
    bare = {
        Bare.name: lambda: per_call(lambda: abs(1), loops),
        Meta.name: lambda: per_call(lambda: meta.loader["three"], loops),
        Rekernel.name: lambda: per_call(lambda: plain(1), loops),
    }
    nothings = {
        Bare.name: lambda: per_call(lambda: nothing(x, 1, 2.0), loops),
        Meta.name: lambda: per_call(lambda: meta.loader["three"].nothing(x, 1, 2.0), loops),
        Rekernel.name: lambda: per_call(lambda: checked(x, 1, 2.0), loops),
    }
    first = {n: f.times(US) for n, f in interleaved(bare, plan.samples).items()}
    second = {n: f.times(US) for n, f in interleaved(nothings, plan.samples).items()}
    return [
        Row("stub", "us", first, HANDLE_LIMIT_US),
        Row("stub checked", "us", second, CHECKED_LIMIT_US),
    ]
