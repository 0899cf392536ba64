"""A generated family of stencils: what our JIT computes is what the C text of pystencils says, to the last bit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rekernel.compilers import GccInfo
from rekernel.jit import CpuJit
from stencilkit import JIT, build, config, numbers, ps, sp, theirs, vectors

_FOR = re.compile(r"for\(int64_t (\w+) = (.+); \1 < (.+); \1 \+= (.+)\)")
_STORE = re.compile(r"(?:const \w+ )?(\w+(?:\[.*?\])?) = (.*);")


def python(expression: str) -> str:
    """A C expression of numbers, counters and accesses as Python has it."""
    without_suffix = re.sub(r"\b(\d+(?:\.\d*)?(?:e-?\d+)?)(?:LL|f)?\b", r"\1", expression)
    return re.sub(r"\((?:double|float|half|u?int\d+_t)\) ", "", without_suffix)


def by_the_text(code: str, arrays: dict[str, np.ndarray]) -> None:
    """Do what a kernel's C text says, in its order, with NumPy: all points of the loops at once."""
    names: dict[str, Any] = {}
    for name, array in arrays.items():
        root = array
        while root.base is not None:
            root = root.base
        start = (array.ctypes.data - root.ctypes.data) // array.itemsize
        names[f"_data_{name}"] = np.lib.stride_tricks.as_strided(
            root.reshape(-1, order="A")[start:], (root.size - start,), (array.itemsize,)
        )
        for axis in range(array.ndim):
            names[f"_size_{name}_{axis}"] = array.shape[axis]
            names[f"_stride_{name}_{axis}"] = array.strides[axis] // array.itemsize
    loops = [(match[1], [eval(python(text), names) for text in match.groups()[1:]]) for match in _FOR.finditer(code)]
    counters = np.meshgrid(*(np.arange(*bounds) for _, bounds in loops), indexing="ij")
    names.update({name: counter.ravel() for (name, _), counter in zip(loops, counters, strict=True)})
    for target, value in _STORE.findall("\n".join(line for line in code.split("\n") if "for(" not in line)):
        exec(f"{python(target)} = {python(value)}", names)


@dataclass
class Case:
    """One member of the family: a kernel, and arrays for it."""

    assignments: list[Any]
    options: dict[str, Any]
    arrays: dict[str, np.ndarray]


def terms(draw: Any, fields: list[Any], values: int, radius: int, dtype: str) -> Any:
    """A sum of products of accesses."""
    total = sp.S.Zero
    for _ in range(draw(st.integers(1, 5))):
        number = draw(st.integers(-4, 4) if "int" in dtype else st.sampled_from([0.3, -1.7, 2.0, 1e-3, 4.0]))
        term = sp.sympify(number)
        for _ in range(draw(st.integers(1, 2))):
            field = draw(st.sampled_from(fields))
            offset = draw(st.tuples(*[st.integers(-radius, radius)] * field.spatial_dimensions))
            term *= field[offset](*([draw(st.integers(0, values - 1))] if values else []))
        total += term
    return total


@st.composite
def cases(draw: Any) -> Case:
    rank, radius = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    dtype = draw(st.sampled_from(["float64", "float32", "int32", "int64"]))
    values = draw(st.sampled_from([0, 0, 1, 3]))
    layout = draw(st.sampled_from(["c", "f", "numpy", "fzyx", "zyxf"]))
    width = draw(st.integers(radius, radius + 1))
    shape = tuple(draw(st.integers(1, 4)) + 2 * width for _ in range(rank)) + ((values,) if values else ())
    index = f"({values})" if values else ""
    names = ["dst", "a", "b"]
    dst, *sources = ps.fields(f"{', '.join(n + index for n in names)}: {dtype}[{rank}D]", layout=layout)
    assignments = []
    for value in range(values or 1):
        target = dst.center(value) if values else dst.center
        assignments.append(ps.Assignment(target, terms(draw, sources, values, radius, dtype)))
    used = {"dst", *(access.field.name for one in assignments for access in one.rhs.atoms(ps.Field.Access))}
    arrays = {}
    for seed, name in enumerate(sorted(used)):
        made = np.random.default_rng(draw(st.integers(0, 99)) + seed)
        room = (shape[0], *(2 * extent for extent in shape[1:]))
        whole = made.integers(-9, 9, room).astype(dtype) if "int" in dtype else made.normal(size=room).astype(dtype)
        part = whole[tuple(slice(0, extent) for extent in shape)]
        arrays[name] = {"C": part, "packed": part.copy(), "F": part.copy("F")}[
            draw(st.sampled_from(["C", "packed", "F"]))
        ]
    options = {"default_dtype": dtype} | ({"ghost_layers": width} if draw(st.booleans()) else {})
    return Case(assignments, options, arrays)


