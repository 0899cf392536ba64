"""CUDA texts in a loader, with a driver that only remembers: launches, reloads, checks, variables, unloading."""

from __future__ import annotations

import ctypes
import gc
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cppkit import until
from cudakit import CONTEXT, FUNCTION, CupyArray, FakeCuda, cuda_fixture, cupy_fixture, launch, numbers  # noqa: F401
from rekernel import ArgumentTypeError, ArgumentValueError, KernelLoader, ToolchainError
from rekernel.cuda import devices
from rekernel.languages.cuda import checked
from rekernel.launchgrid import LaunchGrid
from test_cuda_texts import Jit, pytestmark  # noqa: F401

STEP = """
__constant__ float weights[3];
__global__ void step(rekernel::Array<float, 2> y, rekernel::Array<const float, 2> x, float k) {
    y(0, 0) = k * x(0, 0) * weights[1];
}
"""


class FakeDriver:
    """What loads and unloads, in the place of `rekernel.cuda.driver.Driver`."""

    def __init__(self) -> None:
        self.loaded: list[bytes] = []
        self.unloaded: list[int] = []
        self.memory: dict[str, bytearray] = {}
        self.names: list[str] = []
        self.asked: list[tuple[int, str]] = []
        self.capturing: set[int] = set()
        self.waited: list[int] = []

    def capability(self, device: int) -> int:
        return 90

    def current_device(self) -> int | None:
        return 0

    def context(self, device: int) -> int:
        return CONTEXT + device

    @contextmanager
    def inside(self, context: int) -> Iterator[None]:
        yield

    def load(self, image: bytes) -> int:
        self.loaded.append(image)
        return len(self.loaded)

    def unload(self, module: int) -> None:
        self.unloaded.append(module)

    def function(self, module: int, name: str, device: int) -> int:
        self.asked.append((module, name))
        return FUNCTION + device

    def synchronize(self) -> None:
        pass

    def synchronize_stream(self, stream: int) -> None:
        self.waited.append(stream)

    def is_capturing(self, stream: int) -> bool:
        return stream in self.capturing

    def call(self, function: str, *arguments: Any) -> None:
        if function == "cuModuleGetGlobal_v2":
            name = arguments[3].decode()
            self.memory.setdefault(name, bytearray(1024))
            self.names.append(name)
            arguments[0]._obj.value = len(self.names) - 1
        elif function == "cuMemcpyHtoD_v2":
            data = arguments[1][: arguments[2].value]
            self.memory[self.names[arguments[0].value]][: len(data)] = data
        else:
            assert function == "cuMemcpyDtoH_v2"
            ctypes.memmove(arguments[0], bytes(self.memory[self.names[arguments[1].value]]), arguments[2].value)


