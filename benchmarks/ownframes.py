"""How much of a load is rekernel's own work.

Method: a clock that stops at borders. Every way out of rekernel into the work that bare Taichi does as well is
wrapped: `exec` and `compile` as `rekernel.languages.taichi.execute` calls them, `ast.parse`, Taichi's
``Kernel.materialize`` and ``Program.compile_kernel``. The way back in (the checks that rekernel hangs into
Taichi's translation of a store) is wrapped, too. Two reads of `time.perf_counter` a crossing, about ten
crossings a load, no tracing: all other code runs at full speed. Everything between the borders counts as
rekernel's own, also what it has the standard library and small helpers of Taichi do.

`profiled` is the second opinion: cProfile's time of each function by itself, summed over the functions whose
file is in the package. It sees no border wrongly, but tracing makes small functions look several times dearer.
"""

# No ``from __future__ import annotations``: a `compile` that is called from here would hand it on to the text.
import ast
import builtins
import cProfile
import pstats
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch


class Clock:
    """Tells time spent inside the borders from time spent outside, by the name of the way out."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.where: str | None = None
        self.mark = 0.0

    def go(self, where: str | None) -> str | None:
        """Cross a border; return where we were. None is nowhere: the clock stands still."""
        now = time.perf_counter()
        before = self.where
        if before is not None:
            self.spent[before] = self.spent.get(before, 0.0) + now - self.mark
        self.where, self.mark = where, now
        return before

    def wrap(self, function: Callable[..., Any], where: str) -> Callable[..., Any]:
        """Return `function` as a border: what runs inside it counts for `where`."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            # Work inside work that is outside already changes nothing; only the way back in does.
            if self.where is None or (self.where != "own" and where != "own"):
                return function(*args, **kwargs)
            before = self.go(where)
            try:
                return function(*args, **kwargs)
            finally:
                self.go(before)

        return wrapped

    def measure(self, action: Callable[[], Any]) -> dict[str, float]:
        """Run `action`; return seconds by place, ``own`` being what is between the borders."""
        self.spent = {}
        self.go("own")
        try:
            action()
        finally:
            self.go(None)
        return self.spent


@contextmanager
def borders_of_rekernel() -> Iterator[Clock]:
    """Put the borders round rekernel's Taichi language."""
    import taichi
    from taichi.lang import impl, kernel_impl

    from rekernel.languages.taichi import execute, guards

    clock = Clock()
    program = type(impl.get_runtime().prog)
    expression = taichi.lang.expr.Expr
    checked_stores = guards.checked_stores

    @contextmanager
    def stores(*args: Any) -> Iterator[None]:
        with checked_stores(*args), patch.object(expression, "_assign", clock.wrap(expression._assign, "own")):
            yield

    with ExitStack() as stack:
        for holder, name, function, where in (
            (execute, "exec", builtins.exec, "exec"),
            (execute, "compile", builtins.compile, "compile"),
            (ast, "parse", ast.parse, "ast.parse"),
            (kernel_impl.Kernel, "materialize", kernel_impl.Kernel.materialize, "Taichi"),
            (program, "compile_kernel", program.compile_kernel, "Taichi"),
        ):
            stack.enter_context(patch.object(holder, name, clock.wrap(function, where), create=True))
        stack.enter_context(patch.object(guards, "checked_stores", stores))
        yield clock


@contextmanager
def borders_of_meta() -> Iterator[Clock]:
    """Put the same borders round taichi-meta."""
    import taichi_meta

    clock = Clock()
    with ExitStack() as stack:
        for name in ("exec", "compile"):
            wrapped = clock.wrap(getattr(builtins, name), name)
            stack.enter_context(patch.object(taichi_meta, name, wrapped, create=True))
        yield clock


def profiled(action: Callable[[], Any], package: ModuleType) -> float:
    """Return cProfile's own seconds of all functions in the files of a package."""
    folder = str(Path(str(package.__file__)).parent)
    profile = cProfile.Profile()
    profile.enable()
    try:
        action()
    finally:
        profile.disable()
    rows: Any = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return float(sum(row[2] for (file, _, _), row in rows.items() if file.startswith(folder)))
