"""The error tree: what is what, what the errors say, and that they travel between processes whole."""

from __future__ import annotations

import copy
import pickle
import traceback
import types

import pytest

import rekernel
from rekernel import errors
from rekernel.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    Diagnostic,
    FrozenError,
    JitError,
    KernelNotFoundError,
    KernelRemovedError,
    KernelSourceError,
    RekernelError,
    RekernelWarning,
    ToolchainError,
)

SOURCE = KernelSourceError(
    "'sr' was not declared in this scope",
    kernel_id="heat",
    version=4,
    language="cpp",
    source="a\nb\nc",
    first_line=10,
    filename="heat.cpp",
    line=11,
    column=1,
    end_column=2,
    diagnostics=[Diagnostic("first", 11, 1, 2, "b", "heat.cpp"), Diagnostic("second", 12)],
    command=["g++", "-c"],
    output="heat.cpp:11:1: error",
    keeps=3,
)
EVERY = [
    SOURCE,
    KernelNotFoundError("no kernel id 'heta' is loaded"),
    KernelRemovedError("heat is gone", kernel_id="heat", version=None, how="it was unloaded"),
    ArgumentTypeError("x: got None", argument="x", expected="float64[:]", got="None"),
    ArgumentValueError("x: 300 does not fit", argument="x", expected="int8", got="300"),
    ToolchainError("no compiler; python -m rekernel doctor"),
    JitError("no jit"),
    FrozenError("frozen", kernel_id="heat", language="cpp", field="unit", reason="text changed", version=2),
    RekernelError("any"),
]
each = pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)


@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (KernelSourceError, (RekernelError,)),
        (KernelNotFoundError, (RekernelError, KeyError, ValueError)),
        (KernelRemovedError, (RekernelError, RuntimeError)),
        (ArgumentTypeError, (RekernelError, TypeError)),
        (ArgumentValueError, (RekernelError, ValueError)),
        (ToolchainError, (RekernelError, RuntimeError)),
        (JitError, (RekernelError,)),
        (FrozenError, (RekernelError, RuntimeError)),
        (RekernelWarning, (UserWarning,)),
    ],
)
def test_the_tree(kind: type, bases: tuple[type, ...]) -> None:
    assert all(issubclass(kind, base) for base in bases)


def test_every_error_class_is_public() -> None:
    made = {n for n, x in vars(errors).items() if isinstance(x, type) and issubclass(x, Exception) and n[0] != "_"}
    assert made <= set(rekernel.__all__)


def test_every_error_class_is_in_the_drawing_of_the_tree() -> None:
    made = [n for n, x in vars(errors).items() if isinstance(x, type) and issubclass(x, Exception) and n[0] != "_"]
    assert all(name in (errors.__doc__ or "") for name in made)


@each
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles_with_text_and_attributes(error: RekernelError, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


@each
def test_every_error_copies(error: RekernelError) -> None:
    again = copy.copy(error)
    assert (str(again), vars(again)) == (str(error), vars(error))


@each
def test_every_error_is_shown_under_its_public_name(error: RekernelError) -> None:
    last = traceback.format_exception_only(error)[0]
    assert last.startswith(f"rekernel.{type(error).__name__}: ")


def test_an_error_of_a_users_subclass_pickles() -> None:
    error = MineError("text", argument="x")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.argument) == (MineError, "x")


class MineError(ArgumentTypeError):
    """Somebody's own error."""


def test_a_not_found_error_prints_its_text_without_quotes() -> None:
    assert str(KernelNotFoundError("no 'heta'")) == "no 'heta'"


def test_a_not_found_error_without_text_prints_nothing() -> None:
    assert str(KernelNotFoundError()) == ""


def test_a_source_error_has_the_users_line() -> None:
    assert (SOURCE.text, SOURCE.line, SOURCE.column) == ("b", 11, 1)


def test_a_source_error_keeps_what_the_compiler_said() -> None:
    assert (SOURCE.command, SOURCE.output) == (("g++", "-c"), "heat.cpp:11:1: error")
    assert [diagnostic.message for diagnostic in SOURCE.diagnostics] == ["first", "second"]


def test_a_source_error_without_diagnostics_has_one_of_its_own() -> None:
    error = KernelSourceError("bad", kernel_id="a", version=1, language="toy", source="x", line=1, column=1)
    assert error.diagnostics == (Diagnostic("bad", 1, 1, None, "x", None),)


def test_the_jit_error_names_are_one_class() -> None:
    assert rekernel.JitError is errors.JitError


def test_errors_know_where_they_may_be_imported_from() -> None:
    assert isinstance(rekernel, types.ModuleType)
    assert all(getattr(rekernel, type(error).__name__) is type(error) for error in EVERY)
