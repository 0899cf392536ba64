"""Which functions a C++ text defines, and on which lines: names and places only, never types.

What a type is, through ``using``, headers and macros, only the compiler knows; see `rekernel.languages.cpp.unit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

__all__ = ["Argument", "Candidate", "Reading", "read"]

_RESTRICT = re.compile(r"\b(?:restrict|__restrict__|__restrict)\b")
_NAMES_RESTRICT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<macro>\w+)\b(?!\().*\b(?:restrict|__restrict__|__restrict)\b"
    r"|\busing\s+(?P<alias>\w+)\s*=[^;]*\b(?:restrict|__restrict__|__restrict)\b"
    r"|\btypedef\b[^;]*\b(?:restrict|__restrict__|__restrict)\s+(?P<typedef>\w+)\s*;",
    re.M,
)
_COMMENT_MARK = re.compile(r"^[ \t]*(?:/\*+!?<?|\*+/|\*(?!/)|//[/!]*<?)[ \t]?|[ \t]*\*+/[ \t]*$", re.M)
_LAST_WORD = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_HELPERS = frozenset({"static", "inline", "constexpr", "consteval"})


@dataclass(frozen=True)
class Argument:
    """One parameter, as the text spells it."""

    name: str
    text: str
    restrict: bool


@dataclass(frozen=True)
class Candidate:
    """A function that may be a kernel, if the compiler says so."""

    name: str
    scope: tuple[str, ...]
    """The namespaces that it is in."""
    line: int
    """Its line in the text, from 1."""
    arguments: tuple[Argument, ...]
    doc: str | None = None
    conditions: tuple[str, ...] = ()
    """The preprocessor lines that it stands under: ``#ifdef FAST``, ``#else``."""
    form: str = ""
    """A typedef of its type called ``REKERNEL_TYPE``, where its name alone does not say which function it is."""
    returns: str = ""
    """The type of its result, as the text spells it; empty where it is a pointer or told later (``auto``)."""

    @property
    def path(self) -> str:
        """The name from the outermost namespace."""
        return "::".join(["", *self.scope, self.name])


