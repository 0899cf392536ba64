"""Which stream a launch goes to, and which it waits for."""

import ctypes
import gc
import sys
import threading
import weakref
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ckernels import array, scalar
from cudakit import CupyArray, InterfaceArray, TorchTensor, cuda_fixture, cupy_fixture, kernel, launch, torch_fixture  # noqa: F401
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from support import run_python
from test_cuda_arrays import DeviceTensor

X, Y = array("x"), array("y")


@pytest.fixture(autouse=True)
def _errors(cupy, torch):
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


# ---- in brackets ----


class Protocol:
    def __cuda_stream__(self):
        return (0, 55)


STREAMS = {
    "cupy": SimpleNamespace(ptr=55),
    "torch": SimpleNamespace(cuda_stream=55),
    "protocol": Protocol(),
    "numba": SimpleNamespace(handle=ctypes.c_void_p(55)),
    "handle": SimpleNamespace(handle=55),
    "int": 55,
    "numpy int": SimpleNamespace(ptr=np.int64(55).__index__()),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_streams_of_every_library_are_taken(cuda, kind):
    made = launch(kernel(cuda), 1, 32, STREAMS[kind])
    assert made.stream is STREAMS[kind]
    made()
    assert cuda.last().stream == 55


def test_the_default_streams_have_numbers(cuda):
    for stream, number in ((0, 0), (1, 1), (2, 2), (SimpleNamespace(handle=ctypes.c_void_p()), 0)):
        launch(kernel(cuda), 1, 32, stream)()
        assert cuda.last().stream == number


def test_a_stream_is_kept_by_its_brackets_only(cuda):
    class Stream:
        ptr = 55

    stream = Stream()
    kept = weakref.ref(stream)
    made = launch(kernel(cuda), 1, 32, stream)
    made()
    del stream
    gc.collect()
    assert kept() is made.stream
    del made
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_stream_that_raises_is_not_hidden(cuda, error):
    class Raising:
        @property
        def ptr(self):
            raise error("lost")

    with pytest.raises(error, match="lost"):
        launch(kernel(cuda), 1, 32, Raising())


def test_the_stream_in_brackets_wins(cuda, cupy, torch):
    cupy.streams[0], torch.streams[0] = 66, 77
    step = kernel(cuda, X, Y)
    launch(step, 1, 32, 55)(CupyArray(3), TorchTensor(3))
    assert cuda.last().stream == 55
    launch(step, 1, 32, 0)(CupyArray(3), TorchTensor(3))
    assert cuda.last().stream == 0


# ---- the current one ----


def test_cupys_current_stream_of_the_device_is_used(cuda, cupy):
    cupy.streams.update({0: 55, 1: 66})
    step = kernel(cuda, X)
    for device, stream in ((0, 55), (1, 66)):
        launch(step, 1, 32)(CupyArray(3, device=device))
        assert cuda.last().stream == stream
    launch(kernel(cuda, scalar("k")), 1, 32)(1.0)
    assert cuda.last().stream == 55


def test_it_is_asked_for_at_every_call(cuda, cupy):
    call = launch(kernel(cuda, X), 1, 32)
    for stream in (55, 66, 0, 55):
        cupy.streams[0] = stream
        call(CupyArray(3))
        assert cuda.last().stream == stream


def test_pytorchs_current_stream_is_used_where_a_tensor_is(cuda, cupy, torch):
    cupy.streams[0] = 55
    torch.streams.update({0: 66, 1: 77})
    step = kernel(cuda, X)
    launch(step, 1, 32)(TorchTensor(3))
    assert cuda.last().stream == 66
    launch(step, 1, 32)(TorchTensor(3, device=1))
    assert cuda.last().stream == 77
    launch(step, 1, 32)(CupyArray(3))
    assert cuda.last().stream == 55


def test_where_tensors_meet_cupy_arrays_cupys_stream_is_waited_for(cuda, cupy, torch):
    cupy.streams[0], torch.streams[0] = 0x55, 0x66
    launch(kernel(cuda, X, Y), 1, 32)(CupyArray(3), TorchTensor(3))
    assert cuda.log == ["capturing? 0x66", "record 0x55", "wait 0x66", "launch 0x66"]
    cupy.streams[0] = 0x66
    launch(kernel(cuda, X, Y), 1, 32)(CupyArray(3), TorchTensor(3))
    assert cuda.log[-2:] == ["capturing? 0x66", "launch 0x66"]
    assert cuda.code.fake_events() == 0


def test_a_stream_that_cannot_be_told_is_an_error(cuda, cupy, torch, monkeypatch):
    def lost(device):
        raise RuntimeError(f"no stream of {device}")

    monkeypatch.setattr(cupy.cuda, "get_current_stream", lost)
    with pytest.raises(RuntimeError, match="no stream of 1"):
        launch(kernel(cuda, X), 1, 32)(CupyArray(3, device=1))
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: lost("here"))
    with pytest.raises(RuntimeError, match="no stream of here"):
        launch(kernel(cuda), 1, 32)()
    assert cuda.count == 0


