"""Every example in a docstring and in the documents runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import rekernel

DOCUMENTS = Path(__file__).parents[1]
HAS_TAICHI = importlib.util.find_spec("taichi") is not None
WITHOUT_TAICHI = pytest.mark.skipif(not HAS_TAICHI, reason="Taichi is not installed; the example uses it")

_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def modules() -> list[str]:
    found = pkgutil.walk_packages(rekernel.__path__, "rekernel.", onerror=lambda name: None)
    return ["rekernel", *sorted(info.name for info in found if not info.name.endswith("__main__"))]


def examples() -> list[pytest.ParameterSet | object]:
    """One parameter for each docstring that has examples."""
    made: list[pytest.ParameterSet | object] = []
    for name in modules():
        source = Path(importlib.util.find_spec(name).origin or "")  # type: ignore[union-attr]
        if source.suffix != ".py" or ">>>" not in source.read_text(encoding="utf-8"):
            continue
        uses_taichi = "import taichi" in source.read_text(encoding="utf-8")
        made.append(pytest.param(name, marks=[WITHOUT_TAICHI] if uses_taichi else []))
    return made


def blocks() -> list[object]:
    """One parameter for each block of the documents that is marked python."""
    made: list[object] = []
    for path in [DOCUMENTS / "README.md", *sorted((DOCUMENTS / "docs").glob("**/*.md"))]:
        if not path.is_file():
            continue
        for match in _BLOCK.finditer(path.read_text(encoding="utf-8")):
            line = path.read_text(encoding="utf-8")[: match.start()].count("\n") + 1
            uses_taichi = re.search(r"\b(taichi|ti\.)", match[1]) is not None
            marks = [WITHOUT_TAICHI] if uses_taichi else []
            made.append(pytest.param(path, line, id=f"{path.name}:{line}", marks=marks))
    return made


@pytest.mark.parametrize("name", examples())
def test_the_examples_of_a_module_print_what_they_say(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    module: ModuleType = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0, capfd.readouterr().out


def test_the_command_line_prints_its_version(capfd: pytest.CaptureFixture[str]) -> None:
    from rekernel.__main__ import main

    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("rekernel ")


@pytest.mark.skipif(not blocks(), reason="no document has a python block yet")
def test_the_blocks_of_a_document_run(tmp_path: Path) -> None:
    """All blocks of one document together, in order, in a fresh process: a reader types them one after another."""
    for path in dict.fromkeys(parameter.values[0] for parameter in blocks()):  # type: ignore[attr-defined]
        text = Path(path).read_text(encoding="utf-8")
        code = "".join("\n" * (text[: m.start(1)].count("\n")) + m[1] for m in _BLOCK.finditer(text))
        if "taichi" in code and not HAS_TAICHI:
            continue
        script = tmp_path / f"{Path(path).stem}.py"
        script.write_text(code, encoding="utf-8")
        run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, f"{path}:\n{run.stderr}"
        assert os.path.exists(path)
