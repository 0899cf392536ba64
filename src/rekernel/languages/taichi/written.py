"""Which array parameters a kernel may write to, by its syntax tree.

Taichi writes into read-only NumPy arrays without asking (a segmentation fault when the memory is a read-only
map), so a written parameter must be given a writeable array. What cannot be proven to be read only counts as
written: an alias, or an argument handed to a function that is not in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from rekernel.languages import pytext

_READERS = frozenset({"grouped", "ndrange", "range", "len", "enumerate", "zip", "print", "int", "float"})
_READ_ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "n", "m", "grad"})
_WRITING_METHODS = frozenset({"fill", "assign", "append", "copy_from", "from_numpy"})

Functions = Mapping[str, ast.FunctionDef]


@pytext.kept
def functions_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of a text by name, methods included (a later one of a name wins)."""
    return {node.name: node for node in pytext.walk(tree) if isinstance(node, ast.FunctionDef)}


def written(function: ast.FunctionDef, functions: Functions) -> frozenset[str]:
    """Return the names of the parameters that `function` may write to."""
    # Asked for the kernel, its adjoint and its value: kept at the node, which belongs to these functions alone.
    known = vars(function)
    if "_written" not in known:
        known["_written"] = _written(function, functions, frozenset())
    return known["_written"]  # type: ignore[no-any-return]


def _written(
    function: ast.FunctionDef, functions: Functions, active: frozenset[str], *, whole: bool = True
) -> frozenset[str]:
    """Return the parameters that may be written to if arrays (`whole`), or elements of arrays, are passed."""
    parameters = {a.arg for a in function.args.args}
    # To assign to a ``ti.template()`` is to write into the element that was passed; others are copies.
    references = {a.arg for a in function.args.args if a.annotation is not None}
    parents: dict[int, ast.AST] = {}
    nodes: list[ast.AST] = [function]
    for node in nodes:
        below = pytext.children(node)
        nodes += below
        for child in below:
            parents[id(child)] = node
    active = active | {function.name}
    found = set()
    for node in nodes:
        if not isinstance(node, ast.Name) or node.id not in parameters:
            continue
        if not isinstance(node.ctx, ast.Load):
            found |= {node.id} & references
            continue
        if node.id not in found and not _only_read(node, parents, functions, active, whole):
            found.add(node.id)
    return frozenset(found)


def _only_read(
    node: ast.AST, parents: Mapping[int, ast.AST], functions: Functions, active: frozenset[str], whole: bool
) -> bool:
    """Follow one use of a parameter outwards: through subscripts and attributes to what is done with it.

    `whole` tells whether it is still the array itself, not one of its elements.
    """
    while True:
        parent = parents[id(node)]
        if isinstance(parent, ast.Subscript) and parent.value is node:
            if isinstance(parent.ctx, ast.Store | ast.Del):
                return False
            whole, node = False, parent
        elif isinstance(parent, ast.Attribute) and parent.value is node:
            if isinstance(parent.ctx, ast.Store):
                return False
            if whole and parent.attr in _READ_ATTRIBUTES - {"grad"}:
                return True
            caller = parents[id(parent)]
            if isinstance(caller, ast.Call) and caller.func is parent:
                return parent.attr not in _WRITING_METHODS
            node = parent
        elif isinstance(parent, ast.Call) and node in parent.args:
            return _call_reads(parent, parent.args.index(node), whole, functions, active)
        elif isinstance(parent, ast.AugAssign) and parent.target is node:
            return False
        elif isinstance(parent, ast.Starred | ast.keyword):
            return not whole
        elif isinstance(parent, ast.For) and parent.iter is node:
            return True
        else:
            # An element used in an expression is a value; the array itself would get a second name.
            return not whole


def _call_reads(call: ast.Call, index: int, whole: bool, functions: Functions, active: frozenset[str]) -> bool:
    target = call.func
    name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
    if name.startswith("atomic_"):
        return index != 0
    if name in _READERS:
        return True
    if name == "static":  # ``y = ti.static(x)`` is another name for the array, or the element
        return False
    callee = functions.get(name)
    if callee is None:
        return not whole
    if name in active:
        return True  # a recursion adds nothing to what the function does by itself
    parameters = [a.arg for a in callee.args.args]
    if isinstance(target, ast.Attribute) and parameters[:1] == ["self"]:
        parameters = parameters[1:]
    if index >= len(parameters):
        return False
    copied = not whole and all(a.annotation is None for a in callee.args.args if a.arg == parameters[index])
    return copied or parameters[index] not in _written(callee, functions, active, whole=whole)
