"""What a Python text says about itself, by its syntax tree alone: names, statements, kernels, imports."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

BUILTINS = frozenset(dir(builtins)) | {
    "__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__", "__class__",
}  # fmt: skip

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Tuples: `isinstance` with ``A | B`` builds a new union object at every call.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_NAMING = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OUTWARD = (ast.Global, ast.Nonlocal)
_ALIASES: Any = getattr(ast, "TypeAlias", ())  # new in Python 3.12

_QUIET = re.compile(
    r"'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*",
    re.DOTALL,
)


def without_strings(text: str) -> str:
    """Blank out strings and comments, keeping every line break, so that marks are found in code only."""
    return _QUIET.sub(lambda match: "\n" * match.group().count("\n"), text)


_Node = TypeVar("_Node", bound=ast.AST)
_Answer = TypeVar("_Answer")


def kept(question: Callable[[_Node], _Answer]) -> Callable[[_Node], _Answer]:
    """Keep the answer of `question` at the node itself: nodes never change, and a load asks several times.

    The answer must not be changed, and must not refer to the node.
    """
    key = f"_{question.__module__}.{question.__qualname__}"

    def ask(node: _Node) -> _Answer:
        answers: dict[str, Any] = vars(node)
        if key not in answers:
            answers[key] = question(node)
        return answers[key]  # type: ignore[no-any-return]

    ask.__doc__ = question.__doc__
    return ask


# Every load walks its text several times, and `ast.walk` would be most of the time that a load takes beside
# Taichi: two thirds of its nodes are contexts and operators, which are objects without children or names.
_CHILDLESS = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "type_comment", "kind", "simple", "conversion", "level"}
)
_fields: dict[type, tuple[str, ...]] = {ast.Name: (), ast.Constant: ()}


def children(node: ast.AST) -> list[ast.AST]:
    """Return what `ast.iter_child_nodes` gives, in its order, without contexts and operators; see `kept`."""
    answers: dict[str, Any] = node.__dict__
    known: list[ast.AST] | None = answers.get("_children")
    if known is not None:
        return known
    kind = type(node)
    fields = _fields.get(kind)
    if fields is None:
        fields = _fields[kind] = tuple(name for name in kind._fields if name not in _CHILDLESS)
    found: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
    answers["_children"] = found
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return what `ast.walk` gives, in its order, without contexts and operators."""
    return [node, *_below(node)]


@kept
def _below(node: ast.AST) -> list[ast.AST]:
    found = [*children(node)]
    for one in found:
        found += children(one)
    return found


def bound(body: Iterable[ast.AST]) -> set[str]:
    """Names that these statements bind in their own scope (a function's body binds nothing outside it)."""
    names: set[str] = set()
    for node in body:
        for child in _same_scope(node):
            if isinstance(child, ast.Name):
                if not isinstance(child.ctx, ast.Load):
                    names.add(child.id)
            elif isinstance(child, _DEFINITIONS):
                names.add(child.name)
            elif isinstance(child, ast.alias):
                if child.name != "*":
                    names.add(child.asname or child.name.split(".")[0])
            elif isinstance(child, _NAMING):
                if child.name:
                    names.add(child.name)
            elif isinstance(child, ast.MatchMapping) and child.rest:
                names.add(child.rest)
    return names


def _same_scope(node: ast.AST) -> list[ast.AST]:
    """Walk a statement without entering function bodies, class bodies, lambdas and comprehensions."""
    found = [node]
    for one in found:
        if isinstance(one, _SCOPES):
            continue
        if isinstance(one, _COMPREHENSIONS):
            # Only a walrus inside a comprehension binds in the scope around it.
            found += [child.target for child in walk(one) if isinstance(child, ast.NamedExpr)]
        else:
            found += children(one)
    return found


def reads(node: ast.AST) -> set[str]:
    """Names that a statement or expression reads from the scopes around it, nested functions included."""
    names: set[str] = set()
    _add_reads(node, names)
    return names


