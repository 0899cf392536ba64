"""Row 44: files and working directories with blanks, quotes, other scripts and long names. Here: Taichi texts."""

from __future__ import annotations

import os
import sys

import pytest

import rekernel
from support import START, lines_of, run_python, times

NAMES = {
    "blank": "a b",
    "quotes": 'it\'s "quoted"',
    "dollar": "$HOME ${x} `ls`",
    "umlaut": "über größe",
    "cyrillic": "ядро",
    "han": "内核",
    "emoji": "🚀 kernel",
    "combining": "e\u0301",
    "long": "x" * 200,
    "hash": "a#v1.2#b",
    "percent": "%s %d {} {0}",
    "angle": "<string>",
    "brackets": "[a] (b) {c}",
    "leading dash": "-rf",
    "newline": "two\nlines",
    "backslash": "back\\slash \\n",
    "trailing blank": "end ",
    "dots": "...x..",
    "ansi": "\x1b[31mred",
    "quote and comma": 'File "x", line 3, in f',
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_a_folder_of_that_name(loader, tmp_path, name):
    if os.name == "nt" and name not in ("blank", "umlaut", "cyrillic", "han", "combining"):
        pytest.skip("Windows has no such file name")
    folder = tmp_path / NAMES[name]
    folder.mkdir()
    path = folder / f"{NAMES[name][:100]}.py"
    path.write_text("# é\n" + times(3), encoding="utf-8")
    module = loader.load_file(path)
    assert [module.f(1), module.f(2)] == [3, 6]
    assert rekernel.info(module).filename == str(path)

    path.write_text("# é\n\n" + times("nonsense"), encoding="utf-8")
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load_file(path)
    error = caught.value
    assert (error.line, error.column, error.filename) == (5, 12, str(path))
    visible = "".join(c if c.isprintable() else "\ufffd" for c in f"{path.stem} v2 (taichi), {path}:5:12:")
    assert str(error).split("\n")[0] == f"{visible} name 'nonsense' is not defined"
    assert "> 5 |     return nonsense * n" in str(error)

    path.write_text("# é\n" + times(4), encoding="utf-8")
    assert loader.load_file(str(path)).f(1) == 4
    assert loader.load_file(os.fsencode(path).decode("utf-8")).f(1) == 4


@pytest.mark.parametrize("name", NAMES)
def test_an_id_of_that_name(loader, name):
    kernel_id = NAMES[name]
    before = set(sys.modules)
    module = loader.load(times(3), kernel_id)
    assert [module.f(1), loader[kernel_id].f(2)] == [3, 6]
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(times("nonsense"), kernel_id)
    assert (caught.value.kernel_id, caught.value.line) == (kernel_id, 3)
    assert all(module_name.isidentifier() for m in set(sys.modules) - before for module_name in m.split("."))
    assert repr(loader)
    assert module.f(4) == 12


@pytest.mark.parametrize("name", ["blank", "quotes", "umlaut", "han", "long", "newline"])
def test_a_working_directory_of_that_name(tmp_path, name):
    folder = tmp_path / NAMES[name]
    folder.mkdir()
    (folder / "local_tools.py").write_text("import taichi as ti\n@ti.func\ndef h(x):\n    return 2 * x\n")
    (folder / "k.py").write_text("import local_tools\n" + times("local_tools.h(1)"))
    program = (
        "import sys\nsys.path.insert(0, '')\n"
        + START
        + """
print(loader.load_file("k.py").f(3))
loader.save("saved file.json")
print(rekernel.KernelLoader.load_saved("saved file.json")["k"].f(4))
loader.load(times(5), "text")
print(loader["text"].f(1))
"""
    )
    assert lines_of(run_python(program, cwd=folder, TMPDIR=str(folder))) == ["6.0", "8.0", "5.0"]
    found = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert found == {"local_tools.py", "k.py", "saved file.json"}


def test_a_text_is_never_taken_for_a_path(loader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(times(3))
    with pytest.raises(ValueError, match="load_file"):
        loader.load("k.py")
    with pytest.raises(TypeError, match="load_file"):
        loader.load(tmp_path / "k.py")
    with pytest.raises(IsADirectoryError):
        loader.load_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        loader.load_file(tmp_path / "missing.py")
    for text in ("\0", "x" * 5000, "~", "/", "."):
        with pytest.raises(ValueError, match=r"language|null|load_file"):
            loader.load(text, "k")
