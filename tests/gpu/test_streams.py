"""Streams and CUDA graphs on a device: what a kernel reads was produced before, wherever that was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpukit import ADD, QUIET, SCALE, SLOW_CYCLES, External, cupy, library, new_loader, produce, synchronize
from rekernel import KernelLoader
from rekernel.cuda import modules

pytestmark = QUIET


@pytest.fixture
def loader() -> Iterator[KernelLoader]:
    with new_loader() as made:
        yield made


def arrays() -> tuple[Any, Any]:
    x, y = cupy.zeros(256, "float32"), cupy.zeros(256, "float32")
    synchronize()
    return x, y


# ---- streams ----


def test_cupys_current_stream_is_used(loader: KernelLoader) -> None:
    kernel, (x, y), found = loader.load(SCALE).scale, arrays(), []
    with cupy.cuda.Stream(non_blocking=True) as side:
        for turn in range(1, 21):
            produce(x, turn)
            kernel[1, 256](y, x, 2.0)
            found.append(y.copy())
        side.synchronize()
    assert [turn for turn, y in enumerate(found, 1) if not (y == 2 * turn).all()] == []


def test_a_kernel_on_another_stream_would_have_been_too_early(loader: KernelLoader) -> None:
    """What the test above and the tests below rest on: values are really produced late."""
    kernel, (x, y) = loader.load(SCALE).scale, arrays()
    kernel[1, 256](y, x, 2.0)
    synchronize()
    with cupy.cuda.Stream(non_blocking=True) as side:
        produce(x, 7)
        kernel[1, 256, cupy.cuda.Stream.null](y, x, 2.0)
        cupy.cuda.Stream.null.synchronize()
        early = y.get(stream=cupy.cuda.Stream.null)
        side.synchronize()
    assert (early == 0).all()


def test_pytorchs_side_stream_with_a_slow_producer_gives_the_produced_values_100_times(loader: KernelLoader) -> None:
    torch, kernel = library("torch"), loader.load(SCALE).scale
    x, y = torch.zeros(1 << 16, device="cuda"), torch.zeros(1 << 16, device="cuda")
    side, found = torch.cuda.Stream(), []
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for turn in range(1, 101):
            torch.cuda._sleep(SLOW_CYCLES)
            x.fill_(turn)
            kernel[256, 256](y, x, 2.0)
            found.append(y.clone())
    side.synchronize()
    assert [turn for turn, y in enumerate(found, 1) if not bool((y == 2 * turn).all())] == []


def stream_of(kind: str) -> tuple[Any, int]:
    """A stream as it stands in brackets, and its address."""
    if kind == "torch":
        made = library("torch").cuda.Stream()
        return made, made.cuda_stream
    if kind == "numba":
        made = library("numba.cuda").stream()
        return made, int(made.__cuda_stream__()[1] if hasattr(made, "__cuda_stream__") else made.handle.value)
    made = cupy.cuda.Stream(non_blocking=True)
    return (made if kind == "cupy" else External(made.ptr, made)), made.ptr


@pytest.mark.parametrize("kind", ["cupy", "torch", "numba", "protocol"])
def test_the_stream_in_the_brackets_is_used(loader: KernelLoader, kind: str) -> None:
    kernel, (x, y), (stream, address) = loader.load(SCALE).scale, arrays(), stream_of(kind)
    theirs = cupy.cuda.Stream.from_external(External(address))
    call = kernel[1, 256, stream]
    for turn in range(1, 11):
        with theirs:
            produce(x, turn)
        call(y, x, 2.0)
        theirs.synchronize()
        assert bool((y == 2 * turn).all()), turn


def test_a_stream_may_be_given_by_its_address(loader: KernelLoader) -> None:
    kernel, (x, y), stream = loader.load(SCALE).scale, arrays(), cupy.cuda.Stream(non_blocking=True)
    for turn in range(1, 11):
        with stream:
            produce(x, turn)
        kernel[1, 256, stream.ptr](y, x, 2.0)
        stream.synchronize()
        assert bool((y == 2 * turn).all()), turn


@pytest.mark.parametrize("brackets", [False, True])
def test_the_default_stream_of_the_thread(loader: KernelLoader, brackets: bool) -> None:
    kernel, (x, y), own = loader.load(SCALE).scale, arrays(), cupy.cuda.Stream.ptds
    for turn in range(1, 11):
        with own:
            produce(x, turn)
            if not brackets:
                kernel[1, 256](y, x, 2.0)
        if brackets:
            kernel[1, 256, own](y, x, 2.0)
        own.synchronize()
        assert bool((y == 2 * turn).all()), turn


def test_every_thread_launches_on_its_own_stream(loader: KernelLoader) -> None:
    kernel = loader.load(SCALE).scale

    def run(offset: int) -> list[int]:
        wrong = []
        with cupy.cuda.Stream(non_blocking=True) as stream:
            x, y = cupy.zeros(256, "float32"), cupy.zeros(256, "float32")
            for turn in range(offset, offset + 50):
                produce(x, turn)
                kernel[1, 256](y, x, 2.0)
                if not (y.get(stream=stream) == 2 * turn).all():
                    wrong.append(turn)
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, [0, 1000, 2000, 3000])) == [[], [], [], []]


def test_work_on_the_stream_of_an_interface_is_waited_for(loader: KernelLoader) -> None:
    kernel, (x, y), stream = loader.load(SCALE).scale, arrays(), cupy.cuda.Stream(non_blocking=True)

    class Theirs:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            return {
                "shape": (256,), "typestr": "<f4", "data": (x.data.ptr, False), "strides": None, "version": 3,
                "stream": stream.ptr,
            }  # fmt: skip

    for turn in range(1, 11):
        with stream:
            produce(x, turn)
        kernel[1, 256](y, Theirs(), 2.0)  # on CuPy's current stream, the default one
        synchronize()
        assert bool((y == 2 * turn).all()), turn


# ---- graphs ----


@pytest.mark.parametrize("mode", ["Relaxed", "ThreadLocal", "Global"])
def test_a_captured_launch_is_replayed_also_after_reloads(loader: KernelLoader, mode: str) -> None:
    kernel, x = loader.load(ADD.format(1), "m").add, cupy.zeros(100, "int32")
    kernel[1, 128](x)
    synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture(getattr(cupy.cuda.runtime, f"streamCaptureMode{mode}"))
        try:
            kernel[1, 128](x)
            kernel[1, 128](x)
        finally:
            graph = stream.end_capture()
    assert int(x[0]) == 1, "a captured launch ran at once"
    graph.launch(stream)
    stream.synchronize()
    assert bool((x == 3).all())
    for number in range(2, 8):
        loader.load(ADD.format(number * 1000), "m").add[1, 128](x[:0])
    gc.collect()
    assert modules.drain()
    kernel[1, 128](x)
    synchronize()
    assert bool((x == 7003).all())
    for _ in range(10):
        graph.launch(stream)
    stream.synchronize()
    assert bool((x == 7023).all())


def test_a_graph_of_pytorch_is_replayed_also_after_reloads(loader: KernelLoader) -> None:
    torch, kernel = library("torch"), loader.load(ADD.format(1), "m").add
    x = torch.zeros(100, dtype=torch.int32, device="cuda")
    kernel[1, 128](x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel[1, 128](x)
        x.mul_(2)
        kernel[1, 128](x)
    for _ in range(2):
        graph.replay()
    torch.cuda.synchronize()
    assert bool((x == 13).all())  # 1, then twice: plus 1, times 2, plus 1
    for number in range(2, 6):
        loader.load(ADD.format(number * 1000), "m").add[1, 128](x[:0])
    gc.collect()
    assert modules.drain()
    graph.replay()
    torch.cuda.synchronize()
    assert bool((x == 29).all())


@pytest.mark.parametrize("mode", ["Relaxed", "ThreadLocal", "Global"])
def test_a_version_that_goes_during_a_capture_does_not_break_it(loader: KernelLoader, mode: str) -> None:
    kernel, x = loader.load(ADD.format(1), "m").add, cupy.zeros(100, "int32")
    kernel[1, 128](x)
    loader.load(ADD.format(50), "other").add[1, 128](x)
    synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture(getattr(cupy.cuda.runtime, f"streamCaptureMode{mode}"))
        try:
            kernel[1, 128](x)
            loader.unload("other")
            gc.collect()
            modules.drain(0.5)  # whether it is unloaded now or later
            kernel[1, 128](x)
        finally:
            graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    assert bool((x == 53).all())
    assert modules.drain()
