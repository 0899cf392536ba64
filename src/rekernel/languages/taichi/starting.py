"""A program for a text that relies on somebody else's ``ti.init``: the command line has nobody else."""

from __future__ import annotations

import ast
import os
import sys
from contextlib import redirect_stdout

from rekernel.languages import plain, pytext
from rekernel.languages.taichi.package import choose, package

__all__ = ["start"]


def start(text: str) -> None:
    """Start a program on the CPU, as ``ti.init()`` does it, unless one runs or the text has an ``init`` of its own.

    A text that does not parse starts nothing: its load says what is wrong.
    """
    try:
        tree = ast.parse(plain(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for variable, value in (("ENABLE_TAICHI_HEADER_PRINT", "False"), ("TI_SKIP_VERSION_CHECK", "ON")):
        os.environ.setdefault(variable, value)  # no banner, no request to its server
    found = package(choose(pytext.imports(tree), pytext.wanted(tree), ()))
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    if found.program is None and not any(isinstance(f, ast.Attribute) and f.attr == "init" for f in calls):
        with redirect_stdout(sys.stderr):  # it says so whatever the log level is
            found.module.init(arch=found.module.cpu, log_level=found.module.ERROR)
