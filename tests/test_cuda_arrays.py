"""Arrays on a device into kernels: CuPy's, PyTorch's, by interface, by DLPack; what is refused, and in which words."""

import gc
import sys
import weakref
from importlib.machinery import PathFinder
from types import SimpleNamespace

import numpy as np
import pytest

from ckernels import array, scalar
from cudakit import (  # noqa: F401
    CupyArray,
    InterfaceArray,
    TorchTensor,
    cuda_fixture,
    cupy_fixture,
    kernel,
    launch,
    numbers,
    torch_fixture,
)
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from support import run_python
from test_function_dlpack import Tensor

ONE = (1, 32)
READ, WRITTEN = array("x", ndim=2), array("x", ndim=2, written=True)


@pytest.fixture(autouse=True)
def _errors(cupy, torch):
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


class DeviceTensor(Tensor):
    """Known by DLPack only, on a device; remembers the keywords it was asked with."""

    def __init__(self, x, device=(2, 0), keywords=("stream", "max_version"), **options):
        super().__init__(x, device=device, **options)
        self.keywords, self.asked = keywords, []

    def __dlpack__(self, **keywords):
        if not set(keywords) <= set(self.keywords):
            raise TypeError("unexpected keyword argument")
        self.asked.append(keywords)
        keywords.pop("stream")
        return super().__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


KINDS = {
    "cupy": lambda shape, dtype="float64", **options: CupyArray(shape, dtype, **options),
    "torch": lambda shape, dtype="float64", **options: TorchTensor(shape, dtype, **options),
    "interface": lambda shape, dtype="float64", **options: InterfaceArray(shape, dtype, **options),
    "dlpack": lambda shape, dtype="float64": DeviceTensor(np.zeros(shape, dtype)),
}


def address_of(x):
    for read in (
        lambda: x.data.ptr,
        lambda: x.data_ptr(),
        lambda: x.ptr,
        lambda: x.x.ctypes.data,
    ):
        try:
            return read()
        except AttributeError:
            continue
    raise AssertionError(x)


def refused(target, *args, error=ArgumentTypeError):
    with pytest.raises(error) as caught:
        launch(target, *ONE)(*args)
    assert isinstance(caught.value, error)
    return str(caught.value)


# ---- each kind of array ----