@pytest.fixture
def driver(cuda: FakeCuda, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    here = SimpleNamespace(
        driver=made, native=cuda.driver, capability=made.capability, context=made.context, current=lambda: 0
    )
    monkeypatch.setattr(devices, "devices", lambda: here)
    return made


@pytest.fixture
def loader(driver: FakeDriver) -> KernelLoader:
    return KernelLoader(jit=Jit())


def test_a_launch_passes_arrays_as_structs_and_scalars_by_value(cuda: FakeCuda, loader: KernelLoader) -> None:
    y, x = CupyArray((4, 6), "float32"), CupyArray((4, 6), "float32", strides=(96, 8))
    cuda.sizes(40, 40, 4)
    kernel = loader.load(STEP).step
    kernel[LaunchGrid.cover((4, 6), (2, 8))](y, x, 2)
    assert numbers(cuda, "q4qq4qf") == (y.data.ptr, 4, 6, 6, 1, x.data.ptr, 4, 6, 24, 2, 2.0)
    assert (tuple(cuda.last().grid), tuple(cuda.last().block)) == ((3, 1, 1), (2, 8, 1))


def test_shared_memory_and_stream_are_those_of_the_brackets(cuda: FakeCuda, loader: KernelLoader) -> None:
    kernel = loader.load("__global__ void k(int *x) { extern __shared__ int s[]; x[0] = s[0]; }").k
    launch(kernel, 1, 32, 7, 4096)(CupyArray(3, "int32"))
    assert (cuda.last().stream, cuda.last().shared) == (7, 4096)


def test_the_module_is_loaded_once_for_each_device(cuda: FakeCuda, loader: KernelLoader, driver: FakeDriver) -> None:
    kernel = loader.load("__global__ void a(int *x) {}\n__global__ void b(int *x) {}", "m")
    assert driver.loaded == []
    for device in (0, 0, 1, 1):
        kernel.a[1, 1](CupyArray(3, "int32", device=device))
        kernel.b[1, 1](CupyArray(3, "int32", device=device))
    assert len(driver.loaded) == 2
    assert driver.asked == [(1, "_Z1aPi"), (1, "_Z1bPi"), (2, "_Z1aPi"), (2, "_Z1bPi")]
    assert all(image.startswith(b"\x7fELF") for image in driver.loaded)


def test_the_arguments_choose_among_the_types_of_a_template(cuda: FakeCuda, loader: KernelLoader, driver: Any) -> None:
    text = "template <class T> __global__ void k(T *x, T a) {}\n" + "".join(
        f"template __global__ void k<{name}>({name} *, {name});\n" for name in ("float", "double", "int")
    )
    kernel = loader.load(text).k
    for dtype in ("float64", "int32", "float32"):
        kernel[1, 1](CupyArray(3, dtype), 1)
    assert [name for _module, name in driver.asked] == ["_Z1kIdEvPT_S0_", "_Z1kIiEvPT_S0_", "_Z1kIfEvPT_S0_"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k, y: k(y, y, 1), TypeError, r"step needs a launch grid: step\[LaunchGrid\.cover\(y\.shape\)\]"),
        (lambda k, y: k((1,), (2,), (y, y, 1)), TypeError, r"in brackets: step\[\(1,\), \(2,\)\]"),
        (lambda k, y: k[1, 1](np.zeros((2, 2), "f4"), y, 1), ArgumentTypeError, r"host memory.*cupy\.asarray"),
        (lambda k, y: k[1, 1](y, y, 1.5j), ArgumentTypeError, "k"),
        (lambda k, y: k[1, 1](CupyArray((2, 2), "float64"), y, 1), ArgumentTypeError, "float64"),
        (lambda k, y: k[1, 1](CupyArray(4, "float32"), y, 1), ArgumentValueError, "dimension"),
        (lambda k, y: k[1, 1](y, CupyArray((2, 2), "float32", device=1), 1), ArgumentValueError, "device 1"),
        (lambda k, y: k[1, 1025](y, y, 1), ArgumentValueError, "1024"),
    ],
)
def test_a_wrong_call_launches_nothing(call: Any, error: Any, message: str, cuda: FakeCuda, loader: Any) -> None:
    kernel = loader.load(STEP).step
    with pytest.raises(error, match=message):
        call(kernel, CupyArray((2, 2), "float32"))
    assert cuda.count == 0


def test_a_kept_launch_follows_the_reload(cuda: FakeCuda, loader: KernelLoader, driver: FakeDriver) -> None:
    text = "__global__ void k(int *x) { x[0] = 1; }"
    kept = loader.load(text, "m").k[1, 1]
    pinned = loader["m"].k.pinned()
    x = CupyArray(3, "int32")
    kept(x)
    loader.load(text.replace("1;", "2;"), "m")
    kept(x)
    pinned[1, 1](x)
    assert [module for module, _name in driver.asked] == [1, 2]
    assert loader["m"].k.version == 2


