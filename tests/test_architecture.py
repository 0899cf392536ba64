"""The walls: which file may import which, what importing rekernel costs, what is public."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import types
from functools import cache
from pathlib import Path

import pytest
import rekernel

ROOT = Path(rekernel.__file__).parent

# From the inside out: a file imports from its own layer's earlier files and from the layers before it.
LAYERS = {
    "values and text": [
        "excerpt", "frames", "errors", "kernel", "source", "values", "languages", "languages.pytext",
    ],
    "what is held": ["locks", "live", "handle", "namespace"],
    "effects": ["events", "show", "publishing", "jobs", "building", "versions", "background", "records", "saved",
                "pickling"],
    "doors": ["loader", "", "demo", "__main__"],
}  # fmt: skip
ORDER = [name for layer in LAYERS.values() for name in layer]

# Imports inside functions that go against the arrows, each with its reason.
BACKWARDS = {
    ("excerpt", "errors"): "type names only",
    ("errors", "excerpt"): "an error renders itself; the text of it is made elsewhere",
    ("errors", "frames"): "an error renders itself in IPython",
    ("live", "handle"): "a module makes its kernels' handles",
    ("live", "show"): "a module shows itself",
    ("live", "pickling"): "a module pickles itself",
    ("handle", "show"): "a kernel shows itself",
    ("handle", "pickling"): "a kernel pickles itself",
    ("pickling", "loader"): "a pickle that comes to another process brings its loader",
    ("languages", "languages.taichi"): "the table knows its built-in rows, and imports them when first asked",
}

# Files of more than 250 lines, each with its reason.
LONG = {
    "live.py": "module, record and hold share one lock order, which is easier to see on one page",
    "loader.py": "the one public class: docstrings are half of it",
    "languages/taichi/version.py": "one build from text to callables",
}


def files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported(path: Path) -> dict[str, str]:
    """The rekernel modules that a file imports, each ``at the top``, ``inside`` or ``for types``."""
    found: dict[str, str] = {}
    known = {name_of(other) for other in files()}

    def add(name: str, how: str) -> None:
        if name in known and (name not in found or how == "at the top"):
            found[name] = how

    def visit(node: ast.AST, how: str) -> None:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rekernel":
            base = node.module.removeprefix("rekernel").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                add(inner if inner in known else base, how)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "rekernel":
                    add(alias.name.removeprefix("rekernel").removeprefix("."), how)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            how = "for types"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            how = "inside"
        for child in ast.iter_child_nodes(node):
            visit(child, how)

    visit(ast.parse(path.read_text(encoding="utf-8")), "at the top")
    return found


def layered() -> list[Path]:
    """All files but the languages, which come in beside: the table imports them, they import the table."""
    return [path for path in files() if name_of(path) in ORDER]


def test_every_file_has_its_place() -> None:
    beside = ("languages.", "demo.")
    strange = [n for n in map(name_of, files()) if n not in ORDER and not n.startswith(beside)]
    assert strange == []


@pytest.mark.parametrize("path", layered(), ids=name_of)
def test_the_arrows_go_one_way(path: Path) -> None:
    name = name_of(path)
    for other, how in imported(path).items():
        if how == "for types" or other.startswith("demo"):
            continue
        if (name, other) in BACKWARDS and how == "inside":
            continue
        assert other in ORDER, f"{name} imports {other}, {how}"
        assert ORDER.index(other) < ORDER.index(name), f"{name} imports {other}, {how}, against the arrows"


def test_every_exception_from_the_arrows_is_needed() -> None:
    used = {(name_of(path), other) for path in layered() for other in imported(path)}
    assert set(BACKWARDS) - {("excerpt", "errors")} <= used


@pytest.mark.parametrize("path", [p for p in files() if name_of(p).startswith("languages.")], ids=name_of)
def test_a_language_knows_values_and_text_only(path: Path) -> None:
    row = ".".join(name_of(path).split(".")[:2])
    for other, how in imported(path).items():
        allowed = other in LAYERS["values and text"] or other in ("", "locks") or other.startswith(row)
        assert allowed or how == "for types", f"{name_of(path)} imports {other}, {how}"


@pytest.mark.parametrize("path", [p for p in files() if name_of(p) not in ("", "languages")], ids=name_of)
def test_nothing_but_the_table_and_the_reset_knows_a_language_by_name(path: Path) -> None:
    name = name_of(path)
    if name.startswith(("languages.", "demo")):
        return
    languages = [other for other in imported(path) if other.startswith("languages.") and other != "languages.pytext"]
    assert languages == []


@pytest.mark.parametrize("path", [p for p in files() if name_of(p) in LAYERS["values and text"]], ids=name_of)
def test_values_and_text_start_nothing_and_write_nothing(path: Path) -> None:
    forbidden = {"subprocess", "threading", "socket", "tempfile", "shutil", "multiprocessing", "numpy", "ctypes"}
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.split(".")[0] for name in names} & forbidden == set()


# --- importing -------------------------------------------------------------------------------------------------

HEAVY = ("taichi", "IPython", "rich", "pystencils", "cupy", "sympy", "PIL", "tree_sitter", "multiprocessing")


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_rekernel_imports_nothing_heavy() -> None:
    code = f"import sys, numpy; b = set(sys.modules); import rekernel; print(sorted((set(sys.modules) - b) & {set(HEAVY)}))"
    assert in_a_fresh_process(code) == "[]\n"


def test_importing_rekernel_starts_no_thread_and_no_process() -> None:
    code = "import threading, sys, rekernel; print(threading.active_count(), 'subprocess' in sys.modules)"
    before = "import threading, sys, numpy; print(threading.active_count(), 'subprocess' in sys.modules)"
    assert in_a_fresh_process(code) == in_a_fresh_process(before)


def test_importing_rekernel_changes_no_setting_of_the_process() -> None:
    code = (
        "import sys, signal, os, locale, numpy\n"
        "def state(): return (list(sys.path), signal.getsignal(2), os.getcwd(), dict(os.environ), sys.excepthook,\n"
        "                     sys.displayhook, sys.getrecursionlimit(), locale.setlocale(locale.LC_ALL))\n"
        "before = state(); import rekernel; print(before == state())"
    )
    assert in_a_fresh_process(code) == "True\n"


# --- public names ----------------------------------------------------------------------------------------------


def test_all_is_what_is_public() -> None:
    modules = {name for name, value in vars(rekernel).items() if isinstance(value, types.ModuleType)}
    public = {name for name in vars(rekernel) if not name.startswith("_")} - modules - {"annotations"}
    assert public == set(rekernel.__all__)


def test_all_is_sorted_and_without_doubles() -> None:
    assert list(rekernel.__all__) == sorted(set(rekernel.__all__))


@pytest.mark.parametrize("name", rekernel.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    doc = inspect.getdoc(getattr(rekernel, name))
    assert doc
    assert doc.split("\n")[0].rstrip().endswith((".", ":"))


def public_methods() -> list[tuple[str, str]]:
    classes = [x for x in vars(rekernel).values() if isinstance(x, type) and x.__module__.startswith("rekernel")]
    return [(c.__name__, n) for c in classes for n in vars(c) if not n.startswith("_") and callable(getattr(c, n))]


@pytest.mark.parametrize(("kind", "method"), public_methods())
def test_every_public_method_has_a_docstring(kind: str, method: str) -> None:
    assert getattr(rekernel, kind).__dict__[method].__doc__


def test_the_verbs_of_a_language_have_docstrings() -> None:
    protocol = rekernel.languages.Language
    verbs = [name for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"]
    assert verbs
    assert all(getattr(protocol, name).__doc__ for name in verbs)


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_file_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_files_are_short_or_have_a_reason() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").split("\n")) for path in files()}
    long = {name for name, length in lengths.items() if length > 250 and not name.startswith("demo/")}
    assert long - set(LONG) == set()
    assert max(lengths.values()) <= 400
