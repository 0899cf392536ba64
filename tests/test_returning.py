"""A kernel as a function of its inputs: what is allocated, what is returned, what a reload does to it."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rekernel
import toy as toys
from jitkernels import array, extent, pointer, scalar, stride, value
from rekernel import ArgumentTypeError, ArgumentValueError, Kernel, KernelHandle, KernelLoader, KernelRemovedError
from rekernel.jit import CpuJit
from rekernel.languages import Built, Request, register, unregister
from rekernel.returning import Returning
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

TEXT = "step(dst: float64[:], src: const float64[:], k) = put(dst, src, k)   ## Scales the inside."
MOVED = "step(src: const float64[:], k, dst: float64[:]) = put(dst, src, -k)"
SRC = np.arange(1.0, 6.0)
INSIDE = [0, 2, 3, 4, 0]


def put(dst: Any, src: Any, k: float) -> int:
    """Write the inside of `dst` only, as a stencil does."""
    dst[1:-1] = k * src[1:-1]
    return 0


@pytest.fixture
def step(loader: KernelLoader) -> KernelHandle:
    return loader.load(TEXT, "heat", namespace={"put": put}).step


@pytest.fixture
def smooth(step: KernelHandle) -> Returning:
    return step.returning("dst", like="src")


# --- calling ---------------------------------------------------------------------------------------------------

CALLS = {
    "by position": lambda smooth: smooth(SRC, 1),
    "by name": lambda smooth: smooth(k=1, src=SRC),
    "by both": lambda smooth: smooth(SRC, k=1),
    "out=None": lambda smooth: smooth(SRC, 1, out=None),
    "through a partial": lambda smooth: functools.partial(smooth, k=1)(SRC),
    "a copy": lambda smooth: copy.copy(smooth)(SRC, 1),
}


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("dst: float64[:], src: const float64[:], k", "src: const float64[:], k, dst: float64[:]"),
        TEXT.replace("dst: float64[:], src: const float64[:], k", "src: const float64[:], dst: float64[:], k"),
    ],
)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_every_way_of_calling_fills_the_array_wherever_the_kernel_has_it(
    loader: KernelLoader, text: str, call: Any
) -> None:
    smooth = loader.load(text, namespace={"put": put}).step.returning("dst", like="src")
    assert call(smooth).tolist() == INSIDE


def test_what_the_kernel_does_not_write_is_zero_also_in_used_memory(smooth: Returning) -> None:
    for size in (5, 1000, 200_000):
        np.full(size, 7.0)  # freed at once: what an allocator likes to give out next
        made = smooth(np.ones(size), 1)
        assert (made[0], made[-1], made[1:-1].min()) == (0, 0, 1)


def test_every_call_makes_a_new_array(smooth: Returning) -> None:
    first = smooth(SRC, 1)
    second = smooth(SRC, 2)
    assert first.tolist() == INSIDE
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, SRC)


def test_an_array_passed_as_out_is_written_to_and_returned(smooth: Returning) -> None:
    own = np.full(5, 9.0)
    assert smooth(SRC, 1, out=own) is own
    assert own.tolist() == [9, 2, 3, 4, 9]


def test_an_array_passed_as_out_needs_nothing_of_the_other_one(smooth: Returning) -> None:
    with pytest.raises(TypeError, match="not subscriptable"):  # from the kernel: nothing was allocated like it
        smooth(object(), 1, out=np.zeros(5))


def test_a_kernels_own_parameter_called_out_is_meant_by_out(loader: KernelLoader) -> None:
    step = loader.load(
        "step(out: float64[:], src: const float64[:], k) = put(out, src, k)", namespace={"put": put}
    ).step
    smooth, own = step.returning("out", like="src"), np.zeros(5)
    assert smooth(SRC, 1).tolist() == INSIDE
    assert smooth(SRC, 1, out=own) is own
    assert list(inspect.signature(smooth).parameters) == ["src", "k", "out"]


def test_the_kernels_calls_and_failures_are_counted(step: KernelHandle, smooth: Returning) -> None:
    smooth(SRC, 1)
    with pytest.raises(TypeError):
        smooth(SRC, 1, wrong=2)
    assert step.stats == {"calls": 2, "failures": 1}


def test_what_the_kernel_raises_comes_through(loader: KernelLoader) -> None:
    step = loader.load("step(dst: float64[:], src: const float64[:]) = 1 / 0").step
    with pytest.raises(ZeroDivisionError):
        step.returning("dst", like="src")(SRC)


WRONG_CALLS = {
    "nothing": ((), {}, r"step\(\) missing a required argument: 'src'"),
    "one is missing": ((SRC,), {}, "missing .*'k'"),
    "the first is missing": ((), {"k": 1}, "missing a required argument: 'src'"),
    "one too many": ((SRC, 1, 2), {}, r"step\(\) too many positional arguments"),
    "an unknown name": ((SRC, 1), {"kk": 1}, "unexpected keyword argument 'kk'"),
    "one twice": ((SRC, 1), {"src": SRC}, "multiple values for argument 'src'"),
    "the array under its own name": ((SRC, 1), {"dst": SRC}, r"step\(\) makes 'dst' itself.*write out="),
}


@pytest.mark.parametrize(("arguments", "named", "words"), WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_a_wrong_call_is_a_type_error(smooth: Returning, arguments: Any, named: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        smooth(*arguments, **named)


# --- the array -------------------------------------------------------------------------------------------------

GRID = np.arange(24.0).reshape(2, 3, 4)
LIKE = {
    "C order": GRID,
    "Fortran order": np.asfortranarray(GRID),
    "axes in another order": GRID.transpose(1, 2, 0),
    "strided": GRID[:, ::2, ::3],
    "backwards": GRID[::-1, :, ::-1],
    "broadcast": np.broadcast_to(GRID, (3, 2, 3, 4)),
    "read-only": np.frombuffer(bytes(16)),
    "empty": np.zeros((0, 3)),
    "no axes": np.array(5.0),
    "integers": np.arange(6, dtype=np.int16),
    "booleans": np.ones(3, bool),
    "complex": np.ones(3, np.complex64),
    "records": np.zeros(3, [("id", "i4"), ("mass", "f8")]),
    "a masked array": np.ma.array(GRID, mask=GRID > 3),
    "a view of another class": GRID[0].view(np.recarray),
}


@pytest.mark.parametrize("like", LIKE.values(), ids=LIKE.keys())
def test_a_numpy_array_is_made_with_shape_dtype_and_order(loader: KernelLoader, like: np.ndarray) -> None:
    step = loader.load("step(dst: any[:], src: const any[:]) = 0", language="toy").step
    made = step.returning("dst", like="src")(like)
    assert type(made) is np.ndarray
    assert (made.shape, made.dtype) == (like.shape, like.dtype)
    assert (made.flags.writeable, made.flags.aligned) == (True, True)
    assert made.tobytes().count(0) == made.nbytes
    assert made.strides == np.empty_like(like, subok=False).strides


@pytest.mark.parametrize(
    "like",
    [[1.0, 2.0], (1.0,), 3, 2.5, None, "text", np.float64(3), bytearray(8), {}, object()],
    ids=lambda like: type(like).__name__,
)
def test_what_no_array_can_be_made_like_is_an_error_that_says_what_is_needed(smooth: Returning, like: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"step\(\) argument 'src': expected an array .*out=") as caught:
        smooth(like, 1)
    assert (caught.value.argument, caught.value.got.rpartition(".")[2]) == ("src", type(like).__name__)


class Tensor:
    """An array of another library, which keeps what it was asked for."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "lib.float64", made: str = "") -> None:
        self.shape, self.dtype, self.made = shape, dtype, made

    def reshape(self, shape: Any) -> Tensor:
        return Tensor((int(np.prod(self.shape)),) if shape == -1 else shape, self.dtype, self.made)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A library whose class sits deep inside, and whose dtypes are objects of its own."""
    module: Any = types.ModuleType("tensors_of_a_test")
    module.float32 = "lib.float32"
    module.zeros_like = lambda x, dtype=None: Tensor(x.shape, dtype or x.dtype, f"zeros like {x.shape}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(Tensor, "__module__", f"{module.__name__}.core.tensor")
    return module


def test_another_librarys_array_is_made_by_that_library(loader: KernelLoader, library: Any) -> None:
    step = loader.load("step(dst: any[:], src: const any[:]) = 0", language="toy").step
    made = step.returning("dst", like="src")(Tensor((2, 3)))
    assert (type(made), made.shape, made.dtype, made.made) == (Tensor, (2, 3), "lib.float64", "zeros like (2, 3)")


def test_an_array_that_names_its_library_is_made_by_that_one(
    loader: KernelLoader, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tensor, "__module__", "numpy")
    monkeypatch.setattr(Tensor, "__array_namespace__", lambda self: library, raising=False)
    step = loader.load("step(dst: any[:], src: const any[:]) = 0", language="toy").step
    assert type(step.returning("dst", like="src")(Tensor((2, 3)))) is Tensor


def test_a_class_beside_a_borrowed_zeros_like_is_not_numpys(
    loader: KernelLoader, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "zeros_like", np.zeros_like)
    step = loader.load("step(dst: any[:], src: const any[:]) = 0", language="toy").step
    with pytest.raises(ArgumentTypeError, match=r"got tensors_of_a_test.core.tensor.Tensor"):
        step.returning("dst", like="src")(Tensor((2, 3)))


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_arrays_of_real_libraries_are_made_like_themselves(loader: KernelLoader, name: str) -> None:
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    step = loader.load("step(dst: any[:], src: const any[:]) = 0", language="toy").step
    like = library.ones((2, 3), dtype=library.float32)
    made = step.returning("dst", like="src")(like)
    assert (type(made), made.shape, made.dtype) == (type(like), like.shape, library.float32)
    assert np.asarray(made).tolist() == [[0] * 3] * 2


# --- kernels that declare more ---------------------------------------------------------------------------------


class Declared(Toy):
    """The toy, with other kernels as values, and what they run, in place of what the text says."""

    def __init__(self, *kernels: Kernel, entry: Any = None) -> None:
        super().__init__("declared")
        self.kernels, self.entry = kernels, entry

    def build(self, request: Request) -> Built:
        built = super().build(request)
        entries = {self.kernels[0].name: self.entry or (lambda *arguments, **named: None)}
        return replace(built, kernels=self.kernels, entries=entries)


@pytest.fixture
def declare() -> Iterator[Any]:
    with KernelLoader() as loader:

        def load(*kernels: Kernel, entry: Any = None) -> Any:
            register(Declared(*kernels, entry=entry))
            return getattr(loader.load(f"{kernels[0].name}() = 0", language="declared"), kernels[0].name)

        yield load
        unregister("declared")


HALF = Kernel(
    "half", (array("dst", "float32", written=True, shape=("n",)), array("src", shape=("n",)), scalar("k")), "cpp",
    code="void half(float *d, long sd, const double *s, long ss, long n, double k) {\n"
         "    for (long i = 1; i < n - 1; ++i) d[i * sd] = float(k * s[i * ss]);\n}\n",
    slots=(pointer("dst"), stride("dst", dtype="int64"), pointer("src"), stride("src"), extent("src"), value("k")),
)  # fmt: skip


def kernel(*parameters: Any, **more: Any) -> Kernel:
    return Kernel("step", parameters, "declared", **more)


@pytest.fixture(scope="module")
def compiled() -> Any:
    if sys.platform == "win32":
        pytest.skip("the CPU JIT does not run on Windows")
    return CpuJit(objcache=None).compile(HALF)


def test_a_compiled_kernel_returns_its_array_in_its_own_dtype(declare: Any, compiled: Any) -> None:
    half = declare(HALF, entry=compiled).returning("dst", like="src")
    for like in (np.arange(5.0), np.arange(10.0)[::2], np.arange(5.0)[::-1]):
        made = half(like, 0.5)
        assert made.dtype == np.float32
        assert made.tolist() == [0, *(0.5 * like[1:-1]), 0]


def test_a_compiled_kernel_refuses_as_it_always_does(declare: Any, compiled: Any) -> None:
    half = declare(HALF, entry=compiled).returning("dst", like="src")
    with pytest.raises(ArgumentTypeError, match="argument 'dst'"):
        half(np.arange(5.0), 1, out=np.zeros(5))
    with pytest.raises(ArgumentTypeError, match="argument 'src'"):
        half(np.arange(5), 1)
    with pytest.raises(ArgumentValueError, match="argument 'dst'"):
        half(np.arange(5.0), 1, out=np.zeros((5, 1, 2), np.float32))


@pytest.mark.parametrize(
    "out", [array("dst", written=True, order="C"), replace(array("dst", written=True), kind="pointer")]
)
@pytest.mark.parametrize("like", [GRID.T, np.asfortranarray(GRID), GRID[::-1, :, ::2]])
def test_a_parameter_without_strides_gets_c_order(declare: Any, out: Any, like: np.ndarray) -> None:
    made = declare(kernel(out, array("src"))).returning("dst", like="src")(like)
    assert made.flags.c_contiguous
    assert (made.shape, made.tobytes().count(0)) == (like.shape, made.nbytes)


def test_a_raw_pointer_of_a_compiled_kernel_gets_c_order(declare: Any) -> None:
    out = array("dst", ndim=None, written=True)
    made = declare(kernel(out, array("src"), slots=(pointer("dst"),))).returning("dst", like="src")(GRID.T)
    assert made.flags.c_contiguous


@pytest.mark.parametrize(("axes", "free"), [((), False), ((0, 1), False), ((0, 1, 2), True)])
def test_compiled_code_gets_c_order_unless_it_gets_every_stride(declare: Any, axes: Any, free: bool) -> None:
    slots = (pointer("dst"), *(stride("dst", axis) for axis in axes))
    out = array("dst", ndim=3, written=True)
    made = declare(kernel(out, array("src"), slots=slots)).returning("dst", like="src")(GRID.T)
    assert (made.flags.f_contiguous, made.flags.c_contiguous) == (free, not free)


def test_records_are_those_of_the_argument(declare: Any) -> None:
    record = np.dtype([("id", "i4"), ("mass", "f8")])
    out = array("dst", "float64", written=True, itemsize=record.itemsize, fields=(("mass", "float64", 4),))
    assert declare(kernel(out, array("src"))).returning("dst", like="src")(np.zeros(3, record)).dtype == record


def test_another_library_is_asked_for_the_kernels_dtype_and_for_c_order(declare: Any, library: Any) -> None:
    out = array("dst", "float32", written=True, order="C")
    made = declare(kernel(out, array("src"))).returning("dst", like="src")(Tensor((2, 3)))
    assert (made.shape, made.dtype, made.made) == ((2, 3), "lib.float32", "zeros like (6,)")


OVERLOADS = tuple(
    kernel(array("dst", out, written=True), array("src", like))
    for out, like in (("float64", "float64"), ("float32", "int16"), (None, "float32"))
)


@pytest.mark.parametrize(
    ("like", "made"), [("float64", "float64"), ("int16", "float32"), ("float32", "float32"), ("int8", "int8")]
)
def test_several_kernels_of_one_name_choose_the_dtype_by_the_argument(declare: Any, like: str, made: str) -> None:
    assert declare(*OVERLOADS).returning("dst", like="src")(np.zeros(3, like)).dtype == made


def test_a_kernel_that_takes_keywords_only_gets_keywords_only(declare: Any) -> None:
    def entry(*, dst: Any, src: Any, **ignored: Any) -> None:
        dst[...] = src

    step = declare(kernel(array("dst", written=True), array("src"), policy="pystencils"), entry=entry)
    assert step.returning("dst", like="src")(src=SRC, unknown=1).tolist() == SRC.tolist()


# --- names that do not fit -------------------------------------------------------------------------------------

WRONG_NAMES = {
    "no such array": ("dts", "src", r"heat\.step v1 has no parameter 'dts'; its parameters: dst, src, k"),
    "no such argument": ("dst", "scr", "has no parameter 'scr'"),
    "a scalar": ("k", "src", "has k: float64, which is no array"),
    "like a scalar": ("dst", "k", "has k: float64, which is no array"),
    "read only": ("src", "dst", "only reads 'src'; it writes to dst"),
    "like itself": ("dst", "dst", "needs two parameters"),
}


@pytest.mark.parametrize(("out", "like", "words"), WRONG_NAMES.values(), ids=WRONG_NAMES.keys())
def test_names_that_do_not_fit_are_refused_at_once(step: KernelHandle, out: str, like: str, words: str) -> None:
    with pytest.raises(ArgumentValueError, match=words):
        step.returning(out, like=like)


@pytest.mark.parametrize(("out", "like", "word"), [(SRC, "src", "out"), ("dst", SRC, "like"), (0, "src", "out")])
def test_names_are_names(step: KernelHandle, out: Any, like: Any, word: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{word} is the name of a parameter"):
        step.returning(out, like=like)


def test_another_parameter_called_out_is_refused(loader: KernelLoader) -> None:
    step = loader.load("step(dst: float64[:], src: const float64[:], out: float64[:]) = 0").step
    with pytest.raises(ArgumentValueError, match="a parameter 'out' of its own, so that out= could mean either"):
        step.returning("dst", like="src")


def test_a_kernel_that_returns_something_is_refused(declare: Any) -> None:
    step = declare(kernel(array("dst", written=True), array("src"), returns="float64"))
    with pytest.raises(ArgumentValueError, match="returns float64 already"):
        step.returning("dst", like="src")


# --- reloads ---------------------------------------------------------------------------------------------------


def test_it_follows_a_reload_that_moves_the_parameters(loader: KernelLoader, smooth: Returning) -> None:
    assert smooth(SRC, 1).tolist() == INSIDE
    loader.load(MOVED, "heat")
    assert smooth(SRC, 1).tolist() == [-x for x in INSIDE]
    assert list(inspect.signature(smooth).parameters) == ["src", "k", "out"]
    loader.rollback("heat")
    assert smooth(SRC, 1).tolist() == INSIDE


def test_a_version_that_comes_between_allocation_and_call_gets_its_arguments_by_name(
    loader: KernelLoader, smooth: Returning
) -> None:
    class Reloading(np.ndarray):
        @property
        def flags(self) -> Any:  # read while the new array is made
            loader.load(MOVED, "heat")
            return super().flags

    src = SRC.copy()
    assert smooth(src.view(Reloading), 1).tolist() == [-x for x in INSIDE]
    assert src.tolist() == SRC.tolist()


RENAMED = {
    "out": (TEXT.replace("dst", "dest"), "v2 has no parameter 'dst'; its parameters: dest, src, k"),
    "like": (TEXT.replace("src", "from_"), "v2 has no parameter 'src'"),
    "now a scalar": ("step(dst: float64[:], src) = 0", "v2 has src: float64, which is no array"),
    "now only read": ("step(dst: const float64[:], src: float64[:]) = 0", "v2 only reads 'dst'; it writes to src"),
}


@pytest.mark.parametrize(("text", "words"), RENAMED.values(), ids=RENAMED.keys())
def test_a_version_that_no_longer_fits_says_so_at_the_call_and_a_later_one_may_fit(
    loader: KernelLoader, smooth: Returning, text: str, words: str
) -> None:
    smooth(SRC, 1)
    loader.load(text, "heat")
    for _ in range(2):
        with pytest.raises(ArgumentValueError, match=words):
            smooth(SRC, 1)
    assert "v2" in repr(smooth)
    loader.load(TEXT, "heat")
    assert smooth(SRC, 1).tolist() == INSIDE


def test_removal_and_revival_are_those_of_the_handle(loader: KernelLoader, smooth: Returning) -> None:
    smooth(SRC, 1)
    loader.unload("heat")
    with pytest.raises(KernelRemovedError, match="heat is gone: it was unloaded"):
        smooth(SRC, 1)
    assert "gone" in repr(smooth)
    loader.load("other() = 0", "heat", language="toy")
    with pytest.raises(KernelRemovedError, match="has no kernel 'step'"):
        smooth(SRC, 1)
    loader.load(TEXT, "heat", namespace={"put": put})
    assert smooth(SRC, 1).tolist() == INSIDE


def test_a_kernel_that_is_gone_has_no_returning_form(loader: KernelLoader, step: KernelHandle) -> None:
    loader.unload("heat")
    with pytest.raises(KernelRemovedError):
        step.returning("dst", like="src")


def test_a_pinned_one_never_changes(loader: KernelLoader, smooth: Returning) -> None:
    pinned = smooth.pinned()
    loader.load(MOVED, "heat")
    assert pinned(SRC, 1).tolist() == INSIDE
    assert pinned.handle.version == 1
    assert pinned.pinned() == pinned
    assert pinned != smooth


def test_a_hold_holds_it_too(loader: KernelLoader, smooth: Returning) -> None:
    import threading

    with loader.hold():
        other = threading.Thread(target=loader.load, args=(MOVED, "heat"))
        other.start()
        other.join()
        assert smooth(SRC, 1).tolist() == INSIDE
    assert smooth(SRC, 1).tolist() == [-x for x in INSIDE]


def test_a_version_that_it_has_called_is_not_kept(loader: KernelLoader) -> None:
    import gc
    import weakref

    class Big:
        def __call__(self, dst: Any, src: Any) -> int:
            return 0

    big = Big()
    alive = weakref.ref(big)
    step = loader.load(
        "step(dst: float64[:], src: const float64[:]) = big(dst, src)", "big", namespace={"big": big}
    ).step
    smooth = step.returning("dst", like="src")
    smooth(SRC)
    del big
    loader.unload("big")
    gc.collect()
    assert alive() is None
    assert "gone" in repr(smooth)


# --- what it says of itself ------------------------------------------------------------------------------------


def test_name_signature_docstring_and_repr_are_the_live_kernels(loader: KernelLoader, smooth: Returning) -> None:
    assert smooth.__name__ == "step"
    assert str(inspect.signature(smooth)) == "(src: 'const float64[:]', k: 'float64', *, out=None) -> 'float64[:]'"
    assert inspect.getdoc(smooth).startswith("Scales the inside.\n\nReturns 'dst': zeros like 'src'")  # type: ignore[union-attr]
    assert repr(smooth) == f"{smooth.handle!r}.returning('dst', like='src')"
    loader.load(MOVED, "heat")
    assert inspect.getdoc(smooth).startswith("Returns 'dst'")  # type: ignore[union-attr]
    assert " v2 " in repr(smooth)


def test_the_class_keeps_its_own_words() -> None:
    assert "A kernel that returns one of its arrays" in inspect.getdoc(Returning)  # type: ignore[operator]
    assert Returning.__name__ == "Returning"
    assert "handle" in inspect.signature(Returning).parameters


def test_wraps_takes_name_docstring_and_signature(smooth: Returning) -> None:
    @functools.wraps(smooth)
    def call(*arguments: Any) -> Any:
        return smooth(*arguments)

    assert (call.__name__, list(inspect.signature(call).parameters)) == ("step", ["src", "k", "out"])
    assert call(SRC, 1).tolist() == INSIDE


def test_equal_are_those_of_one_handle_and_the_same_names(loader: KernelLoader, step: KernelHandle) -> None:
    one, same = step.returning("dst", like="src"), step.returning("dst", like="src")
    one(SRC, 1)
    other = loader.load(TEXT, "other", namespace={"put": put}).step.returning("dst", like="src")
    assert (one == same, hash(one) == hash(same), len({one, same, other})) == (True, True, 2)
    assert one != step
    assert (one.handle, one.out, one.like) == (step, "dst", "src")
    with pytest.raises(AttributeError):
        one.out = "k"  # type: ignore[misc]


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, *(
    functools.partial(lambda protocol, x: pickle.loads(pickle.dumps(x, protocol)), protocol)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1))])  # fmt: skip
def test_it_copies_and_pickles_with_its_handle(loader: KernelLoader, travel: Any) -> None:
    step = loader.load("step(dst: float64[:], src: const float64[:]) = dst.put([1], src[1]) or 0").step
    smooth = step.returning("dst", like="src")
    again = travel(smooth)
    assert again == smooth
    assert again.handle is step


def test_a_pickle_may_be_older_than_the_version_that_lost_the_parameter(loader: KernelLoader) -> None:
    smooth = loader.load("step(dst: float64[:], src: const float64[:]) = 0", "heat").step.returning("dst", like="src")
    data = pickle.dumps(smooth)
    loader.load("step(x: float64[:], src: const float64[:]) = 0", "heat")
    again = pickle.loads(data)
    with pytest.raises(ArgumentValueError, match="v2 has no parameter 'dst'"):
        again(SRC)


def test_a_kernel_called_returning_is_still_a_kernel(loader: KernelLoader) -> None:
    module = loader.load("returning(dst: float64[:], src: const float64[:]) = 0")
    assert rekernel.info(module).kernels[0].name == "returning"
    assert module.returning.returning("dst", like="src")(SRC).tolist() == [0] * 5
