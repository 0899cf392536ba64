"""What a stencil text says about itself, by its syntax tree alone: names that are kernels, most likely. Pure.

Only running the text can tell for certain. The guess is used to derive the id of a text that is given none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rekernel.languages import pytext

__all__ = ["GIVEN", "Bound", "bindings", "mark", "names", "titles_of_broken", "wants"]

GIVEN = ("ps", "sp", "np")
"""What every text has at hand: pystencils, SymPy, NumPy."""

_MARK = re.compile(
    r"\b(?:ps[ \t]*\.[ \t]*[A-Za-z]\w*|pystencils\b(?!::)|create_kernel\b|(?:\w*Reduction|AddAugmented)?Assignment"
    r"(?:Collection)?[ \t]*\()"
)
_TAICHI = re.compile(
    r"^[ \t]*(?:@[ \t]*(?!(?:ps|pystencils)\.)\w+\.(?:kernel|func|real_func|pyfunc|data_oriented)\b|"
    r"(?:import|from)[ \t]+(?:taichi|quadrants|taichi_forge)\b)",
    re.MULTILINE,
)
#: How statements end in C and its relatives, and in Python hardly ever.
_C = re.compile(r";[ \t]*(?:$|\})|^[ \t]*#[ \t]*include\b", re.MULTILINE)
_BROKEN = re.compile(r"^([A-Za-z]\w*)[ \t]*=[^=].*\b(?:Assignment|AssignmentCollection|create_kernel)\b", re.MULTILINE)
#: Functions and classes whose results are kernels, and decorators that make one.
_MAKERS = re.compile(r"(?:Assignment|AssignmentCollection|assignment_from_stencil|create_(?:staggered_)?kernel)$")
_DECORATORS = ("kernel", "kernel_config")


def mark(text: str) -> str | None:
    """Return the mark that shows a text to be symbolic stencils, or None."""
    if _C.search(text):
        return None
    code = pytext.without_strings(text)
    found = None if _TAICHI.search(code) else _MARK.search(code)
    return None if found is None else found[0].strip()


def titles_of_broken(text: str) -> tuple[str, ...]:
    """Return names of kernels of a text that does not parse, so that its error lands at the right id."""
    return tuple(dict.fromkeys(_BROKEN.findall(text)))


def wants(tree: ast.Module) -> tuple[str, ...]:
    """Return the names that the text takes from the namespace."""
    return tuple(name for name in pytext.wanted(tree) if name not in GIVEN)


def names(tree: ast.Module) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the public names that look like kernels, and the others that the text itself makes."""
    aliases = [a for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for a in node.names]
    aside = {alias.asname or alias.name.split(".")[0] for alias in aliases} | {"config"}
    public = {n: b for n, b in bindings(tree).items() if not n.startswith("_") and n not in aside}
    likely = tuple(name for name, bound in public.items() if bound.likely)
    return likely, tuple(name for name in public if name not in likely)


@dataclass(frozen=True)
class Bound:
    """A name that the text binds at its top level."""

    line: int
    """Where it is bound last."""
    likely: bool
    """Whether it looks like a kernel."""
    doc: str | None
    """A text that stands alone below the statement."""


@pytext.kept
def bindings(tree: ast.Module) -> Mapping[str, Bound]:
    """Return the names that the text binds, in the order of the text."""
    found: dict[str, Bound] = {}
    for index, statement in enumerate(tree.body):
        likely = _likely(statement)
        following = tree.body[index + 1] if index + 1 < len(tree.body) else None
        doc = _text(following) or (ast.get_docstring(statement) if isinstance(statement, ast.FunctionDef) else None)
        for name, line in _targets(statement):
            was = name in found and found[name].likely
            found[name] = Bound(line, likely or was, doc)
    return found


def _text(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value.strip()
    return None


def _targets(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """Give the names that a statement binds, with their lines: those of assignments in the order of the text."""
    names = pytext.bound([statement])
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    lines = {node.id: node.lineno for node in nodes if node.id in names}
    yield from lines.items()
    yield from ((name, statement.lineno) for name in sorted(names - lines.keys()))


def _likely(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return any(_name(decorator) in _DECORATORS for decorator in statement.decorator_list)
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) and value is not None and _makes(value)


def _makes(node: ast.expr) -> bool:
    if isinstance(node, ast.Dict):
        return any(isinstance(key, ast.Constant) and key.value == "assignments" for key in node.keys)
    if isinstance(node, ast.Call):
        name = _name(node)
        if name == "dict":
            return any(given.arg == "assignments" for given in node.keywords)
        if name == "compile" and isinstance(node.func, ast.Attribute):
            return _makes(node.func.value)
        return _MAKERS.search(name) is not None
    if isinstance(node, ast.List | ast.Tuple):
        return any(_makes(item.value if isinstance(item, ast.Starred) else item) for item in node.elts)
    if isinstance(node, ast.ListComp):
        return _makes(node.elt)
    return isinstance(node, ast.BinOp) and (_makes(node.left) or _makes(node.right))


def _name(node: ast.expr) -> str:
    """Return the last name of a decorator, or of what is called."""
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
