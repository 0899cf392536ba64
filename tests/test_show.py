"""What people see, word for word."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest

import toy as toys
from rekernel import ArgumentTypeError, KernelLoader, KernelRemovedError, KernelSourceError, RekernelError
from rekernel.errors import Diagnostic
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

HEAT = """\
step(dst: float64[:, :], src: const float64[:, :], k: float64) = k
flux(x) = x"""


def failed(load: Callable[[], object]) -> KernelSourceError:
    with pytest.raises(KernelSourceError) as caught:
        load()
    return caught.value


# --- the loader ------------------------------------------------------------------------------------------------


def test_a_loader_is_a_table_of_its_ids(loader: KernelLoader) -> None:
    for version in range(3):
        step = loader.load(f"shift := {version}\n{HEAT}", "heat").step
    for _ in range(41):
        step(0, 0, 1.0)
    loader.load("# one\n# two\n# three\nrender(k) = k", "painter")
    failed(lambda: loader.load("# one\n# two\n# three\nrender(k) = kk", "painter"))
    assert repr(loader) == (
        "<KernelLoader: 2 ids>\n"
        "  heat     v3  toy  step, flux          live, 41 calls\n"
        "  painter  v1  toy  render              last edit failed: line 4, column 13: name 'kk' is not defined"
    )


def test_an_empty_loader_is_one_line(loader: KernelLoader) -> None:
    assert repr(loader) == "<KernelLoader: 0 ids>"


def test_one_id_and_one_call_are_singular(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "heat").step(1)
    assert repr(loader) == "<KernelLoader: 1 id>\n  heat  v1  toy  step                live, 1 call"


def test_thousands_of_calls_have_separators(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    for _ in range(1234):
        step(1)
    assert repr(loader).endswith("live, 1,234 calls")


def test_many_kernels_are_counted(loader: KernelLoader) -> None:
    loader.load("\n".join(f"k{i}() = {i}" for i in range(9)), "heat")
    assert "k0, k1, k2, k3, +5" in repr(loader)


def test_a_failure_that_is_no_source_error_is_shown_in_one_line(
    toy: Toy, loader: KernelLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.load("step(x) = x", "heat")

    def build(request: object) -> None:
        raise OSError("disk\nfull")

    monkeypatch.setattr(toy, "build", build)
    with pytest.raises(OSError, match="disk"):
        loader.load("step(x) = 2 * x", "heat")
    assert repr(loader).split("\n")[1:] == ["  heat  v1  toy  step                last edit failed: disk full"]


def test_an_id_with_a_line_break_stays_on_its_line(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "a\nb")
    assert len(repr(loader).split("\n")) == 2


# --- handles and modules ---------------------------------------------------------------------------------------


def test_a_kernel_shows_title_version_language_and_signature(loader: KernelLoader) -> None:
    for version in range(3):
        step = loader.load(f"shift := {version}\n{HEAT}", "heat").step
    assert repr(step) == ("<kernel heat.step v3 (toy): step(dst: float64[:, :], src: const float64[:, :], k: float64)>")


def test_a_pinned_kernel_says_so(loader: KernelLoader) -> None:
    assert repr(loader.load("step(x) = x").step.pinned()) == "<kernel step.step v1 (toy, pinned): step(x: float64)>"


def test_an_unloaded_kernel_can_be_shown(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.unload("heat")
    assert repr(step).startswith("<kernel heat.step: heat is gone: it was unloaded (it was v1)")


def test_a_kernel_that_left_the_text_can_be_shown(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.load("other(x) = x", "heat")
    assert "version 2 of 'heat' has no kernel 'step'" in repr(step)


def test_a_module_shows_its_kernels(loader: KernelLoader) -> None:
    assert repr(loader.load(HEAT, "heat")) == "<kernels of 'heat' v1 (toy): step, flux>"


def test_a_module_without_kernels_says_so(loader: KernelLoader) -> None:
    assert repr(loader.load("a := 1", "heat", language="toy")) == "<kernels of 'heat' v1 (toy): no kernels>"


def test_an_unloaded_module_can_be_shown(loader: KernelLoader) -> None:
    module = loader.load(HEAT, "heat")
    loader.unload("heat")
    assert repr(module) == "<kernels of 'heat': removed>"


# --- the error block -------------------------------------------------------------------------------------------

CPP = """\
  for (int64_t i = 1; i < n - 1; ++i)
    dst[i] = 0.5 * (sr[i-1] + sr[i+1]);
