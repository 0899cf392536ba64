"""What a kernel of pystencils is to its user: how it is called, what it refuses, what it tells of itself."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rekernel.compilers import GccInfo
from rekernel.errors import ArgumentTypeError, ArgumentValueError, JitError, KernelSourceError
from rekernel.jit import CpuJit, no_jit
from rekernel.leading import leading_headers
from rekernel.pointwise import Touched, groups
from rekernel.probe import flags, probe
from rekernel.symbolic import is_symbolic, kernel_of
from stencilkit import JIT, build, config, numbers, ps, sp
from test_stencil_kernels import RECORDS, flow, philox

f, g, h = ps.fields("f, g, h: double[2D]")
SCALED = ps.Assignment(g.center, f.center * sp.Symbol("k"))
SHIFTED = ps.Assignment(g.center, f[0, 1])


# --- the way in ---------------------------------------------------------------------------------------------------


def test_both_ways_in_give_a_callable() -> None:
    kernel = ps.create_kernel(SCALED)  # with pystencils' own JIT
    a, b, c = numbers(4, 5), np.zeros((4, 5)), np.zeros((4, 5))
    CpuJit().compile(kernel)(f=a, g=b, k=2)
    ps.create_kernel(SCALED, ps.CreateKernelConfig(jit=CpuJit())).compile()(f=a, g=c, k=2)
    assert np.array_equal(b, 2 * a)
    assert np.array_equal(c, 2 * a)


def test_a_wrapper_tells_what_pystencils_wrappers_tell() -> None:
    kernel = ps.create_kernel(SCALED, config())
    wrapper = kernel.compile()
    assert wrapper.kernel is wrapper.ast is kernel
    assert wrapper.target is kernel.target
    assert wrapper.parameters == kernel.parameters
    assert wrapper.code == kernel.get_c_code()
    assert wrapper.value == kernel_of(kernel)
    assert [p.name for p in wrapper.value.parameters] == ["f", "g", "k"]
    assert repr(wrapper) == "<kernel kernel(f: const float64[:, :], g: float64[:, :], k: float64)>"
    assert wrapper.info().kernels == (wrapper.value,)


def test_a_value_of_a_kernel_needs_no_pystencils() -> None:
    value = kernel_of(ps.create_kernel(SCALED, config()))
    assert pickle.loads(pickle.dumps(value)) == value
    a, b = numbers(4, 5), np.zeros((4, 5))
    JIT.compile(value)(f=a, g=b, k=3)
    assert np.array_equal(b, 3 * a)


def test_many_kernels_of_one_name_are_one_unit() -> None:
    kernels = [ps.create_kernel(ps.Assignment(g.center, f.center * n), config()) for n in (2, 3, 3)]
    a = numbers(4, 5)
    for factor, compiled in zip((2, 3, 3), JIT.compile_many(kernels), strict=True):
        b = np.zeros_like(a)
        compiled(f=a, g=b)
        assert np.array_equal(b, factor * a)


@pytest.mark.parametrize("name", ["sin", "index", "y0", "step_2", "RESTRICT_me", "values"])
def test_a_kernel_may_have_the_name_of_a_function_of_the_c_library(name: str) -> None:
    kernel = build(ps.Assignment(g.center, sp.sqrt(f.center)), function_name=name)
    b = np.zeros((2, 3))
    kernel(f=np.full((2, 3), 4.0), g=b)
    assert set(b.flat) == {2.0}
    assert name in repr(kernel)


def test_targets_of_pystencils_are_targets_of_a_compiler() -> None:
    for target in (ps.Target.X86_SSE, ps.Target.CurrentCPU, ps.Target.GenericCPU, ps.Target.CPU):
        b = np.zeros((4, 5))
        CpuJit(GccInfo(target=target)).compile(ps.create_kernel(SCALED, config()))(f=b + 1, g=b, k=2)
        assert set(b.flat) == {2.0}


def test_other_objects_are_no_kernels() -> None:
    assert not any(map(is_symbolic, ["text", 3, None, SCALED, config(), JIT]))
    with pytest.raises(JitError, match=r"not pystencils\.\w"):
        JIT.compile(config())


def test_no_jit_says_so_and_leaves_the_code_to_be_looked_at() -> None:
    kernel = ps.create_kernel(SCALED, ps.CreateKernelConfig(jit=no_jit, function_name="scale"))
    assert "_data_g[" in kernel.get_c_code()
    with pytest.raises(JitError, match="scale cannot be compiled: just-in-time compilation is switched off"):
        kernel.compile()


def test_a_field_and_a_number_of_one_name_are_refused() -> None:
    with pytest.raises(JitError, match="a field and a number of the name f"):
        build(ps.Assignment(g.center, f.center * sp.Symbol("f")))


def test_a_field_whose_view_is_unknown_is_refused() -> None:
    class Odd(ps.grids.TensorField):
        @property
        def ghost_layers(self) -> Any:
            return None

    u, w = Odd("u", 2, dtype="float64"), ps.grids.TensorField("w", 2, dtype="float64")
    with pytest.raises(JitError, match="u is a Odd, of which it is not known what its kernel sees"):
        build(flow(w(), u()))


def test_code_that_does_not_compile_is_shown() -> None:
    kernel = ps.create_kernel(SCALED, config())
    kernel.required_headers.add('"there_is_no_such_header.h"')
    with pytest.raises(KernelSourceError, match="there_is_no_such_header"):
        kernel.compile()


# --- the call -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scale() -> Any:
    return build(SCALED, function_name="scale")


def arguments(**changed: Any) -> dict[str, Any]:
    given = {"f": numbers(4, 5), "g": np.zeros((4, 5)), "k": 2.0} | changed
    return {name: value for name, value in given.items() if value is not None}


def test_arguments_are_given_by_keyword(scale: Any) -> None:
    with pytest.raises(TypeError, match=r"scale\(\) takes keyword arguments only but 2 .* call it as scale\(f=..., g="):
        scale(numbers(4, 5), np.zeros((4, 5)))
    with pytest.raises(TypeError, match="keyword arguments only"):
        scale(numbers(4, 5), **arguments(f=None))


def test_unknown_arguments_are_ignored_and_missing_ones_are_key_errors(scale: Any) -> None:
    scale(**arguments(), time=3, _data_f=None)
    for name in ("f", "g", "k"):
        with pytest.raises(KeyError, match=f"misses the keyword argument '{name}'"):
            scale(**arguments(**{name: None}))


def test_numbers_are_numbers(scale: Any) -> None:
    for number in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0)):
        given = arguments(k=number)
        scale(**given)
        assert np.array_equal(given["g"], 2 * given["f"])
    for wrong in ("2", [2.0], 2j, np.ones(1)):
        with pytest.raises(ArgumentTypeError, match="argument 'k'"):
            scale(**arguments(k=wrong))


def read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"f": np.zeros((4, 5), "f4")}, ArgumentTypeError, r"expected const float64\[:, :\], got a float32 array"),
        ({"f": np.zeros((4, 5), ">f8")}, ArgumentTypeError, "foreign order"),
        ({"f": [[1.0]]}, ArgumentTypeError, "got list"),
        ({"f": 1.0}, ArgumentTypeError, "'f'"),
        ({"f": np.zeros(20)}, ArgumentValueError, "1 dimension"),
        ({"f": np.zeros((4, 5, 2))}, ArgumentValueError, "axis 2 must have extent 1"),
        ({"f": np.zeros((5, 5))}, ArgumentValueError, "axis 0 has extent 4, but 'f' has extent 5"),
        ({"g": read_only(np.zeros((4, 5)))}, ArgumentValueError, "read-only"),
        ({"g": np.broadcast_to(np.zeros(5), (4, 5))}, ArgumentValueError, "read-only|share memory"),
        ({"f": np.ndarray((4, 5), "f8", np.zeros(400, "u1"), 4)}, ArgumentValueError, "not aligned"),
        ({"f": np.ndarray((4, 5), "f8", np.zeros(800, "u1"), 0, (60, 8))}, ArgumentValueError, "aligned|multiple"),
    ],
)  # fmt: skip
def test_wrong_arrays_are_refused(scale: Any, changed: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        scale(**arguments(**changed))


# --- one array in two places --------------------------------------------------------------------------------------


def test_one_array_may_be_input_and_output_of_what_stays_at_its_point(scale: Any) -> None:
    a = numbers(4, 5)
    expected = 2 * a
    scale(f=a, g=a, k=2)
    assert np.array_equal(a, expected)


def test_an_array_that_is_read_elsewhere_must_be_another(scale: Any) -> None:
    shift = build(SHIFTED)
    whole = numbers(6, 8)
    parts = [whole[:4, :5], whole[1:5, :5], whole[:4, 1:6], whole[:4, 4::-1]]
    for other in parts:
        with pytest.raises(ArgumentValueError, match="it overlaps 'f', and the kernel may read there"):
            shift(f=whole[:4, :5], g=other)
    for other in parts[1:]:
        with pytest.raises(ArgumentValueError, match="it overlaps 'f'"):
            scale(f=whole[:4, :5], g=other, k=1)
    scale(f=whole[::2, ::2], g=whole[1::2, ::2], k=1)
    assert np.array_equal(whole[::2, ::2], whole[1::2, ::2])


ORDERS = [
    ([ps.Assignment(g.center, 2 * f.center)], True),
    ([ps.Assignment(g.center, 2 * f.center + f.center**2)], True),
    ([ps.Assignment(g.center, 1.5), ps.Assignment(h.center, f.center)], False),  # f is read when g is written
    ([ps.Assignment(g.center, f[0, 1] + f.center)], False),
    ([ps.Assignment(g[0, 1], f[0, 1])], True),
]


@pytest.mark.parametrize(("assignments", "allowed"), ORDERS)
@pytest.mark.parametrize("options", [{}, {"loop_blocking": (2, 4)}, {"openmp_enable": True}], ids=str)
def test_what_may_be_one_array_is_known_from_the_text(assignments: Any, allowed: bool, options: dict[str, Any]) -> None:
    group = {p.name: p.group for p in kernel_of(ps.create_kernel(assignments, config(**options))).parameters}
    assert (group["f"] == group["g"] != 0) is allowed


def test_a_vectorised_loop_and_its_rest_are_one_text() -> None:
    made = config(vector="X86_AVX", vectorize_assume_inner_stride_one=True)
    group = {p.name: p.group for p in kernel_of(ps.create_kernel(SCALED, made)).parameters}
    assert group["f"] == group["g"] != 0


@pytest.mark.parametrize(("source", "allowed"), [(lambda i: i, True), (lambda i: 2 - i, False)])
def test_values_of_one_point_may_be_replaced_each_by_itself(source: Any, allowed: bool) -> None:
    x, y = ps.fields("x(3), y(3): double[2D]")
    kernel = build([ps.Assignment(y.center(i), 2 * x.center(source(i))) for i in range(3)])
    a = numbers(4, 5, 3)
    expected = 2 * a
    if allowed:
        kernel(x=a, y=a)
        assert np.array_equal(a, expected)
    else:
        with pytest.raises(ArgumentValueError, match="overlaps"):
            kernel(x=a, y=a)


def test_two_outputs_are_two_arrays() -> None:
    kernel = build([ps.Assignment(g.center, f.center), ps.Assignment(h.center, 2 * f.center)])
    a = np.zeros((4, 5))
    with pytest.raises(ArgumentValueError, match="overlaps 'g'"):
        kernel(f=numbers(4, 5), g=a, h=a)


def test_a_compiler_without_a_word_for_restrict_is_promised_nothing() -> None:
    class Plain(GccInfo):
        def restrict_qualifier(self) -> str:
            return ""

    a = np.arange(20.0).reshape(4, 5)
    CpuJit(Plain()).compile(ps.create_kernel(SHIFTED, config()))(f=a, g=a)
    assert np.array_equal(a[1:-1, 1:-1], [[7, 8, 9], [12, 13, 14]])


def test_arrays_of_other_kinds_are_never_one() -> None:
    arrays = {"a": Touched("p", True, kind="float64"), "b": Touched("q", False, kind="int64")}
    assert groups("p[i] = q[i];", arrays) == {"a": 0, "b": 0}


# --- text and headers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignments", "options", "headers"),
    [
        (SCALED, {}, ("stdint.h",)),
        (SCALED, {"openmp_enable": True, "openmp_num_threads": 2}, ("stdint.h",)),
        (ps.Assignment(g.center, sp.sqrt(f.center)), {}, ("cmath", "stdint.h")),
        (SCALED, {"vector": "X86_AVX", "vectorize_assume_inner_stride_one": True}, ("immintrin.h", "stdint.h")),
        (ps.MinReductionAssignment(ps.TypedSymbol("r", "double"), f.center), {}, ("cmath", "limits", "stdint.h")),
        (philox("float64"), {"ghost_layers": 0}, ("stdint.h",)),
    ],
)
def test_only_headers_that_are_used_are_compiled_and_they_come_first(
    assignments: Any, options: dict[str, Any], headers: tuple[str, ...]
) -> None:
    kernel = ps.create_kernel(assignments, config(**options))
    unit = JIT.module_builder.render_module(kernel_of(kernel), "unit")
    assert leading_headers(unit)[0] == headers  # where they can be precompiled
    rest = [line for line in leading_headers(unit)[1].split("\n") if line.startswith("#include")]
    assert len(rest) == ("philox" in kernel.get_c_code())
    assert all("pystencils_runtime" in line for line in rest)


@pytest.mark.slow
def test_headers_come_precompiled(tmp_path: Path) -> None:
    jit = CpuJit(objcache=tmp_path)
    kernels = [ps.create_kernel(ps.Assignment(g.center, sp.sqrt(f.center) * n), config()) for n in (2, 3)]
    units = [jit.module_builder.render_module(kernel_of(kernel), "unit") for kernel in kernels]
    toolchain = probe(jit.compiler_info, None)
    chosen = flags(toolchain, jit.compiler_info)
    headers = jit.precompiled()
    assert headers is not None
    if not headers.precompile(toolchain, chosen, units[0]):
        pytest.skip("this compiler's headers cannot be precompiled")
    with headers.find(toolchain, chosen, units[1]) as found:
        assert found is not None
        assert "#include" not in found.rest
    b = np.zeros((2, 3))
    jit.compile(kernels[1])(f=np.full((2, 3), 4.0), g=b)
    assert set(b.flat) == {6.0}


STABLE = """
import sys
sys.path.insert(0, sys.argv[1])
import hashlib, numpy as np
from stencilkit import JIT, config, ps, sp
from rekernel.symbolic import kernel_of
f, g, a, b, c = ps.fields("f, g, a(2), b(2), c(3): double[2D]")
twin = f.new_field_with_different_name("twin")
text = ""
for assignments, options in [
    ([ps.Assignment(g.center, sum(x.center(1) for x in (a, b, c)) + sp.sqrt(f[0, 1]) * sp.Symbol("k"))], {}),
    ([ps.Assignment(twin.center, f[1, 0]), ps.Assignment(g.center, f[0, 1])], {"openmp_enable": True}),
    ([ps.MaxReductionAssignment(ps.TypedSymbol("r", "double"), f.center)], {"loop_blocking": (8, 8)}),
    ([ps.Assignment(g.center, f.center)], {"vector": "X86_AVX512", "vectorize_assume_inner_stride_one": True}),
]:
    text += JIT.module_builder.render_module(kernel_of(ps.create_kernel(assignments, config(**options))), "unit")
