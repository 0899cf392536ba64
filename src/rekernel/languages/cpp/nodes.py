"""What a parser's nodes say: names, parameters, types as they are spelled, the comment before a function. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rekernel.languages.cpp.macros import restored

_COMMENT_MARK = re.compile(r"^[ \t]*(?:/\*+!?<?|\*+/|\*(?!/)|//[/!]*<?)[ \t]?|[ \t]*\*+/[ \t]*$", re.M)


def node_text(node: Any) -> str:
    """Return the text of a node."""
    return restored(node.text.decode("utf-8", "surrogatepass"))


def type_of(node: Any) -> str | None:
    """Return what kind of node tells the type, or None."""
    kind = node.child_by_field_name("type")
    return None if kind is None else str(kind.type)


def storage(node: Any) -> set[str]:
    """Return the words such as ``static`` before a definition or declaration."""
    kinds = ("storage_class_specifier", "type_qualifier")
    return {node_text(child) for child in node.children if child.type in kinds}


def never_asked_for(name: str) -> str:
    """Return why a template is no kernel."""
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


def class_names(node: Any) -> Iterator[Any]:
    """Return the names of the classes below a node."""
    for child in node.children:
        if child.type in ("class_specifier", "struct_specifier", "union_specifier"):
            name = child.child_by_field_name("name")
            if name is not None:
                yield name
        if child.type in _HOLDERS:
            yield from class_names(child)


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
            return node_text(node) or None, tuple(scopes)  # the parser puts in an empty name where one is missing
        if node.type == "qualified_identifier":
            scope = node.child_by_field_name("scope")
            if scope is not None:
                if scope.type != "namespace_identifier":
                    return None, ()
                scopes.append(node_text(scope))
            node = node.child_by_field_name("name")
        elif node.type == "template_function":
            node = node.child_by_field_name("name")
        elif node.type in ("parenthesized_declarator", "attributed_declarator"):
            node = next(iter(node.named_children), None)
        else:
            return None, ()
    return None, ()


def instance_of(node: Any) -> str:
    """Return the template arguments of a function's name."""
    while node is not None and node.type != "template_function":
        node = node.child_by_field_name("name" if node.type == "qualified_identifier" else "declarator")
    return "" if node is None else one_line(pieces_of(node.child_by_field_name("arguments"), {}, frozenset()))


def parameters_of(declarator: Any) -> list[Any]:
    """Return the nodes of a function's parameters."""
    node = declarator.child_by_field_name("parameters")
    return [] if node is None else [c for c in node.children if c.type not in ("(", ")", ",", "comment")]


def declared_name(node: Any) -> str | None:
    """Return the name that a declarator declares."""
    while node is not None:
        if node.type == "identifier":
            return node_text(node) or None
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next(
                (c for c in node.named_children if c.type == "identifier" or c.type.endswith("declarator")), None
            )
        node = inner
    return None


def parameter_name(node: Any, text: str, otherwise: str) -> tuple[str, str]:
    """Return the name and the text of a parameter, of which the parser may have made two nodes because of a macro."""
    name = declared_name(node.child_by_field_name("declarator"))
    before, after = node.prev_sibling, node.next_sibling
    if after is not None and after.type == "ERROR" and node_text(after).isidentifier():
        return node_text(after), f"{text} {node_text(after)}"  # double* RESTRICT x
    if name is None and before is not None and before.type == "ERROR" and text.isidentifier():
        return text, f"{node_text(before)} {text}"  # ARRAY(2) x
    return name or otherwise, text


def pieces_of(node: Any, replaced: dict[int, str], left_out: frozenset[str]) -> Iterator[str]:
    """Return the text of a node on one line, some of its parts replaced, comments left out."""
    if node.id in replaced:
        yield replaced[node.id]
    elif node.type == "comment" or node.type in left_out:
        return
    elif not node.children:
        yield node_text(node)
    else:
        for child in node.children:
            yield from pieces_of(child, replaced, left_out)


def one_line(pieces: Iterator[str]) -> str:
    """Join pieces of text on one line."""
    return " ".join(" ".join(pieces).split())


def without_default(node: Any) -> str:
    """Return a parameter's text without its default value."""
    default = node.child_by_field_name("default_value")
    replaced = {} if default is None else {default.id: "", **{c.id: "" for c in node.children if c.type == "="}}
    return (
        node_text(node)
        if not replaced and "\n" not in node_text(node)
        else one_line(pieces_of(node, replaced, frozenset()))
    )


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


def result_of(node: Any, declarator: Any) -> str:
    """Return the type of a function's result as it is spelled; empty where it is not plain."""
    kind = node.child_by_field_name("type")
    outermost = node.child_by_field_name("declarator")
    plain = kind is not None and outermost.id == declarator.id and "->" not in node_text(declarator)
    return one_line(pieces_of(kind, {}, frozenset())) if plain else ""


def typedef_of(node: Any) -> str:
    """Return a typedef of a function's type, from the text of its definition or explicit instantiation."""
    declarator = function_declarator(node.child_by_field_name("declarator"))
    name = declarator.child_by_field_name("declarator")
    replaced = {name.id: "REKERNEL_TYPE"}
    for parameter in parameters_of(declarator):
        default = parameter.child_by_field_name("default_value")
        if default is not None:
            replaced |= {default.id: "", **{c.id: "" for c in parameter.children if c.type == "="}}
    body = node.child_by_field_name("body")
    parts = [
        c for c in node.children if (body is None or c.id != body.id) and c.type not in (";", "template", "extern")
    ]
    return "typedef " + one_line(piece for part in parts for piece in pieces_of(part, replaced, _NO_TYPE)) + ";"


def doc_of(node: Any) -> str | None:
    """Return the comment that ends on the line before a function."""
    rows: list[str] = []
    row, before = node.start_point[0], node.prev_sibling
    while before is not None and before.type == "comment" and before.end_point[0] == row - 1:
        other = before.prev_sibling
        if other is not None and other.end_point[0] == before.start_point[0] and other.end_point[1] > 0:
            break  # it belongs to the line that it stands on
        rows.insert(0, node_text(before))
        row, before = before.start_point[0], before.prev_sibling
    text = _COMMENT_MARK.sub("", "\n".join(rows)).strip()
    return text or None


def first_error(node: Any) -> int | None:
    """Return the line of the first thing that does not read, or None."""
    for child in node.children:
        if child.type == "ERROR" or child.is_missing:
            return int(child.start_point[0]) + 1
        if child.has_error and (found := first_error(child)) is not None:
            return found
    return None
