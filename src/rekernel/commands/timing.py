"""Timing a kernel over sizes: arguments of each size, many calls, and a copy of as many bytes beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekernel.commands.answers import CommandError
from rekernel.commands.example import CannotGuessError, example, refuse_too_much
from rekernel.kernel import Parameter

__all__ = ["Given", "Measured", "arguments_for", "bytes_of", "measure", "seconds_said", "sizes_for", "value"]

SAMPLES = 9
SHORTEST = 0.002
"""Seconds that a sample takes at least; a shorter call is repeated for it."""


@dataclass(frozen=True)
class Given:
    """An argument that the user gives: ``--arg n=n*n``."""

    name: str
    text: str
    code: Any

    def value(self, n: int, names: Mapping[str, Any]) -> Any:
        """Return what the expression is for a size."""
        return value(self.code, f"--arg {self.name}={self.text}", {**names, "n": n})


@dataclass(frozen=True)
class Measured:
    """One line of the table."""

    n: int
    shapes: Mapping[str, tuple[int, ...]]
    bytes: int
    """Of all array arguments, each counted once."""
    calls: int
    min_seconds: float
    median_seconds: float
    copy_seconds: float | None
    """The shortest time of a copy that reads and writes as many bytes together; None without arrays."""

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second, by the shortest time."""
        return self.bytes / self.min_seconds if self.bytes else None

    @property
    def copy_bandwidth(self) -> float | None:
        """Bytes a second of the copy."""
        return self.bytes / self.copy_seconds if self.copy_seconds else None

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**vars(self), "bytes_per_second": self.bandwidth, "copy_bytes_per_second": self.copy_bandwidth}


def value(code: Any, said: str, names: Mapping[str, Any]) -> Any:
    """Return what an expression of the user's is; a CommandError where it fails."""
    try:
        return eval(code, {**names})
    except MemoryError:
        raise
    except Exception as error:
        raise CommandError(f"{said} fails for n = {names['n']}: {type(error).__name__}: {error}") from None


def arguments_for(
    parameters: Sequence[Parameter], n: int, given: Sequence[Given], names: Mapping[str, Any], xp: Any
) -> dict[str, Any]:
    """Return the arguments of a size, by name: those that are given, and examples by the signature.

    CannotGuessError names all parameters that have to be given, each with why.
    """
    said = {one.name: one for one in given}
    found: dict[str, Any] = {}
    unknown = []
    for parameter in parameters:
        try:
            if parameter.name in said:
                found[parameter.name] = said[parameter.name].value(n, names)
            else:
                found[parameter.name] = example(parameter, n, xp=xp)
        except CannotGuessError as error:
            unknown.append(f"  {error}")
    if unknown:
        raise CannotGuessError("\n".join(unknown))
    return found


def bytes_of(arguments: Mapping[str, Any]) -> int:
    """Return the bytes of all arrays among some arguments."""
    return sum(int(getattr(value, "nbytes", 0)) for value in arguments.values() if getattr(value, "shape", None))


def measure(
    call: Callable[[], object], n: int, arguments: Mapping[str, Any], xp: Any, wait: Callable[[], object],
    seconds: float,
) -> Measured:  # fmt: skip
    """Time a call, and a copy of as many bytes; about `seconds` go into it."""
    calls, times = _timed(call, wait, seconds)
    total, copied = bytes_of(arguments), None
    if total:
        refuse_too_much(total)
        source = xp.full(max(1, total // 2), 1, "uint8")
        target = xp.zeros_like(source)
        copied = min(_timed(lambda: xp.copyto(target, source), wait, seconds / 4)[1])
    shapes = {name: tuple(value.shape) for name, value in arguments.items() if getattr(value, "shape", None)}
    return Measured(n, shapes, total, calls, min(times), sorted(times)[len(times) // 2], copied)


def _timed(call: Callable[[], object], wait: Callable[[], object], seconds: float) -> tuple[int, list[float]]:
    """Return how many calls were timed, and the seconds a call of each sample."""
    call()  # what is done once: compiling, pages, caches
    wait()
    repeat = 1
    while (taken := _sample(call, wait, repeat)) < SHORTEST and repeat < 1 << 22:
        repeat = max(2 * repeat, int(repeat * SHORTEST / max(taken, 1e-9)))
    times = [taken / repeat]
    end = time.perf_counter() + seconds
    while len(times) < SAMPLES or time.perf_counter() < end:
        times.append(_sample(call, wait, repeat) / repeat)
        if len(times) >= 3 and time.perf_counter() > end + 4 * seconds:  # one call takes longer than all that we have
            break
    return repeat * len(times), times


def _sample(call: Callable[[], object], wait: Callable[[], object], repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    wait()
    return time.perf_counter() - start


def sizes_for(rank: int) -> Iterator[int]:
    """Return the extents that are tried if none are given, by the highest rank of the arrays.

    >>> list(sizes_for(2))
    [64, 256, 1024, 4096]
    """
    yield from {0: (1,), 1: (1_000, 10_000, 100_000, 1_000_000, 10_000_000), 2: (64, 256, 1024, 4096)}.get(
        rank, (16, 32, 64, 128, 256)
    )


def seconds_said(seconds: float) -> str:
    """Return a time with three digits.

    >>> seconds_said(1.234e-7), seconds_said(0.00123), seconds_said(2.5)
    ('123 ns', '1.23 ms', '2.50 s')
    """
    for unit, scale in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.2f} s"
