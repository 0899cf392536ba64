"""Processes of their own that live long: what thousands of kernels leave behind, and what killed ones do.

python benchmarks/jitholds.py growth PREBUILT COMPILES
python benchmarks/jitholds.py kills COUNT
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jitkit import Held
from jitstencil import W, WrongResultError, arrays, check, expected, fresh, kernel, small

from rekernel import CpuJit, GccInfo, RekernelWarning
from rekernel.jit.loading import load as loaded
from rekernel.modulebuilder import Unit

WARM = 300
"""Loads before counting begins: what is allocated once and kept is there by then."""
MARK = 1234567.890625
"""The constant that is replaced in the bytes of a compiled kernel."""


def growth(prebuilt: int, compiles: int) -> dict[str, Any]:
    place = tempfile.mkdtemp()
    jit = CpuJit(GccInfo(), place)
    value, (dst, src) = small(MARK), arrays(4)
    template = jit.obtain((value,), jit.module_builder.render_module(value, "rekernel_unit"), []).data
    assert template.count(struct.pack("<d", MARK)) == 1

    def made(c: float) -> Any:
        data = template.replace(struct.pack("<d", MARK), struct.pack("<d", c))
        return jit.module_builder.get_wrapper(value, Unit(loaded(data, "first"), (value,)))

    def answer(wrapper: Any, c: float) -> None:
        wrapper(dst, src, W)
        check(dst[-1, 0], W * src[-1, 0] + c)

    def load(count: int) -> None:
        current = None
        for _ in range(count):
            c = next(fresh)
            current = made(c)  # the one before goes
            answer(current, c)

    def build(count: int) -> None:
        current = None
        for _ in range(count):
            c = next(fresh)
            current = jit.compile(small(c))
            answer(current, c)

    load(WARM)
    build(10)
    watched = (tempfile.gettempdir(), "/dev/shm")
    before = Held.now(*watched)
    start = time.perf_counter()
    load(prebuilt)
    middle = time.perf_counter()
    build(compiles)
    built = time.perf_counter()
    alive = _alive_at_once(made, answer)
    after = Held.now(*watched)
    # What the cache keeps is there to stay; in memory, others have files, too.
    more = [path for path in set(after.files) - set(before.files) if not path.startswith(f"{place}/objects")]
    more = [path for path in more if not path.startswith("/dev/shm/") or "/rekernel-" in path]
    return {
        "grown_mb": after.resident_mb - before.resident_mb,
        "descriptors": after.descriptors - before.descriptors,
        "mappings": after.mappings - before.mappings,
        "threads": after.threads - before.threads,
        "files": len(more),
        "load_us": (middle - start) / prebuilt * 1e6,
        "build_ms": (built - middle) / compiles * 1e3,
        "alive": alive,
    }


def _alive_at_once(made: Callable[[float], Any], answer: Callable[[Any, float], None]) -> int:
    """Return how many of 50 versions give their own answer while all are alive, called in any order."""
    constants = [next(fresh) for _ in range(50)]
    versions = [(made(c), c) for c in constants]
    good = 0
    random.Random(6).shuffle(versions)
    for version, c in versions:
        try:
            answer(version, c)
            good += 1
        except WrongResultError:
            continue
    return good


def kills(count: int) -> dict[str, Any]:
    """Fork children that build and publish, and kill them after a time that is drawn from that of a whole build."""
    directory, draw = tempfile.mkdtemp(), random.Random(7)
    alone = [_run(directory, next(fresh))[0] for _ in range(10)]
    usual = sorted(alone)[len(alone) // 2]
    finished, bad, left, after = 0, 0, 0, []
    for number in range(count):
        if number % 10 == 0:  # an empty cache, in which the compiler is still to be asked what it is
            left += _left_over(directory)
            directory = tempfile.mkdtemp()
        c = next(fresh)
        pid = _forked(lambda: _result(directory, c))  # noqa: B023 - called at once
        time.sleep(draw.random() * usual * 1.2)
        os.kill(pid, signal.SIGKILL)
        finished += os.waitpid(pid, 0)[1] == 0
        spent, good = _run(directory, c)
        after.append(spent)
        bad += not good
    left += _left_over(directory)
    when = f"{finished} of {count} had ended before"
    return {"killed": count - finished, "when": when, "next": after, "alone": alone, "bad": bad, "left": left}


def _left_over(directory: str) -> int:
    """Return how many files there are that no entry and no fact about a compiler is in, after a new start."""
    _run(directory, next(fresh))
    files = [path for path in Path(directory).rglob("*") if path.is_file()]
    inside = [path for path in files if path.parent.parent.parent.name != "objects"]
    known = ("CACHEDIR.TAG", "ledger")
    return len([path for path in inside if path.name not in known and path.suffix != ".json"])


def _result(directory: str, c: float) -> None:
    dst, src = arrays()
    CpuJit(GccInfo(), directory).compile(kernel(c))(dst, src, W)
    check(dst[1:-1, 1:-1], expected(src, c))


def _run(directory: str, c: float) -> tuple[float, bool]:
    """Return how long a new process needs, and whether all went well and in silence."""
    start = time.perf_counter()
    pid = _forked(lambda: _silent(lambda: _result(directory, c)))
    status = os.waitpid(pid, 0)[1]
    return time.perf_counter() - start, status == 0


def _silent(action: Callable[[], None]) -> None:
    warnings.simplefilter("error", RekernelWarning)
    with _heard() as told:
        action()
    assert not told, told


@contextmanager
def _heard() -> Iterator[list[str]]:
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("rekernel").addHandler(handler)
    yield told


def _forked(action: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return pid


if __name__ == "__main__":
    mode = {one.__name__: one for one in (growth, kills)}[sys.argv[1]]
    print(json.dumps(mode(*map(int, sys.argv[2:]))), flush=True)