def _add_reads(node: ast.AST, names: set[str]) -> None:
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Store):
            names.add(node.id)
    elif isinstance(node, ast.Constant):
        pass
    elif isinstance(node, _FUNCTIONS):
        names |= _reads_of_function(node)
    elif isinstance(node, ast.ClassDef):
        names |= _reads_of_class(node)
    elif isinstance(node, _COMPREHENSIONS):
        targets = bound([generator.target for generator in node.generators])
        # The first iterable is evaluated outside: ``[a for a in a]`` reads ``a``.
        names |= reads(node.generators[0].iter) | (_union(children(node)) - targets)
    elif isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Name):
            names.add(node.target.id)
        else:
            _add_reads(node.target, names)
        _add_reads(node.value, names)
    elif isinstance(node, _ALIASES):  # ``type Pair[T] = tuple[T, T]``
        names |= _union(children(node)) - _type_parameters(node)
    else:
        for child in children(node):
            _add_reads(child, names)


def _reads_of_class(node: ast.ClassDef) -> set[str]:
    here, inside = _union([*node.decorator_list, *node.bases, *node.keywords]), _union(node.body)
    # The names of a class body are not seen by the functions and classes in it.
    nested = set()
    for statement in node.body:
        if isinstance(statement, _FUNCTIONS):
            nested |= _reads_of_body(statement)
        elif isinstance(statement, ast.ClassDef):
            nested |= _reads_of_class(statement)
    return (here | nested | (inside - bound(node.body))) - _type_parameters(node)


@kept
def _reads_of_function(node: _Function | ast.Lambda) -> set[str]:
    outer: list[ast.AST] = [*node.args.defaults, *[d for d in node.args.kw_defaults if d is not None]]
    outer += [a.annotation for a in _arguments(node) if a.annotation is not None]
    if not isinstance(node, ast.Lambda):
        outer += [*node.decorator_list, *([node.returns] if node.returns is not None else [])]
    return (_union(outer) | _reads_of_body(node)) - _type_parameters(node)


@kept
def _reads_of_body(node: _Function | ast.Lambda) -> set[str]:
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    return _union(body) - (bound(body) - declared_global(node)) - {a.arg for a in _arguments(node)}


def _arguments(node: _Function | ast.Lambda) -> list[ast.arg]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [a for a in (arguments.vararg, arguments.kwarg) if a is not None]


def _type_parameters(node: ast.AST) -> set[str]:
    """Names in brackets after a function, class or type alias; new in Python 3.12."""
    return {parameter.name for parameter in getattr(node, "type_params", ())}


def _union(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        _add_reads(node, names)
    return names


@kept
def declared_global(node: ast.AST) -> set[str]:
    """Names that ``global`` or ``nonlocal`` statements anywhere below `node` name."""
    return {name for n in walk(node) if isinstance(n, _OUTWARD) for name in n.names}


@kept
def defined(tree: ast.Module) -> set[str]:
    """Names that the text itself gives a value, at its top level or through ``global``."""
    return bound(tree.body) | declared_global(tree)


def wanted(tree: ast.Module) -> tuple[str, ...]:
    """Names that the text uses and neither defines nor finds among the builtins, sorted."""
    return tuple(sorted(_union(tree.body) - defined(tree) - BUILTINS))


@dataclass(frozen=True)
class Decorated:
    """A top-level function or class with a decorator that says what it is."""

    name: str
    mark: str
    """The last name of the decorator: ``kernel``, ``func``, ``data_oriented``."""
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def decorated(tree: ast.Module, marks: frozenset[str]) -> list[Decorated]:
    """Top-level definitions whose decorators end in one of `marks`, in the order of the text."""
    found = []
    for node in tree.body:
        if isinstance(node, _Function | ast.ClassDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                mark = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", None)
                if mark in marks:
                    found.append(Decorated(node.name, mark, node))
                    break
    return found


@kept
def imports(tree: ast.Module) -> set[str]:
    """Full names of the modules that the text imports anywhere."""
    names: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names
