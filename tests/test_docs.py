"""Every example in a docstring and in the documents runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rekernel

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "taichi": re.compile(r"\bimport taichi\b|@ti\."),
    "PIL": re.compile(r"\b(?:import|from) PIL\b"),
    "rich": re.compile(r"\b(?:import|from) rich\b"),
    "cupy": re.compile(r"\bimport cupy\b"),
    "pystencils": re.compile(r"\b(?:import|from) pystencils\b"),
}
_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def missing(text: str) -> list[str]:
    """The optional packages that a text uses and that are not installed."""
    return [name for name, use in PACKAGES.items() if use.search(text) and importlib.util.find_spec(name) is None]


def unless_installed(text: str) -> list[pytest.MarkDecorator]:
    """Skip, with the reason, what cannot run here."""
    names = missing(text)
    return [pytest.mark.skip(reason=f"{', '.join(names)} not installed; the example uses it")] if names else []


def sources() -> dict[str, Path]:
    """All files of the package by module name; the command line's own file runs when it is imported."""
    root = Path(rekernel.__file__).parent
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = ("rekernel", *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def modules_with_examples() -> list[object]:
    made: list[object] = []
    for name, path in sources().items():
        text = path.read_text(encoding="utf-8")
        if ">>>" in text:
            needs = text + ("\nimport PIL\nimport rich" if name.startswith("rekernel.demo") else "")
            made.append(pytest.param(name, marks=unless_installed(needs), id=name))
    return made


def documents() -> list[object]:
    """The documents that have blocks marked python."""
    made: list[object] = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        blocks = [match[1] for match in _BLOCK.finditer(text)]
        if blocks:
            made.append(pytest.param(path, marks=unless_installed("\n".join(blocks)), id=path.name))
    return made


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_print_what_they_say(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0, capfd.readouterr().out


@pytest.mark.parametrize("path", documents())
def test_the_blocks_of_a_document_run(path: Path, tmp_path: Path) -> None:
    """All blocks of one document, in order, in a fresh process: a reader types them one after another."""
    text = path.read_text(encoding="utf-8")
    code = ""
    for match in _BLOCK.finditer(text):
        at = text[: match.start(1)].count("\n")
        code += "\n" * (at - code.count("\n")) + match[1]  # the lines of an error are those of the document
    script = tmp_path / f"{path.stem}_document.py"  # taichi.py would be in the way of taichi
    script.write_text(code, encoding="utf-8")
    run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"{path}:\n{run.stdout}\n{run.stderr}"


def test_the_command_line_prints_its_version(capfd: pytest.CaptureFixture[str]) -> None:
    from rekernel.__main__ import main

    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("rekernel ")
