"""A new process that finds its kernel in the cache: from the context to the first result.

    python benchmarks/gpuchild.py CACHE_DIRECTORY TEXT_FILE NUMBER

Prints one line of JSON, in ms: importing rekernel, loader and load, call and result, all of it.
"""

from __future__ import annotations

import json
import sys
import time


def main(directory: str, path: str, number: str) -> None:
    import cupy

    with open(path, encoding="utf-8") as file:
        text = file.read()
    x, y = cupy.zeros(16), cupy.zeros(16)
    y.get()  # the context is there, and the way back to the host has been gone once
    cupy.cuda.Device().synchronize()

    begin = time.perf_counter()
    from rekernel import KernelLoader
    from rekernel.jit.gpu import CupyJit

    imported = time.perf_counter()
    module = KernelLoader(jit=CupyJit(objcache=directory)).load(text, "warm", language="cuda")
    loaded = time.perf_counter()
    module.cold[1, 32](y, x, 1.0, 16)
    found = float(y.get()[1])
    end = time.perf_counter()

    import rekernel

    times = (imported - begin, loaded - imported, end - loaded, end - begin)
    print(json.dumps({
        "import": 1e3 * times[0], "load": 1e3 * times[1], "call": 1e3 * times[2], "all": 1e3 * times[3],
        "from_cache": rekernel.info(module).from_cache, "right": found == float(number),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
