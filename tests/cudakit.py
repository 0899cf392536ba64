"""CUDA without a device, for tests: a driver that remembers; arrays as CuPy, PyTorch, Numba and others make them."""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from ckernels import CXX, slots_of
from rekernel._native import CudaDriver, CudaKernel, Launch
from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel, Parameter, Slot

FUNCTION, CONTEXT = 0xF00, 0xC00
"""Addresses of the kernel's function and of the context of device 0; those of device n are n more."""


class Launched(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_size_t), ("context", ctypes.c_size_t), ("stream", ctypes.c_size_t),
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
        ("size", ctypes.c_uint32), ("data", ctypes.c_ubyte * 1024),
    ]  # fmt: skip

    @property
    def bytes(self) -> bytes:
        return bytes(self.data)[: self.size]


@functools.cache
def library() -> str:
    """Compile the fake driver, once per session; skip the test where there is no compiler."""
    if CXX is None:
        pytest.skip("there is no C++ compiler (g++, or set REKERNEL_TEST_CXX)")
    directory = tempfile.mkdtemp()
    product = str(Path(directory, "libfakecuda.so"))
    source = str(Path(__file__).with_name("fakecuda.cpp"))
    done = subprocess.run([CXX, "-std=c++17", "-O1", "-fPIC", "-shared", source, "-o", product],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return product


class FakeCuda:
    """The fake driver, with what it was asked."""

    def __init__(self) -> None:
        self.path = library()
        self.code = ctypes.PyDLL(self.path)  # quick: the GIL stays held
        self.code.fake_launch.restype = ctypes.POINTER(Launched)
        self.code.fake_log.restype = ctypes.c_char_p
        self.code.fake_count.restype = ctypes.c_ulonglong
        self.code.fake_reset()
        self.code.fake_current(ctypes.c_void_p(CONTEXT))
        self.driver = CudaDriver(self.path)

    @property
    def count(self) -> int:
        return self.code.fake_count()

    @property
    def log(self) -> list[str]:
        return self.code.fake_log().decode().splitlines()

    def last(self) -> Launched:
        return self.code.fake_launch(-1).contents

    def fail(self, code: int, name: str = "cuLaunchKernel") -> None:
        self.code.fake_fail(name.encode(), code)

    def sizes(self, *each: int) -> None:
        """Tell how many bytes each parameter of the kernel's function has."""
        for device in range(2):
            self.code.fake_sizes(ctypes.c_void_p(FUNCTION + device), len(each), (ctypes.c_uint32 * len(each))(*each))

    def own(self, address: int, device: int = 0, kind: int = 2) -> None:
        """Let the driver know whose memory an address is; kind 1 is the host's."""
        self.code.fake_pointer(ctypes.c_ulonglong(address), device, kind)

    def capture(self, stream: int) -> None:
        self.code.fake_capture(ctypes.c_void_p(stream))


def resolve(device: int) -> tuple[int, int, None]:
    return FUNCTION + device, CONTEXT + device, None


def kernel(
    fake: FakeCuda, *parameters: Parameter, name: str = "step", slots: tuple[Slot, ...] | None = None,
    structs: bool = True, **options: object,
) -> CudaKernel:  # fmt: skip
    """Return a kernel of these parameters; with `structs` each array is one struct."""
    if slots is None:
        slots = tuple(slot for parameter in parameters for slot in slots_of(parameter))
    value = Kernel(name, parameters, "cuda", slots=slots)
    if structs and "arguments" not in options:
        groups = itertools.groupby(slots, key=lambda slot: (slot.parameter, slot.kind == "scalar"))
        options["arguments"] = tuple(len(tuple(group)) for _, group in groups)
    options = {"resolve": resolve, **options}
    return CudaKernel(fake.driver, name, *rows(value), **options)  # type: ignore[arg-type]


def numbers(fake: FakeCuda, layout: str) -> tuple[object, ...]:
    """Return the parameters of the last launch, read by a `struct` format."""
    return struct.unpack("<" + layout, fake.last().bytes)


def launch(target: object, *brackets: object) -> Launch:
    return target[brackets if len(brackets) > 1 else brackets[0]]  # type: ignore[index]


# ---- arrays ----

_addresses = itertools.count(0x7F0000000000, 1 << 20)


def _layout(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None) -> tuple[int, ...]:
    if strides is not None:
        return strides
    packed = [dtype.itemsize]
    for extent in reversed(shape[1:]):
        packed.append(packed[-1] * extent)
    return tuple(reversed(packed))[: len(shape)] if shape else ()


class CupyArray:
    """As `cupy.ndarray`: the attributes that its arrays have."""

    def __init__(self, shape, dtype="float64", *, strides=None, device=0, ptr=None):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.strides = _layout(self.shape, self.dtype, strides)
        self.data = SimpleNamespace(ptr=next(_addresses) if ptr is None else ptr, device_id=device)
        self.device = SimpleNamespace(id=device)


CupyArray.__module__, CupyArray.__name__, CupyArray.__qualname__ = "cupy", "ndarray", "ndarray"


class TorchTensor:
    """As `torch.Tensor`."""

    def __init__(self, shape, dtype="float64", *, strides=None, device=0, ptr=None, grad=False, conj=False, neg=False):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = getattr(sys.modules["torch"], dtype)
        self._strides = strides or tuple(s // 8 for s in _layout(self.shape, np.dtype("f8"), None))
        self.device = SimpleNamespace(index=device, type="cpu" if device is None else "cuda")
        self.is_cuda = device is not None
        self.requires_grad, self._conj, self._neg = grad, conj, neg
        self._ptr = next(_addresses) if ptr is None else ptr

    def data_ptr(self):
        return self._ptr

    def stride(self):
        return self._strides

    def is_conj(self):
        return self._conj

    def is_neg(self):
        return self._neg


TorchTensor.__module__, TorchTensor.__name__, TorchTensor.__qualname__ = "torch", "Tensor", "Tensor"


class InterfaceArray:
    """Known by ``__cuda_array_interface__`` only; `entries` replace those of the dict, None removes one."""

    def __init__(self, shape, dtype="float64", *, strides=None, ptr=None, read_only=False, stream=None, **entries):
        shape, dtype = ((shape,) if isinstance(shape, int) else tuple(shape)), np.dtype(dtype)
        self.ptr = next(_addresses) if ptr is None else ptr
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": dtype.str, "data": (self.ptr, read_only), "strides": strides,
            "descr": dtype.descr, "stream": stream, "version": 3, **entries,
        }  # fmt: skip


@functools.cache
def fake_cupy() -> ModuleType:
    """A module ``cupy``: `streams` are the current ones by device, `device` is the current device.

    There is one for the session, as a process has one CuPy.
    """
    module = ModuleType("cupy")
    module.ndarray = CupyArray
    current = lambda device=-1: SimpleNamespace(ptr=module.streams.get(module.device if device < 0 else device, 0))  # noqa: E731
    module.cuda = SimpleNamespace(
        get_current_stream=current, runtime=SimpleNamespace(getDevice=lambda: module.device)
    )  # fmt: skip
    return module


@functools.cache
def fake_torch() -> ModuleType:
    module = ModuleType("torch")
    module.Tensor = TorchTensor
    module._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: module.streams.get(device, 0))
    names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
             "float32", "float64", "complex64", "complex128")  # fmt: skip
    for name in names:
        setattr(module, name, type("dtype", (), {"__repr__": lambda self, name=name: f"torch.{name}"})())
    return module


@pytest.fixture(name="cuda")
def cuda_fixture():
    return FakeCuda()


@pytest.fixture(name="cupy")
def cupy_fixture(monkeypatch):
    module = fake_cupy()
    module.streams, module.device = {}, 0
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.delitem(sys.modules, "cupy_backends.cuda.stream", raising=False)
    return module


@pytest.fixture(name="torch")
def torch_fixture(monkeypatch):
    module = fake_torch()
    module.streams = {}
    monkeypatch.setitem(sys.modules, "torch", module)
    return module