def test_cupys_own_function_is_used_where_it_can_be_reached():
    code = """
        import ctypes, sys
        from types import ModuleType
        import cudakit
        from ckernels import array
        cuda = cudakit.FakeCuda()
        cupy = sys.modules["cupy"] = cudakit.fake_cupy()
        cupy.streams, cupy.device = {}, 0
        cupy.cuda.get_current_stream = None
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        signature = b"intptr_t (int)"
        function = ctypes.cast(cuda.code.fake_stream_of, ctypes.c_void_p)
        streams = sys.modules["cupy_backends.cuda.stream"] = ModuleType("stream")
        streams.__pyx_capi__ = {"get_stream_ptr": new(function, signature, None)}
        cuda.code.fake_set_stream(1, ctypes.c_ssize_t(77))
        cudakit.kernel(cuda, array("x"))[1, 32](cudakit.CupyArray(3, device=1))
        print(cuda.last().stream)
    """
    assert run_python(code).stdout.split() == ["77"]


# ---- streams to wait for ----


def test_the_stream_of_an_interface_is_waited_for(cuda, cupy):
    cupy.streams[0] = 0x55
    step = kernel(cuda, X, Y)
    launch(step, 1, 32)(InterfaceArray(3, stream=0x66), InterfaceArray(3, stream=0x77))
    assert cuda.log == ["capturing? 0x55", "record 0x66", "wait 0x55", "record 0x77", "wait 0x55", "launch 0x55"]
    assert cuda.code.fake_events() == 0


@pytest.mark.parametrize(
    ("stream", "ours", "waits"),
    [(None, 0, 0), (0, 5, 0), (1, 0, 0), (1, 1, 0), (5, 5, 0), (1, 5, 1), (2, 0, 1), (2, 2, 0), (5, 0, 1)],
)
def test_the_same_stream_is_not_waited_for(cuda, stream, ours, waits):
    launch(kernel(cuda, X), 1, 32, ours)(InterfaceArray(3, stream=stream))
    assert len([line for line in cuda.log if line.startswith("wait")]) == waits


def test_one_stream_of_many_arrays_is_waited_for_once(cuda):
    step = kernel(cuda, *(array(f"x{i}") for i in range(20)))
    launch(step, 1, 32, 5)(*(InterfaceArray(3, stream=6 + i % 2) for i in range(20)))
    assert len([line for line in cuda.log if line.startswith("wait")]) == 2
    launch(step, 1, 32, 5)(*(InterfaceArray(3, stream=100 + i) for i in range(20)))
    assert len([line for line in cuda.log if line.startswith("wait")]) == 22


def test_nothing_is_waited_for_where_nothing_is_launched(cuda):
    launch(kernel(cuda, X), 0, 32, 5)(InterfaceArray(3, stream=6))
    assert cuda.log == []


def test_a_captured_stream_waits_for_nobody(cuda):
    cuda.capture(5)
    launch(kernel(cuda, X), 1, 32, 5)(InterfaceArray(3, stream=6))
    assert cuda.log == ["capturing? 0x5", "launch 0x5"]


@pytest.mark.parametrize(("ours", "told"), [(0, 1), (1, 1), (2, 2), (55, 55)])
def test_a_dlpack_tensor_is_told_our_stream(cuda, ours, told):
    class Telling(DeviceTensor):
        def __dlpack__(self, *, stream, **keywords):
            self.told = stream
            return super().__dlpack__(stream=stream, **keywords)

    tensor = Telling(np.zeros(3))
    launch(kernel(cuda, X), 1, 32, ours)(tensor)
    assert tensor.told == told
    cuda.capture(ours)
    launch(kernel(cuda, X), 1, 32, ours)(tensor)
    assert tensor.told == (-1 if ours > 1 else 1)


def test_a_dlpack_tensor_is_told_the_stream_of_its_own_device(cuda, cupy):
    cupy.streams.update({0: 55, 1: 66})

    class Telling(DeviceTensor):
        def __dlpack__(self, *, stream, **keywords):
            self.told = stream
            return super().__dlpack__(stream=stream, **keywords)

    tensor = Telling(np.zeros(3), device=(2, 1))
    launch(kernel(cuda, X), 1, 32)(tensor)
    assert (tensor.told, cuda.last().stream) == (66, 66)


def test_each_thread_has_its_own_current_stream(cuda, cupy, monkeypatch):
    local = threading.local()
    current = lambda device=-1: SimpleNamespace(ptr=getattr(local, "stream", 0))  # noqa: E731
    monkeypatch.setattr(cupy.cuda, "get_current_stream", current)
    call = launch(kernel(cuda, X), 1, 32)

    def run(stream):
        local.stream = stream
        call(CupyArray(3))

    for stream in (5, 6):
        thread = threading.Thread(target=run, args=(stream,))
        thread.start()
        thread.join()
        assert cuda.last().stream == stream
    assert isinstance(sys.modules["cupy"], ModuleType)
