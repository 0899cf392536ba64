"""Building: from a kernel value that nobody has seen to its first result, and a new process that finds it built."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitkit import Both, child, timed
from jitrows import Row, ratio, scaled
from jitstencil import W, arrays, by_hand, check, expected, fresh, kernel, text
from samples import Figure, interleaved

from rekernel import CpuJit, GccInfo

BARE_LIMIT, CMATH_LIMIT, PYSTENCILS_LIMIT = 1.3, 1.6, 1 / 20
IMPORT_LIMIT_MS, OWN_LIMIT_MS = 40, 5


def cold(plan: Any) -> list[Row]:
    """Build stencils that nobody has seen: text, flags and cache lookups, compiler, linker, loading and the first call.

    Beside it, the compiler alone: ``g++ -O3 -march=native -c`` of the same text. What it makes is linked and called
    outside of the time.
    """
    with tempfile.TemporaryDirectory() as place, child("pystencils", f"{place}/pystencils") as server:
        jits = {level: CpuJit(GccInfo(optlevel=level), f"{place}/cache{level}") for level in "013"}
        _warm_up(jits["3"])
        todo = {
            "g++ -c, bare": Both(lambda: _compiler(place)),
            "g++ -c, <cmath>": Both(lambda: _compiler(place, cmath=True)),
            **{f"-O{level}": Both(lambda jit=jit: _ours(jit)) for level, jit in jits.items()},
            "<cmath>": Both(lambda: _ours(jits["3"], cmath=True)),
            "pystencils": Both(lambda: _asked(server, f"cold {next(fresh)}")),
        }
        wall = interleaved(todo, plan.samples)
        assert server.stdin is not None
        server.stdin.close()
    cpu = {name: Figure.of(one.cpu) for name, one in todo.items()}
    empty = _children(plan.samples, lambda number, place: ("first", f"{place}/{number}", next(fresh)))
    rows = [scaled(f"{name}, {what}", "ms", found[name], 1e3)
            for name in todo for what, found in (("wall", wall), ("CPU", cpu))]  # fmt: skip
    rows.append(scaled("the first build of all: new process, empty cache", "ms", [a["own"] for a in empty], 1e3))
    for what, found in (("wall", wall), ("CPU", cpu)):
        bare = found["g++ -c, bare"]
        rows.append(ratio(f"new stencil over g++ -c of it, {what}", found["-O3"], bare, limit=BARE_LIMIT))
        rows.append(ratio(f"with <cmath> over g++ -c of the bare, {what}", found["<cmath>"], bare, limit=CMATH_LIMIT))
        rows.append(ratio(f"new stencil over pystencils, {what}", found["-O3"], found["pystencils"],
                          limit=PYSTENCILS_LIMIT, judged=("minimum", "median")))  # fmt: skip
    return rows


def warm(plan: Any) -> list[Row]:
    """Start processes that find their kernel built: from importing NumPy on, to the first result."""
    c = next(fresh)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "hand.cpp").write_text(text(c))
        subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "hand.cpp", "-o", "hand.so"], cwd=place,
                       check=True)  # fmt: skip
        modes = {
            "rekernel": ("first", f"{place}/cache", c),
            "pystencils": ("first_pystencils", f"{place}/pystencils", c),
            "by hand, ctypes": ("first_by_hand", f"{place}/hand.so", c),
        }
        for mode in modes.values():
            _answer(mode)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in modes}
        for _ in range(plan.samples):
            for name, mode in modes.items():
                found[name].append(_answer(mode))
    if not all(one["cached"] for one in found["rekernel"]):
        raise AssertionError("the cache did not have the kernel")
    limits = {"rekernel": (IMPORT_LIMIT_MS, OWN_LIMIT_MS)}
    rows = []
    for name, answers in found.items():
        everything, own = limits.get(name, (None, None))
        for title, key, limit in (
            (f"{name}: import to first result, over NumPy's import", "all", everything),
            ("  of this: lookup, loading, first call", "own", own),
        ):
            times = [answer[key] for answer in answers]
            rows.append(scaled(title, "ms", times, 1e3, limit=limit, judged=("minimum", "median")))
    return rows


def _warm_up(jit: CpuJit) -> None:
    """Probe the compiler, have the precompiled header made, and wait for it."""
    _ours(jit)
    _ours(jit, cmath=True)
    headers: Any = jit.precompiled()
    headers.wait()


def _ours(jit: CpuJit, cmath: bool = False) -> tuple[float, float]:
    c = next(fresh)
    value, (dst, src) = kernel(c, cmath=cmath), arrays()
    found = timed(lambda: jit.compile(value)(dst, src, W))
    check(dst[1:-1, 1:-1], expected(src, c))
    return found


def _compiler(place: str, cmath: bool = False) -> tuple[float, float]:
    c = next(fresh)
    source, made, library = (str(Path(place, f"bare{c}.{end}")) for end in ("cpp", "o", "so"))
    Path(source).write_text("#include <cmath>\n" * cmath + text(c, cmath=cmath))
    command = ["g++", "-O3", "-march=native", "-c", source, "-o", made]
    found = timed(lambda: subprocess.run(command, check=True))
    subprocess.run(["g++", "-shared", made, "-o", library], check=True)
    dst, src = arrays()
    by_hand(library)(dst, src, W)
    check(dst[1:-1, 1:-1], expected(src, c))
    return found


def _asked(server: Any, line: str) -> tuple[float, float]:
    found = ask(server, line)
    return found["wall"], found["cpu"]


def ask(server: Any, line: str) -> dict[str, Any]:
    """Send a line to a process and return its answer."""
    server.stdin.write(line + "\n")
    server.stdin.flush()
    return read(server)


def read(process: Any) -> dict[str, Any]:
    """Return the next answer of a process; CalledProcessError when it has died."""
    line = process.stdout.readline()
    if not line:
        raise subprocess.CalledProcessError(process.wait(), process.args)
    found: dict[str, Any] = json.loads(line)
    return found


def _answer(mode: tuple[object, ...]) -> dict[str, Any]:
    with child(*mode) as process:
        return read(process)


def _children(count: int, mode: Callable[[int, str], tuple[object, ...]]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        return [_answer(mode(number, place)) for number in range(count)]


ALL = (cold, warm)
