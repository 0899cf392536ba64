"""Tensors by DLPack into compiled kernels: every field of the standard, and each tensor freed exactly once."""

import ctypes
import gc
import sys

import numpy as np
import pytest

from ckernels import array, make
from rekernel import ArgumentTypeError, ArgumentValueError, _native

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


class Tensor:
    """An array that is known by DLPack only; `fields` replace what the tensor says."""

    def __init__(self, x, *, versioned=True, device=(1, 0), flags=0, major=1, deleter=True, strides=True, **fields):
        self.x, self.versioned, self.device, self.deleted, self.capsules = x, versioned, device, [], []
        self._sizes = (
            (ctypes.c_int64 * x.ndim)(*x.shape),
            (ctypes.c_int64 * x.ndim)(*(s // x.itemsize for s in x.strides)),
        )
        tensor = DLTensor(
            x.ctypes.data, device[0], device[1], x.ndim, CODES[x.dtype.kind], x.itemsize * 8, 1, self._sizes[0],
            self._sizes[1] if strides else None, 0,
        )  # fmt: skip
        for name, value in fields.items():
            setattr(tensor, name, value)
        called = DELETER(self.deleted.append) if deleter else DELETER()
        if versioned:
            self.managed = Versioned(major, 0, None, called, flags, tensor)
        else:
            self.managed = Managed(tensor, None, called)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if not self.versioned and keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        assert keywords in ({}, {"max_version": (1, 0)})
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self.capsules.append(new_capsule(ctypes.addressof(self.managed), name, None))
        return self.capsules[-1]

    def freed(self, times=1):
        """Tell whether the capsule was consumed and the deleter called with the right pointer, so many times."""
        used = b"used_dltensor_versioned" if self.versioned else b"used_dltensor"
        consumed = all(name_of(capsule) == used for capsule in self.capsules)
        return consumed and self.deleted == [ctypes.addressof(self.managed)] * times


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


@pytest.fixture(scope="module")
def total():
    body = (
        "double sum = 0; for (long long i = 0; i < x_n0; ++i) for (long long j = 0; j < x_n1; ++j) "
        "sum += x[i * x_s0 + j * x_s1] * (i + 1); result->d = sum;"
    )
    return make(body, array("x", ndim=2), returns="float64")


@pytest.fixture(scope="module")
def double():
    return make("for (long long i = 0; i < x_n0; ++i) x[i * x_s0] *= 2;", array("x", written=True))


X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_tensor_is_read_and_freed_once(total, versioned):
    for x in (X, X.T, X[:, ::2], X[::-1]):
        tensor = Tensor(x, versioned=versioned)
        assert total(tensor) == total(x)
        assert tensor.freed()
        total(tensor)
        assert tensor.freed(2)


def test_missing_strides_mean_contiguous(total):
    assert total(Tensor(X, strides=False)) == total(X)


def test_a_byte_offset_counts(total):
    tensor = Tensor(X, byte_offset=8)
    tensor.managed.tensor.data -= 8
    assert total(tensor) == total(X)


def test_a_tensor_may_have_no_deleter(total):
    assert total(Tensor(X, deleter=False)) == total(X)


def test_an_empty_tensor_may_have_no_data(total):
    assert total(Tensor(np.zeros((0, 3)), data=None)) == 0


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_every_type_of_element(dtype):
    x = np.ones(3, dtype)
    function = make("result->i = x_n0;", array("x", x.dtype.name), returns="int64")
    assert function(Tensor(x)) == 3
    other = Tensor(np.ones(3, "f4" if dtype != "f4" else "f8"))
    with pytest.raises(ArgumentTypeError, match=rf"expected const {x.dtype.name}\[:\], got a Tensor of float"):
        function(other)
    assert other.freed()


@pytest.mark.parametrize("fields", [{"code": 4, "bits": 16}, {"lanes": 2}, {"bits": 4}, {"bits": 128}, {"code": 77}])
def test_other_types_are_refused_and_freed(total, fields):
    tensor = Tensor(X, **fields)
    with pytest.raises(ArgumentTypeError, match="Tensor of elements of another kind"):
        total(tensor)
    assert tensor.freed()


@pytest.mark.parametrize("ndim", [-1, 65])
def test_impossible_ranks_are_refused_and_freed(total, ndim):
    tensor = Tensor(X, ndim=ndim)
    with pytest.raises(ArgumentTypeError, match=f"a tensor of {ndim} dimensions"):
        total(tensor)
    assert tensor.freed()


def test_a_negative_extent_is_refused(total):
    tensor = Tensor(X)
    tensor.managed.tensor.shape[1] = -3
    with pytest.raises(ArgumentTypeError, match="negative extent"):
        total(tensor)
    assert tensor.freed()


def test_tensors_are_checked_like_arrays(total, double):
    for wrong in (Tensor(np.zeros(3)), Tensor(np.zeros((1, 2, 3)))):
        with pytest.raises(ArgumentValueError, match="Tensor of float64 of"):
            total(wrong)
        assert wrong.freed()
    odd = Tensor(X)
    odd.managed.tensor.byte_offset = 4
    with pytest.raises(ArgumentValueError, match="not aligned"):
        total(odd)


def test_written_tensors_are_written(double):
    for versioned in (True, False):
        x = np.arange(3.0)
        double(Tensor(x, versioned=versioned))
        assert x.tolist() == [0, 2, 4]


def test_read_only_tensors_are_not_written(double):
    x = np.arange(3.0)
    for flags, words in ((1, "read-only"), (2, "hands out a copy only"), (3, "copy")):
        tensor = Tensor(x, flags=flags)
        with pytest.raises(ArgumentValueError, match=words):
            double(tensor)
        assert tensor.freed()
        assert make("result->i = x_n0;", array("x"), returns="int64")(tensor) == 3
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("device", [3, 11])
def test_page_locked_memory_is_memory(total, device):
    assert total(Tensor(X, device=(device, 0))) == total(X)


@pytest.mark.parametrize(("device", "words"), [(2, r"CUDA device; move it with \.cpu\(\)"), (8, "to the CPU first")])
def test_other_devices_are_refused_unasked(total, device, words):
    tensor = Tensor(X, device=(device, 0))
    with pytest.raises(ArgumentTypeError, match=words):
        total(tensor)
    assert not tensor.capsules
    liar = Tensor(X, device=(device, 0))
    liar.device = (1, 0)
    with pytest.raises(ArgumentTypeError, match=words):
        total(liar)
    assert liar.freed()


def test_a_newer_major_version_is_left_alone(total):
    tensor = Tensor(X, major=2)
    with pytest.raises(ArgumentTypeError, match="DLPack version 2 is not supported"):
        total(tensor)
    assert name_of(tensor.capsules[0]) == b"dltensor_versioned"
    assert not tensor.deleted


def test_a_used_capsule_is_refused(total):
    tensor = Tensor(X)
    total(tensor)
    capsule = tensor.capsules[0]
    for answer in (capsule, None, 3):
        other = type(
            "Other",
            (),
            {"__dlpack__": lambda self, answer=answer, **k: answer, "__dlpack_device__": lambda self: (1, 0)},
        )
        with pytest.raises(ArgumentTypeError, match="did not return a fresh DLPack capsule"):
            total(other())
    assert tensor.freed()


@pytest.mark.parametrize(
    "error", [BufferError("requires grad"), RuntimeError("no"), TypeError("what"), ZeroDivisionError()]
)
def test_the_objects_own_error_is_the_cause(total, error):
    class Broken:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **keywords):
            raise error

    with pytest.raises(
        ArgumentTypeError, match=r"step\(\) argument 'x': expected .*, got Broken: it cannot be exported"
    ) as caught:
        total(Broken())
    assert caught.value.__cause__ is error
    assert str(error) in str(caught.value)


@pytest.mark.parametrize("answer", [None, (1,), ("cpu", 0), (-1, 0)])
def test_a_strange_device_is_told(total, answer):
    strange = type("Strange", (), {"__dlpack__": None, "__dlpack_device__": lambda self: answer})
    with pytest.raises(ArgumentTypeError, match="does not tell its device") as caught:
        total(strange())
    assert caught.value.__cause__ is not None


def test_requests_to_stop_are_not_wrapped(total):
    class Stopped:
        def __dlpack_device__(self):
            raise KeyboardInterrupt

        __dlpack__ = None

    with pytest.raises(KeyboardInterrupt):
        total(Stopped())


def test_all_tensors_are_freed_when_another_argument_is_wrong():
    function = make("", array("a"), array("b"), array("c"))
    for position in range(3):
        tensors = [Tensor(np.zeros(3), versioned=i % 2 == 0) for i in range(3)]
        arguments = list(tensors)
        arguments[position] = None
        with pytest.raises(ArgumentTypeError):
            function(*arguments)
        assert all(t.freed(len(t.capsules)) for t in tensors)
    good = [Tensor(np.zeros(3)) for _ in range(3)]
    function(*good)
    assert all(t.freed() for t in good)


def test_tensors_are_freed_when_the_code_throws():
    tensor = Tensor(np.zeros(3))
    with pytest.raises(RuntimeError, match="late"):
        make('throw "late";', array("x"))(tensor)
    assert tensor.freed()


def test_an_array_changed_by_another_argument_is_seen_as_it_is_then():
    """Arrays are looked at after all that may run Python code."""
    function = make("result->i = a_n0;", array("a"), array("b"), returns="int64")
    a = np.zeros(3)

    class Shrinks(Tensor):
        def __dlpack__(self, **keywords):
            a.resize(1, refcheck=False)
            return super().__dlpack__(**keywords)

    assert function(a, Shrinks(np.zeros(2))) == 1


def test_reference_counts_stay_flat(total):
    class Plain:
        def __dlpack_device__(self):
            return X.__dlpack_device__()

        def __dlpack__(self, **keywords):
            return X.__dlpack__(**keywords)

    x, broken = Plain(), Tensor(X, device=(2, 0))
    before = sys.getrefcount(x), sys.getrefcount(X), sys.getrefcount(broken)
    for _ in range(5000):
        total(x)
        with pytest.raises(ArgumentTypeError):
            total(broken)
    gc.collect()
    after = sys.getrefcount(x), sys.getrefcount(X), sys.getrefcount(broken)
    assert all(abs(a - b) < 10 for a, b in zip(after, before, strict=True))


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_torch_tensors_are_read_and_written(torch, total, double):
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    assert total(x) == total(X)
    assert total(x[:, ::2]) == total(X[:, ::2])
    assert total(x.T) == total(X.T)
    y = torch.arange(3.0, dtype=torch.float64)
    double(y)
    assert y.tolist() == [0, 2, 4]
    with pytest.raises(ArgumentTypeError, match="got a Tensor of float32"):
        double(torch.zeros(3))
    with pytest.raises(ArgumentTypeError, match="elements of another kind"):
        double(torch.zeros(3, dtype=torch.bfloat16))
    with pytest.raises(ArgumentTypeError, match="device"):
        double(torch.zeros(3, dtype=torch.float64, device="meta"))


def test_torch_tensors_that_torch_does_not_export(torch, total):
    x = torch.zeros((2, 2), dtype=torch.float64, requires_grad=True)
    for refused in (x, torch.nn.Parameter(x.detach())):
        with pytest.raises(ArgumentTypeError, match="require gradient") as caught:
            total(refused)
        assert isinstance(caught.value.__cause__, BufferError)
    assert total(x.detach()) == 0
    z = torch.ones((2, 2), dtype=torch.complex128).conj()
    echo = make("", array("z", "complex128", 2))
    with pytest.raises(ArgumentTypeError, match="conjugate bit"):
        echo(z)
    echo(z.resolve_conj())
    with pytest.raises(ArgumentTypeError, match="negative bit"):
        total(z.imag)
    assert total(z.imag.resolve_neg()) == 0


def test_torch_tensors_are_not_kept(torch, total, double):
    x, y = torch.zeros((2, 2), dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(5000):
        total(x)
        double(y)
        with pytest.raises(ArgumentValueError):
            double(x)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before
