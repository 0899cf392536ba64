"""What kernels from symbols ask of a call: named strides, ghost layers, one array in two places.

Each in this process and as an exported module.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitkernels import array, extent, pointer, stride
from rekernel.jit import CpuJit
from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel

SUM = Kernel(
    "fields_sum",
    (
        array("dst", ndim=2, shape=("n", "m"), strides=("s", "t"), margins=(1, 0), order="free", written=True, restrict=True, group=3),
        array("src", ndim=2, shape=("n", "m"), strides=("s", "t"), margins=(1, 0), order="free", restrict=True, group=3),
        array("other", "float32", ndim=2, shape=("n", "m"), strides=(None, "t"), margins=(0, 2), order="free", restrict=True),
    ),
    "cpp",
    code="void fields_sum(double *dst, const double *src, const float *other, long n, long m, long s, long t, long r) {\n"
         "    for (long i = 0; i < n; ++i) for (long j = 0; j < m; ++j)\n"
         "        dst[i * s + j * t] = src[i * s + j * t] + other[i * r + j * t];\n}\n",
    slots=(pointer("dst"), pointer("src"), pointer("other"), extent("dst"), extent("dst", 1), stride("dst"),
           stride("dst", 1), stride("other")),
)  # fmt: skip


@pytest.fixture(scope="module", params=["here", "exported"])
def add(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    wrapper = CpuJit().compile(SUM)
    if request.param == "here":
        return wrapper
    spec = importlib.util.spec_from_file_location("fields_sum", wrapper.export(tmp_path_factory.mktemp("exported")))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.fields_sum  # type: ignore[no-any-return]


def arrays(n: int = 4, m: int = 5, order: Any = "C") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    made = np.random.default_rng(1)
    dst, src = (np.asarray(made.normal(size=(n + 2, m)), order=order) for _ in range(2))
    return dst, src, np.asarray(made.normal(size=(n, m + 4)).astype("float32"), order="C")


def test_ghost_layers_are_neither_read_nor_written(add: Callable[..., Any]) -> None:
    dst, src, other = arrays()
    before = dst.copy()
    add(dst, src, other)
    assert np.array_equal(dst[1:-1], src[1:-1] + other[:, 2:-2])
    assert np.array_equal(dst[[0, -1]], before[[0, -1]])


def test_extents_are_compared_without_ghost_layers(add: Callable[..., Any]) -> None:
    dst, src, other = arrays()
    with pytest.raises(ValueError, match=r"'other': axis 1 has extent 4, but 'dst' has extent 5 there \(both are m\)"):
        add(dst, src, other[:, :-1])
    with pytest.raises(ValueError, match="'other': axis 0 has extent 6, but 'dst' has extent 4 there"):
        add(dst, src, np.zeros((6, 9), "float32"))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_an_array_that_is_all_ghost_layers_has_no_inside(add: Callable[..., Any], n: int) -> None:
    dst = np.ones((n, 5))
    add(dst, np.ones((n, 5)), np.zeros((0, 9), "float32"))
    assert set(dst.flat) <= {1.0}


def test_named_strides_are_equal_in_elements(add: Callable[..., Any]) -> None:
    dst, src, other = arrays()
    add(dst[:, ::-1], src[:, ::-1], other[:, ::-1])  # 8 bytes back, 4 bytes back: one element
    assert np.array_equal(dst[1:-1], src[1:-1] + other[:, 2:-2])
    with pytest.raises(ValueError, match="'other': the stride of axis 1 is 1 elements, but that of 'dst' is -1, and"):
        add(dst[:, ::-1], src[:, ::-1], other)
    with pytest.raises(ValueError, match="'src': the stride of axis 0 is 10 elements, but that of 'dst' is 5"):
        add(dst, np.zeros((6, 10))[:, :5], other)


def test_the_strides_of_an_axis_without_a_second_element_do_not_count(add: Callable[..., Any]) -> None:
    dst, src, other = arrays(m=1)
    dst = np.lib.stride_tricks.as_strided(dst, dst.shape, (dst.strides[0], 800))
    add(dst, src, other)
    assert np.array_equal(dst[1:-1], src[1:-1] + other[:, 2:-2])


def test_arrays_of_one_group_may_be_one_array(add: Callable[..., Any]) -> None:
    dst, _, other = arrays()
    expected = dst[1:-1] + other[:, 2:-2]
    add(dst, dst, other)
    assert np.array_equal(dst[1:-1], expected)
    whole = np.zeros((8, 5))
    with pytest.raises(ValueError, match="overlaps 'dst'"):
        add(whole[:6], whole[1:7], other)


def test_of_a_group_two_outputs_are_two_arrays() -> None:
    x, y = (array(name, written=True, restrict=True, group=1, order="free") for name in "xy")
    kernel = Kernel(
        "two", (x, y), "cpp", "void two(double *x, double *y) { *x = *y = 1; }", slots=(pointer("x"), pointer("y"))
    )
    compiled = CpuJit().compile(kernel)
    compiled(np.zeros(2), np.zeros(2))
    a = np.zeros(2)
    with pytest.raises(ValueError, match="overlaps 'x'"):
        compiled(a, a)


def test_margins_are_one_for_each_axis() -> None:
    bad = Kernel("bad", (array("x", ndim=2, margins=(1,)),), "cpp", slots=(pointer("x"),))
    with pytest.raises(ValueError, match="'x' has 1 items in margins, but 2 dimensions"):
        rows(bad)


def test_a_function_that_steps_along_no_axis_takes_every_layout() -> None:
    free = Kernel("first", (array("x", ndim=2, order="free", written=True),), "cpp", "void first(double *x) { *x = 7; }", slots=(pointer("x"),))  # fmt: skip
    a = np.zeros((4, 6))[::-1, ::2]
    CpuJit().compile(free)(a)
    assert a[0, 0] == 7
    assert a.sum() == 7
