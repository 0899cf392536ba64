"""Launches on a fake driver: parameters, brackets, limits, handles, capture, dead devices, nothing kept."""

import ctypes
import gc
import itertools
import math
import os
import sys
import threading
import tracemalloc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from ckernels import array, scalar
from cudakit import (  # noqa: F401
    CONTEXT,
    FUNCTION,
    CupyArray,
    InterfaceArray,
    cuda_fixture,
    cupy_fixture,
    kernel,
    launch,
    numbers,
    torch_fixture,
)
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import Cell, CudaDriver, Handle, Launch, Overloads, swap
from rekernel.kernel import Slot
from support import run_python

ONE = (1, 32)
X, Y = array("x", ndim=1), array("y", ndim=1, written=True)


class DriverError(RuntimeError):
    pass


@pytest.fixture(autouse=True)
def _errors(cupy):
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


# ---- parameters ----

SCALARS = [
    ("bool", "?", True), ("int8", "b", -128), ("int16", "h", -(2**15)), ("int32", "i", -(2**31)),
    ("int64", "q", -(2**63)), ("uint8", "B", 255), ("uint16", "H", 2**16 - 1), ("uint32", "I", 2**32 - 1),
    ("uint64", "Q", 2**64 - 1), ("float16", "e", 0.5), ("float32", "f", 0.25), ("float64", "d", 0.1),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "code", "value"), SCALARS)
def test_every_scalar_type_is_passed_with_its_own_bytes(cuda, dtype, code, value):
    step = kernel(cuda, scalar("k", dtype), scalar("end", "int32"))
    cuda.sizes(np.dtype(dtype).itemsize, 4)
    launch(step, *ONE)(value, 7)
    assert numbers(cuda, f"{code}i") == (value, 7)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_scalars_are_two_numbers(cuda, dtype):
    step = kernel(cuda, scalar("k", dtype))
    cuda.sizes(np.dtype(dtype).itemsize)
    launch(step, *ONE)(1.5 - 2j)
    assert numbers(cuda, "2f" if dtype == "complex64" else "2d") == (1.5, -2.0)


def test_scalars_are_converted_as_for_other_kernels(cuda):
    step = kernel(cuda, scalar("k", "float32"), scalar("n", "int32"))
    cuda.sizes(4, 4)
    launch(step, *ONE)(np.float64(3), np.int8(-1))
    assert numbers(cuda, "fi") == (3.0, -1)
    with pytest.raises(ArgumentValueError, match="n"):
        launch(step, *ONE)(1.0, 2**31)
    with pytest.raises(ArgumentTypeError, match="k"):
        launch(step, *ONE)("1", 2)


def test_an_array_is_one_struct_of_pointer_extents_and_strides_in_elements(cuda):
    step = kernel(cuda, array("x", "float32", 2), scalar("k"))
    cuda.sizes(40, 8)
    x = CupyArray((3, 4), "f4", strides=(-64, 0))
    launch(step, *ONE)(x, 2.5)
    assert numbers(cuda, "5qd") == (x.data.ptr, 3, 4, -16, 0, 2.5)


def test_arrays_of_rank_0_have_room_for_the_axis_that_their_struct_has(cuda):
    step = kernel(cuda, array("x", "float32", 0), scalar("k"))
    cuda.sizes(24, 8)
    x = CupyArray((), "f4")
    launch(step, *ONE)(x, 2.5)
    assert numbers(cuda, "3qd") == (x.data.ptr, 0, 0, 2.5)


def test_without_arguments_every_slot_is_a_parameter_of_its_own(cuda):
    slots = (Slot("stride", "x", 0, dtype="int32"), Slot("pointer", "x"), Slot("shape", "x", 1), Slot("scalar", "k"))
    step = kernel(cuda, array("x", "float64", 2, order="free"), scalar("k", "uint8"), slots=slots, structs=False)
    cuda.sizes(4, 8, 8, 1)
    x = CupyArray((3, 4))
    launch(step, *ONE)(x, 9)
    assert numbers(cuda, "iqqB") == (4, x.data.ptr, 4, 9)


