"""The notebooks of the examples: each runs from top to bottom in a kernel of its own, and is kept without outputs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from jitkernels import needs_compiler
from support import own_places

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))

NEEDS = {"first_steps": (), "gray_scott": ("anywidget", "PIL"), "stencils": ("anywidget", "PIL", "pystencils")}

# What each must print; everything that depends on the machine is left out.
PRINTS = {
    "first_steps": ["array([0.  , 0.  , 0.  , 0.25, 0.5 , 0.25, 0.  , 0.  , 0.  ])", "version 2, the middle has", "without the heater"],
    "gray_scott": [
        "after 1,500 steps v covers", "version 2: ", "version 2 keeps running; the last edit: 'spraed' was not declared",
        "version 3, 4,600 steps in all, one state",
    ],
    "stencils": ["allclose: True", "as NumPy sums it: True", "less than before: True", "from the cache: True", "the same result: True"],
}  # fmt: skip

# What the cells that fail on purpose raise, in their order.
RAISES = {
    "first_steps": [
        "heat v2 (cpp), line 5, column 58: 'sr' was not declared",
        "argument 'src': expected const float64[:], got a float32 array",
    ],
    "gray_scott": ["line 31, column 38: 'spraed' was not declared"],
    "stencils": ["line 7: name 'c3' is not defined"],
}


def read(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def printed(cell: Any) -> str:
    """All that a cell shows as plain text."""
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "\n".join(map(str, parts))


def raised(cell: Any) -> list[str]:
    return [output.evalue for output in cell.outputs if output.output_type == "error"]


def on_purpose(cell: Any) -> bool:
    return "raises-exception" in cell["metadata"].get("tags", [])


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nbclient", "nbformat", "ipykernel", *NEEDS[name]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; it is needed to run {name}.ipynb")
    from nbclient import NotebookClient
    from nbformat import read as read_notebook

    own_places(tmp_path, monkeypatch)
    notebook = read_notebook(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute()  # raises at the first error of a cell that is not marked

    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    errors = [raised(cell) for cell in cells if on_purpose(cell)]
    assert [len(found) for found in errors] == [1] * len(RAISES[name])
    for (found,), wanted in zip(errors, RAISES[name], strict=True):
        assert wanted in found
    text = "\n".join(map(printed, cells))
    assert [line for line in PRINTS[name] if line not in text] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs_and_without_traces_of_a_machine(name: str) -> None:
    text = (EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8")
    notebook = read(name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["language_info"] == {"name": "python"}  # no version of whoever ran it last
    assert {tag for cell in notebook["cells"] for tag in cell["metadata"].get("tags", [])} <= {"raises-exception"}
    assert all(set(cell["metadata"]) <= {"tags"} for cell in notebook["cells"])
    assert not any(path in text for path in ("/home/", "/tmp/", "/Users/", str(EXAMPLES.parent)))
    assert text == json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"  # as Jupyter writes it: small diffs


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_list_of_examples_names_each_notebook(name: str) -> None:
    assert f"({name}.ipynb)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_there_are_expectations_for_every_notebook() -> None:
    assert NOTEBOOKS == sorted(PRINTS) == sorted(RAISES) == sorted(NEEDS)