print(hashlib.sha256(text.encode()).hexdigest(), len(text))
"""


def test_the_text_is_the_same_in_every_process() -> None:
    said = set()
    for seed in ("0", "1", "2", "3"):
        run = subprocess.run(
            [sys.executable, "-c", STABLE, str(Path(__file__).parent)], capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed}, timeout=120,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        said.add(run.stdout)
    assert len(said) == 1


def test_a_kernel_that_was_built_once_is_found_again(tmp_path: Path) -> None:
    assert not CpuJit(objcache=tmp_path).compile(ps.create_kernel(SCALED, config())).from_cache
    assert CpuJit(objcache=tmp_path).compile(ps.create_kernel(SCALED, config())).from_cache


def test_importing_rekernel_does_not_import_pystencils() -> None:
    code = "import sys, rekernel.jit, rekernel.symbolic; print({'pystencils', 'sympy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "set()\n", done.stderr


# --- as a module of its own ---------------------------------------------------------------------------------------


def imported(wrapper: Any, directory: Path) -> Any:
    """The function of an exported kernel."""
    import importlib.util

    place = wrapper.export(directory)
    spec = importlib.util.spec_from_file_location(wrapper.value.name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, wrapper.value.name)


def test_an_exported_kernel_checks_the_same(tmp_path: Path) -> None:
    a = numbers(6, 5)
    scale = imported(build(SCALED, function_name="scale_out"), tmp_path)
    scale(f=a, g=a, k=2)
    assert np.array_equal(a, 2 * numbers(6, 5))
    with pytest.raises(ValueError, match="it overlaps 'f', and the kernel may read there"):
        scale(f=a[:-1], g=a[1:], k=2)

    twin = f.new_field_with_different_name("twin")
    shift = imported(build(ps.Assignment(twin.center, f[0, 1]), function_name="shift_out"), tmp_path)
    given, out = np.asfortranarray(numbers(6, 5)), np.zeros((6, 5), order="F")
    shift(f=given, twin=out)
    assert np.array_equal(out[1:-1, 1:-1], given[1:-1, 2:])
    with pytest.raises(ValueError, match="'twin': the stride of axis 1 is 1 elements, but that of 'f' is 6"):
        shift(f=given, twin=np.zeros((6, 5)))
    with pytest.raises(ValueError, match="overlaps"):
        shift(f=given, twin=given)


def test_an_exported_kernel_sees_no_ghost_layers(tmp_path: Path) -> None:
    u = ps.grids.TensorField("u", 2, ghost_layers=2, dtype="float64")
    w = ps.grids.TensorField("w", 2, ghost_layers=1, dtype="float64")
    kernel = imported(build(flow(w(), u[1, 0]() + u[-2, 0]()), function_name="shift_inner"), tmp_path)
    a, b = numbers(8, 9), np.zeros((6, 7))
    kernel(u=a, w=b)
    assert np.array_equal(b[1:-1, 1:-1], a[3:-1, 2:-2] + a[:-4, 2:-2])
    assert np.count_nonzero(b) == 20
    with pytest.raises(ValueError, match="axis 0 has extent 6, but 'u' has extent 4 there"):
        kernel(u=a, w=np.zeros((8, 9)))


def test_an_exported_kernel_takes_lists_of_records(tmp_path: Path) -> None:
    record = RECORDS[1]
    index = ps.Field.create_generic("index", 1, dtype=record, field_type=ps.FieldType.INDEXED)
    made = build(ps.Assignment(g[0, 0], index("value")), index_field=index, function_name="set_points")
    kernel = imported(made, tmp_path)
    points = np.zeros(3, record)
    points["x"], points["value"] = [0, 1, 2], [5, 6, 7]
    a = np.zeros((4, 4))
    kernel(g=a, index=points)
    assert a[:3, 0].tolist() == [5, 6, 7]
    with pytest.raises(TypeError, match="'index'"):
        kernel(g=a, index=np.zeros(3, record.newbyteorder()))
