"""The figures of loading, measured inside one process. Each function returns rows of the table."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ownframes
import peers
from peers import ONE, Bare, Meta, Peer, Rekernel, fresh
from samples import Figure, interleaved
from table import Row, ratio

MS = 1e3
OWN_LIMIT_MS = 1.5
CPU_LIMIT = 1.03
UNCHANGED_KERNEL_MS = 2.0
MANY = 20


def everybody_ready(kernel_id: str = "step", *, call: bool = True) -> dict[str, Peer]:
    """Make the peers; each has loaded (and called) one kernel already, so that nobody pays for a first time."""
    found = {name: peers.make(name) for name in peers.NAMES}
    for peer in found.values():
        _changed(peer, kernel_id, call=call)
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
    everybody = everybody_ready()

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
    everybody = everybody_ready()
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
    import taichi_meta

    import rekernel

    rows = []
    for called, title in ((True, "live version was called"), (False, "live version never called")):
        everybody = everybody_ready("own", call=called)
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
        note = f"bare Taichi has no loader: 0; rekernel's ast.parse, not counted above: {parse}"
        rows += [
            Row(f"own time in a changed load ({title})", "ms", own, OWN_LIMIT_MS, note=note),
            Row("  the same by cProfile (inflated)", "ms", traced_own),
            Row("  the whole load, compiling included", "ms", whole),
        ]
    return rows


def twenty(plan: Any) -> list[Row]:
    """Edit one kernel in a text of twenty that were all called; load, and call all of them again."""
    everybody = {name: peers.make(name) for name in peers.NAMES}
    constants = {name: [next(fresh) for _ in range(MANY)] for name in peers.NAMES}

    def edited(name: str, place: int) -> None:
        peer, mine = everybody[name], constants[name]
        mine[place] = next(fresh)
        peer.load(peers.many(mine), "many")
        for i, constant in enumerate(mine):
            x = peers.array()
            peer.kernel("many", f"step{i}")(x, 2.0)
            peers.check(x, np.float32(2) * peers.array() + np.float32(constant))

    for name in peers.NAMES:
        edited(name, 0)
    places = {name: itertools.cycle(range(MANY)) for name in peers.NAMES}
    todo = {n: _timed(lambda n=n: edited(n, next(places[n]))) for n in peers.NAMES}
    cold = peers.make(Bare.name)
    todo["cold"] = _timed(lambda: _changed(cold, "cold"))
    found = {n: f.times(MS) for n, f in interleaved(todo, plan.samples).items()}
    one = found.pop("cold")
    more = UNCHANGED_KERNEL_MS * (MANY - 1)
    limit = Figure(one.minimum + more, one.median + more, one.count)
    row = Row(f"one of {MANY} kernels edited: load, call all", "ms", found, limit)
    row.limit_text = f"<= one cold kernel of bare Taichi ({one}) + {MANY - 1} x {UNCHANGED_KERNEL_MS:g} ms = {limit}"
    return [row]


ALL = (loads, own_frames, cpu_time, twenty)