def test_records_pass_a_pointer_of_each_field(cuda):
    dtype = np.dtype({"names": ["m", "v"], "formats": ["f4", "f8"], "offsets": [0, 8], "itemsize": 16})
    record = array("p", None, 1, fields=(("m", "float32", 0), ("v", "float64", 8)), itemsize=16)
    slots = (Slot("pointer", "p", field="m"), Slot("pointer", "p", field="v"), Slot("stride", "p", 0))
    step = kernel(cuda, record, slots=slots, structs=False)
    cuda.sizes(8, 8, 8)
    for make in (CupyArray, InterfaceArray):
        p = make(5, dtype)
        address = p.ptr if make is InterfaceArray else p.data.ptr
        launch(step, *ONE)(p)
        assert numbers(cuda, "3q") == (address, address + 8, 2 if False else 1)
    with pytest.raises(ArgumentTypeError, match="field 'v'"):
        launch(step, *ONE)(CupyArray(5, np.dtype([("m", "f4"), ("w", "f8"), ("z", "f4")])))


def test_many_parameters_and_arrays_of_many_axes(cuda):
    parameters = [array(f"x{i}", "int64", 9) for i in range(12)] + [scalar(f"k{i}", "int32") for i in range(40)]
    step = kernel(cuda, *parameters)
    cuda.sizes(*[19 * 8] * 4)
    arrays = [CupyArray((1, 2, 1, 2, 1, 2, 1, 2, i), "i8") for i in range(1, 13)]
    launch(step, *ONE)(*arrays, *range(40))
    found = numbers(cuda, "76q")
    for i in range(4):
        expected = (arrays[i].data.ptr, *arrays[i].shape, *(s // 8 for s in arrays[i].strides))
        assert found[19 * i : 19 * i + 19] == expected


def test_more_elements_than_32_bits_count(cuda):
    step = kernel(cuda, array("x", "int8", 2))
    cuda.sizes(40)
    launch(step, *ONE)(CupyArray((2**20, 2**20), "i1"))
    assert numbers(cuda, "5q")[1:] == (2**20, 2**20, 2**20, 1)
    small = kernel(cuda, array("x", "int8", 1), slots=(Slot("pointer", "x"), Slot("shape", "x", 0, dtype="int32")),
                   structs=False)  # fmt: skip
    with pytest.raises(ArgumentValueError, match=r"the extent of axis 0 is 2147483648, which does not fit the int32"):
        launch(small, *ONE)(CupyArray(2**31, "i1"))


def test_ten_thousand_fresh_floats_arrive_each_as_itself(cuda):
    step = kernel(cuda, scalar("k"))
    cuda.sizes(8)
    call = launch(step, *ONE)
    wrong = 0
    for i in range(10_000):
        value = math.sqrt(i) * 1.000001
        call(value)
        wrong += numbers(cuda, "d") != (math.sqrt(i) * 1.000001,)
    assert wrong == 0


@pytest.mark.parametrize("counts", [(), (1,), (2, 2), (3, 2), (4,), (0, 4), (1, -1, 4), "x", (1.0, 3)])
def test_arguments_that_do_not_count_the_slots_are_refused(cuda, counts):
    with pytest.raises(ValueError, match="arguments must count all slots"):
        kernel(cuda, array("x", ndim=1), scalar("k"), arguments=counts)


def test_a_kernel_is_made_of_the_right_things(cuda):
    assert repr(kernel(cuda)) == "<compiled CUDA kernel 'step'>"
    made = kernel(cuda, kernel_id="heat", version=3)
    assert (made.name, made.__name__, made.kernel_id, made.version) == ("step", "step", "heat", 3)
    assert made.driver is cuda.driver
    for wrong in ({"resolve": None}, {"grid": 1}, {"checked": 1}, {"errors": int}, {"kernel_id": 1}):
        with pytest.raises(TypeError, match="CudaKernel"):
            kernel(cuda, **wrong)
    with pytest.raises(ValueError, match="policy"):
        kernel(cuda, policy="c")


# ---- brackets ----


class Covered:
    grid, block = (4, 2), 16


@pytest.mark.parametrize(
    ("brackets", "grid", "block", "shared", "stream"),
    [
        ((3, 32), (3, 1, 1), (32, 1, 1), 0, 0),
        (((3,), (32,)), (3, 1, 1), (32, 1, 1), 0, 0),
        (((3, 4, 5), (8, 4, 2)), (3, 4, 5), (8, 4, 2), 0, 0),
        (([3, 4], [8, 4]), (3, 4, 1), (8, 4, 1), 0, 0),
        ((np.int32(3), (np.int64(32),)), (3, 1, 1), (32, 1, 1), 0, 0),
        ((3, 32, 77), (3, 1, 1), (32, 1, 1), 0, 77),
        ((3, 32, 77, 1024), (3, 1, 1), (32, 1, 1), 1024, 77),
        ((3, 32, None, 1024), (3, 1, 1), (32, 1, 1), 1024, 0),
        ((Covered(),), (4, 2, 1), (16, 1, 1), 0, 0),
        ((Covered(), 77), (4, 2, 1), (16, 1, 1), 0, 77),
        ((Covered(), 77, 8), (4, 2, 1), (16, 1, 1), 8, 77),
        ((2**31 - 1, 1), (2**31 - 1, 1, 1), (1, 1, 1), 0, 0),
        (((1, 65535, 65535), (16, 1, 64)), (1, 65535, 65535), (16, 1, 64), 0, 0),
    ],
)
def test_brackets_are_grid_block_stream_and_shared_bytes(cuda, brackets, grid, block, shared, stream):
    made = launch(kernel(cuda), *brackets)
    assert (made.grid, made.block, made.shared_bytes) == (grid, block, shared)
    assert made() is None
    last = cuda.last()
    assert (tuple(last.grid), tuple(last.block), last.shared, last.stream) == (grid, block, shared, stream)
    assert (last.function, last.context) == (FUNCTION, CONTEXT)


def test_a_launch_grid_stands_for_grid_and_block(cuda):
    LaunchGrid = pytest.importorskip("rekernel.launchgrid", reason="LaunchGrid is not there yet").LaunchGrid  # noqa: N806
    made = kernel(cuda)[LaunchGrid.cover((100, 1000), (32, 8))]
    assert (made.grid, made.block) == ((32, 13, 1), (32, 8, 1))


@pytest.mark.parametrize("brackets", [5, (), (5,), (1, 2, 3, 4, 5), (Covered(), 1, 2, 3), "ab"])
def test_other_brackets_are_answered_with_the_right_ones(cuda, brackets):
    with pytest.raises(TypeError, match=r"is no launch grid; write step\[grid, block\], .*step\[LaunchGrid\.cover"):
        kernel(cuda)[brackets]


@pytest.mark.parametrize(
    ("brackets", "argument", "words"),
    [
        ((1.5, 32), "grid", "grid must be an int or a tuple of up to 3 ints, got float"),
        ((True, 32), "grid", "grid must be an int or a tuple of up to 3 ints, got bool"),
        (("7", 32), "grid", "grid must be an int"),
        (((), 32), "grid", "grid must be an int or a tuple of up to 3 ints, got tuple"),
        (((1, 1, 1, 1), 32), "grid", "grid must be an int"),
        ((1, (2.0,)), "block", "block must be an int"),
        ((1, None), "block", "block must be an int or a tuple of up to 3 ints, got None"),
        ((1, 1, 0, 1.0), "shared_bytes", "shared_bytes must be an int, got float"),
        ((1, 1, "s"), "stream", "stream must be a CUDA stream .* got str"),
        ((1, 1, True), "stream", "stream must be a CUDA stream .* got bool"),
        ((1, 1, SimpleNamespace(ptr="x")), "stream", "stream must be a CUDA stream"),
    ],
)
def test_wrong_types_in_brackets_are_named(cuda, brackets, argument, words):
    with pytest.raises(ArgumentTypeError, match=words) as caught:
        launch(kernel(cuda), *brackets)
    assert caught.value.argument == argument
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("brackets", "words"),
    [
        ((2**31, 1), "grid is 2147483648: a grid has 0 to 2147483647 blocks along x"),
        (((1, 65536), 1), "grid is 65536: a grid has 0 to 65535 blocks along y"),
        (((1, 1, 65536), 1), "grid is 65536: a grid has 0 to 65535 blocks along z"),
        ((-1, 1), "grid is -1"),
        ((2**70, 1), f"grid is {2**70}"),
        ((1, 1025), "block is 1025: a block has 1 to 1024 threads along x"),
        ((1, (1, 1025)), "block is 1025: a block has 1 to 1024 threads along y"),
        ((1, (1, 1, 65)), "block is 65: a block has 1 to 64 threads along z"),
        ((1, 0), "block is 0: a block has 1 to 1024 threads"),
        ((1, (32, 33)), r"block is \(32, 33\): a block has at most 1024 threads in all, not 1056"),
        ((1, 1, 0, -1), "shared_bytes is -1: a block has 0 to 2147483647 bytes"),
    ],
)
def test_limits_are_named_before_the_driver_is_asked(cuda, brackets, words):
    with pytest.raises(ArgumentValueError, match=rf"^step\[grid, block\]: {words}"):
        launch(kernel(cuda), *brackets)
    assert cuda.log == []


@pytest.mark.parametrize("grid", [0, (0, 1), (1, 0), (5, 5, 0)])
def test_an_empty_grid_launches_nothing_but_still_checks(cuda, grid):
    step = kernel(cuda, scalar("k"))
    assert launch(step, grid, 32)(1.0) is None
    assert cuda.count == 0
    with pytest.raises(ArgumentTypeError):
        launch(step, grid, 32)("1")


def test_a_call_without_brackets_shows_them(cuda):
    step = kernel(cuda, X, Y, scalar("k"))
    with pytest.raises(
        TypeError, match=r"^step needs a launch grid: step\[LaunchGrid\.cover\(y\.shape\)\]\(x, y, k\)$"
    ):
        step(1, 2, 3)
    with pytest.raises(TypeError, match=r"step\[LaunchGrid\.cover\(x\.shape\)\]\(x\)$"):
        kernel(cuda, X)(1)
    with pytest.raises(TypeError, match=r"step\[grid, block\]\(k\)$"):
        kernel(cuda, scalar("k"))()
    assert (step.calls, step.failures) == (1, 1)


def test_a_call_as_cupy_takes_it_is_translated(cuda):
    step = kernel(cuda, X, Y)
    with pytest.raises(
        TypeError, match=r"^step takes its launch grid in brackets: step\[\(4,\), \(256, 1\)\]\(x, y\)$"
    ):
        step((4,), (256, 1), (1, 2))
    with pytest.raises(TypeError, match=r"in brackets"):
        step((4,), (256, 1), (1, 2), shared_mem=5)


def test_a_launch_tells_what_it_is(cuda):
    step = kernel(cuda)
    assert repr(step[(4, 2), 256]) == "step[(4, 2, 1), (256, 1, 1)]"
    assert repr(step[4, 2, 7]) == "step[(4, 1, 1), (2, 1, 1), 7]"
    assert repr(step[4, 2, None, 9]) == "step[(4, 1, 1), (2, 1, 1), None, 9]"
    made = Launch(step, 4, block=2, stream=7, shared_bytes=9)
    assert (made.target, made.stream, repr(made)) == (step, 7, "step[(4, 1, 1), (2, 1, 1), 7, 9]")
    with pytest.raises(TypeError, match="must be a Handle or a CUDA kernel"):
        Launch(print, 1, 1)


def test_keywords_belong_to_the_kernel(cuda):
    step = kernel(cuda, scalar("grid", "int32"), scalar("stream", "int32"))
    cuda.sizes(4, 4)
    launch(step, *ONE)(stream=2, grid=1)
    assert numbers(cuda, "2i") == (1, 2)
    with pytest.raises(TypeError, match=r"step\(\) missing 1 required positional argument: 'stream'"):
        launch(step, *ONE)(1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'shared'"):
        launch(step, *ONE)(1, 2, shared=3)


# ---- handles and overloads ----


def handle_of(target):
    cell = Cell()
    swap([(cell, (target,), 1)])
    return Handle(cell, 0, "step"), cell


def test_a_handle_with_brackets_follows_its_cell(cuda):
    first, second = kernel(cuda, scalar("k", "int32")), kernel(cuda, scalar("k", "float32"))
    handle, cell = handle_of(first)
    held = handle[4, 32]
    cuda.sizes(4)
    held(1)
    assert numbers(cuda, "i") == (1,)
    swap([(cell, (second,), 2)])
    held(1)
    assert numbers(cuda, "f") == (1.0,)
    assert (first.calls, second.calls, handle.calls, handle.failures) == (1, 1, 2, 0)
    with pytest.raises(ArgumentTypeError):
        held("x")
    assert (handle.calls, handle.failures) == (3, 1)
    assert repr(held) == "step[(4, 1, 1), (32, 1, 1)]"


def test_a_handle_of_another_kernel_takes_no_brackets(cuda):
    handle, cell = handle_of(len)
    with pytest.raises(TypeError, match=r"^kernel 'step' takes no launch grid$"):
        handle[4, 32]
    swap([(cell, (kernel(cuda),), 2)])
    held = handle[4, 32]
    swap([(cell, (len,), 3)])
    with pytest.raises(TypeError, match=r"^kernel 'step' takes no launch grid$"):
        held()


def test_a_handle_of_a_class_has_its_own_words(cuda):
    class Worded(Handle):
        def _refuse_launch(self):
            raise TypeError("in my words")

    cell = Cell()
    swap([(cell, (len,), 1)])
    with pytest.raises(TypeError, match=r"^in my words$"):
        Worded(cell, 0, "step")[1, 2]


def test_a_hook_is_asked_when_the_launch_is_called(cuda):
    handle, cell = handle_of(None)
    asked = []
    cell.hook = lambda handle: asked.append(handle) or kernel(cuda)
    held = handle[4, 32]
    assert asked == []
    held()
    assert asked == [handle]
    assert cuda.count == 1


def test_overloads_choose_behind_brackets(cuda):
    kernels = tuple(kernel(cuda, array("x", dtype, 1, written=True)) for dtype in ("float32", "float64"))
    step = Overloads(kernels, "step", signatures=("step(x: float32[:])", "step(x: float64[:])"))
    for target in (step, handle_of(step)[0]):
        launch(target, *ONE)(CupyArray(5, "f8"))
        launch(target, *ONE)(InterfaceArray(5, "f4", stream=5))
        with pytest.raises(
            ArgumentTypeError, match=r"no overload takes \(int32\[:\]\); there are:\n  step\(x: float32"
        ):
            launch(target, *ONE)(CupyArray(5, "i4"))
        with pytest.raises(ArgumentTypeError, match="host memory"):
            launch(target, *ONE)(np.zeros(5))
        with pytest.raises(TypeError, match=r"step needs a launch grid: step\[LaunchGrid\.cover\(x\.shape\)\]"):
            target(CupyArray(5))
    assert [k.calls for k in kernels] == [2, 4]
    assert (step.calls, step.failures) == (10, 6)


def test_overloads_are_all_of_one_kind(cuda):
    with pytest.raises(TypeError, match="Function objects, or all CudaKernel objects, got"):
        Overloads((kernel(cuda), len), "step", signatures=("a", "b"))


# ---- the kernel's own grid ----


def test_a_kernel_with_a_grid_of_its_own_needs_no_brackets(cuda):
    asked = []

    def grid(shapes, scalars):
        asked.append((shapes, scalars))
        return (shapes[0][0], 1), 64, 128

    step = kernel(cuda, X, scalar("n", "int32"), scalar("k"), policy="pystencils", grid=grid)
    x = CupyArray(7)
    for k in (0.1, 0.2, math.nan, 0.3):
        step(x=x, n=3, k=k)
    assert (tuple(cuda.last().grid), tuple(cuda.last().block), cuda.last().shared) == ((7, 1, 1), (64, 1, 1), 128)
    assert asked == [(((7,),), (3, None))]
    step(x=CupyArray(8), n=3, k=1.0)
    step(x=x, n=4, k=1.0)
    assert asked[1:] == [(((8,),), (3, None)), (((7,),), (4, None))]
    step(x=CupyArray(0), n=3, k=1.0)
    assert cuda.count == 6
    step[2, 32](x=x, n=4, k=1.0)
    assert tuple(cuda.last().grid) == (2, 1, 1)


@pytest.mark.parametrize(("answer", "error"), [(None, TypeError), ((1, 2), TypeError), ((1, 2000, 0), ValueError)])
def test_a_grid_function_with_a_wrong_answer_is_an_error_each_time(cuda, answer, error):
    step = kernel(cuda, grid=lambda shapes, scalars: answer)
    for _ in range(2):
        with pytest.raises(error):
            step()
    assert cuda.count == 0


def test_grids_are_kept_for_a_while_only(cuda):
    asked = []
    step = kernel(cuda, X, grid=lambda shapes, scalars: asked.append(shapes[0][0]) or (1, 1, 0))
    for extent in (*range(1, 60), *range(1, 60)):
        step(CupyArray(extent))
    assert asked == list(range(1, 60))
    for extent in range(60, 200):
        step(CupyArray(extent))
    step(CupyArray(1))
    assert asked[-1] == 1


# ---- devices, contexts, modules ----


def test_the_module_is_asked_for_once_for_each_device(cuda):
    asked = []

    def resolve(device):
        asked.append(device)
        return FUNCTION + device, CONTEXT + device, None

    step = kernel(cuda, X, resolve=resolve)
    for device in (1, 0, 1, 0, 1):
        launch(step, *ONE)(CupyArray(5, device=device))
        assert (cuda.last().function, cuda.last().context) == (FUNCTION + device, CONTEXT + device)
    assert asked == [1, 0]


def test_the_context_of_the_thread_is_as_it_was(cuda):
    step = kernel(cuda, X)
    launch(step, *ONE)(CupyArray(5))
    assert [line for line in cuda.log if "p" in line[:1]] == []
    launch(step, *ONE)(CupyArray(5, device=1))
    assert cuda.log[-3:] == [f"push {CONTEXT + 1:#x}", "launch 0", f"pop {CONTEXT + 1:#x}"] or cuda.log[-3:] == [
        f"push {CONTEXT + 1:#x}", "launch 0x0", f"pop {CONTEXT + 1:#x}"]  # fmt: skip
    cuda.fail(1)
    with pytest.raises(RuntimeError):
        launch(step, *ONE)(CupyArray(5, device=1))
    assert cuda.log[-1] == f"pop {CONTEXT + 1:#x}"


def test_a_module_that_cannot_be_loaded_is_asked_for_again(cuda):
    answers = [OSError("no module"), (1,), (FUNCTION, CONTEXT, None)]

    def resolve(device):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    step = kernel(cuda, resolve=resolve)
    with pytest.raises(OSError, match="no module"):
        launch(step, *ONE)()
    with pytest.raises(TypeError, match="must return"):
        launch(step, *ONE)()
    launch(step, *ONE)()
    assert (cuda.count, step.calls, step.failures) == (1, 3, 2)


def test_more_shared_memory_than_the_plain_limit_is_asked_for(cuda):
    launch(kernel(cuda), 1, 1, None, 49152)()
    assert [line for line in cuda.log if line.startswith("attribute")] == []
    launch(kernel(cuda), 1, 1, None, 49153)()
    assert [line for line in cuda.log if line.startswith("attribute")] == [f"attribute {FUNCTION:#x} 8 49153"]


def test_a_capture_is_told_once_and_before_the_launch(cuda):
    told = []
    step = kernel(cuda, resolve=lambda device: (FUNCTION, CONTEXT, lambda: told.append(cuda.count)))
    launch(step, *ONE)()  # the legacy stream is never asked
    launch(step, 1, 1, 77)()
    assert (told, "capturing? 0" in cuda.log) == ([], False)
    cuda.capture(77)
    launch(step, 1, 1, 77)()
    asked = cuda.log.count("capturing? 0x4d")
    launch(step, 1, 1, 77)()
    assert told == [2]
    assert cuda.log.count("capturing? 0x4d") == asked


def test_a_capture_that_cannot_be_told_is_not_launched(cuda):
    def captured():
        raise MemoryError

    step = kernel(cuda, resolve=lambda device: (FUNCTION, CONTEXT, captured))
    cuda.capture(77)
    for _ in range(2):
        with pytest.raises(MemoryError):
            launch(step, 1, 1, 77)()
    assert cuda.count == 0


def test_what_checks_a_launch_runs_after_it_and_may_raise(cuda):
    def checked(device, stream):
        seen.append((cuda.count, device, stream))
        raise IndexError("index 7")

    seen = []
    step = kernel(cuda, X, checked=checked)
    with pytest.raises(IndexError, match="index 7"):
        launch(step, 1, 1, 77)(CupyArray(3, device=1))
    assert seen == [(1, 1, 77)]


# ---- errors of the driver ----


def test_an_error_of_the_driver_is_told_with_its_name_and_the_launch(cuda):
    step = kernel(cuda, errors=DriverError)
    cuda.fail(701)
    with pytest.raises(
        DriverError,
        match=r"^step\(\): the launch with grid \(4, 1, 1\), block \(256, 1, 1\), 8 bytes of shared memory failed; "
        r"a block of this size needs more .*: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES$",
    ):
        launch(step, 4, 256, None, 8)()
    cuda.fail(12345)
    with pytest.raises(DriverError, match=r"CUDA error 12345$"):
        launch(step, 4, 256)()
    cuda.fail(0)
    launch(step, 4, 256)()
    assert cuda.driver.dead(0) is None


@pytest.mark.parametrize("code", [700, 702, 709, 710, 714, 715, 716, 717, 718, 719])
def test_after_a_fatal_error_every_call_there_raises_it_at_once(cuda, code):
    step = kernel(cuda, X, kernel_id="heat", version=3, errors=DriverError)
    other = kernel(cuda, X, name="other", errors=DriverError)
    call = launch(step, 4, 256, 77)
    call(CupyArray(3))
    cuda.fail(code)
    with pytest.raises(DriverError, match="debug=True") as first:
        launch(other, 1, 1)(CupyArray(3))
    assert "heat.step (version 3): grid (4, 1, 1), block (256, 1, 1), stream 0x4d" in str(first.value)
    assert "start a new one" in str(first.value)
    if code == 700:
        assert "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)" in str(first.value)
    cuda.fail(0)
    count = cuda.count
    for target in (step, other):
        with pytest.raises(DriverError) as again:
            launch(target, 1, 1)(CupyArray(3))
        assert str(again.value) == str(first.value)
    assert cuda.count == count
    assert cuda.driver.dead(0) == str(first.value)
    launch(step, 1, 1)(CupyArray(3, device=1))  # the other device lives
    assert (cuda.count, cuda.driver.dead(1)) == (count + 1, None)


def test_errors_that_others_have_seen_can_be_told_to_the_driver(cuda):
    step = kernel(cuda, errors=DriverError)
    assert cuda.driver.failed(0, 1, "copying") == "copying: CUDA_ERROR_INVALID_VALUE"
    assert cuda.driver.dead(0) is None
    assert cuda.driver.failed(0, 700, "synchronising").startswith("synchronising: CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(DriverError, match=r"^synchronising"):
        launch(step, *ONE)()
    with pytest.raises(TypeError):
        cuda.driver.dead("0")


@pytest.mark.parametrize("name", ["cuCtxGetCurrent", "cuCtxPushCurrent", "cuEventRecord", "cuStreamWaitEvent"])
def test_other_functions_that_fail_launch_nothing(cuda, name):
    cuda.fail(1, name)
    step = kernel(cuda, X, errors=DriverError)
    x = InterfaceArray(3, stream=55)
    cuda.own(x.ptr, 1)
    with pytest.raises(DriverError, match="CUDA_ERROR_INVALID_VALUE"):
        launch(step, *ONE)(x)
    assert (cuda.count, cuda.code.fake_events()) == (0, 0)
    assert [line for line in cuda.log if line.startswith("push")] == [] or cuda.log[-1].startswith("pop")


def test_the_last_16_launches_are_remembered(cuda):
    step = kernel(cuda, X, kernel_id="heat", version=3)
    assert cuda.driver.launches() == ()
    for i in range(1, 21):
        launch(step, i, 2, 77)(CupyArray(3, device=i % 2))
    found = cuda.driver.launches()
    assert len(found) == 16
    assert found[0] == ("heat", "step", 3, 1, (5, 1, 1), (2, 1, 1), 77)
    assert found[-1] == ("heat", "step", 3, 0, (20, 1, 1), (2, 1, 1), 77)


def test_a_driver_that_is_not_there_is_an_os_error():
    with pytest.raises(OSError, match=r"nowhere\.so"):
        CudaDriver("/nowhere.so")
    with pytest.raises(OSError, match="cuLaunchKernel"):
        CudaDriver("libm.so.6")
    with pytest.raises(TypeError):
        CudaDriver(5)


# ---- nothing kept, nothing lost ----


def test_no_argument_is_kept(cuda, torch):
    step = kernel(cuda, X, array("y", ndim=1, written=True), scalar("k"))
    call = launch(step, *ONE)
    x, y = CupyArray(3), InterfaceArray(3, stream=5)
    kept = weakref.ref(x), weakref.ref(y)
    before = sys.getrefcount(call)
    call(x, y, 0.5)
    with pytest.raises(ArgumentTypeError):
        call(x, y, "0.5")
    del x, y
    assert [ref() for ref in kept] == [None, None]
    assert sys.getrefcount(call) == before


def test_a_hundred_thousand_calls_leave_no_memory(cuda):
    step = kernel(cuda, X, array("y", ndim=1, written=True), scalar("k"))
    call = launch(step, *ONE)
    cuda.code.fake_forget()
    x = CupyArray(3)

    def calls(count):
        for _ in itertools.repeat(None, count):
            call(x, CupyArray(3, ptr=2**40), 0.5)
            call(x, InterfaceArray(3, ptr=2**40), 0.5)

    calls(1000)
    gc.collect()
    tracemalloc.start()
    try:
        calls(100)
        before = tracemalloc.get_traced_memory()[0]
        calls(int(os.environ.get("REKERNEL_TEST_CALLS", "49500")))
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_failed_calls_leave_no_memory(cuda):
    step = kernel(cuda, X, scalar("k"))
    call = launch(step, *ONE)
    x, wrong = CupyArray(3), [CupyArray(3, "f4"), CupyArray((3, 3)), np.zeros(3), [1.0], InterfaceArray(3, mask=1)]

    def calls(count):
        for _ in range(count):
            for each in wrong:
                with pytest.raises((TypeError, ValueError)):
                    call(each, 1.0)
            with pytest.raises(TypeError):
                call(x, "k")
            with pytest.raises((TypeError, ValueError)):
                launch(step, 1, 2000)
            with pytest.raises(TypeError):
                step(x, 1.0)

    calls(20)
    gc.collect()
    before = sys.getallocatedblocks()
    calls(300)
    gc.collect()
    assert sys.getallocatedblocks() - before < 1000  # one block for each call would be 2400


def test_a_kernel_in_a_cycle_is_collected(cuda):
    class Owner:
        pass

    owner = Owner()
    owner.resolve = lambda device, owner=owner: (owner and FUNCTION, CONTEXT, None)
    owner.kernel = kernel(cuda, resolve=owner.resolve)
    owner.launch = owner.kernel[1, 1]
    owner.launch()
    kept = weakref.ref(owner)
    del owner
    gc.collect()
    assert kept() is None


def test_the_gil_is_released_while_the_driver_waits(cuda):
    cuda.code.fake_gate(1)
    step = kernel(cuda)
    done = threading.Event()

    def run():
        launch(step, *ONE)()
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert not done.wait(0.05)
    cuda.code.fake_gate(0)
    assert done.wait(20)
    thread.join()
    assert cuda.count == 1


def test_many_threads_launch_one_kernel_each_with_its_own_values(cuda):
    step = kernel(cuda, X, scalar("k", "int64"))
    cuda.sizes(24, 8)
    call, x = launch(step, *ONE), CupyArray(3, device=1)
    handle, cell = handle_of(step)
    held = handle[1, 32]
    stop = threading.Event()

    def run(first):
        for i in range(500):
            (call if i % 2 else held)(x, first * 1000 + i)

    def swapping():
        while not stop.is_set():
            swap([(cell, (kernel(cuda, X, scalar("k", "int64")),), 0)])

    swapper = threading.Thread(target=swapping)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in (swapper, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    swapper.join()
    assert cuda.count == 2000
    seen = sorted(int.from_bytes(cuda.code.fake_launch(i).contents.bytes[24:32], "little") for i in range(2000))
    assert seen == sorted(first * 1000 + i for first in range(4) for i in range(500))


def test_without_cupy_the_default_stream_of_device_0_is_used():
    code = """
        import sys
        from cudakit import FakeCuda, InterfaceArray, kernel
        from ckernels import array
        cuda = FakeCuda()
        kernel(cuda, array("x", ndim=1))[4, 32](InterfaceArray(3))
        last = cuda.last()
        print(last.stream, last.function == 0xF00, "cupy" in sys.modules, "torch" in sys.modules)
    """
    assert run_python(code).stdout.split() == ["0", "True", "False", "False"]


def test_code_of_an_argument_may_do_anything(cuda):
    step = kernel(cuda, X, scalar("k"))

    class Number:
        def __float__(self):
            x.__dict__.clear()
            launch(step, *ONE)(CupyArray(2), 1.0)
            gc.collect()
            return 2.0

    cuda.sizes(24, 8)
    x = CupyArray(3)
    address = x.data.ptr
    with pytest.raises(ArgumentTypeError):
        launch(step, *ONE)(x, Number())
    x = CupyArray(3)
    launch(step, *ONE)(x, 2.0)
    assert numbers(cuda, "3qd")[0] != address
    assert ctypes.sizeof(ctypes.c_void_p) == 8
