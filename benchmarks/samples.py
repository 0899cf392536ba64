"""Numbers from repeated measurements, and facts about the machine they were taken on."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import timeit
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any


@dataclass(frozen=True)
class Figure:
    """Minimum and median of repeated measurements."""

    minimum: float
    median: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure:
        every = list(values)
        return cls(min(every), statistics.median(every), len(every))

    def times(self, factor: float) -> Figure:
        return Figure(self.minimum * factor, self.median * factor, self.count)

    def __str__(self) -> str:
        return f"{self.minimum:.4g} / {self.median:.4g}"


def interleaved(
    todo: Mapping[str, Callable[[], float]], count: int, *, progress: Callable[[], None] = lambda: None
) -> dict[str, Figure]:
    """Measure every candidate `count` times in turn, the first one changing, garbage collected before each."""
    found: dict[str, list[float]] = {name: [] for name in todo}
    names = list(todo)
    for round_ in range(count):
        for place in range(len(names)):
            name = names[(round_ + place) % len(names)]
            gc.collect()
            found[name].append(todo[name]())
        progress()
    return {name: Figure.of(values) for name, values in found.items()}


def per_call(statement: str, loops: int, **names: Any) -> Callable[[], float]:
    """Return a measurement of one execution of a statement, the loop around it (about 10 ns) included."""
    timer = timeit.Timer(statement, globals=names)
    return lambda: timer.timeit(loops) / loops


def load_average() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def machine() -> dict[str, str]:
    """Return what has to be known to judge the figures."""
    model = platform.processor() or "unknown"
    try:
        with open("/proc/cpuinfo") as lines:
            model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = {
        "CPU": model,
        "cores": f"{usable} usable of {os.cpu_count()}",
        "system": platform.platform(),
        "Python": platform.python_version(),
    }
    for name in ("numpy", "taichi", "taichi-meta", "rekernel"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            facts[name] = "not installed"
    return facts
