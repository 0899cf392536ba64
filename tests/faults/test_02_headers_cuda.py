"""Faults 1 and 2, CUDA text: a header of a header changes, is shadowed, or is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rekernel import KernelLoader, KernelSourceError
from test_cuda_texts import Jit, load, pytestmark  # noqa: F401

TEXT = '#include "a.cuh"\n__global__ void k(real *x) {}'


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "a.cuh").write_text('#pragma once\n#include "b.cuh"\n')
    (second / "b.cuh").write_text("typedef float real;\n")
    return [first, second]


def built(loader: KernelLoader, places: list[Path]) -> tuple[str, bool]:
    made = load(TEXT, loader, include_dirs=places)
    return made.kernels[0].parameters[0].dtype, made.from_cache


@pytest.mark.parametrize("cached", [True, False])
def test_what_is_compiled_is_what_the_headers_say_now(cached: bool, places: list[Path], tmp_path: Path) -> None:
    loader = KernelLoader(jit=Jit(tmp_path / "cache" if cached else None))
    assert built(loader, places)[0] == "float32"
    (places[1] / "b.cuh").write_text("typedef double real;\n")
    assert built(loader, places)[0] == "float64"
    (places[0] / "a.cuh").write_text("typedef int real;\n")  # earlier on the path
    assert built(loader, places)[0] == "int32"
    (places[0] / "a.cuh").unlink()
    assert built(loader, places)[0] == "float64"
    (places[1] / "b.cuh").unlink()
    with pytest.raises(KernelSourceError, match=r"there is no header b\.cuh"):
        built(loader, places)


def test_a_header_with_another_time_and_the_same_text_is_not_compiled_again(places: list[Path], tmp_path: Path) -> None:
    assert built(KernelLoader(jit=Jit(tmp_path / "cache")), places) == ("float32", False)
    os.utime(places[1] / "b.cuh", (1, 1))
    assert built(KernelLoader(jit=Jit(tmp_path / "cache")), places) == ("float32", True)