def test_a_wrong_text_keeps_the_version_before(cuda: FakeCuda, loader: KernelLoader) -> None:
    kernel = loader.load("__global__ void k(int *x) {}", "m").k
    with pytest.raises(Exception, match="v1 keeps running"):
        loader.load("__global__ void k(int *x) { wrong; }", "m")
    kernel[1, 1](CupyArray(3, "int32"))
    assert (cuda.count, kernel.version) == (1, 1)


def test_the_version_before_comes_back_without_being_compiled(loader: KernelLoader, driver: FakeDriver) -> None:
    texts = [f"__global__ void k(int *x) {{ x[0] = {n}; }}" for n in (1, 2)]
    for text in (*texts, texts[0]):
        loader.load(text, "m").k[1, 1](CupyArray(3, "int32"))
    assert len(driver.loaded) == 2
    loader.rollback("m")
    loader["m"].k[1, 1](CupyArray(3, "int32"))
    assert len(driver.loaded) == 2


def test_modules_go_with_the_last_that_can_launch_them(loader: KernelLoader, driver: FakeDriver) -> None:
    x = CupyArray(3, "int32")
    for number in range(5):
        loader.load(f"__global__ void k(int *x) {{ x[0] = {number}; }}", "m").k[1, 1](x)
    gc.collect()
    until(lambda: sorted(driver.unloaded) == [1, 2, 3])
    loader.cleanup_all()
    gc.collect()
    until(lambda: sorted(driver.unloaded) == [1, 2, 3, 4, 5])


def test_what_a_graph_has_captured_stays_until_cleanup_all(
    cuda: FakeCuda, loader: KernelLoader, driver: FakeDriver
) -> None:
    cuda.capture(7)
    launch(loader.load("__global__ void k(int *x) { x[0] = 0; }", "m").k, 1, 1, 7)(CupyArray(3, "int32"))
    for number in range(1, 5):
        loader.load(f"__global__ void k(int *x) {{ x[0] = {number}; }}", "m").k[1, 1](CupyArray(3, "int32"))
    loader.unload("m")
    gc.collect()
    until(lambda: sorted(driver.unloaded) == [2, 3, 4, 5])
    loader.cleanup_all()
    gc.collect()
    until(lambda: sorted(driver.unloaded) == [1, 2, 3, 4, 5])


def test_variables_are_written_and_read_by_their_own_type(loader: KernelLoader, driver: FakeDriver) -> None:
    weights = loader.load(STEP, "m").weights
    weights.set([1, 2.5, 3])
    assert struct.unpack_from("3f", driver.memory["weights"]) == (1, 2.5, 3)
    assert weights.get().tolist() == [1, 2.5, 3]
    assert weights.get().dtype == np.float32
    weights.set(7)
    assert weights.get().tolist() == [7, 7, 7]
    assert repr(weights) == "<device variable weights: float32[3]>"


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1, 2], ArgumentValueError, r"has the shape \(3,\), not \(2,\)"),
        ("abc", ArgumentTypeError, "weights is float32"),
        ([1j, 2, 3], ArgumentTypeError, "complex128 values do not fit"),
    ],
)
def test_a_wrong_value_of_a_variable_is_refused(value: Any, error: Any, message: str, loader: KernelLoader) -> None:
    with pytest.raises(error, match=message):
        loader.load(STEP, "m").weights.set(value)


def test_a_whole_number_that_a_variable_does_not_have_is_refused(loader: KernelLoader) -> None:
    flag = loader.load("__device__ unsigned char flag;\n__global__ void k() { flag = 1; }", "m").flag
    flag.set(255)
    with pytest.raises(ArgumentValueError, match="flag is uint8, which does not have all of 256"):
        flag.set(256)


def noted(kind: int, line: int, file: str, text: str = "") -> bytes:
    """Return what a device writes where a check fails."""
    head = struct.pack("=I4i3i3ii9q", 1, kind, line, 1, 2, 3, 0, 0, 70, 1, 0, 0, 12, 4, 6, *[0] * 6)
    return head + file.encode().ljust(256, b"\0") + text.encode().ljust(256, b"\0")


