"""One JupyterLab and one Chromium for all browser tests; each test opens a notebook of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from browserlab import Notebook, Server, browser, missing


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    running = Server(tmp_path_factory.mktemp("lab"))
    yield running
    running.stop()


@pytest.fixture(scope="module")  # its driver keeps the event loop of the thread, which other tests need
def chromium(server: Server) -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.fixture
def shots(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Notebook, str], Path]:
    """Keep a screenshot, in the directory that REKERNEL_ARTEFACTS names or among the test's own files."""
    place = Path(os.environ.get("REKERNEL_ARTEFACTS") or tmp_path)
    numbers = itertools.count(1)

    def keep(notebook: Notebook, name: str) -> Path:
        path = place / f"{request.node.originalname}-{next(numbers)}-{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        notebook.page.screenshot(path=path)
        return path

    return keep


@pytest.fixture
def notebook(
    server: Server, chromium: Any, request: pytest.FixtureRequest, shots: Callable[[Notebook, str], Path]
) -> Iterator[Callable[[Sequence[str]], Notebook]]:
    """Open a notebook with these cells; where the test fails, a last screenshot is kept."""
    opened: list[Notebook] = []

    def make(cells: Sequence[str], **how: Any) -> Notebook:
        name = f"{request.node.originalname}.ipynb"
        server.write(name, cells)
        opened.append(Notebook(chromium, server, name, **how))
        return opened[-1]

    yield make
    for one in opened:
        shots(one, "last")
        one.close()
        assert one.complaints == []
