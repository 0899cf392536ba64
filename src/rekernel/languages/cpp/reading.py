"""Which functions a C++ text defines, and on which lines: names and places only, never types.

What a type is, through ``using``, headers and macros, only the compiler knows; see `rekernel.languages.cpp.unit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from rekernel.languages.cpp.candidates import Argument, Candidate, Reading
from rekernel.languages.cpp.macros import changed_after, written_out
from rekernel.languages.cpp.nodes import (
    class_names,
    doc_of,
    first_error,
    function_declarator,
    instance_of,
    name_in,
    never_asked_for,
    node_text,
    parameter_name,
    parameters_of,
    result_of,
    storage,
    type_of,
    typedef_of,
    without_default,
)

__all__ = ["Walk", "read"]

_RESTRICT = re.compile(r"\b\w*restrict(?:__)?\b", re.I)  # a header may call it MY_RESTRICT
_NAMES_RESTRICT = re.compile(
    r"\busing\s+(?P<alias>\w+)\s*=[^;]*\b(?:restrict|__restrict__|__restrict)\b"
    r"|\btypedef\b[^;]*\b(?:restrict|__restrict__|__restrict)\s+(?P<typedef>\w+)\s*;",
    re.M,
)
_HELPERS = frozenset({"static", "inline", "constexpr", "consteval"})


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_cpp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def read(text: str, walk: Callable[[str, Any], Walk] | None = None) -> Reading:
    """Return the functions of a text that may be kernels, in its order. Never raises."""
    text = written_out(text)
    tree = _parser().parse(text.encode("utf-8", "surrogatepass"))
    try:
        walking = (walk or Walk)(text, tree.root_node)
        walking.inside(tree.root_node, (), ())
        if tree.root_node.has_error:
            walking.reading.wrong_line = first_error(tree.root_node)
        return walking.finished()
    except RecursionError:  # hundreds of levels of nesting, which no compiler takes either
        return Reading(wrong_line=1)


class Walk:
    """Goes through a tree and says what may be a kernel."""

    def __init__(self, text: str, root: Any) -> None:
        self.reading = Reading()
        self.classes = {node_text(name) for name in class_names(root)}
        """By whose name a function is a method: ``void Grid::step() {}``."""
        self.templates: dict[str, tuple[list[Argument], str | None]] = {}
        self.promised = {name for match in _NAMES_RESTRICT.finditer(text) for name in match.groups() if name}
        self.changed = changed_after(text)
        self.helpers: set[tuple[tuple[str, ...], str, int]] = set()
        """Scope, name and number of parameters of functions that are declared static or inline before."""
        self.found: list[tuple[Candidate, Any, bool]] = []

    def inside(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look at what stands in a file, a namespace, or an ``extern "C"`` block."""
        for child in node.children:
            self.one(child, scope, conditions)

    def one(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look at one thing that stands there."""
        kind = node.type
        if kind == "function_definition":
            self.function(node, scope, conditions)
        elif kind == "namespace_definition":
            name = node.child_by_field_name("name")
            body = node.child_by_field_name("body")
            if name is not None and body is not None:  # what is in a nameless one is for this text alone
                self.inside(body, (*scope, *node_text(name).replace(" ", "").split("::")), conditions)
        elif kind == "linkage_specification":
            body = node.child_by_field_name("body")
            if body is not None:
                self.one(body, scope, conditions)
        elif kind in ("declaration_list", "ERROR"):
            self.inside(node, scope, conditions)
        elif kind in ("preproc_if", "preproc_ifdef"):
            self.conditional(node, scope, conditions)
        elif kind == "template_declaration":
            self.template(node, scope, conditions)
        elif kind == "template_instantiation":
            self.instantiation(node, scope, conditions)
        elif kind == "declaration":
            self.declaration(node, scope, conditions)

    def conditional(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look into the branches of an ``#if``: which one is compiled, the same lines will say after the text.

        They will not where one of their macros has changed until then, as that of an include guard: then nothing is
        said of the branches, and the compiler refuses what is not there.
        """
        branches = []
        while node is not None:
            branches.append((node, node_text(node).split("\n", 1)[0].strip()))
            node = node.child_by_field_name("alternative")
        lasting = all(
            self.changed.get(word, 0) <= branch.start_point[0] + 1
            for branch, line in branches
            for word in re.findall(r"\w+", line)
        )
        passed = conditions
        inside = {branch.id for branch, _line in branches}
        for branch, line in branches:
            passed = (*passed, line) if lasting else conditions
            for child in branch.children:
                if child.id not in inside:
                    self.one(child, scope, passed)

    def declaration(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Note a declaration that makes a later definition a helper."""
        declarator = function_declarator(node.child_by_field_name("declarator"))
        if declarator is None:
            return
        if any(c.is_missing for c in node.children):  # one of several heads, before #else or #endif; the body follows
            self.function(node, scope, conditions)
        elif self.is_helper(node) and (name := name_in(declarator.child_by_field_name("declarator"))[0]) is not None:
            self.helpers.add((scope, name, len(self.arguments(declarator))))

    def function(
        self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...], *, special: bool = False
    ) -> None:
        """Take a function definition."""
        declarator = function_declarator(node.child_by_field_name("declarator"))
        if declarator is None or any(
            c.type in ("delete_method_clause", "default_method_clause") for c in node.children
        ):
            return
        if self.is_helper(node):
            return
        name, inner = name_in(declarator.child_by_field_name("declarator"))
        if name is None or self.classes.intersection(inner):
            return
        if any(type_of(c) == "placeholder_type_specifier" for c in parameters_of(declarator)):  # f(auto x)
            self.reading.skipped.setdefault(name, never_asked_for(name))
            return
        if name == "main" and not scope:
            self.reading.skipped["main"] = "main is the entry of a program, not a kernel"
            return
        self.add(node, name, (*scope, *inner), conditions, self.arguments(declarator), declarator, special)

    def template(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look at a template: its definition, or a full specialisation."""
        function = next((c for c in node.children if c.type == "function_definition"), None)
        parameters = node.child_by_field_name("parameters")
        if function is None:
            return
        if parameters is not None and parameters.named_child_count == 0:  # template <> void f<float>(...)
            self.function(function, scope, conditions, special=True)
            return
        declarator = function_declarator(function.child_by_field_name("declarator"))
        name = None if declarator is None else name_in(declarator.child_by_field_name("declarator"))[0]
        if declarator is None or name is None:
            return
        self.templates.setdefault(name, (self.arguments(declarator), doc_of(node)))
        if not self.is_helper(function):
            self.reading.skipped.setdefault(name, never_asked_for(name))

    def instantiation(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Take an explicit instantiation as a function."""
        declarator = function_declarator(node.child_by_field_name("declarator"))
        if declarator is None:
            return
        name, inner = name_in(declarator.child_by_field_name("declarator"))
        if name is not None:
            self.add(node, name, (*scope, *inner), conditions, self.arguments(declarator), declarator, True)

    def is_helper(self, node: Any) -> bool:
        """Whether a definition or declaration says that a function is for this text alone."""
        return not _HELPERS.isdisjoint(storage(node))

    def add(
        self, node: Any, name: str, scope: tuple[str, ...], conditions: tuple[str, ...], arguments: list[Argument],
        declarator: Any, special: bool,
    ) -> None:  # fmt: skip
        """Keep a function, unless nothing could call it."""
        if any(c.type == "variadic_parameter" or node_text(c) == "..." for c in parameters_of(declarator)):
            self.reading.skipped[name] = f"{name} takes any number of arguments (...)"
            return
        known, doc = self.templates.get(name, ([], None)) if special else ([], None)
        if len(known) == len(arguments):
            arguments = [
                Argument(
                    mine.name if not mine.name.startswith("arg") else base.name,
                    mine.text,
                    mine.restrict or base.restrict,
                    base.default,
                )
                for mine, base in zip(arguments, known, strict=True)
            ]
        line = node.start_point[0] + 1
        outer = node.parent
        if outer is not None and outer.type in ("template_declaration", "linkage_specification"):
            doc = doc_of(outer) or doc
        made = Candidate(
            name,
            scope,
            line,
            tuple(arguments),
            doc_of(node) or doc,
            conditions,
            returns=result_of(node, declarator),
            instance=instance_of(declarator) if special else "",
        )
        self.found.append((made, node, special))

    def arguments(self, declarator: Any) -> list[Argument]:
        """Return the parameters of a function."""
        found: list[Argument] = []
        for node in parameters_of(declarator):
            if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
                continue
            text = without_default(node)
            if text == "void":
                continue
            name, text = parameter_name(node, text, f"arg{len(found)}")
            words = re.findall(r"\w+", text.removesuffix(name))
            promised = any(map(_RESTRICT.fullmatch, words)) or not self.promised.isdisjoint(words)
            found.append(Argument(name, text, promised, node.type == "optional_parameter_declaration"))
        return found

    def finished(self) -> Reading:
        """Return what was found, in the order of the text."""
        found = [one for one in self.found if (one[0].scope, one[0].name, len(one[0].arguments)) not in self.helpers]
        paths = [one.path for one, _node, _special in found]
        several = {path for path in paths if paths.count(path) > 1}
        taken = {(one.path, len(one.arguments)) for one, _node, _special in found}
        made: dict[Candidate, None] = {}
        for one, node, special in found:
            overloaded = special or one.path in several or one.name in self.templates
            self.reading.skipped.pop(one.name, None)
            one = replace(one, form=typedef_of(node), overloaded=overloaded)
            made[one] = None
            count = len(one.arguments)
            while count and one.arguments[count - 1].default:
                count -= 1
                if (one.path, count) not in taken or special:  # else the compiler could not choose
                    made[replace(one, arguments=one.arguments[:count], fewer=True)] = None
        self.reading.candidates = list(made)
        return self.reading
