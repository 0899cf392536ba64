"""A notebook within the test: IPython's shell, its cells, and what they show."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from rekernel import kernels
from rekernel.notebook import load_ipython_extension, unload_ipython_extension


@dataclass(frozen=True)
class Ran:
    """What a cell came to."""

    error: BaseException | None
    shown: tuple[dict[str, Any], ...]
    """What it displayed, as MIME bundles."""
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        """What it displayed, as a terminal shows it."""
        return "\n".join(bundle["text/plain"] for bundle in self.shown)

    @property
    def html(self) -> str:
        """The same, as a page shows it."""
        return "\n".join(bundle["text/html"] for bundle in self.shown)


class Notebook:
    """One notebook. Cells are told apart by the names that a test gives them, as hosts do by their ids."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, cell: str, name: str | None = None) -> Ran:
        """Run a cell, whether it goes well or not."""
        with capture_output() as caught:
            result = self.shell.run_cell(cell, store_history=True, cell_id=name)
        return Ran(
            result.error_before_exec or result.error_in_exec,
            tuple(output.data for output in caught.outputs), caught.stdout, caught.stderr,
        )  # fmt: skip

    def ok(self, cell: str, name: str | None = None) -> Ran:
        """Run a cell that has to go well."""
        ran = self.run(cell, name)
        assert ran.error is None, ran
        return ran

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.shell.user_ns

    def offered(self, line: str, jedi: bool) -> list[str]:
        """Return what the Tab key offers at the end of a line, as JupyterLab asks for it."""
        from IPython.core.completer import provisionalcompleter

        self.shell.Completer.use_jedi = jedi
        with provisionalcompleter():
            return [one.text for one in self.shell.Completer.completions(line, len(line))]


def fresh_shell(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """Fixture: a shell of its own, without history, colours and profile."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    try:
        yield shell
    finally:
        shell.atexit_operations()
        atexit.unregister(shell.atexit_operations)
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()


def fresh_notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    """Fixture: a notebook with the magics, and the default loader empty before and after."""
    kernels.cleanup_all()
    kernels._numbers.clear()  # as in a new process, whatever other tests have loaded
    load_ipython_extension(shell)
    yield Notebook(shell)
    for thread in threading.enumerate():
        if thread.name.startswith("rekernel"):
            thread.join(30)
    unload_ipython_extension(shell)
    kernels.cleanup_all()
