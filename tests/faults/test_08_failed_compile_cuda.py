"""Fault 8, CUDA text: after any failed compile the old version runs, and a right text loads."""

from __future__ import annotations

import pytest

from cudakit import CupyArray, FakeCuda, cuda_fixture, cupy_fixture  # noqa: F401
from rekernel import KernelLoader, KernelSourceError
from test_cuda_language import driver, loader  # noqa: F401
from test_cuda_texts import pytestmark  # noqa: F401

TEXT = "__global__ void k(int *x) {{ {} }}"


@pytest.mark.parametrize(
    "wrong",
    ["x[0] = nothing;", "x[0] = ;", 'x = "text";', "}", "{", "#error", "static_assert(false);", "asm(\"nonsense;\");",
     "__shared__ double q[99999]; x[0] = q[x[1]];"],
)  # fmt: skip
def test_a_failed_text_leaves_all_as_it_was(wrong: str, cuda: FakeCuda, loader: KernelLoader) -> None:
    kernel = loader.load(TEXT.format("x[0] = 1;"), "m").k
    with pytest.raises(KernelSourceError, match=r"v1 keeps running"):
        loader.load(TEXT.format(f"\n{wrong}\n"), "m")
    kernel[1, 1](CupyArray(3, "int32"))
    assert (kernel.version, cuda.count) == (1, 1)
    loader.load(TEXT.format("x[0] = 2;"), "m")
    kernel[1, 1](CupyArray(3, "int32"))
    assert cuda.count == 2
