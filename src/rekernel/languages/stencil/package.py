"""The one place that imports pystencils and SymPy, and what must be told apart of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from rekernel.errors import ToolchainError
from rekernel.symbolic import is_symbolic

__all__ = ["Symbols", "given", "symbols_of", "unchanged"]

_HOW = "pip install 'rekernel[stencils]'"
_DOCTOR = "\nto see what is there: python -m rekernel doctor"


@dataclass(frozen=True)
class Symbols:
    """What a kernel is to be made of."""

    what: Any
    """Assignments or a flow graph, or a finished kernel of pystencils."""
    config: Any = None
    """Its own configuration, where it has one."""
    note: str | None = None
    """What the user should know of it."""


@cache
def given() -> Mapping[str, ModuleType]:
    """Return what every text has at hand; ToolchainError without pystencils 2."""
    try:
        found = importlib.import_module("pystencils")
        importlib.import_module("pystencils.codegen")
    except ImportError as error:
        old = getattr(error, "name", None) == "pystencils.codegen"
        said = "pystencils 1 is installed; symbolic stencils need pystencils 2" if old else f"no pystencils ({error})"
        raise ToolchainError(f"{said}: {_HOW}{_DOCTOR}") from None
    return {"ps": found, "sp": importlib.import_module("sympy"), "np": importlib.import_module("numpy")}


def is_config(value: Any) -> bool:
    """Return whether a value is a configuration of pystencils' code generator."""
    return isinstance(value, given()["ps"].CreateKernelConfig)


def symbols_of(value: Any) -> Symbols | str | None:
    """Return what makes a value a kernel, a reason why it is none although it looks like one, or None."""
    ps = given()["ps"]
    if is_symbolic(value) or isinstance(value, (_assignment(), ps.AssignmentCollection, *_graphs())):
        return Symbols(value)
    if isinstance(value, list | tuple) and any(isinstance(item, _assignment()) for item in value):
        for number, item in enumerate(value):
            if not isinstance(item, _assignment()):
                return f"item {number} of the list is a {type(item).__name__}, not an assignment"
        return Symbols(list(value))
    if isinstance(value, list) and any(isinstance(symbols_of(item), Symbols) for item in value[:1]):
        return "it is a list of kernels, not of assignments; give each of them a name"
    if isinstance(value, dict) and value.keys() == {"assignments", "config"} and is_config(value["config"]):
        return Symbols(value["assignments"], value["config"])  # what @ps.kernel_config makes
    made = getattr(value, "kernel", None) if callable(value) else None
    if is_symbolic(made):
        return Symbols(made, note="is compiled in the text, and again for calls; leave .compile() out")
    return None


def unchanged(old: Symbols, new: Symbols) -> bool:
    """Whether two kernels are made of the same symbols, such that pystencils would make the same code of them."""
    kinds = (list, _assignment(), given()["ps"].AssignmentCollection)
    if type(old.what) is not type(new.what) or not isinstance(new.what, kinds):
        return False
    one, other = _listed(old.what), _listed(new.what)
    # The texts tell apart what some versions of SymPy call equal: 1 and 1.0.
    return one == other and str(one) == str(other) and all(_plain(item) for item in other)


def _listed(what: Any) -> list[Any]:
    if isinstance(what, given()["ps"].AssignmentCollection):
        return [*what.subexpressions, *what.main_assignments, repr(getattr(what, "simplification_hints", None))]
    return what if isinstance(what, list) else [what]


def _plain(item: Any) -> bool:
    """Whether two assignments that are equal say all there is to say: other kinds of fields know more than that."""
    access = given()["ps"].Field.Access
    return isinstance(item, str) or all(type(one.field) is given()["ps"].Field for one in item.atoms(access))


@cache
def _assignment() -> Any:
    return importlib.import_module("sympy.codegen.ast").AssignmentBase


@cache
def _graphs() -> tuple[Any, ...]:
    flow = getattr(given()["ps"], "flow", None)
    return tuple(getattr(flow, name) for name in ("FlowgraphNode", "Flowgraph") if hasattr(flow, name))
