"""`CupyJit` on a fake driver: what it accepts, what it compiles, how its kernels launch, what is missing."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ckernels import array, scalar
from cudakit import CONTEXT, FUNCTION, CupyArray, FakeCuda, cuda_fixture, cupy_fixture, launch, numbers  # noqa: F401
from rekernel import ArgumentTypeError, CupyJit, JitError, KernelSourceError, LaunchGrid, ToolchainError
from rekernel.cuda import devices, modules
from rekernel.cuda.driver import CudaError
from rekernel.jit import CupyKernelWrapper
from rekernel.jit.gpu import release_captured, render
from rekernel.kernel import Kernel, Slot
from rekernel.objcache import ObjectCache
from support import run_python

pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed (rekernel[cuda13])")
try:
    from rekernel.cuda import nvrtc

    nvrtc.api()
except ToolchainError as problem:  # CuPy without a CUDA that it could load
    pytest.skip(str(problem), allow_module_level=True)

Y, X, K = array("y", ndim=1, written=True), array("x", ndim=1), scalar("k", "float32")
CODE = "__global__ void step(double *y, const double *x, float k) {\n  y[threadIdx.x] = k * x[threadIdx.x];\n}\n"
STEP = Kernel(
    "step", (Y, X, K), "cuda", CODE, slots=(Slot("pointer", "y"), Slot("pointer", "x"), Slot("scalar", "k"))
)  # fmt: skip


class FakeDriver:
    """What loads and unloads; device 1 is of another architecture than device 0."""

    def __init__(self) -> None:
        self.loaded: list[bytes] = []
        self.unloaded: list[int] = []
        self.functions: list[str] = []
        self.waited: list[int] = []
        self.wrong: dict[str, list[CudaError]] = {}

    def _fail(self, what: str) -> None:
        if self.wrong.get(what):
            raise self.wrong[what].pop()

    def capability(self, device: int) -> int:
        return (90, 80)[device]

    @contextmanager
    def inside(self, context: int) -> Iterator[None]:
        yield

    def load(self, image: bytes) -> int:
        self._fail("load")
        self.loaded.append(image)
        return len(self.loaded)

    def unload(self, module: int) -> None:
        self._fail("unload")
        self.unloaded.append(module)

    def function(self, module: int, name: str, device: int) -> int:
        self.functions.append(name)
        return FUNCTION + device

    def synchronize_stream(self, stream: int) -> None:
        self._fail("synchronize_stream")
        self.waited.append(stream)

    def is_capturing(self, stream: int) -> bool:
        return stream == 13


@pytest.fixture
def driver(cuda: FakeCuda, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()

    def checked(device: int, stream: int) -> None:
        made.synchronize_stream(stream)

    here = SimpleNamespace(
        driver=made, native=cuda.driver, capability=made.capability, context=lambda device: CONTEXT + device,
        current=lambda: 0, checked=checked,
    )  # fmt: skip
    monkeypatch.setattr(devices, "devices", lambda: here)
    return made


@pytest.fixture
def jit(driver: FakeDriver, tmp_path: Path) -> CupyJit:
    return CupyJit(tmp_path)


def arrays(count: int = 2, shape: Any = 64, **options: Any) -> list[CupyArray]:
    return [CupyArray(shape, **options) for _ in range(count)]


# ---- Kernel values ----


def test_a_kernel_value_is_launched_with_brackets(jit: CupyJit, cuda: FakeCuda, driver: FakeDriver) -> None:
    step, (y, x) = jit.compile(STEP), arrays()
    cuda.sizes(8, 8, 4)
    assert isinstance(step, CupyKernelWrapper)
    launch(step, 4, (32, 2), 7, 256)(y, x, k=3)
    assert numbers(cuda, "QQf") == (y.data.ptr, x.data.ptr, 3.0)
    last = cuda.last()
    assert (tuple(last.grid), tuple(last.block), last.stream, last.shared) == ((4, 1, 1), (32, 2, 1), 7, 256)
    assert driver.functions == ["_Z4stepPdPKdf"]
    assert step.launch_config is None
    assert (step.value, step.target, step.code) == (STEP, "sm_90", CODE)


def test_a_launch_grid_stands_in_the_brackets(jit: CupyJit, cuda: FakeCuda) -> None:
    y, x = arrays(shape=1000)
    jit.compile(STEP)[LaunchGrid.cover(y.shape)](y, x, 0.5)
    assert (tuple(cuda.last().grid), tuple(cuda.last().block)) == ((4, 1, 1), (256, 1, 1))


def test_without_brackets_the_error_shows_them(jit: CupyJit) -> None:
    with pytest.raises(TypeError, match=r"step needs a launch grid: step\[LaunchGrid\.cover\(y\.shape\)\]\(y, x, k\)"):
        jit.compile(STEP)(*arrays(), 1.0)


def test_arguments_are_checked_by_the_table(jit: CupyJit, cuda: FakeCuda) -> None:
    step = jit.compile(STEP)
    y, x = arrays()
    for wrong in ((y, CupyArray(64, "float32"), 1.0), (y, x, "1"), (y, x, None)):
        with pytest.raises(ArgumentTypeError):
            launch(step, 1, 1)(*wrong)
    assert (cuda.count, step.stats) == (0, {"calls": 3, "failures": 3})


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("step", 'extern "C" ' + CODE),
        ("ns::step", f"namespace ns {{ {CODE} }}"),
        ("step<double, 2>", "template <class T, int n> " + CODE.replace("double", "T")),
        ("step", "#define k 3\n#define code_ 4\n#define T_ 1\n#define row 2\n" + CODE.replace("float k", "float kk").replace("k *", "kk *")),
    ],
)  # fmt: skip
def test_functions_are_found_wherever_they_are(
    jit: CupyJit, cuda: FakeCuda, driver: FakeDriver, function: str, code: str
) -> None:
    step = jit.compile(Kernel("step", (Y, X, K), "cuda", code, slots=STEP.slots, function=function))
    launch(step, 1, 1)(*arrays(), 1.0)
    assert (cuda.count, len(driver.functions)) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": array("y", "float32", ndim=1, written=True)}, "disagree about a size"),
        ({"y": array("y", "int64", ndim=1, written=True)}, "disagree about a type"),
        ({"k": scalar("k", "float64")}, "disagree about a size"),
        ({"k": scalar("k", "int32")}, "disagree about a type"),
        ({"k": scalar("k", "uint32")}, "disagree about a type"),
        ({"k": array("k", "float32", ndim=1)}, "disagree about a pointer"),
        ({"x": scalar("x", "float64")}, "disagree about a pointer"),
        ({"k": None}, "disagree about how many parameters"),
    ],
)
def test_a_table_that_is_not_the_functions_is_an_error_of_the_compiler(
    jit: CupyJit, changed: dict[str, Any], message: str
) -> None:
    parameters = [p for p in ({"y": Y, "x": X, "k": K} | changed).values() if p is not None]
    slots = tuple(Slot("scalar" if p.kind == "scalar" else "pointer", p.name) for p in parameters)
    with pytest.raises(KernelSourceError, match=message):
        jit.compile(Kernel("step", tuple(parameters), "cuda", CODE, slots=slots))


def test_a_function_without_parameters_needs_no_table(jit: CupyJit, cuda: FakeCuda) -> None:
    launch(jit.compile(Kernel("k", (), "cuda", "__global__ void k() {}")), 2, 3)()
    assert tuple(cuda.last().grid) == (2, 1, 1)


def test_an_error_is_at_the_users_line(jit: CupyJit) -> None:
    wrong = Kernel("step", (Y, X, K), "cuda", CODE.replace("k *", "kk *"), slots=STEP.slots)
    with pytest.raises(
        KernelSourceError, match=r'step v1 \(cuda\), line 2, column 20: identifier "kk" is undefined'
    ) as caught:
        jit.compile(wrong)
    assert caught.value.command is not None
    assert caught.value.command[0] == "nvrtc"
    assert "kk" in caught.value.output


def test_what_is_no_cuda_kernel_is_refused_in_words(jit: CupyJit) -> None:
    cases = [
        (Kernel("f", (), "cpp", "void f() {}"), "f is a cpp kernel; CupyJit compiles CUDA"),
        (Kernel("f", (X,), "cuda", CODE), "f has parameters and no slots"),
        (CODE, r"text is loaded by KernelLoader\.load"),
        (3, "CupyJit compiles Kernel values, not builtins.int"),
    ]
    for given, message in cases:
        with pytest.raises(JitError, match=message):
            jit.compile(given)
    with pytest.raises(TypeError, match="not one text"):
        CupyJit(options="-lineinfo")  # type: ignore[arg-type]


# ---- the cache, architectures, modules ----


def test_the_second_time_it_comes_from_the_cache(driver: FakeDriver, tmp_path: Path) -> None:
    first, second = (CupyJit(tmp_path).compile(STEP) for _ in range(2))
    assert (first.from_cache, second.from_cache, second.rebuilt_because) == (False, True, None)


def test_options_are_part_of_the_key_and_an_architecture_of_them_counts(driver: FakeDriver, tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    for options in ((), ("-use_fast_math",), ("-arch=sm_80",), ("--gpu-architecture=sm_80",), ("-arch", "compute_80")):
        step = CupyJit(cache, options=options).compile(STEP)
        assert step.from_cache == (options[:1] == ("--gpu-architecture=sm_80",))
        assert step.target == ("sm_90" if "80" not in str(options) else options[-1].rpartition("=")[2])


def test_each_device_gets_code_of_its_own_architecture_when_it_is_used(
    jit: CupyJit, cuda: FakeCuda, driver: FakeDriver
) -> None:
    step = jit.compile(STEP)
    assert driver.loaded == []
    for device in (0, 1, 0, 1):
        launch(step, 1, 1)(*arrays(device=device), 1.0)
    assert len(driver.loaded) == 2
    assert driver.loaded[0] != driver.loaded[1]
    assert cuda.last().function == FUNCTION + 1


def test_a_module_goes_with_the_last_that_can_launch_it(jit: CupyJit, driver: FakeDriver) -> None:
    step = jit.compile(STEP)
    kept = launch(step, 1, 1)
    kept(*arrays(), 1.0)
    del step
    gc.collect()
    modules.drain()
    assert driver.unloaded == []
    del kept
    gc.collect()
    assert modules.drain()
    assert driver.unloaded == [1]


def test_a_context_that_is_captured_is_left_alone_and_asked_again(
    jit: CupyJit, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "_PAUSE", 0)
    step = jit.compile(STEP)
    launch(step, 1, 1)(*arrays(), 1.0)
    driver.wrong["unload"] = [CudaError("cuModuleUnload", 900, "CAPTURING", "")] * 3
    del step
    gc.collect()
    assert modules.drain()
    assert (driver.unloaded, driver.wrong["unload"]) == ([1], [])


def test_a_dead_context_is_not_asked_twice(jit: CupyJit, driver: FakeDriver) -> None:
    step = jit.compile(STEP)
    launch(step, 1, 1)(*arrays(), 1.0)
    driver.wrong["unload"] = [CudaError("cuModuleUnload", 700, "ILLEGAL_ADDRESS", "")] * 2
    del step
    gc.collect()
    assert modules.drain()
    assert (driver.unloaded, len(driver.wrong["unload"])) == ([], 1)


def test_code_in_a_graph_stays_until_it_is_released(jit: CupyJit, cuda: FakeCuda, driver: FakeDriver) -> None:
    step = jit.compile(STEP)
    cuda.capture(13)
    launch(step, 1, 1, 13)(*arrays(), 1.0)
    assert release_captured() == 0  # its kernel is still there
    del step
    gc.collect()
    modules.drain()
    assert driver.unloaded == []
    assert release_captured() == 1
    assert (driver.unloaded, release_captured()) == ([1], 0)


def test_code_that_cannot_be_loaded_is_an_error_of_the_call_and_tried_again(jit: CupyJit, driver: FakeDriver) -> None:
    step = jit.compile(STEP)
    driver.wrong["load"] = [CudaError("cuModuleLoadData", 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no image")]
    with pytest.raises(RuntimeError, match=r"NO_BINARY_FOR_GPU \(209\): no image"):
        launch(step, 1, 1)(*arrays(), 1.0)
    launch(step, 1, 1)(*arrays(), 1.0)
    assert len(driver.loaded) == 1


def test_debug_waits_for_each_launch_and_raises_what_went_wrong(
    driver: FakeDriver, cuda: FakeCuda, tmp_path: Path
) -> None:
    step = CupyJit(tmp_path, debug=True).compile(STEP)
    launch(step, 1, 1, 5)(*arrays(), 1.0)
    assert driver.waited == [5]
    driver.wrong["synchronize_stream"] = [CudaError("cuStreamSynchronize", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "")]
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        launch(step, 1, 1, 5)(*arrays(), 1.0)
    launch(step, 1, 1, 13)(*arrays(), 1.0)  # captured: nobody may wait
    assert driver.waited == [5]


def test_the_text_is_the_same_in_every_process() -> None:
    assert render(STEP) == render(STEP)
    assert render(STEP).startswith('#line 1 "step"\n' + CODE)


# ---- kernels of pystencils ----


@pytest.fixture(name="ps")
def ps_fixture() -> Any:
    return pytest.importorskip(
        "pystencils", minversion="2.0", reason="pystencils 2 is not installed (rekernel[stencils])"
    )


def stencil(ps: Any, assignments: Any = None, **options: Any) -> Any:
    """Return a kernel for CUDA; `options` of the category ``gpu`` are given with ``gpu_``."""
    if assignments is None:
        dst, src = ps.fields("dst, src: double[2D]")
        assignments = [ps.Assignment(dst[0, 0], ps.TypedSymbol("k", "float64") * (src[1, 0] + src[0, -1]))]
    config = ps.CreateKernelConfig(target=ps.Target.CUDA)
    for name, value in options.items():
        if name.startswith("gpu_"):
            setattr(config.gpu, name[4:], value)
        else:
            setattr(config, name, value)
    return ps.create_kernel(assignments, config)


def test_a_stencil_knows_its_grid(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    kernel = stencil(ps)
    made = jit.compile(kernel)
    dst, src = arrays(shape=(100, 70))
    made(dst=dst, src=src, k=2)
    config = kernel.get_launch_configuration()
    block, grid = config.evaluate(_size_dst_0=100, _size_dst_1=70)
    assert (tuple(cuda.last().grid), tuple(cuda.last().block)) == (grid, block)
    cuda.sizes(8, 8, 8, 8, 8, 8, 8, 8, 8)
    made(dst=dst, src=src, k=0.25)
    assert numbers(cuda, "QQ6qd") == (dst.data.ptr, src.data.ptr, 100, 70, 70, 1, 70, 1, 0.25)
    assert made.ast is kernel


def test_the_launch_configuration_is_pystencils_own_and_honoured_after_each_change(
    jit: CupyJit, cuda: FakeCuda, ps: Any
) -> None:
    made = jit.compile(stencil(ps))
    dst, src = arrays(shape=(100, 70))
    seen = []
    for change in (lambda c: None, lambda c: c.trim_block_size((128, 2, 1)), lambda c: c.fit_block_size((8, 8, 4))):
        change(made.launch_config)
        for _ in range(2):
            made(dst=dst, src=src, k=2.0)
            seen.append((tuple(cuda.last().block), tuple(cuda.last().grid)))
            expected = made.launch_config.evaluate(_size_dst_0=100, _size_dst_1=70)
            assert seen[-1] == expected
    assert len(set(seen)) == 3


def test_a_grid_by_hand_is_asked_for_and_then_used(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    made = jit.compile(stencil(ps, gpu_manual_launch_grid=True))
    dst, src = arrays(shape=(9, 9))
    with pytest.raises(
        JitError, match=r"no launch grid: No GPU block size.*launch_config\.block_size.*kernel\[grid, block\]"
    ):
        made(dst=dst, src=src, k=1.0)
    made.launch_config.block_size, made.launch_config.grid_size = (64, 1, 1), (9, 1, 1)
    made(dst=dst, src=src, k=1.0)
    assert tuple(cuda.last().grid) == (9, 1, 1)
    made.launch_config.grid_size = (5, 2, 1)
    made(dst=dst, src=src, k=1.0)
    assert tuple(cuda.last().grid) == (5, 2, 1)
    launch(made, 3, 32)(dst=dst, src=src, k=1.0)
    assert (tuple(cuda.last().grid), tuple(cuda.last().block)) == ((3, 1, 1), (32, 1, 1))


@pytest.mark.parametrize("shape", [(2, 2), (2, 50), (0, 0), (1, 3), (50, 0)])
@pytest.mark.parametrize("change", ["none", "trim", "fit", "blockwise"])
def test_an_empty_iteration_space_launches_nothing(
    jit: CupyJit, cuda: FakeCuda, ps: Any, shape: tuple[int, int], change: str
) -> None:
    options = {"gpu_indexing_scheme": ps.codegen.config.GpuIndexingScheme.Blockwise4D} if change == "blockwise" else {}
    made = jit.compile(stencil(ps, **options))
    if change in ("trim", "fit"):
        getattr(made.launch_config, f"{change}_block_size")((16, 16, 1))
    made(dst=CupyArray(shape), src=CupyArray(shape), k=1.0)
    assert cuda.count == 0


@pytest.mark.parametrize("scheme", ["Linear1D", "Linear3D", "Blockwise4D"])
def test_every_scheme_of_indices_has_its_grid(jit: CupyJit, cuda: FakeCuda, ps: Any, scheme: str) -> None:
    kernel = stencil(ps, gpu_indexing_scheme=ps.codegen.config.GpuIndexingScheme[scheme])
    dst, src = arrays(shape=(40, 30))
    jit.compile(kernel)(dst=dst, src=src, k=1.0)
    block, grid = kernel.get_launch_configuration().evaluate(_size_dst_0=40, _size_dst_1=30)
    assert (tuple(cuda.last().block), tuple(cuda.last().grid)) == (block, grid)


def test_a_number_that_only_the_grid_needs_is_an_argument(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    dst, src = ps.fields("dst, src: double[2D]")
    low, high = ps.TypedSymbol("low", "int64"), ps.TypedSymbol("high", "int64")
    kernel = stencil(ps, [ps.Assignment(dst.center, src.center)], iteration_slice=ps.make_slice[low:high, 2:5])
    made = jit.compile(kernel)
    arguments = {"dst": CupyArray((40, 30)), "src": CupyArray((40, 30))}
    made(**arguments, low=3, high=35)
    assert tuple(cuda.last().grid)[1] == 2
    made(**arguments, low=3, high=4)
    assert tuple(cuda.last().grid)[1] == 1
    made(**arguments, low=3, high=3)
    assert cuda.count == 2
    with pytest.raises(KeyError, match="low"):
        made(**arguments, high=3)


def test_a_fixed_shape_needs_no_extents(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    dst, src = ps.fields("dst, src: float32[16, 32, 8]")
    made = jit.compile(stencil(ps, [ps.Assignment(dst.center, src.center)]))
    made(dst=CupyArray((16, 32, 8), "float32"), src=CupyArray((16, 32, 8), "float32"))
    assert tuple(cuda.last().block) == (8, 8, 4)
    with pytest.raises(ValueError, match="dst"):
        made(dst=CupyArray((16, 32, 9), "float32"), src=CupyArray((16, 32, 8), "float32"))


def test_reductions_and_halves_and_index_lists_compile(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    import numpy as np

    src, h, g = ps.fields("src: double[2D]"), *ps.fields("h, g: float16[2D]")
    dst = ps.fields("dst: double[2D]")
    total = ps.TypedSymbol("total", "float64")
    jit.compile(stencil(ps, [ps.MaxReductionAssignment(total, src.center)]))(src=CupyArray((9, 9)), total=CupyArray(1))
    jit.compile(stencil(ps, [ps.Assignment(h.center, 2 * g.center)]))(
        h=CupyArray((9, 9), "float16"), g=CupyArray((9, 9), "float16")
    )
    row = np.dtype([("x", np.int64), ("y", np.int64), ("v", np.float64)], align=True)
    index = ps.Field.create_generic("index", 1, row, field_type=ps.FieldType.INDEXED)
    made = jit.compile(stencil(ps, [ps.Assignment(dst[0, 0], index("v"))], index_field=index))
    made(dst=CupyArray((9, 9)), index=CupyArray(1000, row))
    assert cuda.count == 3
    assert cuda.last().grid[0] * cuda.last().block[0] >= 1000


def test_only_arrays_of_which_one_element_is_touched_may_be_one(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    dst, src = ps.fields("dst, src: double[2D]")
    pointwise = jit.compile(stencil(ps, [ps.Assignment(dst.center, 2 * src.center)]))
    both = CupyArray((9, 9))
    pointwise(dst=both, src=both)
    with pytest.raises(ValueError, match="overlap"):
        jit.compile(stencil(ps))(dst=both, src=both, k=1.0)
    assert cuda.count == 1


def test_kernels_for_other_targets_are_refused_in_words(jit: CupyJit, ps: Any) -> None:
    dst, src = ps.fields("dst, src: double[2D]")
    for target, message in (
        ("HIP", "HIP, AMD's GPUs"),
        ("GenericCPU", r"a CPU; CupyJit compiles for ps\.Target\.CUDA"),
    ):
        config = ps.CreateKernelConfig(target=ps.Target[target])
        with pytest.raises(JitError, match=message):
            jit.compile(ps.create_kernel([ps.Assignment(dst.center, src.center)], config))


def test_a_grid_beyond_the_limits_names_the_limit(jit: CupyJit, cuda: FakeCuda, ps: Any) -> None:
    made = jit.compile(stencil(ps))
    shape = (3_000_000, 4)
    with pytest.raises(ValueError, match="65535 blocks along y"):
        made(dst=CupyArray(shape, ptr=1 << 40), src=CupyArray(shape, ptr=1 << 41), k=1.0)


# ---- what is missing ----

BLOCK = """
import importlib.abc, sys
class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cupy", "cupy_backends"): {how}
sys.meta_path.insert(0, Blocker())
import rekernel, rekernel.cuda.devices as devices
from types import SimpleNamespace
from rekernel.kernel import Kernel
devices.devices = lambda: SimpleNamespace(current=lambda: 0, capability=lambda device: 90)
try: rekernel.CupyJit(None).compile(Kernel("k", (), "cuda", "__global__ void k() {{}}"))
except rekernel.ToolchainError as error: print(error)
"""


def test_without_cupy_importing_works_and_the_call_names_the_extra() -> None:
    said = run_python(BLOCK.format(how="raise ModuleNotFoundError('no', name=name)")).stdout
    assert 'CuPy is not installed, which GPU kernels need: pip install "rekernel[cuda13]"' in said
    assert "python -m rekernel doctor" in said


def test_with_a_broken_cupy_the_call_says_what_it_said() -> None:
    said = run_python(BLOCK.format(how="raise ImportError('libfoo.so.3: wrong ELF class')")).stdout
    assert "CuPy cannot be imported (ImportError: libfoo.so.3: wrong ELF class)" in said


def test_with_a_broken_nvrtc_the_call_says_what_it_said(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> None:
    def broken() -> None:
        raise RuntimeError("CuPy failed to load libnvrtc.so.13: OSError: no such file")

    monkeypatch.setattr(nvrtc, "_known", [])
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.nvrtc", SimpleNamespace(getVersion=broken))
    monkeypatch.setattr("cupy_backends.cuda.libs.nvrtc", sys.modules["cupy_backends.cuda.libs.nvrtc"])
    with pytest.raises(ToolchainError, match=r"NVRTC.*libnvrtc\.so\.13.*rekernel\[cuda13\]"):
        CupyJit(None).compile(STEP)


def test_without_a_driver_the_call_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_LIBRARY", "libnowhere.so.1")
    monkeypatch.setattr(devices, "_found", [])
    with pytest.raises(ToolchainError, match=r"no CUDA device to use \(libnowhere\.so\.1: .*nvidia-smi"):
        CupyJit(None).compile(STEP)


def test_a_forked_child_says_that_cuda_does_not_work_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_inherited", True)
    with pytest.raises(ToolchainError, match=r'forked from one that had used CUDA.*"spawn"'):
        CupyJit(None).compile(STEP)


def test_it_is_made_without_looking_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cupy", "cupy_backends"):
        monkeypatch.setitem(sys.modules, name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert repr(CupyJit(None)).startswith("<CupyJit")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_of_a_process_that_used_cuda_knows_it() -> None:
    done = run_python("""
        import os, warnings
        from rekernel import ToolchainError
        from rekernel.cuda import devices, modules
        warnings.simplefilter("ignore")  # of a fork with threads
        devices._found.append("a driver")
        assert devices.devices() == "a driver"
        child = os.fork()
        if child == 0:
            try:
                devices.devices()
            except ToolchainError as error:
                modules._retire({0: "a module"})  # nothing is unloaded there, and nobody waits
                os._exit(7 if "forked" in str(error) and modules.drain() else 1)
            os._exit(2)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), devices.inherited())
    """)
    assert done.stdout == "7 False\n"
