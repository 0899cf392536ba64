"""Tests that need an NVIDIA GPU: where none answers they are skipped, and say so."""

from __future__ import annotations

import functools

import pytest


@functools.cache
def _missing() -> str:
    try:
        import cupy

        cupy.zeros(1).sum().item()
    except Exception as error:
        return f"no CUDA device answers here: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "gpu" in item.path.parts:
            item.add_marker(pytest.mark.gpu)
            if _missing():
                item.add_marker(pytest.mark.skip(reason=_missing()))
