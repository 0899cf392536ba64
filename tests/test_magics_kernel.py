"""The magics in a real kernel, through the messages that a host such as JupyterLab gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitkernels import needs_compiler
from support import own_places

pytest.importorskip("ipykernel", reason="ipykernel is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")

pytestmark = [pytest.mark.slow, needs_compiler]

TEXT = """\
void step(rekernel::Array<double, 1> dst, rekernel::Array<const double, 1> src, double k) {
  for (int64_t i = 1; i < dst.shape(0) - 1; ++i)
    dst[i] = k * (src[i-1] + src[i+1]);
}
"""
WRONG = TEXT.replace("src[i-1]", "sr[i-1]")
WAIT = """\
import contextlib, threading, rekernel
with contextlib.suppress(rekernel.KernelSourceError):
    rekernel.kernels.wait()
for thread in threading.enumerate():
    if thread.name.startswith("rekernel tells"):
        thread.join(60)
"""

Run = Callable[..., list[Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run cells from the first to the last in a kernel of their own, and return them with what they gave out."""
    own_places(tmp_path, monkeypatch)

    def run(*sources: str, allow_errors: bool = True) -> list[Any]:
        cells = [nbformat.v4.new_code_cell(source) for source in ("%load_ext rekernel", *sources)]
        notebook = nbformat.v4.new_notebook(cells=cells)
        client = nbclient.NotebookClient(notebook, timeout=120, allow_errors=allow_errors, kernel_name="python3")
        try:
            client.execute()
        except nbclient.exceptions.CellExecutionError:
            assert not allow_errors
        return [cell for cell in notebook.cells[1:] if cell.execution_count is not None or cell.outputs]

    return run


def shown(cell: Any) -> str:
    return "\n".join(output.data["text/plain"] for output in cell.outputs if "data" in output)


def traceback(cell: Any) -> list[str]:
    """What stands below a cell that failed, without its colours."""
    (error,) = [output for output in cell.outputs if output.output_type == "error"]
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback)).split("\n")


BLOCK = [
    "rekernel.KernelSourceError: heat v2 (cpp), line 4, column 19: 'sr' was not declared in this scope; did you mean 'src'?",
    "  3 |   for (int64_t i = 1; i < dst.shape(0) - 1; ++i)",
    "> 4 |     dst[i] = k * (sr[i-1] + src[i+1]);",
    "    |                   ^^",
    "  5 | }",
    "heat v1 keeps running.",
]


def test_cells_are_loaded_edited_broken_and_undone(run: Run) -> None:
    cells = run(
        f"%%kernel heat --optlevel 0\n{TEXT}", f"%%kernel heat --optlevel 0\n{WRONG}",
        "import numpy as np\na = np.zeros(3); step(a, np.ones(3), 2.0); a[1]",
        f"%%kernel heat --optlevel 0\n{TEXT.replace('k *', '10 * k *')}", "step(a, np.ones(3), 2.0); a[1]",
        "%kernel_rollback heat", "step(a, np.ones(3), 2.0); a[1]", "%kernels",
    )  # fmt: skip
    assert re.fullmatch(r"heat v1  cpp  built in .*\n  step\(dst: .*\)", shown(cells[0]))
    assert "text/html" in cells[0].outputs[0].data
    assert traceback(cells[1]) == BLOCK
    assert [shown(cells[i]) for i in (2, 4, 6)] == ["np.float64(4.0)", "np.float64(40.0)", "np.float64(4.0)"]
    assert shown(cells[5]).startswith("heat v3  cpp  v1 again")
    assert re.search(r"heat +v3 +cpp +step +3 +[\d.]+ (ns|µs|ms)", shown(cells[7]))


def test_errors_are_in_colours(run: Run) -> None:
    (cell,) = run(f"%%kernel heat\n{WRONG}")
    text = "\n".join(cell.outputs[0].traceback)
    assert "\x1b[1m> 4 |     dst[i] = k * (sr[i-1] + src[i+1]);\x1b[0m" in text
    assert "\x1b[31mrekernel.KernelSourceError\x1b[0m: " in text


def test_run_all_stops_at_a_cell_that_fails(run: Run) -> None:
    assert len(run(f"%%kernel heat\n{WRONG}", "1 + 1", allow_errors=False)) == 1
    assert len(run(f"%%kernel heat --nothing\n{TEXT}", "1 + 1", allow_errors=False)) == 1


def test_of_other_errors_only_the_users_own_frames_are_shown(run: Run) -> None:
    call, load = run(
        f"%%kernel heat --optlevel 0\n{TEXT}", "def use(a):\n    return step(a, 2, 3)\n\nuse(1)",
        "import rekernel\nrekernel.kernels.load('''\nvoid f(double* x) {\n  x[0] = y;\n}''')",
    )[1:]  # fmt: skip
    assert traceback(call) == [
        "Cell In[3], line 4", "    use(1)", "Cell In[3], line 2, in use", "    return step(a, 2, 3)", "",
        "rekernel.ArgumentTypeError: step() argument 'dst': expected float64[:], got int",
    ]  # fmt: skip
    assert traceback(load)[:4] == [
        "Cell In[4], line 2", "    rekernel.kernels.load('''", "",
        "rekernel.KernelSourceError: f v1 (cpp), line 3, column 10: 'y' was not declared in this scope",
    ]  # fmt: skip


def test_a_build_in_the_background_changes_what_stands_below_its_own_cell(run: Run) -> None:
    good, _, bad, _ = run(
        f"%%kernel heat --background --optlevel 0\n{TEXT}",
        WAIT,
        f"%%kernel heat --background --optlevel 0\n{WRONG}",
        WAIT,
    )
    assert shown(good).startswith("heat v1  cpp  built in ")
    assert len(good.outputs) == 1
    assert shown(bad).split("\n") == [BLOCK[0].removeprefix("rekernel."), *BLOCK[1:]]
    assert "<pre" in bad.outputs[0].data["text/html"]


def test_help_lists_the_options(run: Run) -> None:
    (cell,) = run("get_ipython().inspector.info(get_ipython().find_cell_magic('kernel'))['docstring']")
    assert "--optlevel VALUE" in shown(cell)
    assert "build while the notebook goes on" in shown(cell)
