"""What all tests share: a running Taichi program and a loader, both made when a test first asks for them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

# Before anybody imports Taichi: no request to its server, no banner.
os.environ["TI_SKIP_VERSION_CHECK"] = "ON"
os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "False"


# A shell starts its background jobs with Ctrl-C ignored, and so would all that the tests start themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What CI tries is the same at every run; at home every run tries something else.
settings.register_profile(
    "rekernel", deadline=None, derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("rekernel")


@pytest.fixture(autouse=True)
def _computes_as_a_process_begins() -> None:
    """Undo what another test's ``ti.init`` has done to this thread: Taichi flushes denormals from then on."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV


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