@pytest.mark.parametrize("kind", KINDS)
def test_pointer_extents_and_strides_arrive_from_every_kind(cuda, kind):
    cuda.sizes(40)
    x = KINDS[kind]((3, 4))
    launch(kernel(cuda, WRITTEN), *ONE)(x)
    assert numbers(cuda, "5q") == (address_of(x), 3, 4, 4, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_arrays_of_every_kind_pass(cuda, kind, shape):
    cuda.sizes(40)
    launch(kernel(cuda, WRITTEN), *ONE)(KINDS[kind](shape))
    assert numbers(cuda, "5q")[1:3] == shape


DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_dtype_is_told_apart(cuda, kind):
    kernels = {dtype: kernel(cuda, array("x", dtype, 1)) for dtype in DTYPES}
    for dtype in DTYPES:
        x = KINDS[kind](3, dtype)
        for wanted, step in kernels.items():
            if wanted == dtype:
                launch(step, *ONE)(x)
            else:
                assert f"expected const {wanted}[:], got a" in refused(step, x)
    assert cuda.count == len(DTYPES)


STRIDES = [((3, 4), (-4, 1)), ((3, 4), (8, 2)), ((3, 4), (1, 3)), ((3, 1), (1, 999)), ((3, 4), (0, 1))]


@pytest.mark.parametrize(("shape", "strides"), STRIDES)
def test_strides_are_in_elements_whatever_the_kind(cuda, shape, strides):
    step = kernel(cuda, READ)
    cuda.sizes(40)
    in_bytes = tuple(8 * stride for stride in strides)
    for x in (
        CupyArray(shape, strides=in_bytes), InterfaceArray(shape, strides=in_bytes), TorchTensor(shape, strides=strides)
    ):  # fmt: skip
        launch(step, *ONE)(x)
        assert numbers(cuda, "5q")[3:] == strides


def test_subclasses_are_what_their_base_is(cuda):
    class Mine(CupyArray):
        pass

    class Parameter(TorchTensor):
        pass

    cuda.sizes(40)
    step = kernel(cuda, WRITTEN)
    for x in (Mine((3, 4)), Parameter((3, 4))):
        launch(step, *ONE)(x)
        assert numbers(cuda, "5q") == (address_of(x), 3, 4, 4, 1)


def test_a_dlpack_tensor_of_strides_offset_and_managed_memory(cuda):
    step = kernel(cuda, READ)
    cuda.sizes(40)
    x = np.zeros((6, 4))[::2]
    tensor = DeviceTensor(x, device=(13, 0), byte_offset=16)
    launch(step, *ONE)(tensor)
    assert numbers(cuda, "5q") == (x.ctypes.data + 16, 3, 4, 8, 1)
    assert tensor.freed()
    refused(kernel(cuda, array("x", "float32", 2)), tensor)
    assert tensor.freed(2)


def test_older_dlpack_tensors_are_asked_with_the_stream_only(cuda):
    tensor = DeviceTensor(np.zeros((3, 4)), keywords=("stream",), versioned=False)
    launch(kernel(cuda, READ), 1, 32, 77)(tensor)
    assert tensor.asked == [{}]
    assert tensor.freed()


def test_interfaces_of_every_version(cuda):
    step = kernel(cuda, WRITTEN)
    cuda.sizes(40)
    x = InterfaceArray((3, 4))
    for left_out in ("strides", "descr", "stream", "version"):
        del x.__cuda_array_interface__[left_out]
        launch(step, *ONE)(x)
        assert numbers(cuda, "5q") == (x.ptr, 3, 4, 4, 1)
    nothing = InterfaceArray((0, 4), data=(None, False))
    launch(step, *ONE)(nothing)
    assert numbers(cuda, "5q")[:2] == (0, 0)


# ---- the device ----


@pytest.mark.parametrize("kind", KINDS)
def test_the_device_is_that_of_the_array(cuda, cupy, kind):
    cupy.device = 0
    if kind == "dlpack":
        x = DeviceTensor(np.zeros((3, 4)), device=(2, 1))
    elif kind == "interface":
        x = InterfaceArray((3, 4))
        cuda.own(x.ptr, 1)
    else:
        x = KINDS[kind]((3, 4), device=1)
    launch(kernel(cuda, READ), *ONE)(x)
    assert cuda.last().function == 0xF01


def test_without_a_known_device_it_is_cupys_current_one(cuda, cupy):
    cupy.device = 1
    launch(kernel(cuda, scalar("k")), *ONE)(1.0)
    assert cuda.last().function == 0xF01
    launch(kernel(cuda, READ), *ONE)(InterfaceArray((3, 4)))
    assert cuda.last().function == 0xF01
    step = kernel(cuda, READ, array("y"))
    launch(step, *ONE)(InterfaceArray((3, 4)), CupyArray(3, device=0))
    assert cuda.last().function == 0xF00


def test_arrays_of_two_devices_are_refused_with_both(cuda):
    step = kernel(cuda, READ, array("y"))
    for y in (CupyArray(3, device=1), TorchTensor(3, device=1), DeviceTensor(np.zeros(3), device=(2, 1))):
        words = refused(step, CupyArray((3, 4)), y, error=ArgumentValueError)
        assert words.startswith("step() argument 'y': it is on CUDA device 1, but 'x' is on device 0")
    y = InterfaceArray(3)
    cuda.own(y.ptr, 1)
    assert "'y': it is on CUDA device 1" in refused(step, CupyArray((3, 4)), y, error=ArgumentValueError)
    assert cuda.count == 0


# ---- what is refused ----


def test_arrays_in_host_memory_are_told_how_to_move(cuda):
    step = kernel(cuda, READ)
    x = np.zeros((3, 4))
    wanted = "step() argument 'x': expected const float64[:, :], got {} in host memory; move it: {}"
    assert refused(step, x) == wanted.format("a float64 array", "cupy.asarray(x)")
    assert refused(step, memoryview(x)) == wanted.format("memoryview", "cupy.asarray(x)")
    assert refused(step, TorchTensor((3, 4), device=None)) == wanted.format("Tensor", "x.cuda()")
    assert refused(step, Tensor(x)) == wanted.format("Tensor", "cupy.asarray(x)")
    pinned = InterfaceArray((3, 4))
    cuda.own(pinned.ptr, 0, 1)
    assert "in host memory" in refused(step, pinned)
    assert cuda.count == 0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "expected const float64[:, :], got None"),
        (1.0, "expected const float64[:, :], got float"),
        ([[1.0]], "expected const float64[:, :], got list; pass cupy.asarray(x) of that type"),
        ("x", "expected const float64[:, :], got str"),
        (np.float64(1), "expected const float64[:, :], got numpy.float64"),
    ],
)
def test_what_is_no_array_is_refused(cuda, value, words):
    assert refused(kernel(cuda, READ), value) == f"step() argument 'x': {words}"


def test_a_written_list_is_not_told_to_become_an_array(cuda):
    assert refused(kernel(cuda, WRITTEN), [[1.0]]).endswith("got list")


