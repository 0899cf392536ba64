"""What all tests share: a running Taichi program and a loader, both made when a test first asks for them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import ModuleType

import pytest

# Before anybody imports Taichi: no request to its server, no banner.
os.environ["TI_SKIP_VERSION_CHECK"] = "ON"
os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "False"


# A shell starts its background jobs with Ctrl-C ignored, and so would all that the tests start themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ti() -> ModuleType:
    """Taichi, started once for the whole process."""
    module = pytest.importorskip("taichi", reason="Taichi is not installed")
    module.init(arch=module.cpu, offline_cache=False, log_level=module.ERROR)
    return module


@pytest.fixture
def loader(ti: ModuleType) -> Iterator[object]:
    """An empty loader over a running program."""
    from rekernel import KernelLoader

    if ti.lang.impl.get_runtime().prog is None:  # another test has ended it
        ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    with KernelLoader() as made:
        yield made
