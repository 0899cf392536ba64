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

import docblocks
import rekernel

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "taichi": re.compile(r"\bimport taichi\b|@ti\."),
    "PIL": re.compile(r"\b(?:import|from) PIL\b"),
    "rich": re.compile(r"\b(?:import|from) rich\b"),
    "IPython": re.compile(r"\bimport IPython\b"),
    "watchfiles": re.compile(r"\.watch\("),
    "cupy": re.compile(r"\bimport cupy\b"),
    "pystencils": re.compile(r"\b(?:import|from) pystencils\b|\bps\.\w+\("),
}


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
        if any(">>>" in line and "+SKIP" not in line for line in text.splitlines()):
            needs = text + ("\nimport PIL\nimport rich" if name.startswith("rekernel.demo") else "")
            made.append(pytest.param(name, marks=unless_installed(needs), id=name))
    return made


PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    if path.is_file() and "_build" not in path.parts
]


def documents(*kinds: str) -> list[object]:
    """The documents that have blocks of these kinds."""
    made: list[object] = []
    for path in PAGES:
        runs = [b for b in docblocks.blocks(path.read_text(encoding="utf-8")) if b.told("not run") is None]
        if any(block.kind in kinds for block in runs):
            code = "\n".join(block.text for block in runs if block.kind in {*kinds, "python"})
            cells = "\nimport IPython" if any(block.kind == "cell" for block in runs) else ""
            name = path.relative_to(ROOT).as_posix().removeprefix("docs/")
            made.append(pytest.param(path, marks=unless_installed(code + cells), id=name))
    return made


def read(path: Path, directory: Path, *arguments: str) -> str:
    """Do what a reader of a document does, in a fresh process, and return what was printed."""
    run = subprocess.run(
        [sys.executable, docblocks.__file__, path, *arguments],
        cwd=directory, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    print(run.stdout)
    assert run.returncode == 0, f"{path}:\n{run.stdout}\n{run.stderr}"
    return run.stdout


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_print_what_they_say(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0, capfd.readouterr().out


@pytest.mark.parametrize("path", documents("python", "cell", "shell"))
def test_the_blocks_of_a_document_run(path: Path, tmp_path: Path) -> None:
    """All blocks of one document, in order, in a fresh process: a reader types them one after another."""
    read(path, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("path", documents("gpu"))
def test_the_blocks_of_a_document_for_a_gpu_run(path: Path, tmp_path: Path) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        pytest.skip(f"no NVIDIA GPU: {error}")
    assert "needs an NVIDIA GPU" not in read(path, tmp_path, "--gpu")


def test_blocks_are_found_with_what_the_document_says_of_them() -> None:
    document = """# Title

```python
x = 1
```

<!-- raises: ValueError -->
```python
int("x")
```
<!-- output -->
```text
ValueError: ...
```

```{code-block} cpp
:caption: heat.cpp

void f() {}
```

```cpp
%%kernel heat
```

<!-- not run: it plays for ever -->
```sh
$ python -m rekernel demo  # a comment
```
"""
    found = list(docblocks.blocks(document))
    assert [block.kind for block in found] == ["python", "python", "output", "file", "cell", "shell"]
    assert [block.line for block in found] == [3, 8, 12, 18, 22, 27]
    assert (found[1].told("raises"), found[5].told("not run")) == ("ValueError", "it plays for ever")
    assert (found[3].name, found[3].text) == ("heat.cpp", "void f() {}\n")
    assert docblocks.commands(found[5].text) == [["demo"]]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("```python\n1 / 0\n```\n", "ZeroDivisionError"),
        ("<!-- raises: ValueError -->\n```python\nx = 1\n```\n", "raised nothing, and not ValueError"),
        ("<!-- raises: ValueError -->\n```python\n[].x\n```\n", "raised AttributeError"),
        ("```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```\n", "the document says"),
        ("```sh\npython -m rekernel nothing\n```\n", "exit status 2"),
    ],
)
def test_a_document_that_is_wrong_is_found_out(document: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.md").write_text(document, encoding="utf-8")
    with pytest.raises(AssertionError, match=complaint):
        read(tmp_path / "wrong.md", tmp_path)


def test_the_command_line_prints_its_version(capfd: pytest.CaptureFixture[str]) -> None:
    from rekernel.__main__ import main

    assert main(["--version"]) == 0
    assert capfd.readouterr().out.startswith("rekernel ")
