"""Whether a compiler can build OpenMP code: by trying."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rekernel.calling import call
from rekernel.found import Toolchain
from rekernel.process import working

__all__ = ["openmp_works"]

_OPENMP = """#include <omp.h>
extern "C" int rk_openmp_test() {
    int n = 0;
    #pragma omp parallel reduction(+ : n)
    n += omp_get_num_threads();
    return n;
}
"""
_openmp: dict[tuple[Any, ...], bool] = {}


def openmp_works(toolchain: Toolchain, workdir: str | os.PathLike[str] | None = None) -> bool:
    """Return whether the compiler can build OpenMP code. Tried once, when it is first asked."""
    key = (toolchain.identity, toolchain.stamps)
    if key not in _openmp:
        with working(workdir) as place:
            Path(place, "unit.cpp").write_text(_OPENMP)
            base = [*toolchain.command, "-fopenmp", "-fPIC", "-shared", "unit.cpp", "-o", "unit.so"]
            _openmp[key] = call(base, place, toolchain.environment).returncode == 0
    return _openmp[key]
