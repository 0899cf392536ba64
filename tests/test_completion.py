"""What the Tab key offers in the first line of a magic, with IPython's two ways to complete Python."""

from __future__ import annotations

from typing import Any

import pytest

import shellkit
import toy as toys
from rekernel import kernels
from rekernel.notebook.completion import complete
from shellkit import Notebook
from toy import Toy

pytest.importorskip("IPython", reason="IPython is not installed")

toy = pytest.fixture(toys.fresh_toy)
shell = pytest.fixture(shellkit.fresh_shell)


@pytest.fixture
def notebook(shell: Any, toy: Toy) -> Any:
    for made in shellkit.fresh_notebook(shell):
        made.ok("%%kernel heat --toy\nstep(x) = x", "a")
        made.ok("%%kernel heat --toy\nstep(x) = 2 * x", "a")
        made.ok("%%kernel 'my wind' --toy\nblow(x) = x", "b")
        yield made


def test_both_ways_of_ipython_offer_ours_and_nothing_else(notebook: Notebook) -> None:
    for jedi in (True, False):
        assert notebook.offered("%%kernel --op", jedi) == ["--openmp", "--optlevel"]
        assert notebook.offered("%kernel_rollback heat ", jedi) == ["v2", "v1"]
        assert notebook.offered("%kernels ", jedi) == ["heat", "'my wind'"]


def test_the_text_below_the_first_line_is_not_in_the_way(notebook: Notebook) -> None:
    cell = "%%kernel --cpp --al\nvoid f(double x) {}\n"
    first = cell.index("\n")
    from IPython.core.completer import provisionalcompleter

    for jedi in (True, False):
        notebook.shell.Completer.use_jedi = jedi
        with provisionalcompleter():
            assert [one.text for one in notebook.shell.Completer.completions(cell, first)] == ["--allow-alias"]


def test_the_older_interface_of_ipython_offers_the_same(notebook: Notebook) -> None:
    line = "%%kernel --cpp --opt"
    with pytest.warns(PendingDeprecationWarning):
        assert notebook.shell.complete(text=None, line=line, cursor_pos=len(line))[1] == ["--optlevel"]


def test_what_is_offered_can_be_run(notebook: Notebook) -> None:
    (chosen,) = notebook.offered("%kernel_history 'my", False)
    assert notebook.ok(f"%kernel_history {chosen}").text.split()[4] == "v1"


def test_names_of_magics_are_ipythons_own(notebook: Notebook) -> None:
    assert {"%kernels", "%kernel_rollback", "%kernel_history", "%kernel_diff"} <= set(notebook.offered("%kern", False))


def test_other_lines_are_not_ours(notebook: Notebook) -> None:
    assert "heat" not in notebook.offered("%time ", False)
    assert "heat" not in notebook.offered("x = ", False)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%%kernel ", ["heat", "'my wind'", "--taichi"]),
        ("%%kernel he", ["heat"]),
        ("%%kernel --quiet he", ["heat"]),
        ("%%kernel heat h", []),
        ("%%kernel --toy --s", ["--scale"]),
        ("%%kernel --cuda --ar", ["--arch"]),
        ("%%kernel --cpp --ar", []),
        ("%%kernel --cpp --cu", []),
        ("%%kernel --quiet --qu", []),
        ("%%kernel --include-dirs a --incl", ["--include-dirs"]),
        ("%kernels heat ", ["'my wind'"]),
        ("%kernel_history ", ["heat", "'my wind'"]),
        ("%kernel_history heat ", []),
        ("%kernel_diff heat v", ["v2", "v1"]),
        ("%kernel_rollback h", ["heat"]),
        ("%kernel_rollback nothing ", []),
        ("%kernel_rollback heat v1 ", []),
        ("%%kern", []),
        ("", []),
        ("   ", []),
    ],
)
def test_each_place_of_a_line_has_its_own(notebook: Notebook, line: str, offered: list[str]) -> None:
    word = "" if not line or line[-1].isspace() else line.split()[-1]
    found = [text for text, _ in complete(line, word)]
    assert found[: len(offered)] == offered
    assert bool(found) == bool(offered)


def test_flags_are_those_of_the_languages_tables(notebook: Notebook, toy: Toy) -> None:
    offered = {text for text, kind in complete("%%kernel --toy --", "--") if kind == "flag"}
    assert offered == {"--scale", "--plus", "--quiet", "--background", "--no-check", "--no-keep-state"}


def test_an_id_that_is_gone_is_offered_no_more(notebook: Notebook) -> None:
    del kernels["heat"]
    assert notebook.offered("%kernel_rollback ", True) == ["'my wind'"]
