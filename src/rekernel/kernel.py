"""The values: what a kernel is, before and after it is built. No I/O, nothing heavy."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

__all__ = ["Kernel", "Parameter"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    """The name, as the user wrote it."""
    kind: str
    """``array``, ``scalar``, ``template`` or ``other`` (matrices, structs, textures)."""
    type: str
    """The type in NumPy's names, as it is shown: ``float64[:, :]``, ``int32``, ``template``."""
    written: bool = False
    """True for an array that the kernel may write to."""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class Kernel:
    """A kernel as a value: name, parameters, the text it came from."""

    name: str
    """The name under which the module has it."""
    parameters: tuple[Parameter, ...]
    """In the order of a positional call."""
    language: str
    """A name of the table of languages."""
    code: str = ""
    """The text that is compiled."""
    doc: str | None = None
    """The kernel's own docstring."""
    returns: str | None = None
    """The type of the return value in NumPy's names, or None."""
    line: int | None = None
    """The line of the user's text on which the kernel begins."""

    @property
    def signature(self) -> inspect.Signature:
        """The signature for `inspect.signature` and for help in a notebook."""
        return inspect.Signature(
            [
                inspect.Parameter(p.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=p.type)
                for p in self.parameters
            ],
            return_annotation=inspect.Signature.empty if self.returns is None else self.returns,
        )

    def __str__(self) -> str:
        returns = f" -> {self.returns}" if self.returns else ""
        return f"{self.name}({', '.join(map(str, self.parameters))}){returns}"