def test_dtypes_and_ranks_are_told_with_the_arrays_own_name(cuda):
    step, f4 = kernel(cuda, READ), "expected const float64[:, :], got a {} of float32"
    assert refused(step, CupyArray((3, 4), "f4")).endswith(f4.format("cupy.ndarray"))
    assert refused(step, TorchTensor((3, 4), "float32")).endswith(f4.format("torch.Tensor"))
    assert refused(step, InterfaceArray((3, 4), "f4")).endswith(f4.format("cudakit.InterfaceArray"))
    assert refused(step, TorchTensor((3, 4), "bfloat16")).endswith("got a torch.Tensor of torch.bfloat16")
    assert "got a cupy.ndarray of datetime64[s]" in refused(step, CupyArray((3, 4), "M8[s]"))
    words = refused(step, CupyArray(3), error=ArgumentValueError)
    assert words.endswith("expected const float64[:, :], got a cupy.ndarray of float64 of 1 dimension")
    written = refused(kernel(cuda, WRITTEN), CupyArray((3, 4), "f4"))
    assert written.endswith("; the kernel writes to it, so make it an array of that type")


def test_remedies_are_those_of_the_arrays_library(cuda):
    step = kernel(cuda, array("x", ndim=2, order="C"))
    words = refused(step, CupyArray((3, 4), strides=(8, 24)), error=ArgumentValueError)
    assert words.endswith("the array is not C-contiguous; pass cupy.ascontiguousarray(x)")
    words = refused(step, TorchTensor((3, 4), strides=(1, 3)), error=ArgumentValueError)
    assert words.endswith("the array is not C-contiguous; pass x.contiguous()")
    step = kernel(cuda, array("x", "complex128", 2))
    words = refused(step, InterfaceArray((3, 4), "c16", strides=(72, 16)), error=ArgumentValueError)
    assert "(cupy.ascontiguousarray(x))" in words


def test_tensors_with_a_gradient_may_be_read_but_not_written(cuda):
    x = TorchTensor((3, 4), grad=True)
    launch(kernel(cuda, READ), *ONE)(x)
    words = refused(kernel(cuda, WRITTEN), x, error=ArgumentValueError)
    assert words.startswith("step() argument 'x': the tensor requires a gradient")
    assert words.endswith("pass x.detach()")


def test_tensors_that_stand_for_other_values_are_refused(cuda):
    words = refused(kernel(cuda, READ), TorchTensor((3, 4), neg=True), error=ArgumentValueError)
    assert words.endswith("pass x.resolve_neg()")
    step = kernel(cuda, array("x", "complex64", 2))
    words = refused(step, TorchTensor((3, 4), "complex64", conj=True), error=ArgumentValueError)
    assert words.endswith("pass x.resolve_conj()")


def test_read_only_and_broadcast_arrays_are_not_written(cuda):
    step = kernel(cuda, WRITTEN)
    assert "read-only" in refused(step, InterfaceArray((3, 4), read_only=True), error=ArgumentValueError)
    assert "read-only" in refused(step, DeviceTensor(np.zeros((3, 4)), flags=1), error=ArgumentValueError)
    assert "a stride is 0" in refused(step, CupyArray((3, 4), strides=(0, 8)), error=ArgumentValueError)
    launch(kernel(cuda, READ), *ONE)(InterfaceArray((3, 4), read_only=True))


def test_other_checks_are_those_of_other_kernels(cuda):
    step = kernel(cuda, array("x", shape=("n",)), array("y", shape=("n",), written=True))
    words = refused(step, CupyArray(3), CupyArray(4), error=ArgumentValueError)
    assert "axis 0 has extent 4, but 'x' has extent 3 there" in words
    assert "not aligned" in refused(step, CupyArray(3, ptr=2**40 + 4), CupyArray(3), error=ArgumentValueError)
    swapped = InterfaceArray(3, ">f8")
    assert "foreign order" in refused(step, swapped, CupyArray(3))
    with pytest.raises(TypeError, match=r"step\(\) missing 1 required positional argument: 'y'"):
        launch(step, *ONE)(CupyArray(3))


def test_restrict_arrays_that_overlap_are_refused(cuda):
    step = kernel(cuda, array("x", restrict=True), array("y", restrict=True, written=True))
    x, y = CupyArray(8, ptr=2**40), CupyArray(8, ptr=2**40 + 32)
    assert refused(step, x, y, error=ArgumentValueError).startswith("step() argument 'y': it overlaps 'x'")
    launch(step, *ONE)(x, CupyArray(8, ptr=2**40 + 64))
    launch(step, *ONE)(CupyArray(4, strides=(16,), ptr=2**40), CupyArray(4, strides=(16,), ptr=2**40 + 8))
    assert cuda.count == 2


