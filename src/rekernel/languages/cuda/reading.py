"""Which kernels and device variables a CUDA text defines, and on which lines. Pure.

The parser knows C++ and none of CUDA's words. They are blanked before, each by as many letters: lines and columns stay.
Three leave a word of C++ in their place that no such text has there: by it a kernel or a variable is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rekernel.languages.cpp import reading as cpp
from rekernel.languages.cpp.candidates import Candidate
from rekernel.languages.cpp.nodes import function_declarator, name_in, storage
from rekernel.languages.cuda import STRIPPED

__all__ = ["Reading", "Variable", "blanked", "read"]

_STAND_INS = {"__global__": "register", "__constant__": "thread_local", "__device__": "mutable"}
_ARGUMENTS = r"\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_WORDS = re.compile(
    rf"{STRIPPED}|(?P<word>\b(?:__(?:global|constant|device|host|shared|managed|grid_constant|noinline|forceinline)__\b"
    rf"|__(?:launch_bounds|cluster_dims|block_size|maxnreg|align|builtin_align)__{_ARGUMENTS}))",
    re.S,
)
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Variable:
    """A ``__constant__`` or ``__device__`` variable of a namespace."""

    name: str
    scope: tuple[str, ...]
    line: int
    conditions: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The name from the outermost namespace."""
        return "::".join(["", *self.scope, self.name])


@dataclass
class Reading:
    """What was found in a text."""

    candidates: list[Candidate] = field(default_factory=list)
    """Its kernels."""
    variables: list[Variable] = field(default_factory=list)
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Kernels that cannot be called, with the reason."""
    wrong_line: int | None = None
    """Where the text stops making sense to a reader without a preprocessor. Not an error by itself."""


def blanked(text: str) -> str:
    """Return the text for a parser of C++, of as many letters.

    >>> blanked("extern __shared__ float s[]; __global__ void __launch_bounds__(128) k();")
    'extern            float s[]; register   void                        k();'
    """
    return _WORDS.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    word = match["word"]
    if word is None:
        return match[0]
    return _STAND_INS.get(word, "").ljust(len(word)) if "\n" not in word else _NOT_NEWLINE.sub(" ", word)


class _Walk(cpp.Walk):
    def __init__(self, text: str, root: Any) -> None:
        super().__init__(text, root)
        self.variables: list[Variable] = []

    def is_helper(self, node: Any) -> bool:
        """Whether a function is none of the kernels."""
        return "register" not in storage(node)

    def declaration(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Note the variables of a declaration that Python may set."""
        words = storage(node)
        if words.isdisjoint(("thread_local", "mutable")) or not words.isdisjoint(("const", "constexpr", "extern")):
            return
        for declarator in node.children_by_field_name("declarator"):
            name = _variable(declarator)
            if name is not None:
                self.variables.append(Variable(name, scope, node.start_point[0] + 1, conditions))

    def template(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Leave out templates of device functions."""
        function = next((c for c in node.children if c.type == "function_definition"), None)
        if function is not None and not self.is_helper(function):
            super().template(node, scope, conditions)

    def instantiation(self, node: Any, scope: tuple[str, ...], conditions: tuple[str, ...]) -> None:
        """Leave out instantiations of device functions."""
        declarator = function_declarator(node.child_by_field_name("declarator"))
        name = None if declarator is None else name_in(declarator.child_by_field_name("declarator"))[0]
        if name in self.templates or not self.is_helper(node):
            super().instantiation(node, scope, conditions)


def _variable(node: Any) -> str | None:
    """Return the name of a declared number or array, or None of a function or reference."""
    while node is not None and node.type != "identifier":
        if node.type not in ("array_declarator", "init_declarator", "pointer_declarator"):
            return None
        node = node.child_by_field_name("declarator")
    return None if node is None else str(node.text.decode("utf-8", "surrogatepass"))


def read(text: str) -> Reading:
    """Return the kernels and variables of a text, in its order. Never raises."""
    walks: list[_Walk] = []

    def walk(text: str, root: Any) -> _Walk:
        walks.append(_Walk(text, root))
        return walks[0]

    found = cpp.read(blanked(text), walk)
    kernels = [one for one in found.candidates if not one.fewer]  # a launch leaves out nothing
    skipped = {name: why.replace("template void", "template __global__ void") for name, why in found.skipped.items()}
    return Reading(kernels, walks[0].variables if walks else [], skipped, found.wrong_line)
