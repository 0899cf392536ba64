"""One fixture: the results of all programs that this session compares, as many at a time as there are processors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from programs.processes import Runs


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Start every row that this session asks for; a test then waits for its own."""
    pool = ThreadPoolExecutor(os.cpu_count() or 2)
    runs = Runs(tmp_path_factory.mktemp("programs"), pool)
    for item in request.session.items:
        modes = getattr(getattr(item, "function", None), "modes", None)
        if modes is not None and not item.get_closest_marker("skip"):
            runs.start(item.callspec.params["row"], modes)
    yield runs
    pool.shutdown(wait=True, cancel_futures=True)
