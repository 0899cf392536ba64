"""The walls: which file may import which, what importing rekernel costs, what is public."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rekernel
from support import run_python

ROOT = Path(rekernel.__file__).parent

# Values and text: no subprocess, no thread, no file is written, nothing of a loader.
VALUES = {
    "compilerflags", "errors", "excerpt", "frames", "kernel", "source", "values", "languages", "languages.pytext",
    "diagnostics", "diagnosticdata", "gnumessages", "symbolic", "pointwise",
    "languages.cpp.candidates", "languages.cpp.macros", "languages.cpp.nodes", "languages.cpp.options",
    "languages.cpp.reading", "languages.cpp.spelled", "languages.given",
    "languages.stencil.options", "languages.stencil.reading",
    "launchgrid", "jit.launching", "cuda.headertexts", "cuda.messages", "cuda.missing",
    "callstats", "eventlog", "settling", "key", "why", "htmltext", "infotext", "spelling", "texttable", "notebook.arguments",
    "notebook.helptext", "notebook.status",
}  # fmt: skip
# Doors: what a user calls. Nothing inside knows them.
DOORS = {"", "loader", "default", "__main__", "demo"} | {
    f"notebook{part}" for part in ("", ".magics", ".cells", ".completion", ".background")
}
# The loader's machinery: a language is driven by it and must not know it.
MACHINERY = DOORS | {
    "about", "background", "building", "events", "exporting", "handle", "holds", "jobs", "live", "namespace", "pickling",
    "publishing", "records", "returning", "rollback", "saved", "show",
    "waiting", "watch", "watched",
}  # fmt: skip

# CUDA texts are C++ texts: both are read by the same code.
DIALECTS = {"languages.cuda": "languages.cpp"}

# Imports inside functions that go against the arrows, each with its reason.
BACKWARDS = {
    ("errors", "excerpt"): "an error renders itself; the text of it is made elsewhere",
    ("values", "disassembly"): "machine code makes its own text, by a tool",
    ("errors", "frames"): "an error renders itself in IPython",
    ("live", "handle"): "a module makes its kernels' handles",
    ("live", "show"): "a module shows itself",
    ("live", "pickling"): "a module pickles itself",
    ("handle", "show"): "a kernel shows itself",
    ("handle", "pickling"): "a kernel pickles itself",
    ("handle", "returning"): "a kernel makes its own form that returns an array",
    ("pickling", "loader"): "a pickle that comes to another process brings its loader",
    ("loader", "default"): "a pickle of the default loader's kernel makes the default loader",
}

# Files of more than 250 lines, each with its reason.
LONG = {
    "headers.py": "what is recorded and how it is compared are two readings of one row",
    "languages/cpp/reading.py": "the walk over a text is one class",
    "languages/pytext.py": "the rules of Python's scopes belong on one page",
    "languages/taichi/guards.py": "the checked way into a kernel, with what it keeps for the next check",
    "errors.py": "the whole error tree is on one page",
    "live.py": "record, module and their dunders share one slot",
    "loader.py": "the one public class: half of it is docstrings",
    "notebook/widget.py": "one state, and the four who act on it: user, page, loader and clock",
    "objcache.py": "the one public class: half of it is docstrings",
    "watch.py": "one public class: what is followed, its events, its end, its thread",
    "watched.py": "the way of one content from a save to a version or an error, under one lock",
}
MOST = 250


def files() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in files()}
COMMANDS = {name for name in NAMES if name.split(".")[0] == "commands"}  # the command line is a door, file by file
DOORS |= COMMANDS
NOTEBOOK = {name for name in NAMES if name.split(".")[0] == "notebook"}  # as is a notebook
DOORS |= NOTEBOOK
MACHINERY |= COMMANDS


@cache
def imported(name: str) -> dict[str, str]:
    """The files of rekernel that a file imports, each ``at the top``, ``inside`` a function or ``for types``."""
    found: dict[str, str] = {}

    def add(full: str, how: str) -> None:
        parts = full.split(".")
        if parts[0] != "rekernel" or parts[1:2] == ["_native"]:
            return
        while ".".join(parts[1:]) not in NAMES:
            parts.pop()
        other = ".".join(parts[1:])
        if other not in found or how == "at the top":
            found[other] = how

    def visit(node: ast.AST, how: str) -> None:
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute, so that arrows can be read"
            for alias in node.names:
                add(f"{node.module}.{alias.name}", how)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                add(alias.name, how)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            how = "for types"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            how = "inside"
        for child in ast.iter_child_nodes(node):
            visit(child, how)

    visit(ast.parse(NAMES[name].read_text(encoding="utf-8")), "at the top")
    return found


def reachable(name: str) -> set[str]:
    """All files that a file imports at the top, directly or through others."""
    reached, todo = set(), [name]
    while todo:
        for other, how in imported(todo.pop()).items():
            if how == "at the top" and other not in reached:
                reached.add(other)
                todo.append(other)
    return reached


@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_file_imports_itself_in_a_circle(name: str) -> None:
    assert name not in reachable(name)


def test_imports_against_the_arrows_are_those_with_a_reason() -> None:
    against = {
        (name, other)
        for name in NAMES
        for other, how in imported(name).items()
        if how == "inside" and (name in reachable(other) or (other in DOORS and name not in DOORS))
    }
    beside = {pair for pair in against if pair[0].split(".")[0] == pair[1].split(".")[0]}  # within one package
    assert against - beside - set(BACKWARDS) == set()
    assert {pair for pair in BACKWARDS if pair[1] not in imported(pair[0])} == set()


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_and_text_import_nothing_of_effects_or_doors(name: str) -> None:
    others = {other for other, how in imported(name).items() if how != "for types"}
    assert {other for other in others - VALUES if (name, other) not in BACKWARDS} == set()


@pytest.mark.parametrize("name", sorted(set(NAMES) - DOORS))
def test_nothing_inside_imports_a_door(name: str) -> None:
    if name.startswith("demo."):
        return
    doors = {other for other, how in imported(name).items() if how != "for types" and other in DOORS}
    assert {door for door in doors if (name, door) not in BACKWARDS} == set()


@pytest.mark.parametrize("name", sorted(name for name in NAMES if name.startswith("languages.")))
def test_a_language_does_not_know_the_loader(name: str) -> None:
    known = {other for other, how in imported(name).items() if how != "for types"}
    assert known & MACHINERY == set()


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"languages"}))
def test_only_the_table_knows_a_language_by_name(name: str) -> None:
    rows = {f"languages.{row}" for row in ("taichi", "cpp", "cuda", "stencil")}
    known = {".".join(other.split(".")[:2]) for other in imported(name)} & rows
    own = ".".join(name.split(".")[:2])
    assert known - {own, DIALECTS.get(own)} == set()


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_and_text_start_nothing_and_write_nothing(name: str) -> None:
    forbidden = {"subprocess", "threading", "socket", "tempfile", "shutil", "multiprocessing", "numpy", "ctypes"}
    tree = ast.parse(NAMES[name].read_text(encoding="utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} & forbidden == set()


# --- importing -------------------------------------------------------------------------------------------------

HEAVY = ("taichi", "IPython", "rich", "pystencils", "cupy", "sympy", "PIL", "tree_sitter", "multiprocessing")


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_rekernel_imports_nothing_heavy() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import rekernel\n"
        f"print(sorted((set(sys.modules) - before) & set({HEAVY})))"
    )
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


def test_every_public_name_is_there_and_listed() -> None:
    assert [name for name in rekernel.__all__ if not hasattr(rekernel, name)] == []
    assert set(rekernel.__all__) <= set(dir(rekernel))


def test_nothing_of_ours_is_public_by_accident() -> None:
    ours = {n for n, x in vars(rekernel).items() if str(getattr(x, "__module__", "")).startswith("rekernel")}
    extension = {"load_ipython_extension", "unload_ipython_extension"}  # what %load_ext asks for
    assert {name for name in ours if not name.startswith("_")} <= set(rekernel.__all__) | extension


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rekernel' has no attribute 'nothing'"):
        _ = rekernel.nothing


def test_all_is_sorted_and_without_doubles() -> None:
    assert list(rekernel.__all__) == sorted(set(rekernel.__all__))


@pytest.mark.parametrize("name", rekernel.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    doc = inspect.getdoc(getattr(rekernel, name))
    assert doc
    assert doc.split("\n")[0].rstrip().endswith((".", ":"))


def public_methods() -> list[tuple[str, str]]:
    classes = [x for x in (getattr(rekernel, name) for name in rekernel.__all__) if isinstance(x, type)]
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
    assert {name for name, length in lengths.items() if length > MOST} - set(LONG) == set()


def test_every_reason_for_a_long_file_is_needed() -> None:
    assert {name for name in LONG if len((ROOT / name).read_text(encoding="utf-8").split("\n")) <= MOST} == set()


def test_the_table_knows_the_suffixes_of_its_built_in_rows() -> None:
    import rekernel.languages as table

    assert {name: table.find(name).suffixes for name in table._BUILT_IN} == table._BUILT_IN


@pytest.mark.parametrize("named", ["language", "filename"])
def test_a_language_that_is_named_is_imported_without_the_others(named: str) -> None:
    code = f"""
        import sys
        from rekernel.jobs import detect, find
        chosen = find("cpp") if {named!r} == "language" else detect('nothing', 'k.cpp')
        print(chosen.name, sorted(name for name in sys.modules if name in ('rekernel.languages.taichi', 'rekernel.languages.cuda')))
    """
    assert run_python(code).stdout == "cpp []\n"


def test_the_order_of_the_languages_is_always_the_same() -> None:
    code = """
        from rekernel.languages import find, languages
        print(find("cuda").name, find("cpp").name, *languages())
    """
    assert run_python(code).stdout == "cuda cpp taichi cpp cuda stencil\n"
