"""What lasts on a device: memory over many reloads, launches during reloads, and life after a kernel went wrong."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gpukit import ADD, QUIET, cupy, new_loader, synchronize
from rekernel import KernelLoader, KernelSourceError
from rekernel.cuda import modules

pytestmark = QUIET

ROOMY = """
__device__ unsigned char room[1 << 20];  // so that a module that stays is seen
__global__ void put(int *x) {{
    room[threadIdx.x] = 1;
    x[0] = {} + room[threadIdx.x] - 1;
}}
"""
COUNTED = """
__global__ void count(int *calls, int *version) {{
    calls[0] += 1;
    version[0] = {};
}}
"""
FAR = """
__global__ void far(float *x, int64_t offset) { x[offset] = 1; }
__global__ void near(float *x, float value) { x[threadIdx.x] = value; }
"""
ILLEGAL = f'''
import json, os, sys
import cupy
from rekernel import KernelLoader
from rekernel.jit.gpu import CupyJit

loader = KernelLoader(jit=CupyJit(objcache=None))
m = loader.load("""{FAR}""", "broken")
x = cupy.zeros(32, "float32")
m.near[1, 32](x, 2.0)
before = float(x.sum())
m.far[1, 1](x, 1 << 44)
surfaced = ""
try:
    cupy.cuda.Device().synchronize()
except Exception as error:
    surfaced = str(error)
later = []
for number in range(3):
    try:
        m.near[1, 32](x, float(number))
        later.append(None)
    except Exception as error:
        later.append([isinstance(error, RuntimeError), str(error)])
print(json.dumps([before, surfaced, later]))
sys.stdout.flush()
os._exit(0)  # CuPy's own clearing up needs the context that is gone
'''


@pytest.fixture
def loader() -> Iterator[KernelLoader]:
    with new_loader() as made:
        yield made


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_1000_reloads_under_one_id_use_no_memory(loader: KernelLoader, record_property: Any) -> None:
    x, marks = cupy.zeros(1, "int32"), []
    for number in range(1101):
        loader.load(ROOMY.format(number), "m").put[1, 1](x)
        if number % 100 == 0:
            gc.collect()
            assert modules.drain()
            assert int(x[0]) == number
            marks.append((cupy.cuda.runtime.memGetInfo()[0], resident()))
    (free_first, resident_first), (free_last, resident_last) = marks[1], marks[-1]
    record_property("device_bytes", free_first - free_last)
    record_property("host_bytes", resident_last - resident_first)
    assert free_first - free_last < 32 << 20, f"free memory of the device, then bytes of the process: {marks}"
    assert resident_last - resident_first < 256 << 20, f"free memory of the device, then bytes of the process: {marks}"


def test_an_id_that_was_unloaded_leaves_no_module(loader: KernelLoader) -> None:
    x = cupy.zeros(1, "int32")
    loader.load(ROOMY.replace("1 << 20", "1 << 28").format(1), "m").put[1, 1](x)
    synchronize()
    loaded = cupy.cuda.runtime.memGetInfo()[0]
    loader.unload("m")
    gc.collect()
    assert modules.drain()
    assert cupy.cuda.runtime.memGetInfo()[0] - loaded >= 1 << 28


def test_launches_of_one_thread_go_on_while_another_reloads(loader: KernelLoader) -> None:
    kernel = loader.load(COUNTED.format(1), "m").count
    calls, version = cupy.zeros(1, "int32"), cupy.zeros(1, "int32")
    synchronize()
    done, problems = threading.Event(), []

    def reload() -> None:
        try:
            for number in range(2, 42):
                loader.load(COUNTED.format(number), "m")
                if number % 10 == 0:
                    with pytest.raises(KernelSourceError):
                        loader.load(COUNTED.format("typo"), "m")
        except BaseException as error:
            problems.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=reload)
    stream, launched = cupy.cuda.Stream(non_blocking=True), 0
    call = kernel[1, 1, stream]
    thread.start()
    while not done.is_set():
        call(calls, version)
        launched += 1
        if launched % 1000 == 0:
            stream.synchronize()  # or the queue would only grow
    thread.join()
    call(calls, version)
    stream.synchronize()
    assert problems == []
    assert int(calls[0]) == launched + 1
    assert int(version[0]) == 41
    assert kernel.version == 41


def test_a_broken_text_leaves_the_running_version(loader: KernelLoader) -> None:
    kernel, x = loader.load(ADD.format(3), "m").add, cupy.zeros(10, "int32")
    with pytest.raises(KernelSourceError, match=r"line 4.*no_such_name"):
        loader.load(ADD.format("no_such_name"), "m")
    kernel[1, 32](x)
    assert bool((x == 3).all())


def test_a_wrong_index_names_kernel_line_and_index_and_the_context_lives_on(loader: KernelLoader) -> None:
    text = (
        "__global__ void spread(rekernel::Array<float, 2> y, rekernel::Array<const float, 2> x) {\n"
        "    int i = blockIdx.x, j = threadIdx.x;\n"
        "    y(i, j) = x(i, j + 1);\n"
        "}\n"
    )
    kernel = loader.load(text, "heat", debug=True).spread
    x, y = cupy.ones((4, 6), "float32"), cupy.zeros((4, 6), "float32")
    wrong = r"heat\.spread\(\), line 3: index 6 is out of bounds for axis 1 with size 6 of an array of shape \(4, 6\)"
    for _ in range(3):
        with pytest.raises(IndexError, match=wrong):
            kernel[4, 6](y, x)
    kernel[4, 5](y, x)
    assert bool((y[:, :5] == 1).all())  # the context, and the arrays in it, are as they were
    loader.load(text.replace("j + 1", "j"), "heat", debug=True)
    kernel[4, 6](y, x)
    assert bool((y == 1).all())


def test_an_illegal_access_names_the_last_launches_and_later_calls_raise_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", ILLEGAL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    before, surfaced, later = json.loads(done.stdout.splitlines()[-1])
    assert before == 64
    assert surfaced, "the access was not illegal: the test needs another address"
    assert None not in later, "a launch succeeded in a context that is gone"
    assert [runtime for runtime, _message in later] == [True, True, True]
    first = later[0][1]
    assert "debug=True" in first
    assert "broken.far (version 1)" in first
    assert "broken.near (version 1)" in first
    assert first.index("broken.far") < first.index("broken.near"), "the latest launch comes first"
    assert [message for _runtime, message in later] == [first] * 3
