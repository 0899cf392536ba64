"""The figures that are measured inside one process. Each function returns rows of the table."""

from __future__ import annotations

import itertools
import time
import types
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

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
    import taichi_meta

    import rekernel

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
    alone, called = {}, {}
    for name, peer in everybody.items():
        constant = next(fresh)
        text = ONE.format(c=constant)
        peer.load(text, "step")
        peers.step_once(peer, constant)
        loops = 1000 if name == Rekernel.name else 10
        verb = peer.loader.compile_and_load if isinstance(peer, Meta | Rekernel) else peer.load
        alone[name] = per_call("load(text, 'step')", loops, load=verb, text=text)
        again = "load(text, 'step'); kernel('step', 'step')(x, 2.0)"
        called[name] = per_call(again, 1, load=verb, text=text, kernel=peer.kernel, x=peers.array())
    loader, text = rekernel_of(everybody), ONE.format(c=next(fresh))
    used = "SIZE = N\n" + ONE.format(c="SIZE")
    loader.load(text)
    loader.load(used, "sized", namespace={"N": next(fresh)})
    others = {
        "without an id": per_call("load(text)", 1000, load=loader.load, text=text),
        "with a namespace": per_call(
            "load(text, 'sized', namespace=names)", 1000, load=loader.load, text=used,
            names=dict(loader._lives["sized"].current.namespace),
        ),
    }  # fmt: skip
    rows = [Row("unchanged reload", "us", _us(interleaved(alone, plan.samples)), UNCHANGED_LIMIT_US)]
    for title, figure in interleaved(others, plan.samples).items():
        rows.append(Row(f"  {title}", "us", {Rekernel.name: figure.times(US)}, UNCHANGED_LIMIT_US))
    rows.append(Row("  unchanged reload and call", "us", _us(interleaved(called, plan.samples))))
    return rows


def calls(plan: Any) -> list[Row]:
    """Measure the way into a kernel: to a stub that does nothing, to a checked stub, to a real kernel.

    The checked stub is a loaded kernel whose last step, Taichi's own ``Kernel.__call__``, is replaced by a Python
    function that does nothing: handle, argument table, lock and the check of the running program are the real ones.
    """
    from rekernel import _native
    from rekernel.handle import KernelHandle

    everybody = _everybody()
    guard = _native.Guard

    def nothing(*args: Any) -> None:
        return None

    def stubbed(call: Any, *args: Any, **kwargs: Any) -> Any:
        return guard(types.MethodType(nothing, call.__self__), *args, **kwargs)

    text = peers.CHECKED.format(c=next(fresh))
    for peer in everybody.values():
        with patch.object(_native, "Guard", stubbed):
            peer.load(text, "three")
    meta: Any = everybody[Meta.name]
    meta.loader["three"].three = nothing
    cell = _native.Cell()
    _native.swap([(cell, (abs,), None)])
    stub = KernelHandle(cell, 0, "stub")
    rows = []
    for title, limit, statement, direct, handle in (
        ("call of a stub (the built-in abs)", HANDLE_LIMIT_US, "f(1)", abs, stub),
        ("call of a stub, array + int + float", CHECKED_LIMIT_US, "f(x, 3, 2.0)", nothing, _kernel(everybody, "three")),
    ):
        x, loops = peers.array(), 20000
        meta.loader["three"].f = direct
        todo = {
            Bare.name: per_call(statement, loops, f=direct, x=x),
            Meta.name: per_call(f"loader['three'].{statement}", loops, loader=meta.loader, x=x),
            Rekernel.name: per_call(statement, loops, f=handle, x=x),
        }
        rows.append(Row(title, "us", _us(interleaved(todo, plan.samples)), limit))
    rows[0].note = "bare: no handle at all; taichi-meta: loader[id].f, the only way that follows a reload there"
    x = peers.array()
    for kind, argument in (("NumPy array", x), ("ti.ndarray", _device_array(x))):
        todo = {n: per_call("f(x, 1.0)", 200, f=p.kernel("step", "step"), x=argument) for n, p in everybody.items()}
        rows.append(Row(f"call of a Taichi kernel, {kind} + float", "us", _us(interleaved(todo, plan.samples))))
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


def rekernel_of(everybody: Mapping[str, Peer]) -> Any:
    peer = everybody[Rekernel.name]
    assert isinstance(peer, Rekernel)
    return peer.loader


def _kernel(everybody: Mapping[str, Peer], name: str) -> Any:
    return everybody[Rekernel.name].kernel(name, name)


def _device_array(x: Any) -> Any:
    import taichi as ti

    made = ti.ndarray(ti.f32, x.shape)
    made.from_numpy(x)
    return made


def _us(found: Mapping[str, Figure]) -> dict[str, Figure]:
    return {name: figure.times(US) for name, figure in found.items()}


ALL = (loads, own_frames, cpu_time, unchanged, calls, twenty)