"""
MESSAGE = "'sr' was not declared in this scope; did you mean 'src'?"


def test_the_error_block_of_the_contract() -> None:
    error = KernelSourceError(
        MESSAGE, kernel_id="heat", version=4, language="cpp", source=CPP, first_line=2, line=3, column=21,
        end_column=23, diagnostics=[Diagnostic(MESSAGE, 3), Diagnostic("another", 3)], keeps=3,
    )  # fmt: skip
    assert str(error) == (
        "heat v4 (cpp), line 3, column 21: 'sr' was not declared in this scope; did you mean 'src'?\n"
        "  2 |   for (int64_t i = 1; i < n - 1; ++i)\n"
        "> 3 |     dst[i] = 0.5 * (sr[i-1] + sr[i+1]);\n"
        "    |                     ^^\n"
        "heat v3 keeps running. 1 more error; all of it: error.output, error.command"
    )


def test_the_error_block_of_a_load(loader: KernelLoader) -> None:
    loader.load(HEAT, "heat")
    error = failed(lambda: loader.load("flux(x) = x\nstep(dst) = 0.5 * sr", "heat"))
    assert str(error) == (
        "heat v2 (toy), line 2, column 19: name 'sr' is not defined\n"
        "  1 | flux(x) = x\n"
        "> 2 | step(dst) = 0.5 * sr\n"
        "    |                   ^^\n"
        "heat v1 keeps running."
    )


def test_a_first_load_that_fails_has_nothing_that_keeps_running(loader: KernelLoader) -> None:
    error = failed(lambda: loader.load("step(x) = kk", "heat"))
    assert str(error).split("\n")[-1] == "    |           ^^"


# --- notebooks -------------------------------------------------------------------------------------------------


def test_html_of_the_loader_escapes_ids(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "<b>&")
    assert "<b>&" not in loader._repr_html_()
    assert "&lt;b&gt;&amp;" in loader._repr_html_()


def test_html_of_the_loader_escapes_errors(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "heat")
    failed(lambda: loader.load("<script>", "heat"))
    text = loader._repr_html_()
    assert "last edit failed" in text
    assert "<script>" not in text


def test_html_of_a_kernel_escapes_its_docstring(loader: KernelLoader) -> None:
    text = loader.load("step(x) = x   ## <script>", "heat").step._repr_html_()
    assert "&lt;script&gt;" in text
    assert "<script>" not in text


def test_html_of_a_module_shows_signatures_and_the_last_failure(loader: KernelLoader) -> None:
    module: Any = loader.load(HEAT, "heat")
    failed(lambda: loader.load("step(x) = kk", "heat"))
    text = html.unescape(module._repr_html_())
    assert "step(dst: float64[:, :], src: const float64[:, :], k: float64)" in text
    assert "last edit failed: heat v2 (toy), line 1, column 11: name 'kk' is not defined" in text


def test_html_of_what_is_gone_is_shown_too(loader: KernelLoader) -> None:
    module: Any = loader.load("step(x) = x", "heat")
    step = module.step
    loader.unload("heat")
    assert "removed" in module._repr_html_()
    assert "heat is gone" in step._repr_html_()


# --- IPython ---------------------------------------------------------------------------------------------------


def rendered(call: Callable[[], object], kind: type[RekernelError]) -> list[str]:
    """What IPython prints for the error of a call."""
    with pytest.raises(kind) as caught:
        call()
    return "\n".join(caught.value._render_traceback_()).split("\n")


def test_ipython_shows_the_users_frame_and_the_block(loader: KernelLoader) -> None:
    def cell() -> None:
        loader.load("step(x) = kk", "heat")

    lines = rendered(cell, KernelSourceError)
    assert lines[-4:] == [
        "",
        "rekernel.KernelSourceError: heat v1 (toy), line 1, column 11: name 'kk' is not defined",
        "> 1 | step(x) = kk",
        "    |           ^^",
    ]
    assert '        loader.load("step(x) = kk", "heat")' in lines or any(
        line.strip().endswith('loader.load("step(x) = kk", "heat")') for line in lines
    )


def test_ipython_shows_no_frame_of_rekernel(loader: KernelLoader) -> None:
    lines = rendered(lambda: loader.load("step(x) = kk", "heat"), KernelSourceError)
    assert not any(re.search(r"rekernel.(loader|building|jobs)", line) for line in lines)


def test_ipython_shows_other_errors_in_the_same_way(loader: KernelLoader) -> None:
    step = loader.load("step(x) = x", "heat").step
    loader.unload("heat")
    lines = rendered(lambda: step(1), KernelRemovedError)
    assert lines[-1].startswith("rekernel.KernelRemovedError: heat.step is gone: it was unloaded")


def test_an_error_without_a_frame_is_shown_by_its_block_alone() -> None:
    assert ArgumentTypeError("x: got None")._render_traceback_() == ["rekernel.ArgumentTypeError: x: got None"]
