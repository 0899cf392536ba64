"""What all subcommands share: help, wrong calls, JSON, colours, broken pipes."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rekernel.commands
from commandkit import BROKEN, STENCIL, cache, call, call_json, command, here  # noqa: F401
from jitkernels import needs_compiler
from rekernel.__main__ import _SUBCOMMANDS, main

FILES = sorted(p.stem for p in Path(rekernel.commands.__file__).parent.glob("*.py") if p.stem != "__init__")
HEAVY = {"rich", "numpy.random", "taichi", "pystencils", "cupy", "IPython", "tree_sitter", "watchfiles"}


@pytest.mark.parametrize("name", ["", *(f".{name}" for name in FILES)])
def test_examples_in_docstrings(name):
    if name == ".watch":
        pytest.importorskip("watchfiles", reason="watchfiles is not installed")
    assert doctest.testmod(importlib.import_module(f"rekernel.commands{name}")).failed == 0


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from rekernel.__main__ import main\n"
        f"try: main(['--help'])\nfinally: print(sorted(set(sys.modules) & {HEAVY!r}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stderr == "[]\n"
    assert all(name in done.stdout for name in _SUBCOMMANDS)


def test_rekernel_and_python_m_rekernel_are_the_same():
    script = Path(sys.executable).with_name("rekernel")
    if not script.exists():
        pytest.skip(f"the package is installed without its script {script}")
    ways = [[str(script)], [sys.executable, "-m", "rekernel"]]
    shown = [subprocess.run([*way, "--help"], capture_output=True, timeout=60).stdout for way in ways]
    assert shown[0] == shown[1]
    assert shown[0].startswith(b"usage: rekernel ")


@pytest.mark.parametrize("name", _SUBCOMMANDS)
def test_every_subcommand_has_help(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: rekernel {name} ")


@pytest.mark.parametrize(
    "words",
    [[], ["nothing"], ["build"], ["build", "nofile.cpp"], ["build", "."], ["cache"], ["cache", "nothing"], ["cache", "prune"],
     ["cache", "prune", "many"], ["bench"], ["bench", "nofile.cpp:f"], ["stubs"], ["build", "heat.cpp", "-O", "openmp"],
     ["build", "heat.cpp", "--jobs", "0"], ["build", "heat.cpp", "-O", "oppenmp=1"], ["build", "heat.cpp", "--opt=x=1"],
     ["build", "heat.cpp", "-O", "openmp=true", "-O", "openmp=false"], ["build", "heat.cpp", "--language", "perl"]],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_call_is_status_2_and_says_why(words, here, cache, call):
    status, out, errors = call(*words)
    assert status == 2
    assert out == ""
    assert "error: " in errors or "usage: " in errors
    assert not words or len(errors.splitlines()) < 9, "how it is called, not the whole help"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", "nofile.cpp"], "there is no file nofile.cpp"),
        (["build", "."], "is a directory"),
        (["build", "heat.cpp", "-O", "oppenmp=1"], "options of cpp: include_dirs, flags, openmp"),
        (["build", "heat.cpp", "--language", "perl"], "known are: cpp, cuda, stencil, taichi"),
        (["build", "heat.cpp", "-O", "optlevel=1", "-O", "optlevel=2"], "option optlevel is given twice"),
        (["bench", "heat.cpp:stp"], "heat.cpp:step"),
        (["cache", "prune", "many"], "'many' is no size of a cache"),
    ],
)
@needs_compiler
def test_errors_name_what_is_wrong_as_text_and_as_json(words, said, here, cache, call, call_json):
    status, _, errors = call(*words)
    assert said in errors
    again, document = call_json(*words)
    assert again == status == 2
    assert document["error"]["kind"] == "UsageError"
    assert said in document["error"]["message"]


@needs_compiler
def test_an_error_in_a_text_is_shown_as_always_and_has_its_place_in_json(here, cache, call, call_json):
    status, out, errors = call("stubs", "broken.cpp")
    assert (status, out) == (1, "")
    assert "broken v1 (cpp), broken.cpp:2:12: 'yy' was not declared in this scope" in errors
    assert "> 2 |     x(0) = yy;" in errors
    status, document = call_json("stubs", "broken.cpp")
    assert status == 1
    error = document["error"]
    assert (error["kind"], error["filename"], error["line"], error["column"]) == (
        "KernelSourceError",
        "broken.cpp",
        2,
        12,
    )


def test_options_are_json_or_python_or_text():
    from rekernel.commands.texts import option

    given = ["a=true", "a=True", "a=null", "a=3", 'a=["x"]', "a=('x',)", "a=-O2 -g", "a=", "a=x=y"]
    assert [option(text)[1] for text in given] == [True, True, None, 3, ["x"], ("x",), "-O2 -g", "", "x=y"]


@needs_compiler
def test_what_others_print_does_not_come_between_json(here, cache):
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("loud.py").write_text(
        "import taichi as ti\nprint('loud')\nti.init(arch=ti.cpu)\n@ti.kernel\ndef f() -> ti.i32:\n    return 1\n"
    )
    done = command("build", "loud.py", "--json")
    assert json.loads(done.stdout)["files"][0]["kernels"] == ["f"]
    assert "loud" in done.stderr
    assert done.returncode == 0


@needs_compiler
@pytest.mark.parametrize("variable", ["", "NO_COLOR", "TERM=dumb"])
def test_nothing_is_coloured_that_is_piped(variable, here, cache):
    name, _, value = variable.partition("=")
    done = command("build", "heat.cpp", "broken.cpp", **({name: value or "1"} if name else {}))
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr


@needs_compiler
def test_a_terminal_without_unicode_shows_what_it_can(here, cache):
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    Path("[red]ä.py").write_text(STENCIL)
    done = command("build", "[red]ä.py", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "[red]\\xe4.py" in done.stdout
    assert "---" in done.stdout
    done = command("stubs", "[red]ä.py", "-o", "-", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert "def twice(" in done.stdout, done.stderr


def test_the_demo_has_json_too(tmp_path):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    pytest.importorskip("taichi", reason="Taichi is not installed")
    done = command("demo", "--size", "32", "--steps", "4", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert (done.returncode, document["status"]) == (0, 0)
    assert [act["number"] for act in document["acts"]] == [1, 2, 3, 4, 5]
    assert (tmp_path / document["picture"]).exists()


def test_a_reader_that_goes_away_is_no_error(cache):
    process = subprocess.Popen(
        [sys.executable, "-m", "rekernel", "cache", "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


def test_tables_fit_80_columns_and_lose_nothing(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    rows = rekernel.commands.table("file", ">n")
    rows.add_row("a/" * 60, "1")
    rekernel.commands.console().print(rows)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("a/") == 60


def test_a_warning_of_ours_is_one_line(here, tmp_path):
    (tmp_path / "file").write_text(BROKEN)
    done = command("cache", "info", REKERNEL_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert done.stderr.startswith("rekernel cache info: warning: the kernel cache is not where it should be")
    assert len(done.stderr.splitlines()) == 1
    assert os.fspath(tmp_path) in done.stdout
