"""The figures below a millisecond: an unchanged reload, and the way into a kernel."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
import peers
from figures import everybody_ready
from peers import ONE, Bare, Meta, Peer, Rekernel, fresh
from samples import Figure, interleaved, per_call
from table import Row

US = 1e6
UNCHANGED_LIMIT_US = 5.0
HANDLE_LIMIT_US = 0.15
CHECKED_LIMIT_US = 1.0


def unchanged(plan: Any) -> list[Row]:
    """Load the text again that is loaded already."""
    everybody = everybody_ready()
    alone, called = {}, {}
    for name, peer in everybody.items():
        constant = next(fresh)
        text = ONE.format(c=constant)
        peer.load(text, "step")
        peers.step_once(peer, constant)
        loops = 1000 if name == Rekernel.name else 10
        verb = peer.loader.compile_and_load if isinstance(peer, Meta | Rekernel) else peer.load
        alone[name] = per_call("load(text, 'step')", loops, load=verb, text=text)
        again, x = "load(text, 'step'); kernel('step', 'step')(x, 1.0)", peers.array()
        called[name] = _compared(per_call(again, 1, load=verb, text=text, kernel=peer.kernel, x=x), x, constant)
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

    everybody = everybody_ready()
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
    for kind, loops in (("NumPy array", 200), ("ti.ndarray", 200)):
        todo = {}
        for name, peer in everybody.items():
            constant = next(fresh)
            peer.load(ONE.format(c=constant), "step")
            x = peers.array() if kind == "NumPy array" else _device_array()
            measure = per_call("f(x, 1.0)", loops, f=peer.kernel("step", "step"), x=x)
            todo[name] = _compared(measure, x, loops * constant)
            todo[name]()
        rows.append(Row(f"call of a Taichi kernel, {kind} + float", "us", _us(interleaved(todo, plan.samples))))
    return rows


def rekernel_of(everybody: Mapping[str, Peer]) -> Any:
    peer = everybody[Rekernel.name]
    assert isinstance(peer, Rekernel)
    return peer.loader


def _kernel(everybody: Mapping[str, Peer], name: str) -> Any:
    return everybody[Rekernel.name].kernel(name, name)


def _device_array() -> Any:
    import taichi as ti

    return ti.ndarray(ti.f32, peers.array().shape)


def _compared(measure: Callable[[], float], x: Any, added: int) -> Callable[[], float]:
    """Return `measure` with a comparison after it: all its calls together have to add that number to the array."""

    def once() -> float:
        start = peers.array()
        if isinstance(x, np.ndarray):
            x[:] = start
        else:
            x.from_numpy(start)
        spent = measure()
        peers.check(x if isinstance(x, np.ndarray) else x.to_numpy(), start + np.float32(added))
        return spent

    return once


def _us(found: Mapping[str, Figure]) -> dict[str, Figure]:
    return {name: figure.times(US) for name, figure in found.items()}


ALL = (unchanged, calls)
