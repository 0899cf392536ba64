"""What a Python text says about itself, by its syntax tree alone: names, statements, kernels, imports."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__"}

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_QUIET = re.compile(
    r"'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|#[^\n]*",
    re.DOTALL,
)


def without_strings(text: str) -> str:
    """Blank out strings and comments, keeping every line break, so that marks are found in code only."""
    return _QUIET.sub(lambda match: "\n" * match.group().count("\n"), text)


def bound(body: Iterable[ast.AST]) -> set[str]:
    """Names that these statements bind in their own scope (a function's body binds nothing outside it)."""
    names: set[str] = set()
    for node in body:
        for child in _same_scope(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store | ast.Del):
                names.add(child.id)
            elif isinstance(child, _Function | ast.ClassDef):
                names.add(child.name)
            elif isinstance(child, ast.alias):
                if child.name != "*":
                    names.add(child.asname or child.name.split(".")[0])
            elif isinstance(child, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and child.name:
                names.add(child.name)
            elif isinstance(child, ast.MatchMapping) and child.rest:
                names.add(child.rest)
    return names


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a statement without entering function bodies, class bodies, lambdas and comprehensions."""
    yield node
    if isinstance(node, _Function | ast.ClassDef | ast.Lambda):
        return
    if isinstance(node, _COMPREHENSIONS):
        # Only a walrus inside a comprehension binds in the scope around it.
        for child in ast.walk(node):
            if isinstance(child, ast.NamedExpr):
                yield child.target
        return
    for child in ast.iter_child_nodes(node):
        yield from _same_scope(child)


def reads(node: ast.AST) -> set[str]:
    """Names that a statement or expression reads from the scopes around it, nested functions included."""
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Store) else {node.id}
    if isinstance(node, _Function | ast.Lambda):
        return _reads_of_function(node)
    if isinstance(node, ast.ClassDef):
        inner = _union(node.body)
        methods = _union([s for s in node.body if isinstance(s, _Function | ast.ClassDef)])
        outer = _union([*node.decorator_list, *node.bases, *node.keywords])
        return outer | methods | (inner - bound(node.body))
    if isinstance(node, _COMPREHENSIONS):
        targets = bound([generator.target for generator in node.generators])
        return _union(ast.iter_child_nodes(node)) - targets
    if isinstance(node, ast.AugAssign):
        target = {node.target.id} if isinstance(node.target, ast.Name) else reads(node.target)
        return target | reads(node.value)
    return _union(ast.iter_child_nodes(node))


def _reads_of_function(node: _Function | ast.Lambda) -> set[str]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    outer: list[ast.AST] = [*arguments.defaults, *[d for d in arguments.kw_defaults if d is not None]]
    outer += [a.annotation for a in every if a.annotation is not None]
    if isinstance(node, ast.Lambda):
        body: list[ast.AST] = [node.body]
        local: set[str] = set()
    else:
        body = [*node.body]
        outer += [*node.decorator_list, *([node.returns] if node.returns is not None else [])]
        outer_names = declared_global(node)
        local = bound(body) - outer_names
    return _union(outer) | (_union(body) - local - {a.arg for a in every})


def _union(nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        names |= reads(node)
    return names


def declared_global(node: ast.AST) -> set[str]:
    """Names that ``global`` or ``nonlocal`` statements anywhere below `node` name."""
    return {name for n in ast.walk(node) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}


def wanted(tree: ast.Module) -> tuple[str, ...]:
    """Names that the text uses and neither defines nor finds among the builtins, sorted."""
    defined = bound(tree.body) | declared_global(tree)
    return tuple(sorted(_union(tree.body) - defined - BUILTINS))


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


def imports(tree: ast.Module) -> set[str]:
    """Full names of the modules that the text imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names
