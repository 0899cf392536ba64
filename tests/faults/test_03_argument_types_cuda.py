"""Faults 3 and 4, CUDA text: no argument is taken for what it is not, no stride is forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cudakit import CupyArray, FakeCuda, cuda_fixture, cupy_fixture, numbers  # noqa: F401
from rekernel import KernelLoader
from test_cuda_language import driver, loader  # noqa: F401
from test_cuda_texts import pytestmark  # noqa: F401

TEXT = "__global__ void k(float *a, float s, int n, signed char c, bool b, unsigned u) {}"
GOOD: dict[str, Any] = {"a": None, "s": 1.5, "n": 2, "c": 3, "b": True, "u": 4}


def call(loader: KernelLoader, **changed: Any) -> None:
    given = {**GOOD, "a": CupyArray(3, "float32"), **changed}
    loader.load(TEXT, "m").k[1, 1](**given)


@pytest.mark.parametrize(
    "changed",
    [
        {"a": CupyArray(3, "float64")}, {"a": CupyArray(3, "int32")}, {"a": CupyArray((3,), "float32", strides=(8,))},
        {"a": np.zeros(3, "float32")}, {"a": 3}, {"a": None}, {"s": 1j}, {"s": "1"}, {"s": None}, {"n": 1.5}, {"n": 2**40},
        {"c": 300}, {"u": -1}, {"n": None},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(changed: dict[str, Any], cuda: FakeCuda, loader: KernelLoader) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(changed))):
        call(loader, **changed)
    assert cuda.count == 0


@pytest.mark.parametrize("number", [2, 2.0, True, np.float64(2), np.int64(2), np.array(2.0)])
def test_a_number_has_the_declared_type_whatever_it_was(number: Any, cuda: FakeCuda, loader: KernelLoader) -> None:
    cuda.sizes(8, 4, 4, 1, 1, 4)
    call(loader, s=number)
    assert numbers(cuda, "Qfib?I")[1:] == (float(number), 2, 3, True, 4)


@pytest.mark.parametrize("strides", [(8, 4), (-8, 4), (4, 8), (0, 4), (100, -4)])
def test_an_array_brings_its_strides(strides: tuple[int, int], cuda: FakeCuda, loader: KernelLoader) -> None:
    cuda.sizes(40)
    kernel = loader.load("__global__ void k(rekernel::Array<const float, 2> x) {}").k
    kernel[1, 1](CupyArray((3, 2), "float32", strides=strides))
    assert numbers(cuda, "q4q")[1:] == (3, 2, strides[0] // 4, strides[1] // 4)
