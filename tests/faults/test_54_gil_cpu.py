"""Row 54: other threads run while a C++ kernel of real work runs, and while the compiler does."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref

import numpy as np
import pytest

from jitkernels import array, constant, needs_compiler, pointer, scalar, value
from rekernel.compilers import CompilerInfo
from rekernel.jit import CpuJit
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder

WAITS = Kernel(
    "waits", (array("flags", "int32", written=True), scalar("turns", "int64")), "cpp", returns="int32",
    code="""int waits(int *flags, long long turns) {
    __atomic_store_n(&flags[0], 1, __ATOMIC_SEQ_CST);
    for (long long i = 0; i < turns; ++i)
        if (__atomic_load_n(&flags[1], __ATOMIC_SEQ_CST)) return 1;
    return 0;
}
""",
    slots=(pointer("flags"), value("turns")),
)  # fmt: skip
"""Says that it runs, and waits until somebody answers or its patience ends."""
PATIENT = 3 * 10**10
IMPATIENT = 3 * 10**7


@pytest.fixture(scope="module")
def waits():
    return CpuJit(objcache=None).compile(WAITS)


def answered(waits, size: int, turns: int) -> int:
    """Call the kernel while another thread wants to answer it, and return whether it could."""
    flags = np.zeros(size, "i4")

    def answer():
        while not flags[0]:
            pass
        flags[1] = 1

    thread = threading.Thread(target=answer)
    thread.start()
    result = waits(flags, turns)
    thread.join()
    return result


@needs_compiler
def test_a_kernel_of_real_work_lets_others_run(waits):
    assert answered(waits, 16384, PATIENT) == 1


@needs_compiler
def test_a_small_kernel_keeps_the_gil(waits):
    assert answered(waits, 16383, IMPATIENT) == 0  # nobody could answer


@needs_compiler
def test_several_kernels_run_at_once(waits):
    flags = [np.zeros(20_000, "i4") for _ in range(3)]
    results = []
    threads = [threading.Thread(target=lambda f=f: results.append(waits(f, PATIENT))) for f in flags]
    for thread in threads:
        thread.start()
    while not all(f[0] for f in flags):  # all three are inside
        pass
    for f in flags:
        f[1] = 1
    for thread in threads:
        thread.join()
    assert results == [1, 1, 1]


@needs_compiler
def test_arguments_stay_alive_while_the_gil_is_free(waits):
    holder = [np.zeros(20_000, "i4")]
    flags, alive, results = holder[0], weakref.ref(holder[0]), []
    raw = flags.ctypes.data
    thread = threading.Thread(target=lambda: results.append(waits(holder.pop(), PATIENT)))
    thread.start()
    while not flags[0]:
        pass
    view = flags[:2]  # keeps the memory, so that this test itself is safe
    del flags
    gc.collect()
    assert alive() is not None
    assert not holder
    assert view.ctypes.data == raw
    view[1] = 1
    thread.join()
    assert results == [1]


@needs_compiler
def test_a_kernel_that_is_dropped_during_a_call_runs_to_its_end():
    holder = [CpuJit(objcache=None).compile(WAITS)]
    flags, results = np.zeros(20_000, "i4"), []
    thread = threading.Thread(target=lambda: results.append(holder.pop()(flags, PATIENT)))
    thread.start()
    while not flags[0]:
        pass
    gc.collect()
    assert not holder
    flags[1] = 1
    thread.join()
    assert results == [1]


@needs_compiler
def test_nogil_is_the_callers_choice():
    from rekernel import _native
    from rekernel.jit.calltable import rows

    data = CpuJit(objcache=None).obtain([WAITS], LibraryBuilder().render_module(WAITS, ""), []).data
    library = _native.Library(data, name="waits")
    held = _native.Function(library, "rk_waits_0", "waits", *rows(WAITS), returns="int32", nogil=False)
    free = _native.Function(library, "rk_waits_0", "waits", *rows(WAITS), returns="int32", nogil=True)
    flags = np.zeros(20_000, "i4")
    setter = threading.Thread(target=lambda: flags.__setitem__(1, int(flags[0])))
    setter.start()
    setter.join()
    assert held(flags, 10) == 0
    small, results = np.zeros(2, "i4"), []
    thread = threading.Thread(target=lambda: results.append(free(small, PATIENT)))
    thread.start()
    while not small[0]:
        pass
    small[1] = 1
    thread.join()
    assert results == [1]


@needs_compiler
def test_others_run_while_the_compiler_does(tmp_path):
    info = CompilerInfo.get_default()
    started, go, script = tmp_path / "started", tmp_path / "go", tmp_path / "compiler"
    waiting = f'case "$*" in *-c*) touch {started}; until [ -e {go} ]; do :; done;; esac'
    script.write_text(f'#!/bin/sh\n{waiting}\nexec {shutil.which(info.command)} "$@"\n')
    script.chmod(0o755)
    info.command = str(script)

    def answer():
        while not started.exists():
            pass
        go.touch()

    thread = threading.Thread(target=answer)
    thread.start()
    assert CpuJit(info, None).compile(constant(1))() == 1  # would never end if it kept the GIL
    thread.join()
