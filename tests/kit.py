"""What the Taichi tests share: a running program, and a loader that is empty again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

ti = pytest.importorskip("taichi", reason="Taichi is not installed")


def start(**settings: object) -> None:
    """Start a new Taichi program."""
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR, **settings)


@pytest.fixture
def loader() -> Iterator[object]:
    """Give an empty loader over a running program."""
    from rekernel import KernelLoader

    if ti.lang.impl.get_runtime().prog is None:
        start()
    with KernelLoader() as made:
        yield made