BROKEN = [
    {"shape": [3, 4]}, {"shape": None}, {"shape": ("3", 4)}, {"shape": (-3, 4)}, {"shape": (1,) * 65},
    {"typestr": None}, {"typestr": "<q99"}, {"typestr": 5}, {"data": None}, {"data": 5}, {"data": ("x", False)},
    {"data": (2**70, False)}, {"data": (2**40,)}, {"strides": (8,)}, {"strides": (8, "8")}, {"mask": 1},
    {"stream": "x"}, {"shape": (2**63, 4)},
]  # fmt: skip


@pytest.mark.parametrize("entries", BROKEN, ids=lambda entries: str(entries)[:30])
def test_broken_interfaces_are_told(cuda, entries):
    x = InterfaceArray((3, 4))
    x.__cuda_array_interface__.update(entries)
    words = refused(kernel(cuda, READ), x)
    assert "expected const float64[:, :], got InterfaceArray: its __cuda_array_interface__ cannot be used (" in words
    assert cuda.count == 0


def test_an_interface_that_is_no_dict_or_raises(cuda):
    broken = SimpleNamespace(__cuda_array_interface__=5)
    assert "it must be a dict" in refused(kernel(cuda, READ), broken)

    class Raising:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("not now")

    assert "cannot be read (not now)" in refused(kernel(cuda, READ), Raising())


def test_arrays_that_raise_when_they_are_read(cuda):
    gone = CupyArray((3, 4))
    del gone.shape
    assert "it does not tell its memory" in refused(kernel(cuda, READ), gone)
    for change in ({"shape": (3,)}, {"shape": 5}, {"strides": ("a", 8)}, {"data": None}, {"dtype": "f8"}):
        x = CupyArray((3, 4))
        x.__dict__.update(change)
        assert "it does not tell its memory" in refused(kernel(cuda, READ), x)
    x = TorchTensor((3, 4))
    x.data_ptr = None
    assert "it does not tell its memory" in refused(kernel(cuda, READ), x)
    with pytest.raises(KeyboardInterrupt):
        launch(kernel(cuda, READ), *ONE)(Interrupted())


class Interrupted:
    @property
    def __cuda_array_interface__(self):
        raise KeyboardInterrupt


def test_broken_dlpack_tensors_are_told(cuda):
    for change in ({"device": (2, -1)}, {"device": 5}, {"device": ("a", 0)}):
        tensor = DeviceTensor(np.zeros((3, 4)))
        tensor.device = change["device"]
        assert "it does not tell its device" in refused(kernel(cuda, READ), tensor)
    assert "cannot be exported" in refused(kernel(cuda, READ), DeviceTensor(np.zeros((3, 4)), keywords=()))
    assert "in host memory" in refused(kernel(cuda, READ), DeviceTensor(np.zeros((3, 4)), device_type=1))


# ---- nothing kept ----


@pytest.mark.parametrize("kind", KINDS)
def test_no_array_of_any_kind_is_kept(cuda, kind):
    step = kernel(cuda, READ)
    x = KINDS[kind]((3, 4))
    before = sys.getrefcount(x)
    launch(step, *ONE)(x)
    refused(kernel(cuda, array("x", "int16", 1)), x)
    gc.collect()
    assert sys.getrefcount(x) == before
    kept = weakref.ref(x)
    del x
    gc.collect()
    assert kept() is None


def test_the_dtypes_of_records_are_not_kept(cuda):
    dtype = np.dtype([("m", "f4"), ("v", "f4")])
    step = kernel(cuda, array("p", None, 1, fields=(("m", "float32", 0),), itemsize=8), structs=False)
    p = CupyArray(3, dtype)
    before = sys.getrefcount(dtype)
    for _ in range(10):
        launch(step, *ONE)(p)
    assert sys.getrefcount(dtype) == before


def test_real_cupy_arrays_have_the_attributes_that_are_read():
    if PathFinder.find_spec("cupy") is None:  # the fake one hides whether there is another
        pytest.skip("CuPy is not installed")
    code = """
        import cupy
        from cudakit import FakeCuda, kernel, numbers
        from ckernels import array
        cuda = FakeCuda()
        cuda.sizes(40)
        memory = cupy.cuda.UnownedMemory(0x7f0000000000, 1 << 20, None, 0)
        x = cupy.ndarray((3, 4), "f8", cupy.cuda.MemoryPointer(memory, 64), strides=(64, 8))
        kernel(cuda, array("x", ndim=2))[1, 32, 77](x)
        print(*numbers(cuda, "5q"), cuda.last().function)
    """
    assert run_python(code).stdout.split() == [str(n) for n in (0x7F0000000040, 3, 4, 8, 1, 0xF00)]
