"""``%%kernel`` and its relatives, as a person at a notebook uses them: with mistakes."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import shellkit
import toy as toys
from rekernel import KernelNotFoundError, KernelRemovedError, KernelSourceError, info, kernels
from rekernel.errors import RekernelWarning
from rekernel.notebook import arguments, load_ipython_extension, unload_ipython_extension
from shellkit import Notebook
from toy import Toy

pytest.importorskip("IPython", reason="IPython is not installed")

toy = pytest.fixture(toys.fresh_toy)
shell = pytest.fixture(shellkit.fresh_shell)


@pytest.fixture
def notebook(shell: Any, toy: Toy) -> Any:
    yield from shellkit.fresh_notebook(shell)


def joined(prefix: str) -> None:
    """Wait for the threads whose names begin so."""
    for thread in threading.enumerate():
        if thread.name.startswith(prefix):
            thread.join(30)
            assert not thread.is_alive()


# --- a cell that is right ----------------------------------------------------------------------------------------


def test_a_cell_puts_its_kernels_into_the_notebooks_names(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = 2 * x\nflux(x) = x", "a")
    assert notebook.ok("value = step(3) + flux(1)").error is None
    assert notebook["value"] == 7
    assert notebook["step"] is kernels["step"].step


def test_a_cell_says_what_it_came_to(notebook: Notebook) -> None:
    said = notebook.ok("%%kernel heat\nstep(x, k: float64) = k * x", "a").text.split("\n")
    assert said[0].startswith("heat v1  toy  built in ")
    assert said[1:] == ["  step(x: float64, k: float64)", "  ! made by toy"]
    assert notebook.ok("%%kernel heat\nstep(x, k: float64) = k * x", "a").text.startswith("heat v1  toy  unchanged")


def test_running_an_edited_cell_changes_every_handle(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = 2 * x", "a")
    notebook.ok("kept = [step]")
    assert notebook.ok("%%kernel\nstep(x) = 3 * x", "a").text.startswith("step v2")
    notebook.ok("value = kept[0](1)")
    assert notebook["value"] == 3


def test_an_earlier_text_comes_back_without_a_build(notebook: Notebook, toy: Toy) -> None:
    for factor in (2, 3, 2):
        said = notebook.ok(f"%%kernel\nstep(x) = {factor} * x", "a").text
    assert said.startswith("step v3  toy  v1 again")
    assert len(toy.done("build")) == 2


def test_names_that_the_text_does_not_define_are_the_notebooks(notebook: Notebook) -> None:
    notebook.ok("factor = 5")
    notebook.ok("%%kernel\nstep(x) = factor * x", "a")
    notebook.ok("factor = 7")
    assert notebook.ok("%%kernel\nstep(x) = factor * x", "a").text.startswith("step v2")
    assert notebook["step"](1) == 7


def test_what_depends_on_a_cell_is_built_again_and_named(notebook: Notebook) -> None:
    notebook.ok("%%kernel base\nfunc twice(x) = 2 * x\none(x) = x", "a")
    notebook.ok("%%kernel\nstep(x) = twice(x)", "b")
    said = notebook.ok("%%kernel base\nfunc twice(x) = 20 * x\none(x) = x", "a").text
    assert "built again with it: step v2" in said
    assert notebook["step"](1) == 20


def test_quiet_shows_nothing(notebook: Notebook) -> None:
    assert notebook.ok("%%kernel --quiet\nstep(x) = x").shown == ()


def test_quiet_does_not_hide_that_a_name_meant_something_else(notebook: Notebook) -> None:
    notebook.ok("step = 3")
    assert "step was an int, 3" in notebook.ok("%%kernel --quiet\nstep(x) = x").text


def test_functions_that_are_no_kernels_are_said_with_the_reason(notebook: Notebook) -> None:
    assert (
        "big is no kernel: it takes a struct" in notebook.ok("%%kernel\nstep(x) = x\nskip big: it takes a struct").text
    )


def test_a_long_list_of_kernels_is_cut(notebook: Notebook) -> None:
    text = "\n".join(f"k{number}(x) = x" for number in range(20))
    said = notebook.ok(f"%%kernel many\n{text}").text.split("\n")
    assert said[7:9] == ["  k6(x: float64)", "  and 13 more"]


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("step = 3", "step was an int, 3; now it is the kernel step.step"),
        ("step = None", "step was a NoneType, None"),
        ("import numpy as np; step = np.zeros((3, 4))", "step was a ndarray of shape (3, 4)"),
        ("step = 'x' * 500", "step was a str, 'xxx"),
        ("class Bad:\n    def __repr__(self): raise ValueError\nstep = Bad()", "step was a Bad"),
        (
            "from rekernel import kernels; step = kernels.load('step(x) = 1', 'other').step",
            "step was the kernel other.step",
        ),
    ],
)
def test_a_name_that_meant_something_else_is_said(notebook: Notebook, before: str, said: str) -> None:
    notebook.ok(before)
    told = notebook.ok("%%kernel\nstep(x) = x", "a").text
    assert said in told
    assert max(map(len, told.split("\n"))) < 160
    assert notebook["step"] is kernels["step"].step


def test_a_pinned_kernel_is_not_taken_in_silence(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    notebook.ok("step = step.pinned()")
    assert "step was the kernel step.step v1, pinned" in notebook.ok("%%kernel\nstep(x) = 2 * x", "a").text


def test_nothing_is_said_of_our_own_names(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    assert "step was" not in notebook.ok("%%kernel\nstep(x) = 2 * x", "a").text


def test_values_of_the_text_take_free_names_and_are_renewed(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nsize := 4\nstep(x) = x", "a")
    assert notebook["size"] == 4
    notebook.ok("%%kernel\nsize := 5\nstep(x) = x", "a")
    assert notebook["size"] == 5


def test_values_of_the_text_never_take_a_name_from_the_user(notebook: Notebook) -> None:
    notebook.ok("size = 'mine'")
    assert "size in the notebook stays as it was" in notebook.ok("%%kernel\nsize := 4\nstep(x) = x", "a").text
    assert "stays" not in notebook.ok("%%kernel\nsize := 5\nstep(x) = x", "a").text, "it is said once"
    assert notebook["size"] == "mine"


def test_private_names_stay_with_the_text(notebook: Notebook) -> None:
    notebook.ok("%%kernel\n_size := 4\nstep(x) = x", "a")
    assert "_size" not in notebook


def test_a_kernel_that_left_the_text_is_missed_by_name_and_comes_back(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x\nflux(x) = x", "a")
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    error = notebook.run("flux(1)").error
    assert isinstance(error, KernelRemovedError)
    assert "version 2 of 'heat' has no kernel 'flux'" in str(error)
    notebook.ok("%%kernel heat\nstep(x) = x\nflux(x) = 4 * x", "a")
    assert notebook["flux"](1) == 4


def test_a_text_cannot_go_on_with_a_function_that_it_has_lost(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nfunc twice(x) = 2 * x\nstep(x) = twice(x)", "a")
    ran = notebook.run("%%kernel\nfunc double(x) = 2 * x\nstep(x) = twice(x)", "a")
    assert isinstance(ran.error, KernelSourceError)
    assert "line 3, column 11: name 'twice' is not defined" in str(ran.error)


# --- ids ---------------------------------------------------------------------------------------------------------


def test_a_cell_keeps_its_id_when_all_its_kernels_are_renamed(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    assert notebook.ok("%%kernel\nadvance(x) = x", "a").text.startswith("step v2")
    assert list(kernels) == ["step"]


def test_without_cell_ids_a_renamed_kernel_is_another_id(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x")
    notebook.ok("%%kernel\nadvance(x) = x")
    assert list(kernels) == ["step", "advance"]


def test_a_cell_that_defines_anothers_kernel_replaces_it_and_says_so(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    said = notebook.ok("%%kernel\nstep(x) = 2 * x", "b").text
    assert "this replaces step of the cell [" in said
    assert said.startswith("step v2")
    assert "this replaces" not in notebook.ok("%%kernel\nstep(x) = 3 * x", "b").text


def test_two_cells_with_one_id_given_by_the_user_are_no_surprise(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    assert "replaces" not in notebook.ok("%%kernel heat\nstep(x) = 2 * x", "b").text


def test_a_cell_that_cannot_be_read_fails_at_its_own_id(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    error = notebook.run("%%kernel\nstep(x) = x +", "a").error
    assert isinstance(error, KernelSourceError)
    assert (error.kernel_id, error.keeps) == ("step", 1)


def test_ids_may_hold_anything(notebook: Notebook) -> None:
    notebook.ok("%%kernel 'my heat <b>'\nstep(x) = x", "a")
    assert "my heat <b>" in kernels
    notebook.ok("%%kernel 'my heat <b>'\nstep(x) = 2 * x", "a")
    assert notebook.ok("%kernel_rollback 'my heat <b>'").text.startswith("my heat <b> v3  toy  v1 again")


# --- a cell that is wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("above", "line"), [("", 3), ("\n\n", 5), ("%%time\n", 4)])
def test_lines_are_those_of_the_cell(notebook: Notebook, above: str, line: int) -> None:
    ran = notebook.run(f"{above}%%kernel heat\nflux(x) = x\nstep(x) = kk\n", "a")
    assert isinstance(ran.error, KernelSourceError)
    assert ran.error.line == line
    assert f"> {line} | step(x) = kk" in ran.stdout


def test_a_text_that_is_run_by_a_call_counts_its_own_lines(notebook: Notebook) -> None:
    ran = notebook.run("get_ipython().run_cell_magic('kernel', 'heat', 'step(x) = kk')\n1 + 1")
    assert isinstance(ran.error, KernelSourceError)
    assert ran.error.line == 1


def test_of_a_failure_only_the_block_is_shown(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    ran = notebook.run("%%kernel heat\nstep(x) = kk", "a")
    assert ran.stdout == (
        "rekernel.KernelSourceError: heat v2 (toy), line 2, column 11: name 'kk' is not defined\n"
        "> 2 | step(x) = kk\n"
        "    |           ^^\n"
        "heat v1 keeps running.\n"
    )
    assert ran.stderr == ""
    assert ran.shown == ()


def test_after_a_failure_the_version_before_goes_on(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = 2 * x", "a")
    notebook.run("%%kernel heat\nstep(x) = kk", "a")
    assert notebook["step"](1) == 2
    assert notebook.ok("%%kernel heat\nstep(x) = 2 * x", "a").text.startswith("heat v1  toy  unchanged")


def test_a_first_cell_that_fails_leaves_no_name(notebook: Notebook) -> None:
    notebook.run("%%kernel heat\nstep(x) = kk", "a")
    assert "step" not in notebook
    assert "heat" not in kernels


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--cpp --opnmp", "unknown option --opnmp: did you mean --openmp? Known for cpp: --taichi"),
        ("--opnmp", "unknown option --opnmp: did you mean --openmp, which is for cpp and stencil? This text is toy."),
        ("--toy --arch sm_90", "unknown option --arch: it is for cuda, and this text is toy."),
        ("--nothing-like-it", "unknown option --nothing-like-it. Known for toy: --taichi"),
        ("-O3", "-O3 is no option of %%kernel; flags for the compiler: --flags '-O3'"),
        ("--toy --scale", "--scale needs a value: --scale VALUE, or --scale=VALUE"),
        ("--toy --scale --quiet", "--scale needs a value"),
        ("--cpp --openmp=maybe", "--openmp takes no value, or on or off, not 'maybe'"),
        ("one two", "one id, not 2: one, two"),
        ("--cpp --cuda", "one language, not 2: --cpp, --cuda"),
        ("'heat", "the first line cannot be read: no closing quotation"),
        ("--quiet=3", "unknown option --quiet"),
    ],
)
def test_a_wrong_first_line_is_one_line_that_helps(notebook: Notebook, line: str, said: str) -> None:
    ran = notebook.run(f"%%kernel {line}\nstep(x) = x", "a")
    assert ran.error is not None
    assert ran.stderr.startswith(f"UsageError: {said}")
    assert len(ran.stderr.strip().split("\n")) == 1
    assert ran.stdout == ""


def test_a_text_of_no_language_asks_for_a_flag(notebook: Notebook) -> None:
    ran = notebook.run("%%kernel\nhello there", "a")
    assert "cannot tell the language of this text" in ran.stderr
    assert "say it in the first line: --taichi, --cpp" in ran.stderr


def test_a_text_that_lost_its_marks_keeps_the_language_of_its_cell(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    assert isinstance(notebook.run("%%kernel\nstep(x = x", "a").error, KernelSourceError)


def test_a_text_without_a_kernel_asks_for_a_name(notebook: Notebook) -> None:
    assert "give one: %%kernel NAME" in notebook.run("%%kernel --toy\n# nothing").stderr


def test_an_option_of_the_wrong_kind_is_one_line(notebook: Notebook) -> None:
    ran = notebook.run("%%kernel --cpp --optlevel 9\nvoid f(double x) {}", "a")
    assert ran.stderr.startswith("UsageError: optlevel= is one of '0'")


def test_without_a_text_ipython_says_what_is_missing(notebook: Notebook) -> None:
    assert "the cell body is empty" in notebook.run("%%kernel heat").stderr


# --- options -----------------------------------------------------------------------------------------------------


def test_options_are_those_of_the_language(notebook: Notebook) -> None:
    notebook.ok("%%kernel --toy --scale 10 --plus=1\nstep(x) = x", "a")
    assert notebook["step"](2) == 21


def test_what_the_first_line_no_longer_says_is_no_longer_meant(notebook: Notebook) -> None:
    notebook.ok("%%kernel --scale 10\nstep(x) = x", "a")
    assert info(notebook["step"]).options["scale"] == 10
    notebook.run("%%kernel\nstep(x) = x", "a")
    assert info(notebook["step"]).options["scale"] is None


def test_options_given_elsewhere_stay_with_the_id(notebook: Notebook) -> None:
    kernels.load("step(x) = x", "heat", scale=10)
    notebook.ok("%%kernel heat\nstep(x) = 2 * x", "a")
    assert notebook["step"](1) == 20


TABLE = {"cpp": {"include_dirs": "a list of paths", "flags": "a list or text", "openmp": "True or False"}, "toy": {}}


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", {}),
        ("--openmp", {"openmp": True}),
        ("--no-openmp", {"openmp": False}),
        ("--openmp=off", {"openmp": False}),
        ("--openmp heat", {"openmp": True}),
        ("--include-dirs a --include-dirs b", {"include_dirs": ["a", "b"]}),
        ("--include_dirs=a", {"include_dirs": "a"}),
        ("--include-dirs \"['a', 'b']\"", {"include_dirs": ["a", "b"]}),
        ("--flags '-O1 -DN=4'", {"flags": "-O1 -DN=4"}),
        ("--flags=-DN=4", {"flags": "-DN=4"}),
        ("--flags -g # a remark", {"flags": "-g"}),
    ],
)
def test_a_first_line_is_read(line: str, options: dict[str, Any]) -> None:
    assert arguments.read(f"--cpp {line}", TABLE).options == options


def test_the_parts_of_a_first_line_may_stand_in_any_order() -> None:
    one = arguments.read("heat --cpp --quiet --background --no-check --no-keep-state", TABLE)
    other = arguments.read("--no-keep-state --no-check --background --quiet --cpp heat", TABLE)
    assert one == other
    assert one.kernel_id == "heat"
    assert one.quiet
    assert one.load == {"background": True, "check": False, "keep_state": False}


def test_variables_of_the_notebook_can_stand_in_the_first_line(notebook: Notebook) -> None:
    notebook.ok("name, factor = 'heat', 3")
    notebook.ok("%%kernel $name --scale {factor + 1}\nstep(x) = x", "a")
    assert kernels["heat"].step(1) == 4


# --- tables and going back -----------------------------------------------------------------------------------------


def test_kernels_are_listed_with_calls_times_and_failures(notebook: Notebook) -> None:
    assert notebook.ok("%kernels").text == "no kernels are loaded: begin a cell with %%kernel"
    notebook.ok("%%kernel counted\nstep(x) = x\nflux(x) = x", "a")
    notebook.ok("for i in range(1234): step(i)")
    notebook.run("%%kernel counted\nstep(x) = kk", "a")
    head, step, flux, failed = notebook.ok("%kernels").text.split("\n")
    assert head.split() == [
        "id",
        "version",
        "language",
        "kernel",
        "calls",
        "a",
        "call",
        "median",
        "built",
        "in",
        "cache",
    ]
    assert step.split()[:5] == ["counted", "v1", "toy", "step", "1,234"]
    assert step.split()[6] in ("ns", "µs", "ms"), "calls are timed since the magics are there"
    assert flux.split() == ["flux", "0"]
    assert failed == "counted: last edit failed: counted v2 (toy), line 2, column 11: name 'kk' is not defined"


def test_kernels_of_some_ids_are_listed(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    notebook.ok("%%kernel wind\nblow(x) = x", "b")
    assert "blow" not in notebook.ok("%kernels heat").text
    assert isinstance(notebook.run("%kernels heta").error, KernelNotFoundError)


def test_rollback_goes_back_everywhere(notebook: Notebook) -> None:
    for factor in (2, 3, 4):
        notebook.ok(f"%%kernel heat\nstep(x) = {factor} * x", "a")
    notebook.ok("kept = dict(a=step)")
    assert notebook.ok("%kernel_rollback heat").text.startswith("heat v4  toy  v2 again")
    assert notebook["kept"]["a"](1) == 3
    assert notebook.ok("%kernel_rollback heat v1").text.startswith("heat v5  toy  v1 again")
    assert notebook["step"](1) == 2
    assert notebook.ok("%kernel_rollback 3").text.startswith("heat v6  toy  v3 again")


def test_rollback_brings_names_back_and_takes_none_from_the_user(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x\nflux(x) = x", "a")
    notebook.ok("%%kernel heat\nstep(x) = 2 * x", "a")
    notebook.ok("del flux; step = 'mine'")
    notebook.ok("%kernel_rollback")
    assert notebook["flux"](1) == 1
    assert notebook["step"] == "mine"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("het", "no kernel id 'het' is loaded; loaded: 'heat'; did you mean 'heat'?"),
        ("heat v9", "'heat' has no version 9 to go back to; it has v1"),
        ("heat", "'heat' has no version before v1 to go back to"),
        ("heat two", "a version is a number such as 3 or v3, not 'two'"),
        ("a b c", "an id and a version, not 3 words: a b c"),
    ],
)
def test_a_wrong_rollback_is_one_line(notebook: Notebook, line: str, said: str) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    ran = notebook.run(f"%kernel_rollback {line}")
    printed = ran.stdout + ran.stderr
    assert said in printed
    assert len(printed.strip().split("\n")) == 1


def test_a_failed_rollback_of_nothing_says_what_to_do(notebook: Notebook) -> None:
    assert isinstance(notebook.run("%kernel_rollback").error, KernelNotFoundError)


def test_history_and_diff_show_what_was(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = 2 * x", "a")
    assert notebook.ok("%kernel_diff heat").text == "heat v1 is the only version"
    notebook.ok("%%kernel heat\nstep(x) = 3 * x", "a")
    notebook.ok("%kernel_rollback heat")
    rows = [row.split() for row in notebook.ok("%kernel_history heat").text.split("\n")]
    assert [row[0] for row in rows] == ["version", "v3", "v2", "v1"]
    assert rows[1][1] == "live"
    assert rows[1][-2:] == ["v1", "again"]
    assert "-step(x) = 3 * x" in notebook.ok("%kernel_diff heat").text
    assert notebook.ok("%kernel_diff heat v1").text == "the texts of v1 and v3 are the same"
    assert isinstance(notebook.run("%kernel_diff heat 17").error, KernelNotFoundError)


# --- in the background ---------------------------------------------------------------------------------------------


def test_a_build_in_the_background_tells_at_the_next_cell(notebook: Notebook, toy: Toy) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    gate = toy.gate("step(x) = 2 * x\n")
    assert notebook.ok("%%kernel heat --background\nstep(x) = 2 * x\n", "a").text == (
        "heat  toy  is being built; v1 serves until then"
    )
    gate.wait_until_entered()
    assert notebook["step"](1) == 1
    assert notebook.ok("1 + 1;").text == ""
    gate.opened.set()
    joined("rekernel tells of heat")
    assert notebook.ok("value = step(1)").text.startswith("heat v2  toy  built in ")
    assert notebook["value"] == 2


def test_a_first_build_in_the_background_has_its_names_at_once(notebook: Notebook, toy: Toy) -> None:
    gate = toy.gate("step(x) = x\n")
    notebook.ok("%%kernel --background\nstep(x) = x\n", "a")
    error = notebook.run("step(1)").error
    assert isinstance(error, KernelRemovedError)
    assert "still being built" in str(error)
    gate.opened.set()
    kernels.wait("step")
    assert notebook["step"](1) == 1


def test_a_failure_in_the_background_is_shown_as_any_failure(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat --background\nstep(x) = kk", "a")
    joined("rekernel tells of heat")
    said = notebook.ok("1;")
    assert said.text.startswith("KernelSourceError: heat v1 (toy), line 2, column 11: name 'kk' is not defined\n> 2 |")
    assert "is not defined" in said.html


def test_a_build_in_the_background_that_is_overtaken_says_so(notebook: Notebook, toy: Toy) -> None:
    gate = toy.gate("step(x) = x\n")
    notebook.ok("%%kernel heat --background\nstep(x) = x\n", "a")
    gate.wait_until_entered()
    waiting = [thread for thread in threading.enumerate() if thread.name == "rekernel tells of heat"]
    gate.opened.set()
    notebook.ok("%%kernel heat\nstep(x) = 2 * x\n", "a")
    for thread in waiting:
        thread.join(30)
    assert notebook["step"](1) == 2


def test_an_unchanged_build_in_the_background_ends_too(notebook: Notebook) -> None:
    notebook.ok("%%kernel heat\nstep(x) = x", "a")
    notebook.ok("%%kernel heat --background\nstep(x) = x", "a")
    joined("rekernel tells of heat")
    assert notebook.ok("1;").text.startswith("heat v1  toy  unchanged")


# --- warnings ------------------------------------------------------------------------------------------------------


def test_our_warnings_stand_in_the_status_and_others_go_their_way(
    notebook: Notebook, toy: Toy, monkeypatch: Any
) -> None:
    build = toy.build

    def warned(request: Any) -> Any:
        warnings.warn("look here", RekernelWarning, stacklevel=1)
        warnings.warn("another's", UserWarning, stacklevel=1)
        return build(request)

    monkeypatch.setattr(toy, "build", warned)
    seen: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: seen.append(str(message)))
        said = notebook.ok("%%kernel\nstep(x) = x").text
    assert "! look here" in said
    assert seen == ["another's"]


# --- the extension -------------------------------------------------------------------------------------------------


def test_loading_the_extension_twice_changes_nothing(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = x", "a")
    load_ipython_extension(notebook.shell)
    notebook.ok("%reload_ext rekernel")
    assert notebook.ok("%%kernel\nstep(x) = x", "a").text.startswith("step v1  toy  unchanged")
    assert notebook.offered("%%kernel --toy --sc", True) == ["--scale"]


def test_ipython_finds_the_extension_by_the_name_of_the_package(shell: Any) -> None:
    notebook = Notebook(shell)
    try:
        notebook.ok("%load_ext rekernel")
        assert notebook.ok("%kernels").error is None
    finally:
        notebook.ok("%unload_ext rekernel")
    assert "not found" in notebook.run("%kernels").stderr
    assert "--openmp" not in notebook.offered("%%kernel --", False)


def test_the_magics_go_and_the_kernels_stay(notebook: Notebook) -> None:
    notebook.ok("%%kernel\nstep(x) = 2 * x", "a")
    unload_ipython_extension(notebook.shell)
    unload_ipython_extension(notebook.shell)
    assert "not found" in notebook.run("%%kernel\nstep(x) = x").stderr
    assert notebook["step"](1) == 2


def test_without_ipython_the_extension_says_what_to_install(monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "rekernel.notebook.magics", None)
    for name in [name for name in sys.modules if name.split(".")[0] == "IPython"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "rekernel.notebook.magics")
    with pytest.raises(ImportError, match=r"pip install 'rekernel\[notebook\]'"):
        load_ipython_extension(None)


# --- the languages -------------------------------------------------------------------------------------------------

CPP = "void scale(rekernel::Array<double, 1> x, double k) {\n  for (int64_t i = 0; i < x.shape(0); ++i) x[i] *= k;\n}\n"


def test_a_cell_of_cpp(notebook: Notebook) -> None:
    assert "scale(x: float64[:], k: float64)" in notebook.ok(f"%%kernel --optlevel 0\n{CPP}", "a").text
    x = np.ones(3)
    notebook["scale"](x, 3.0)
    assert x.tolist() == [3, 3, 3]
    ran = notebook.run(f"%%kernel --optlevel 0\n{CPP.replace('x[i]', 'y[i]')}", "a")
    assert isinstance(ran.error, KernelSourceError)
    assert ran.error.line == 3
    assert "scale v1 keeps running." in ran.stdout


def test_a_warning_of_the_compiler_is_in_the_status(notebook: Notebook) -> None:
    text = CPP.replace("x[i] *= k;", "{ int unused; x[i] *= k; }")
    assert "  warning: line 3" in notebook.ok(f"%%kernel --flags=-Wall --optlevel 0\n{text}", "a").text


def test_a_cell_of_taichi_brings_its_fields(notebook: Notebook, ti: Any) -> None:
    notebook.shell.user_ns["ti"] = ti
    if ti.lang.impl.get_runtime().prog is None:
        ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    text = "x = ti.field(ti.f32, 4)\n@ti.kernel\ndef paint(t: ti.f32):\n    for i in x:\n        x[i] = i + t\n"
    notebook.ok(f"%%kernel\n{text}", "a")
    notebook.ok("paint(1.0); value = x.to_numpy().tolist()")
    assert notebook["value"] == [1, 2, 3, 4]
    ran = notebook.run("%%kernel\n" + text.replace("i + t", "i + u"), "a")
    assert isinstance(ran.error, KernelSourceError)
    assert ran.error.line == 6