@given(cases())
@settings(max_examples=60)
def test_a_stencil_computes_what_its_text_says(case: Case) -> None:
    kernel = ps.create_kernel(case.assignments, config(**case.options))
    expected = {name: keep(array) for name, array in case.arrays.items()}
    by_the_text(kernel.get_c_code(), expected)
    kernel.compile()(**case.arrays)
    for name, array in case.arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=kernel.get_c_code())


def keep(array: np.ndarray) -> np.ndarray:
    """A copy with the strides of the array."""
    copy = np.empty_like(array.base if array.base is not None else array)
    made = copy[tuple(slice(0, extent) for extent in array.shape)]
    made[...] = array
    return made


# --- pystencils' own JIT says the same ----------------------------------------------------------------------------


def collide() -> list[Any]:
    """A relaxation with many common terms, as of a lattice Boltzmann method on nine directions."""
    x, y = ps.fields("x(9), y(9): double[2D]")
    directions = [(a, b) for a in (0, 1, -1) for b in (0, 1, -1)]
    pulled = [x[-a, -b](i) for i, (a, b) in enumerate(directions)]
    density = sum(pulled)
    flow = [sum(value * d[axis] for value, d in zip(pulled, directions, strict=True)) / density for axis in range(2)]
    square = flow[0] ** 2 + flow[1] ** 2
    made = []
    for i, (a, b) in enumerate(directions):
        along = a * flow[0] + b * flow[1]
        rest = (
            density / (9 * 4 ** (abs(a) + abs(b) - 1)) * (1 + 3 * along + sp.Rational(9, 2) * along**2 - 3 * square / 2)
        )
        made.append(ps.Assignment(y.center(i), pulled[i] + sp.Symbol("w") * (rest - pulled[i])))
    return made


@pytest.mark.slow
def test_a_lattice_boltzmann_step_is_equal_to_the_bit(tmp_path: Path) -> None:
    kernel = ps.create_kernel(collide(), config())
    made = []
    for compiled in (kernel.compile(), theirs(kernel, tmp_path)):
        y = np.zeros((12, 14, 9))
        compiled(x=numbers(12, 14, 9), y=y, w=1.3)
        made.append(y)
    assert np.array_equal(*made)
    assert np.count_nonzero(made[0]) == 10 * 12 * 9


@pytest.mark.slow
@pytest.mark.parametrize("vector", vectors()[1:2])
def test_a_vectorised_step_is_equal_to_the_bit(vector: str, tmp_path: Path) -> None:
    f, g = ps.fields("f, g: float[3D]", layout="c")
    update = ps.Assignment(
        g.center, sum(f[o] * sp.Float(0.1 * i) for i, o in enumerate([(1, 0, 0), (0, -1, 0), (0, 0, 1)]))
    )
    made = config(vector=vector, vectorize_assume_inner_stride_one=True, default_dtype="float32")
    kernel = ps.create_kernel(update, made)
    results = []
    for compiled in (kernel.compile(), theirs(kernel, tmp_path)):
        out = np.zeros((5, 6, 37), "float32")
        compiled(f=np.random.default_rng(3).normal(size=out.shape).astype("float32"), g=out)
        results.append(out)
    assert np.array_equal(*results)
    assert np.count_nonzero(results[0]) == 3 * 4 * 35


def test_fast_mathematics_is_right_within_rounding_and_leaves_denormal_numbers_alone() -> None:
    fast = CpuJit(GccInfo(optlevel="fast"))
    kernel = ps.create_kernel(collide(), config())
    results = []
    for compiled in (JIT.compile(kernel), fast.compile(kernel)):
        y = np.zeros((12, 14, 9))
        compiled(x=numbers(12, 14, 9), y=y, w=1.3)
        results.append(y)
    np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-13)
    assert np.array([1e-308])[0] * 0.25 > 0


def test_what_is_built_does_not_change_the_floating_point_environment() -> None:
    f, g = ps.fields("f, g: double[1D]")
    for options in ({}, {"openmp_enable": True}):
        build(ps.Assignment(g.center, f.center * 2), **options)(f=np.ones(4), g=np.ones(4))
        assert np.array([5e-324])[0] * 1.0 > 0
