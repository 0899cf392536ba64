"""A process of its own: pystencils' just-in-time compiler, or one of eight processes that want one kernel.

    python benchmarks/stencilchild.py pystencils DIRECTORY     answers lines of stdin: cold NAME, call LOOPS, sweep NAME N
    python benchmarks/stencilchild.py race DIRECTORY C         begins at a line of stdin

pystencils must not run in the process of the others: what it links sets the whole process to flush denormal numbers.
"""

from __future__ import annotations

import json
import sys
import time
from timeit import Timer
from typing import Any

from jitkit import cpu_seconds


def tell(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def pystencils(directory: str) -> None:
    import stencilkernels as sk

    jit, kept = sk.pystencils_jit(directory), {}
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "cold":
            (name,), c = words, next(sk.fresh)
            kernel, given = sk.kernel(name, c), sk.arrays(name, 16)
            cpu, start = cpu_seconds(), time.perf_counter()
            kept[name] = jit.compile(kernel)
            kept[name](**given)
            tell(wall=time.perf_counter() - start, cpu=cpu_seconds() - cpu)
            sk.check(name, c, given)
        elif verb == "call":
            given, loops = sk.arrays("5-point", 4), int(words[0])
            call = Timer(
                "k(src=a, dst=b, w=w)", globals={"k": kept["5-point"], "a": given["src"], "b": given["dst"], "w": 0.5}
            )
            tell(seconds=call.timeit(loops) / loops)
        elif verb == "sweep":
            name, n = words[0], int(words[1])
            given = kept.setdefault((name, n), sk.arrays(name, n))
            start = time.perf_counter()
            kept[name](**given)
            tell(seconds=time.perf_counter() - start)


def race(directory: str, c: str) -> None:
    import stencilkernels as sk

    kernel, given = sk.kernel("5-point", float(c)), sk.arrays("5-point", 16)
    jit = sk.our_jit(directory)
    tell(ready=True)
    sys.stdin.readline()
    jit.compile(kernel)(**given)
    sk.check("5-point", float(c), given)
    tell(published=jit.objcache.stats.published)


if __name__ == "__main__":
    {"pystencils": pystencils, "race": race}[sys.argv[1]](*sys.argv[2:])
