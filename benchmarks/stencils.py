"""Symbolic stencils through rekernel's CpuJit and through pystencils' own, side by side in one run.

    python benchmarks/stencils.py [--quick]

Times begin when pystencils has generated the code: both get the same kernel. Samples take turns; each has a constant
that no kernel had before, and results are compared with NumPy. pystencils runs in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from timeit import Timer
from typing import Any

import stencilkernels as sk
from jitcold import ask, read
from jitkit import Both, timed
from jitrows import HEAD, Row, counted, ratio, scaled
from samples import Figure, interleaved, load_average, machine

LIMITS = {"5-point": 1 / 15, "D3Q19": 1 / 5, "vectorised": 1 / 8}


def child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).with_name("stencilchild.py")), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ours(jit: Any, name: str, kept: dict[str, Any]) -> tuple[float, float]:
    c = next(sk.fresh)
    kernel, given = sk.kernel(name, c), sk.arrays(name, 16)

    def build() -> None:
        kept[name] = jit.compile(kernel)
        kept[name](**given)

    found = timed(build)
    sk.check(name, c, given)
    return found


def theirs(server: Any, name: str) -> tuple[float, float]:
    found = ask(server, f"cold {name}")
    return found["wall"], found["cpu"]


def cold(jit: Any, server: Any, samples: int, kept: dict[str, Any]) -> list[Row]:
    for name in sk.NAMES:  # probe the compiler, have the precompiled headers made
        ours(jit, name, kept)
    headers = jit.precompiled()
    if headers is not None:
        headers.wait()
    rows = []
    for name in sk.NAMES:
        todo = {
            "rekernel": Both(lambda name=name: ours(jit, name, kept)),
            "pystencils": Both(lambda name=name: theirs(server, name)),
        }
        wall = interleaved(todo, samples)
        cpu = {who: Figure.of(one.cpu) for who, one in todo.items()}
        rows += [scaled(f"{name}: {who}, from generated code to first result", "ms", wall[who], 1e3) for who in todo]
        for what, found in (("wall", wall), ("CPU", cpu)):
            rows.append(
                ratio(
                    f"{name}: rekernel over pystencils, {what}",
                    found["rekernel"],
                    found["pystencils"],
                    limit=LIMITS[name],
                )
            )
    return rows


def calls(server: Any, kept: dict[str, Any], samples: int) -> list[Row]:
    given, loops = sk.arrays("5-point", 4), 20_000
    names = {"k": kept["5-point"], "a": given["src"], "b": given["dst"]}
    timer = Timer("k(src=a, dst=b, w=0.5)", globals=names)
    found = interleaved(
        {
            "rekernel": lambda: timer.timeit(loops) / loops,
            "pystencils": lambda: float(ask(server, f"call {loops}")["seconds"]),
        },
        samples,
    )
    return [
        scaled(f"call by keyword: {who}", "us", found[who], 1e6, limit=0.35 if who == "rekernel" else None)
        for who in found
    ]


def throughput(server: Any, kept: dict[str, Any], sweeps: int) -> list[Row]:
    rows = []
    for name, n in (("5-point", 2048), ("D3Q19", 64), ("vectorised", 2048)):
        given = sk.arrays(name, n)

        def sweep(name: str = name, given: dict[str, Any] = given) -> float:
            start = time.perf_counter()
            kept[name](**given)
            return time.perf_counter() - start

        def their_sweep(name: str = name, n: int = n) -> float:
            return float(ask(server, f"sweep {name} {n}")["seconds"])

        found = interleaved({"rekernel": sweep, "pystencils": their_sweep}, max(15, sweeps))
        cells = n**3 if name == "D3Q19" else n**2
        rows += [scaled(f"{name}, {n}: {who}", "MLUP/s", [cells / found[who].minimum / 1e6]) for who in found]
        rows.append(
            ratio(
                f"{name}: throughput over pystencils'", found["pystencils"], found["rekernel"], limit=0.97, least=True
            )
        )
    return rows


def races() -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        sk.our_jit(place).compile(sk.kernel("5-point", next(sk.fresh)))  # the compiler is known
        c = next(sk.fresh)
        children = [child("race", place, c) for _ in range(8)]
        for one in children:
            read(one)
        for one in children:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        published = sum(read(one)["published"] for one in children)
        for one in children:
            one.wait()
    return [counted("compilers run by 8 processes for one kernel", "times", published, limit=1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    quick = parser.parse_args().quick
    for key, value in machine().items():
        print(f"{key:<12} {value}")
    print(f"{'load average':<12} {load_average()} at the beginning\n\n{HEAD}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        server, jit, kept = child("pystencils", f"{place}/theirs"), sk.our_jit(f"{place}/ours"), {}
        try:
            for rows in (
                cold(jit, server, 4 if quick else 10, kept),
                calls(server, kept, 8 if quick else 20),
                throughput(server, kept, 15 if quick else 40),
                races(),
            ):
                print(*rows, sep="\n", flush=True)
        except (AssertionError, subprocess.CalledProcessError) as error:
            print(f"a peer did not run, or computed something wrong: {error}", file=sys.stderr)
            return 1
        finally:
            assert server.stdin is not None
            server.stdin.close()
            server.wait()
    print(f"\nload average {load_average()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
