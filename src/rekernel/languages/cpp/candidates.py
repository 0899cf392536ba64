"""The functions that a text defines, as its words tell. Values."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Argument", "Candidate", "Reading"]


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
