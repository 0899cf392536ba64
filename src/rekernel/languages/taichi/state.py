"""Which module-level values of the version before go on in the new one.

A top-level statement that makes state does not run again while it and all that it reads are unchanged: its old
values are bound beforehand (memory of a field cannot be given back, so running it only to throw the result away
would leak). Where it did change, but makes the same kind of thing again (kind, dtype, shape, layout), the old
object takes the new one's place. And an unchanged statement that only changes state (``init()``) runs again only if
some of that state has begun anew: a run whose constant is edited goes on as if it had always had that constant.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from rekernel.languages import pytext

_LAYOUT_VERBS = frozenset(
    {"place", "dense", "pointer", "bitmasked", "hash", "dynamic", "bit_struct", "quant_array", "finalize"}
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Statement:
    """One top-level statement, by what it does to names."""

    digest: str
    """Equal for equal statements wherever they stand and however they are laid out."""
    binds: frozenset[str]
    mutates: frozenset[str]
    """Names whose value it changes in place: ``d['n'] = 1``, ``list.append(1)``."""
    reads: frozenset[str]
    defines: bool
    """Whether it holds a definition or an import, which must run to belong to the new module."""
    is_class: bool
    is_import: bool
    lays_out: bool
    """Whether it places fields or builds the tree that they are placed in."""


@dataclass
class Plan:
    """What to do with the statements of a new text."""

    skip: frozenset[int] = frozenset()
    """Numbers of the statements that do not run again."""
    carry: dict[str, Any] = field(default_factory=dict)
    """Values bound before the text runs."""
    maybe: dict[int, frozenset[str]] = field(default_factory=dict)
    """Statements that run again only if one of these pieces of state has begun anew."""
    adopt: dict[int, frozenset[str]] = field(default_factory=dict)
    """For a statement that runs: names whose old value may take the new one's place."""


@pytext.kept
def statements(tree: ast.Module) -> list[Statement]:
    """Describe the top-level statements of a text."""
    return [_statement(node) for node in tree.body]


def _statement(node: ast.stmt) -> Statement:
    nodes = pytext.walk(node)
    return Statement(
        digest=ast.dump(node),
        binds=frozenset(pytext.bound([node]) | pytext.declared_global(node)),
        mutates=frozenset(_mutated(node)),
        reads=frozenset(pytext.reads(node)),
        defines=any(isinstance(n, _DEFINITIONS) for n in nodes),
        is_class=isinstance(node, ast.ClassDef),
        is_import=isinstance(node, ast.Import | ast.ImportFrom),
        lays_out=any(
            isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in _LAYOUT_VERBS
            for n in nodes
        ),
    )


def _mutated(node: ast.stmt) -> set[str]:
    if isinstance(node, _DEFINITIONS):
        return set()
    found = set()
    for child in pytext.walk(node):
        target: ast.AST | None = None
        if isinstance(child, ast.Subscript | ast.Attribute) and isinstance(child.ctx, ast.Store | ast.Del):
            target = child
        elif isinstance(child, ast.Expr) and isinstance(child.value, ast.Call):
            target = child.value.func
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
            if isinstance(target, ast.Name):
                found.add(target.id)
    return found


def plan(
    new: list[Statement],
    old: list[Statement],
    values: Mapping[str, Any],
    borrowed_same: Callable[[str], bool],
    is_state: Callable[[Any], bool],
) -> Plan:
    """Decide what runs. `values` are the old module's globals; `borrowed_same` compares namespace values."""
    state = {name for s in old for name in s.binds if name in values and is_state(values[name])}
    if not state:
        return Plan()
    changed = _changed(new, old, state, borrowed_same)
    touched = _touched(new, state)
    left = Counter(s.digest for s in old)
    result = Plan()
    skip = set()
    for index, statement in enumerate(new):
        repeated = left[statement.digest] > 0 and not statement.defines and _carriable(statement, values, is_state)
        left[statement.digest] -= 1
        if statement.binds & state:
            if repeated and not (statement.reads | statement.binds) & changed:
                skip.add(index)
                result.carry.update({name: values[name] for name in statement.binds})
            else:
                result.adopt[index] = frozenset(statement.binds & state)
        elif repeated:
            used = frozenset(name for read in statement.reads for name in touched.get(read, ()))
            if used:
                result.maybe[index] = used
    result.skip = frozenset(skip)
    return result


def _carriable(statement: Statement, values: Mapping[str, Any], is_state: Callable[[Any], bool]) -> bool:
    """Whether all that the statement bound is still there and none of it is code of the old version."""
    for name in statement.binds:
        if name not in values:
            return False
        value = values[name]
        if not is_state(value) and (callable(value) or isinstance(value, ModuleType)):
            return False
    return True


def _changed(
    new: list[Statement], old: list[Statement], state: set[str], borrowed_same: Callable[[str], bool]
) -> set[str]:
    """Names that mean something else than in the version before, directly or through what they read."""
    # ``ti.init()`` changes nothing that the text made: only what it binds itself can be changed in place.
    own = {n for s in [*new, *old] if not s.is_import for n in s.binds} - state

    def definition(name: str, statements: list[Statement]) -> list[str]:
        return [s.digest for s in statements if name in s.binds or (name in s.mutates and name in own)]

    classes = {n for s in new if s.is_class for n in s.binds} & {n for s in old if s.is_class for n in s.binds}
    names = {n for s in [*new, *old] for n in s.binds}
    used = {n for s in new for n in s.reads} - names
    # A changed class leaves its instances alone: they go on with the new methods and their own data.
    changed = {n for n in names - classes if definition(n, new) != definition(n, old)}
    changed |= {n for n in used if not borrowed_same(n)}
    while True:
        grown = set(changed)
        for statement in new:
            if not statement.is_class and statement.reads & grown:
                grown |= statement.binds | (statement.mutates & own)
        grown |= _layout_changes(new, old, grown, state)
        grown -= classes
        if grown == changed:
            return changed
        changed = grown


def _layout_changes(new: list[Statement], old: list[Statement], changed: set[str], state: set[str]) -> set[str]:
    """Names of fields and tree nodes that must be made anew together.

    A tree of fields is finished once and for all when the first kernel runs: when one statement that builds a
    tree changes, all statements that share a field or node with it have to run again.
    """
    was = Counter(s.digest for s in old)
    now = Counter(s.digest for s in new)
    groups: list[tuple[set[str], bool]] = []
    for statement in [*new, *(s for s in old if not now[s.digest])]:
        if not statement.lays_out:
            continue
        fresh = not was[statement.digest] or not now[statement.digest]
        dirty = fresh or bool((statement.reads | statement.binds) & changed)
        names = {n for n in statement.reads | statement.binds if n in state}
        names |= {n for n in statement.binds if n not in state}
        apart = []
        for group, group_dirty in groups:
            if group & names:
                names, dirty = names | group, dirty or group_dirty
            else:
                apart.append((group, group_dirty))
        groups = [*apart, (names, dirty)]
    return {name for names, dirty in groups if dirty for name in names}


def _touched(new: list[Statement], state: set[str]) -> dict[str, set[str]]:
    """For each name, the pieces of state that it reaches: itself, or what a function or kernel uses."""
    reached = {name: {name} for name in state}
    while True:
        grown = False
        for statement in new:
            if statement.defines:
                found = {name for read in statement.reads for name in reached.get(read, ())}
                for name in statement.binds - state:
                    known = reached.setdefault(name, set())
                    grown = grown or not found <= known
                    known |= found
        if not grown:
            return reached
