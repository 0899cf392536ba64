"""How pystencils' launch configurations become grids: computed from the values of a call, kept by values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rekernel.errors import JitError
from rekernel.kernel import Kernel
from rekernel.launchgrid import Dim3
from rekernel.symbolic import number_of

__all__ = ["grid_of", "launch_needs"]

Grid = tuple[Dim3, Dim3, int, bool]
"""Grid, block, bytes of dynamic shared memory; and that it is asked for by each call, as the user may change it."""

_NOTHING: Grid = ((0, 0, 0), (1, 1, 1), 0, False)
_MOST = 64

Need = tuple[str, str, int, int]
"""A name in pystencils' launch configuration, the parameter that it is or whose extent it is, along which axis (-1 for
the number itself), and what is taken off the extent."""


def launch_needs(config: Any, kernel: Kernel) -> tuple[Kernel, tuple[Need, ...]]:
    """Return what a launch configuration of pystencils has to know of a call, in the order of the alphabet.

    The kernel comes back with the numbers that only the configuration takes, as more parameters.
    """
    known = {p.name: p for p in kernel.parameters}
    needs: list[Need] = []
    for p in sorted(config.parameters, key=lambda p: p.name):
        roles = [(r.field.name, r.coordinate) for r in p.properties if type(r).__name__ == "FieldShape"]
        array = next(((known[name], axis) for name, axis in sorted(roles) if name in known), None)
        if array is not None:
            margins = array[0].margins or (0,) * (array[1] + 1)
            needs.append((p.name, array[0].name, array[1], 2 * margins[array[1]]))
        elif any(hasattr(r, "field") for r in p.properties):
            raise JitError(f"{kernel.name}: its launch grid depends on {p.name}, of which its arguments tell nothing")
        else:
            known.setdefault(p.name, number_of(p))
            needs.append((p.name, p.name, -1, 0))
    return replace(kernel, parameters=tuple(known.values())), tuple(needs)


def grid_of(
    config: Any, kernel: Kernel, needs: Sequence[Need]
) -> Callable[[Sequence[Sequence[int]], Sequence[int | None]], Grid]:
    """Return what computes the grid of a call from the shapes of its arrays and the values of its numbers.

    `config` is the object that the user has, and may change at any time: what was computed is forgotten then. An empty
    iteration space gives a grid that launches nothing. JitError where pystencils has no grid for a call.
    """
    arrays = [p.name for p in kernel.parameters if p.kind != "scalar"]
    scalars = [p.name for p in kernel.parameters if p.kind == "scalar"]
    places = [((arrays if axis >= 0 else scalars).index(of), axis, less) for _name, of, axis, less in needs]
    names = [name for name, *_ in needs]
    known: dict[tuple[int | None, ...], Grid] = {}
    state: list[Any] = [None]

    def grid(shapes: Sequence[Sequence[int]], numbers: Sequence[int | None]) -> Grid:
        now = _state(config)
        if now != state[0]:
            state[0] = now
            known.clear()
        values = tuple(
            numbers[at] if axis < 0 else shapes[at][axis] - less if axis < len(shapes[at]) else 1
            for at, axis, less in places
        )
        found = known.get(values)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[values] = _evaluated(config, kernel.name, dict(zip(names, values, strict=True)))
        return found

    return grid


def _state(config: Any) -> tuple[Any, ...]:
    """Return all that a configuration depends on. The objects are held, so equal identity means the same object."""
    hardware = getattr(config, "_hw_props", None)
    return (*vars(config).values(), *(() if hardware is None else vars(hardware).values()))


def _evaluated(config: Any, name: str, values: dict[str, Any]) -> Grid:
    items = getattr(config, "num_work_items", ())
    try:
        if any(int(count(**values)) <= 0 for count in items):
            return _NOTHING  # pystencils divides by such a count, or makes a grid of it
        block, grid = config.evaluate(**values)
    except ZeroDivisionError:
        return _NOTHING
    except Exception as error:
        advice = ""
        if isinstance(error, AttributeError):
            advice = "; set launch_config.block_size and launch_config.grid_size, or call kernel[grid, block](...)"
        raise JitError(f"{name} has no launch grid: {str(error).rstrip('.')}{advice}") from error
    blocks, threads = _three(grid), _three(block)
    return _NOTHING if min(*blocks, *threads) <= 0 else (blocks, threads, 0, False)


def _three(extents: Any) -> Dim3:
    x, y, z = (*map(int, extents), 1, 1)[:3]
    return x, y, z