@pytest.mark.parametrize(
    ("note", "error", "message"),
    [
        (noted(2, 4, "/rekernel/kernel.cu"), IndexError,
         r"^m\.step\(\), my\.cu:14: index 12 is out of bounds for axis 1 with size 6 of an array of shape \(4, 6\) "
         r"\(block \(3, 0, 0\), thread \(70, 1, 0\)\)$"),
        (noted(4, 4, "/rekernel/kernel.cu", "x > 0"), AssertionError, r"^m\.step\(\), my\.cu:14: assert\(x > 0\) failed"),
        (noted(2, 4, "/there/h.cuh"), IndexError, r"^m\.step\(\), /there/h\.cuh:4: index 12"),
    ],
)  # fmt: skip
def test_a_failed_check_raises_once_at_its_line(
    note: bytes, error: Any, message: str, loader: KernelLoader, driver: FakeDriver
) -> None:
    kernel = loader.load(STEP, "m", debug=True, filename="my.cu", first_line=11).step
    array = CupyArray((4, 6), "float32")
    launch(kernel, 1, 1, 5)(array, CupyArray((4, 6), "float32"), 1)
    driver.memory[checked.SYMBOL][: len(note)] = note
    with pytest.raises(error, match=message):
        launch(kernel, 1, 1, 5)(array, CupyArray((4, 6), "float32"), 1)
    launch(kernel, 1, 1, 5)(array, CupyArray((4, 6), "float32"), 1)
    assert driver.waited == [5, 5, 5]


def test_the_size_of_a_note_is_that_of_its_header() -> None:
    assert len(noted(2, 1, "")) == checked.SIZE == 632


def test_a_capture_is_not_waited_for(cuda: FakeCuda, loader: KernelLoader, driver: FakeDriver) -> None:
    cuda.capture(5)
    driver.capturing.add(5)
    kernel = loader.load("__global__ void k(int *x) {}", debug=True).k
    launch(kernel, 1, 1, 5)(CupyArray(3, "int32"))
    assert (cuda.count, driver.waited) == (1, [])


def test_without_debug_nothing_waits(cuda: FakeCuda, loader: KernelLoader, driver: FakeDriver) -> None:
    loader.load("__global__ void k(int *x) {}").k[1, 1](CupyArray(3, "int32"))
    assert (cuda.count, driver.waited) == (1, [])


def test_a_text_is_built_in_the_background(cuda: FakeCuda, loader: KernelLoader) -> None:
    kernel = loader.load("__global__ void k(int *x) { x[0] = 1; }", "m").k
    loader.load("__global__ void k(int *x) { x[0] = 2; }", "m", background=True)
    loader.wait()
    kernel[1, 1](CupyArray(3, "int32"))
    assert kernel.version == 2


def test_cuda_cannot_be_exported_and_says_so(loader: KernelLoader, tmp_path: Any) -> None:
    loader.load(STEP, "m")
    with pytest.raises(Exception, match="cannot be exported"):
        loader.export("m", tmp_path)


def test_without_a_device_a_load_says_what_is_missing_and_how_to_compile_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rekernel.cuda import missing

    def none() -> Any:
        raise missing.driver(OSError("libcuda.so.1: cannot open shared object file"))

    monkeypatch.setattr(devices, "devices", none)
    loader = KernelLoader(jit=Jit())
    with pytest.raises(ToolchainError, match=r"(?s)no CUDA device.*rekernel doctor.*arch='sm_90'"):
        loader.load("__global__ void k(int *x) {}", "m")
    kernel = loader.load("__global__ void k(int *x) {}", "m", arch="sm_90").k
    assert str(kernel.parameters[0]) == "x: int32*"
    for call in (lambda: kernel[1, 1](3), lambda: kernel(3)):
        with pytest.raises(ToolchainError, match="no CUDA device"):
            call()
