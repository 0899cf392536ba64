"""Which functions a C++ text defines, and on which lines: names and places only, never types.

What a type is, through ``using``, headers and macros, only the compiler knows; see `rekernel.languages.cpp.unit`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rekernel.languages.cpp.macros import changed_after, restored, written_out

__all__ = ["Argument", "Candidate", "Reading", "Walk", "function_declarator", "name_in", "read", "storage"]

_RESTRICT = re.compile(r"\b\w*restrict(?:__)?\b", re.I)  # a header may call it MY_RESTRICT
_NAMES_RESTRICT = re.compile(
    r"\busing\s+(?P<alias>\w+)\s*=[^;]*\b(?:restrict|__restrict__|__restrict)\b"
    r"|\btypedef\b[^;]*\b(?:restrict|__restrict__|__restrict)\s+(?P<typedef>\w+)\s*;",
    re.M,
)
_COMMENT_MARK = re.compile(r"^[ \t]*(?:/\*+!?<?|\*+/|\*(?!/)|//[/!]*<?)[ \t]?|[ \t]*\*+/[ \t]*$", re.M)
_HELPERS = frozenset({"static", "inline", "constexpr", "consteval"})


@dataclass(frozen=True)
class Argument:
    """One parameter, as the text spells it."""

    name: str
    text: str
    restrict: bool
    default: bool = False
    """Whether a call may leave it out."""


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
    """A typedef of its type called ``REKERNEL_TYPE``."""
    instance: str = ""
    """The arguments with which it is instantiated from a template: ``<double, 3>``."""
    overloaded: bool = False
    """Whether its name alone does not say which function it is."""
    fewer: bool = False
    """A call that leaves out the arguments behind these, which have defaults."""
    returns: str = ""
    """The type of its result, as the text spells it; empty where it is a pointer or told later (``auto``)."""

    @property
    def path(self) -> str:
        """The name from the outermost namespace."""
        return "::".join(["", *self.scope, self.name]) + self.instance


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


def read(text: str, walk: Callable[[str, Any], Walk] | None = None) -> Reading:
    """Return the functions of a text that may be kernels, in its order. Never raises."""
    text = written_out(text)
    tree = _parser().parse(text.encode("utf-8", "surrogatepass"))
    try:
        walking = (walk or Walk)(text, tree.root_node)
        walking.inside(tree.root_node, (), ())
        if tree.root_node.has_error:
            walking.reading.wrong_line = _first_error(tree.root_node)
        return walking.finished()
    except RecursionError:  # hundreds of levels of nesting, which no compiler takes either
        return Reading(wrong_line=1)


class Walk:
    """Goes through a tree and says what may be a kernel."""

    def __init__(self, text: str, root: Any) -> None:
        self.reading = Reading()
        self.classes = {_text(name) for name in _class_names(root)}
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
        elif kind == "declaration":
            self.declaration(node, scope, conditions)

    def conditional(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Look into the branches of an ``#if``: which one is compiled, the same lines will say after the text.

        They will not where one of their macros has changed until then, as that of an include guard: then nothing is
        said of the branches, and the compiler refuses what is not there.
        """
        branches = []
        while node is not None:
            branches.append((node, _text(node).split("\n", 1)[0].strip()))
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
        if any(_type(c) == "placeholder_type_specifier" for c in _parameters(declarator)):  # f(auto x)
            self.reading.skipped.setdefault(name, _never_asked_for(name))
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
        declarator = function_declarator(function.child_by_field_name("declarator"))
        name = None if declarator is None else name_in(declarator.child_by_field_name("declarator"))[0]
        if declarator is None or name is None:
            return
        self.templates.setdefault(name, (self.arguments(declarator), _doc(node)))
        if not self.is_helper(function):
            self.reading.skipped.setdefault(name, _never_asked_for(name))

    def instantiation(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
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
                    base.default,
                )
                for mine, base in zip(arguments, known, strict=True)
            ]
        line = node.start_point[0] + 1
        outer = node.parent
        if outer is not None and outer.type in ("template_declaration", "linkage_specification"):
            doc = _doc(outer) or doc
        made = Candidate(
            name, scope, line, tuple(arguments), _doc(node) or doc, conditions, returns=_returned(node, declarator),
            instance=_instance(declarator) if special else "",
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
            name, text = _parameter_name(node, text, f"arg{len(found)}")
            words = re.findall(r"\w+", text.removesuffix(name))
            promised = any(map(_RESTRICT.fullmatch, words)) or not self.promised.isdisjoint(words)
            found.append(Argument(name, text, promised, node.type == "optional_parameter_declaration"))
        return found

    def finished(self) -> Reading:
        found = [one for one in self.found if (one[0].scope, one[0].name, len(one[0].arguments)) not in self.helpers]
        paths = [one.path for one, _node, _special in found]
        several = {path for path in paths if paths.count(path) > 1}
        made: dict[Candidate, None] = {}
        for one, node, special in found:
            overloaded = special or one.path in several or one.name in self.templates
            self.reading.skipped.pop(one.name, None)
            one = replace(one, form=_typedef(node), overloaded=overloaded)
            made[one] = None
            count = len(one.arguments)
            while count and one.arguments[count - 1].default:
                count -= 1
                made[replace(one, arguments=one.arguments[:count], fewer=True)] = None
        self.reading.candidates = list(made)
        return self.reading


def _text(node: Any) -> str:
    return restored(node.text.decode("utf-8", "surrogatepass"))


def _type(node: Any) -> str | None:
    kind = node.child_by_field_name("type")
    return None if kind is None else str(kind.type)


def storage(node: Any) -> set[str]:
    """Return the words such as ``static`` before a definition or declaration."""
    kinds = ("storage_class_specifier", "type_qualifier")
    return {_text(child) for child in node.children if child.type in kinds}


def _never_asked_for(name: str) -> str:
    return (
        f"{name} is a template, and none of its types is asked for; add a line such as "
        f"template void {name}<float>(...); for each"
    )


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


def function_declarator(node: Any) -> Any:
    """Return the declarator with the parameters, inside of those for a returned pointer or reference."""
    while node is not None and node.type != "function_declarator":
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in ("reference_declarator", "attributed_declarator", "parenthesized_declarator"):
            inner = next((c for c in node.named_children if c.type.endswith("declarator")), None)
        node = inner
    if node is not None and (inner := function_declarator(node.child_by_field_name("declarator"))) is not None:
        return inner
    return node


def name_in(node: Any) -> tuple[str | None, tuple[str, ...]]:
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


def _instance(node: Any) -> str:
    while node is not None and node.type != "template_function":
        node = node.child_by_field_name("name" if node.type == "qualified_identifier" else "declarator")
    return "" if node is None else _one_line(_pieces(node.child_by_field_name("arguments"), {}, frozenset()))


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


def _parameter_name(node: Any, text: str, otherwise: str) -> tuple[str, str]:
    """Return the name and the text of a parameter, of which the parser may have made two nodes because of a macro."""
    name = _declared(node.child_by_field_name("declarator"))
    before, after = node.prev_sibling, node.next_sibling
    if after is not None and after.type == "ERROR" and _text(after).isidentifier():
        return _text(after), f"{text} {_text(after)}"  # double* RESTRICT x
    if name is None and before is not None and before.type == "ERROR" and text.isidentifier():
        return text, f"{_text(before)} {text}"  # ARRAY(2) x
    return name or otherwise, text


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
    return " ".join(" ".join(pieces).split())


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
    declarator = function_declarator(node.child_by_field_name("declarator"))
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
