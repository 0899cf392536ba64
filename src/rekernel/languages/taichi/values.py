"""Kernels as values by the text alone, for `rekernel.parse` and before anything is executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from rekernel.kernel import Kernel, Parameter


def literal(nodes: Mapping[str, ast.FunctionDef], text: str) -> tuple[Kernel, ...]:
    """Return the kernels with their annotations as they are written."""
    made = []
    for name, node in nodes.items():
        parameters = tuple(
            Parameter(a.arg, "other", "" if a.annotation is None else ast.unparse(a.annotation)) for a in node.args.args
        )
        returns = None if node.returns is None else ast.unparse(node.returns)
        doc = ast.get_docstring(node)
        made.append(Kernel(name, parameters, "taichi", code=text, doc=doc, returns=returns, line=node.lineno))
    return tuple(made)
