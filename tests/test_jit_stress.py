"""The CPU JIT under stress: many processes, many kernels, killed processes, and C++ that hurts when it is unloaded.

Correctness only, bounded in time; ``benchmarks/cpu_jit.py`` does more of the same and measures.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import struct
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cachekit import Child, posix, together
from jitkernels import array, compilers, constant, each_compiler, needs_compiler, needs_openmp, pointer
from rekernel.compilers import CompilerInfo
from rekernel.errors import RekernelWarning
from rekernel.jit.cpu import CpuJit
from rekernel.jit.loading import load
from rekernel.kernel import Kernel
from rekernel.modulebuilder import Unit
from support import held, run_python

pytestmark = [posix, needs_compiler, pytest.mark.slow]
linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")

MARK = 0x1122334455667788
START = f"static const volatile long long version = {MARK};\n"
"""The constant that is replaced in the bytes of a compiled kernel: many different objects from one compile."""


def info_of(command: str) -> CompilerInfo:
    return next(info for info in compilers() if info.command == command)


def counting(code: str, **options: Any) -> Kernel:
    """A kernel that returns the version at its first call, and one more at each call after it."""
    return Kernel("hurt", (array("gone", "int64", written=True, order="C"),), "cpp", code=START + code,
                  slots=(pointer("gone"),), returns="int64", **options)  # fmt: skip


def versions(kernel: Kernel, info: CompilerInfo) -> Callable[[int], Any]:
    """Compile a kernel once, and return what makes the wrapper of a version of it."""
    jit = CpuJit(info, None)
    data = jit.obtain((kernel,), jit.module_builder.render_module(kernel, "rekernel_unit"), []).data
    mark = struct.pack("=q", MARK)
    assert data.count(mark) == 1

    def make(version: int) -> Any:
        library = load(data.replace(mark, struct.pack("=q", version)), "hurt")
        return jit.module_builder.get_wrapper(kernel, Unit(library, (kernel,)))

    return make


def resident_mb() -> float:
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


# --- many processes --------------------------------------------------------------------------------------------------


def compile_one(_number: int, directory: str, info: CompilerInfo) -> int:
    return CpuJit(info, directory).compile(constant(17))()


def test_eight_processes_that_want_one_new_kernel_run_one_compiler(tmp_path, monkeypatch):
    info = compilers()[0]
    shim, log = tmp_path / "shim" / info.command, tmp_path / "log"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {shutil.which(info.command)} "$@"\n')
    shim.chmod(0o700)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    assert together(8, compile_one, str(tmp_path / "cache"), info) == [17] * 8
    runs = [line.split() for line in log.read_text().splitlines()]
    assert len([words for words in runs if "-c" in words and "-###" not in words]) == 1


# --- many kernels ----------------------------------------------------------------------------------------------------


def many(directory: str, command: str) -> None:
    """Load, call and replace prebuilt kernels, and build some: nothing may be left."""
    jit, gone = CpuJit(info_of(command), directory), np.zeros(1, np.int64)
    make = versions(counting("long long hurt(long long *) { return version; }"), info_of(command))

    def load_and_build(first: int, loads: int, builds: int) -> None:
        current = None
        for number in range(first, first + loads):
            current = make(number)
            assert current(gone) == number
        for number in range(first, first + builds):
            current = jit.compile(constant(number))
            assert current() == number
        del current

    def files() -> list[str]:
        kept = Path(directory, "objects")
        every = [*Path(os.environ["TMPDIR"]).rglob("*"), *Path(directory).rglob("*")]
        return sorted(str(path) for path in every if kept not in path.parents)

    load_and_build(0, 50, 5)
    before, files_before, resident = held(), files(), resident_mb()
    load_and_build(1000, 300, 40)
    assert held() == before
    assert files() == files_before
    assert resident_mb() - resident <= 5
    print("fine")


@linux
def test_three_hundred_loads_and_forty_builds_leave_nothing(tmp_path):
    program = "import sys; from test_jit_stress import many; many(*sys.argv[1:])"
    (tmp_path / "tmp").mkdir()
    done = run_python(
        program, str(tmp_path / "cache"), compilers()[0].command, TMPDIR=str(tmp_path / "tmp"), PYTHONWARNINGS="error"
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_fifty_versions_alive_at_once_each_give_their_own_answer():
    code = "static long long n; long long hurt(long long *) { return version + n++; }"
    make = versions(counting(code), compilers()[0])
    gone, alive = np.zeros(1, np.int64), [(make(number * 100), number * 100) for number in range(50)]
    for call in range(3):
        random.Random(call).shuffle(alive)
        assert [wrapper(gone) for wrapper, _ in alive] == [number + call for _, number in alive]


# --- killed processes ------------------------------------------------------------------------------------------------


def in_silence(directory: str, number: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RekernelWarning)
        return CpuJit(compilers()[0], directory).compile(constant(number))()


def test_twenty_kills_while_building_and_the_next_run_works_at_once(tmp_path):
    moments = random.Random(3)
    start = time.perf_counter()
    assert Child(in_silence, str(tmp_path / "first"), 0).result() == 0
    usual = time.perf_counter() - start
    for number in range(1, 21):
        directory = str(tmp_path / f"cache{number // 5}")
        victim = Child(in_silence, directory, number)
        time.sleep(moments.random() * usual)
        victim.kill()
        start = time.perf_counter()
        assert Child(in_silence, directory, number).result() == number
        assert time.perf_counter() - start < 8 + usual  # whoever waited for the dead would wait ten seconds
    for directory in tmp_path.glob("cache*"):
        assert Child(in_silence, str(directory), 99).result() == 99
        assert [path for name in ("tmp", "locks") for path in directory.glob(f"{name}/*")] == []


# --- C++ that hurts --------------------------------------------------------------------------------------------------

HURTS = {
    "inline variable": "inline long long count = version;\nlong long hurt(long long *) { return count++; }",
    "template static": (
        "template <class T> struct Counted { static long long count; };\n"
        "template <class T> long long Counted<T>::count = version;\n"
        "long long hurt(long long *) { return Counted<int>::count++; }"
    ),
    "template static that others may see": (
        'template <class T> struct __attribute__((visibility("default"))) Counted { static long long count; };\n'
        "template <class T> long long Counted<T>::count = version;\n"
        "long long hurt(long long *) { return Counted<int>::count++; }"
    ),
    "static of an inline function": (
        "inline long long &count() { static long long n = version; return n; }\n"
        "long long hurt(long long *) { return count()++; }"
    ),
    "static with a destructor": (
        "struct Bye { long long count; long long *gone; ~Bye() { if (gone) ++*gone; } };\n"
        "Bye &bye() { static Bye one = {version, nullptr}; return one; }\n"
        "long long hurt(long long *gone) { bye().gone = gone; return bye().count++; }"
    ),
    "thread_local": ("static thread_local long long count = version;\nlong long hurt(long long *) { return count++; }"),
    "thread_local with a destructor": (
        "struct Bye { long long count; long long *gone; ~Bye() { if (gone) ++*gone; } };\n"
        "static thread_local Bye bye = {version, nullptr};\n"
        "long long hurt(long long *gone) { bye.gone = gone; return bye.count++; }"
    ),
    "caught exception": (
        "#include <stdexcept>\n#include <string>\nstatic long long count;\n"
        "long long hurt(long long *) {\n"
        "    try { throw std::runtime_error(std::to_string(version + count++)); }\n"
        "    catch (const std::exception &error) { return std::stoll(error.what()); }\n}"
    ),
    "std::vector": (
        "#include <vector>\nstatic std::vector<long long> all;\n"
        "long long hurt(long long *) { all.push_back(version + (long long)all.size()); return all.back(); }"
    ),
    "OpenMP": (
        "static long long count = version;\nlong long hurt(long long *) {\n    long long sum = 0;\n"
        "    #pragma omp parallel for reduction(+ : sum) num_threads(2)\n"
        "    for (int i = 0; i < 1000; ++i) sum += 1;\n    return count++ + sum - 1000;\n}"
    ),
}
DESTROYED = ("static with a destructor", "thread_local with a destructor")
SWAPS = 50


def swaps(name: str, command: str) -> None:
    """Replace a kernel 50 times; each version begins anew, and takes along what it had."""
    make = versions(counting(HURTS[name], openmp=name == "OpenMP"), info_of(command))
    gone = np.zeros(1, np.int64)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(gone))  # the last version writes to it when the process ends

    def twice(wrapper: Any, version: int) -> None:
        assert [wrapper(gone), wrapper(gone)] == [version, version + 1]

    before: dict[str, int] = {}
    current = None
    for number in range(SWAPS):
        if number == 5:
            before = held()
        following = make(number * 1000)
        if name == "thread_local with a destructor":  # in a thread that ends: until then it keeps the library
            in_a_thread(twice, following, number * 1000)
        else:
            twice(following, number * 1000)
        current = following  # the version before goes
        del following
    assert current is not None
    assert held() == before
    if name in DESTROYED:
        assert SWAPS - 1 <= gone[0] <= SWAPS
    print("fine")


def in_a_thread(action: Callable[..., None], *args: Any) -> None:
    failures: list[BaseException] = []

    def noting() -> None:
        try:
            action(*args)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=noting)
    thread.start()
    thread.join()
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # Python's part is done; destructors run after it
        time.sleep(0)
    assert failures == []


@linux
@each_compiler
@pytest.mark.parametrize("name", HURTS)
def test_what_hurts_is_gone_after_each_of_fifty_swaps_and_the_process_ends_well(name, info):
    if name == "OpenMP":
        needs_openmp(info)
    program = "import sys; from test_jit_stress import swaps; swaps(*sys.argv[1:])"
    done = run_python(program, name, info.command)
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_a_kernel_in_use_by_another_thread_survives_its_replacement():
    code = (
        "long long hurt(long long *n) {\n"
        "    long long sum = 0;\n    for (long long i = 0; i < *n; ++i) sum += version;\n    return sum;\n}"
    )
    make = versions(counting(code), compilers()[0])
    gone, answers = np.full(20_000, 10_000_000, np.int64), []  # so many elements that the GIL is released
    wrapper = make(1)
    threads = [threading.Thread(target=lambda call=wrapper: answers.append(call(gone))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2, 20):
        wrapper = make(number)
    for thread in threads:
        thread.join()
    assert answers == [10_000_000] * 4
    assert wrapper(gone) == 190_000_000
