"""Processes of their own: pystencils on demand, a new process with a warm cache, one of eight that want one kernel.

    python benchmarks/jitchild.py pystencils DIRECTORY           answers each line of stdin
    python benchmarks/jitchild.py first DIRECTORY CONSTANT       and first_pystencils, first_by_hand LIBRARY CONSTANT
    python benchmarks/jitchild.py race DIRECTORY CONSTANT        and race_pystencils; begins at a line of stdin

pystencils must not run in the process of the others: what it links sets the whole process to flush denormal numbers.
Modules are imported where they are needed, because here importing is a part of what is measured.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy  # times begin after it


def tell(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def checked(dst: Any, src: Any, constant: str) -> None:
    from jitstencil import check, expected

    check(dst[1:-1, 1:-1], expected(src, float(constant)))


def pystencils_kernel(c: float) -> Any:
    """Return the stencil as a kernel of pystencils."""
    import pystencils as ps
    import sympy

    src, dst = ps.fields("src, dst: double[2D]", layout="c")
    near = src[-1, 0] + src[1, 0] + src[0, -1] + src[0, 1]
    step = ps.Assignment(dst[0, 0], sympy.Symbol("w") * near + c * src[0, 0])
    return ps.create_kernel(step, ps.CreateKernelConfig(ghost_layers=1))


def pystencils_jit(directory: str) -> Any:
    from pystencils.jit import CpuJit

    Path(directory).mkdir(parents=True, exist_ok=True)
    return CpuJit(objcache=directory)


def pystencils(directory: str) -> None:
    """Answer ``cold C`` with the times from kernel value to first result, ``call LOOPS`` with the time of a call."""
    from timeit import Timer

    from jitkit import cpu_seconds
    from jitstencil import arrays

    jit, (dst, src) = pystencils_jit(directory), arrays(4)
    wrapper: Any = None
    for line in sys.stdin:
        verb, value = line.split()
        if verb == "cold":
            kernel = pystencils_kernel(float(value))
            cpu, start = cpu_seconds(), time.perf_counter()
            wrapper = jit.compile(kernel)
            wrapper(dst=dst, src=src, w=0.25)
            wall, cpu = time.perf_counter() - start, cpu_seconds() - cpu
            checked(dst, src, value)
            tell(wall=wall, cpu=cpu)
        else:
            timer = Timer("f(dst=dst, src=src, w=0.25)", globals={"f": wrapper, "dst": dst, "src": src})
            tell(each=timer.timeit(int(value)) / int(value))


def first(directory: str, constant: str) -> None:
    """Measure from importing rekernel to a first result."""
    began = time.perf_counter()
    from jitstencil import arrays, kernel

    from rekernel import CpuJit

    value, (dst, src) = kernel(float(constant)), arrays()
    start = time.perf_counter()
    wrapper = CpuJit(None, directory).compile(value)
    wrapper(dst, src, 0.25)
    end = time.perf_counter()
    checked(dst, src, constant)
    tell(all=end - began, own=end - start, cached=wrapper.from_cache)


def first_pystencils(directory: str, constant: str) -> None:
    """Measure the same for pystencils, whose kernel has to be generated again to be found."""
    began = time.perf_counter()
    import pystencils  # noqa: F401

    dst, src = numpy.zeros((64, 64)), numpy.arange(64.0 * 64).reshape(64, 64) % 97
    value = pystencils_kernel(float(constant))
    start = time.perf_counter()
    wrapper = pystencils_jit(directory).compile(value)
    wrapper(dst=dst, src=src, w=0.25)
    end = time.perf_counter()
    checked(dst, src, constant)
    tell(all=end - began, own=end - start)


def first_by_hand(library: str, constant: str) -> None:
    """Measure the least that is possible: a library of one's own, called through ctypes."""
    from jitstencil import arrays, by_hand

    dst, src = arrays()
    start = time.perf_counter()
    by_hand(library)(dst, src, 0.25)
    end = time.perf_counter()
    checked(dst, src, constant)
    tell(all=end - start, own=end - start)


def race(directory: str, constant: str) -> None:
    """Compile one kernel when told to."""
    from jitstencil import arrays, kernel

    from rekernel import CpuJit

    value, jit, (dst, src) = kernel(float(constant)), CpuJit(None, directory), arrays()
    tell(ready=True)
    sys.stdin.readline()
    start = time.perf_counter()
    jit.compile(value)(dst, src, 0.25)
    end = time.perf_counter()
    checked(dst, src, constant)
    tell(wall=end - start)


def race_pystencils(directory: str, constant: str) -> None:
    """Do the same with pystencils."""
    from jitstencil import arrays

    value, jit, (dst, src) = pystencils_kernel(float(constant)), pystencils_jit(directory), arrays()
    tell(ready=True)
    sys.stdin.readline()
    start = time.perf_counter()
    jit.compile(value)(dst=dst, src=src, w=0.25)
    end = time.perf_counter()
    checked(dst, src, constant)
    tell(wall=end - start)


if __name__ == "__main__":
    modes = (pystencils, first, first_pystencils, first_by_hand, race, race_pystencils)
    {mode.__name__: mode for mode in modes}[sys.argv[1]](*sys.argv[2:])