@dataclass
class Reading:
    """What was found in a text."""

    candidates: list[Candidate] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Public functions that cannot be kernels, with the reason."""
    wrong_line: int | None = None
    """Where the text stops making sense to a reader without a preprocessor. Not an error by itself."""


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_cpp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def read(text: str) -> Reading:
    """Return the functions of a text that may be kernels, in its order. Never raises."""
    tree = _parser().parse(text.encode("utf-8", "surrogatepass"))
    walk = _Walk(text, tree.root_node)
    walk.inside(tree.root_node, (), ())
    if tree.root_node.has_error:
        walk.reading.wrong_line = _first_error(tree.root_node)
    return walk.finished()


class _Walk:
    def __init__(self, text: str, root: Any) -> None:
        self.reading = Reading()
        self.classes = {_text(name) for name in _class_names(root)}
        """By whose name a function is a method: ``void Grid::step() {}``."""
        self.templates: dict[str, tuple[list[Argument], str | None]] = {}
        self.promised = {name for match in _NAMES_RESTRICT.finditer(text) for name in match.groups() if name}
        self.found: list[tuple[Candidate, Any, bool]] = []

    def inside(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look at what stands in a file, a namespace, or an ``extern "C"`` block."""
        for child in node.children:
            self.one(child, scope, conditions)

    def one(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        kind = node.type
        if kind == "function_definition":
            self.function(node, scope, conditions)
        elif kind == "namespace_definition":
            name = node.child_by_field_name("name")
            body = node.child_by_field_name("body")
            if name is not None and body is not None:  # what is in a nameless one is for this text alone
                self.inside(body, (*scope, *_text(name).replace(" ", "").split("::")), conditions)
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

    def conditional(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look into the branches of an ``#if``: which one is compiled, the same lines will say after the text."""
        passed = conditions
        while node is not None:
            alternative = node.child_by_field_name("alternative")
            lines = _text(node).split("\n")
            line, rest = lines[0], lines[1:]
            while line.endswith("\\") and rest:
                line = line[:-1] + rest.pop(0)
            passed = (*passed, line.strip())
            for child in node.children:
                if alternative is None or child.id != alternative.id:
                    self.one(child, scope, passed)
            node = alternative

    def function(
        self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...], *, special: bool = False
    ) -> None:
        declarator = _function_declarator(node.child_by_field_name("declarator"))
        if declarator is None or any(
            c.type in ("delete_method_clause", "default_method_clause") for c in node.children
        ):
            return
        if any(_text(c) in _HELPERS for c in node.children if c.type in ("storage_class_specifier", "type_qualifier")):
            return
        name, inner = _name(declarator.child_by_field_name("declarator"))
        if name is None or self.classes.intersection(inner):
            return
        if name == "main" and not scope:
            self.reading.skipped["main"] = "main is the entry of a program, not a kernel"
            return
        self.add(node, name, (*scope, *inner), conditions, self.arguments(declarator), declarator, special)

    def template(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        function = next((c for c in node.children if c.type == "function_definition"), None)
        parameters = node.child_by_field_name("parameters")
        if function is None:
            return
        if parameters is not None and parameters.named_child_count == 0:  # template <> void f<float>(...)
            self.function(function, scope, conditions, special=True)
            return
        declarator = _function_declarator(function.child_by_field_name("declarator"))
        name = None if declarator is None else _name(declarator.child_by_field_name("declarator"))[0]
        if declarator is None or name is None:
            return
        self.templates.setdefault(name, (self.arguments(declarator), _doc(node)))
        if not any(
            _text(c) in _HELPERS for c in function.children if c.type in ("storage_class_specifier", "type_qualifier")
        ):
            self.reading.skipped.setdefault(
                name,
                f"{name} is a template, and none of its types is asked for; add a line such as "
                f"template void {name}<float>(...); for each",
            )

    def instantiation(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        declarator = _function_declarator(node.child_by_field_name("declarator"))
        if declarator is None:
            return
        name, inner = _name(declarator.child_by_field_name("declarator"))
        if name is not None:
            self.add(node, name, (*scope, *inner), conditions, self.arguments(declarator), declarator, True)

    def add(
        self, node: Any, name: str, scope: tuple[str, ...], conditions: tuple[str, ...], arguments: list[Argument],
        declarator: Any, special: bool,
    ) -> None:  # fmt: skip
        if any(c.type == "variadic_parameter" or _text(c) == "..." for c in _parameters(declarator)):
            self.reading.skipped[name] = f"{name} takes any number of arguments (...)"
            return
        known, doc = self.templates.get(name, ([], None)) if special else ([], None)
        if len(known) == len(arguments):
            arguments = [
                Argument(
                    mine.name if not mine.name.startswith("arg") else base.name,
                    mine.text,
                    mine.restrict or base.restrict,
                )
                for mine, base in zip(arguments, known, strict=True)
            ]
        line = node.start_point[0] + 1
        outer = node.parent
        if outer is not None and outer.type in ("template_declaration", "linkage_specification"):
            doc = _doc(outer) or doc
        made = Candidate(
            name, scope, line, tuple(arguments), _doc(node) or doc, conditions, returns=_returned(node, declarator)
        )
        self.found.append((made, node, special))

    def arguments(self, declarator: Any) -> list[Argument]:
        found: list[Argument] = []
        for node in _parameters(declarator):
            if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
                continue
            text = _without_default(node)
            if text == "void":
                continue
            name = _declared(node.child_by_field_name("declarator")) or f"arg{len(found)}"
            if name in self.promised and (last := _LAST_WORD.search(text)) is not None:
                name = last[1]  # a macro stood where the reader took the name to be
            words = set(re.findall(r"\w+", text))
            found.append(Argument(name, text, bool(_RESTRICT.search(text) or words & self.promised)))
        return found

    def finished(self) -> Reading:
        paths: dict[tuple[str, ...], int] = {}
        for one, _node, _special in self.found:
            paths[(*one.scope, one.name)] = paths.get((*one.scope, one.name), 0) + 1
        for one, node, special in self.found:
            overloaded = special or paths[(*one.scope, one.name)] > 1 or one.name in self.templates
            form = _typedef(node) if overloaded else ""
            self.reading.skipped.pop(one.name, None)
            self.reading.candidates.append(replace(one, form=form))
        return self.reading


def _text(node: Any) -> str:
    return str(node.text.decode("utf-8", "surrogatepass"))


_HOLDERS = frozenset(
    {
        "namespace_definition", "declaration_list", "declaration", "template_declaration", "preproc_if",
        "preproc_ifdef", "preproc_else", "linkage_specification", "type_definition",
    }
)  # fmt: skip


def _class_names(node: Any) -> Iterator[Any]:
    for child in node.children:
        if child.type in ("class_specifier", "struct_specifier", "union_specifier"):
            name = child.child_by_field_name("name")
            if name is not None:
                yield name
        if child.type in _HOLDERS:
            yield from _class_names(child)


def _function_declarator(node: Any) -> Any:
    """Return the declarator with the parameters, inside of those for a returned pointer or reference."""
    while node is not None and node.type != "function_declarator":
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in ("reference_declarator", "attributed_declarator", "parenthesized_declarator"):
            inner = next((c for c in node.named_children if c.type.endswith("declarator")), None)
        node = inner
    if node is not None and (inner := _function_declarator(node.child_by_field_name("declarator"))) is not None:
        return inner
    return node


def _name(node: Any) -> tuple[str | None, tuple[str, ...]]:
    """Return the name of a function, and the scopes that it is written with."""
    scopes: list[str] = []
    while node is not None:
        if node.type == "identifier":
            return _text(node), tuple(scopes)
        if node.type == "qualified_identifier":
            scope = node.child_by_field_name("scope")
            if scope is not None:
                if scope.type != "namespace_identifier":
                    return None, ()
                scopes.append(_text(scope))
            node = node.child_by_field_name("name")
        elif node.type == "template_function":
            node = node.child_by_field_name("name")
        elif node.type in ("parenthesized_declarator", "attributed_declarator"):
            node = next(iter(node.named_children), None)
        else:
            return None, ()
    return None, ()


def _parameters(declarator: Any) -> list[Any]:
    node = declarator.child_by_field_name("parameters")
    return [] if node is None else [c for c in node.children if c.type not in ("(", ")", ",", "comment")]


def _declared(node: Any) -> str | None:
    """Return the name that a declarator declares."""
    while node is not None:
        if node.type == "identifier":
            return _text(node)
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next(
                (c for c in node.named_children if c.type == "identifier" or c.type.endswith("declarator")), None
            )
        node = inner
    return None


def _pieces(node: Any, replaced: dict[int, str], left_out: frozenset[str]) -> Iterator[str]:
    """Return the text of a node on one line, some of its parts replaced, comments left out."""
    if node.id in replaced:
        yield replaced[node.id]
    elif node.type == "comment" or node.type in left_out:
        return
    elif not node.children:
        yield _text(node)
    else:
        for child in node.children:
            yield from _pieces(child, replaced, left_out)


def _one_line(pieces: Iterator[str]) -> str:
    return " ".join(" ".join(pieces).replace("\\\n", " ").split())


def _without_default(node: Any) -> str:
    default = node.child_by_field_name("default_value")
    replaced = {} if default is None else {default.id: "", **{c.id: "" for c in node.children if c.type == "="}}
    return _text(node) if not replaced and "\n" not in _text(node) else _one_line(_pieces(node, replaced, frozenset()))


_NO_TYPE = frozenset(
    {
        "storage_class_specifier",
        "attribute_declaration",
        "attribute_specifier",
        "noexcept",
        "throw_specifier",
        "ms_call_modifier",
    }
)


def _returned(node: Any, declarator: Any) -> str:
    kind = node.child_by_field_name("type")
    outermost = node.child_by_field_name("declarator")
    plain = kind is not None and outermost.id == declarator.id and "->" not in _text(declarator)
    return _one_line(_pieces(kind, {}, frozenset())) if plain else ""


def _typedef(node: Any) -> str:
    """Return a typedef of a function's type, from the text of its definition or explicit instantiation."""
    declarator = _function_declarator(node.child_by_field_name("declarator"))
    name = declarator.child_by_field_name("declarator")
    replaced = {name.id: "REKERNEL_TYPE"}
    for parameter in _parameters(declarator):
        default = parameter.child_by_field_name("default_value")
        if default is not None:
            replaced |= {default.id: "", **{c.id: "" for c in parameter.children if c.type == "="}}
    body = node.child_by_field_name("body")
    parts = [
        c for c in node.children if (body is None or c.id != body.id) and c.type not in (";", "template", "extern")
    ]
    return "typedef " + _one_line(piece for part in parts for piece in _pieces(part, replaced, _NO_TYPE)) + ";"


def _doc(node: Any) -> str | None:
    """Return the comment that ends on the line before a function."""
    rows: list[str] = []
    row, before = node.start_point[0], node.prev_sibling
    while before is not None and before.type == "comment" and before.end_point[0] == row - 1:
        other = before.prev_sibling
        if other is not None and other.end_point[0] == before.start_point[0] and other.end_point[1] > 0:
            break  # it belongs to the line that it stands on
        rows.insert(0, _text(before))
        row, before = before.start_point[0], before.prev_sibling
    text = _COMMENT_MARK.sub("", "\n".join(rows)).strip()
    return text or None


def _first_error(node: Any) -> int | None:
    for child in node.children:
        if child.type == "ERROR" or child.is_missing:
            return int(child.start_point[0]) + 1
        if child.has_error and (found := _first_error(child)) is not None:
            return found
    return None
