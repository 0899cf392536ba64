"""The open table of languages: one file and one row each.

A language turns text into callables with few verbs. Two are pure and cheap (`recognise`, `read`), one does
the work aside (`build`), one gives it back (`retire`). Nothing else in rekernel knows a language by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rekernel.excerpt import split_lines
from rekernel.kernel import Kernel
from rekernel.source import Source

if TYPE_CHECKING:
    from rekernel.values import MachineCode

__all__ = ["Built", "Draft", "Language", "Request", "detect", "find", "languages", "register", "unregister"]


@dataclass(frozen=True)
class Draft:
    """What can be said of a text without executing or compiling it."""

    kernels: tuple[str, ...] = ()
    """Names of the public kernels, in the order of the text."""
    titles: tuple[str, ...] = ()
    """Names that may serve as an id when there is no kernel (classes, functions), in the order of the text."""
    wants: tuple[str, ...] = ()
    """Names that the text uses and does not define: looked up in the namespace."""
    values: Callable[[], tuple[Kernel, ...]] = tuple
    """Gives the kernels as values, as far as the text alone tells."""
    facts: Any = None
    """Whatever the language itself wants to keep for `build` (a syntax tree)."""


@dataclass(frozen=True)
class Request:
    """All that a build may use."""

    source: Source
    draft: Draft
    kernel_id: str
    number: int
    """The number that the version will have if it succeeds."""
    borrowed: Mapping[str, Any] = field(default_factory=dict)
    """The values that the namespace has for ``draft.wants``; handles and modules are resolved already."""
    refresh: Callable[[], Mapping[str, Any]] | None = None
    """Reads the namespace again, for a text that has to run again by itself (after another ``ti.init``)."""
    previous: Built | None = None
    """What serves the id now: the source of state and of the argument types to check."""
    keeps: int | None = None
    """The number of the version that goes on running if this build fails."""
    check: Any = True
    ahead: bool = False
    """Whether to build now what could wait for its first call, for nobody waits for this build."""
    keep_state: bool = True
    jit: Any = None
    """The JIT that the loader was made with, for compiled languages."""
    hints: Mapping[str, Any] = field(default_factory=dict)
    """The globals of the caller: never used as values, only to say better what is missing."""
    kept: list[Any] = field(default_factory=list)
    """What is put in here lives until ``cleanup_all()``: code that a CUDA graph has captured."""


@dataclass
class Built:
    """The product of a build: ready to be called, not yet visible to anybody."""

    entries: Mapping[str, Callable[..., Any]]
    """For each kernel the callable that a handle calls."""
    kernels: tuple[Kernel, ...]
    """The kernels as values."""
    names: Mapping[str, Any]
    """Everything else that the module shows: classes, fields, constants, functions."""
    doc: str | None = None
    """The text's own docstring."""
    originals: Mapping[str, Any] = field(default_factory=dict)
    """For each kernel the language's own object; a handle forwards unknown attributes to it."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Public functions that are no kernels, with the reason."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What happened on the way and may surprise: a skipped ``ti.init``, a reloaded helper module."""
    anew: tuple[str, ...] = ()
    """Names of module-level state that began anew although the version before had it."""
    machine: Callable[[], tuple[MachineCode, ...]] | None = None
    """Gives what was compiled, as far as something is."""
    from_cache: bool = False
    rebuilt_because: str | None = None
    code: Callable[[], str] | None = None
    """Gives what was compiled, where that is not the text."""
    private: Any = None
    """The language's own record."""


@runtime_checkable
class Language(Protocol):
    """One row of the table.

    Three verbs are optional.
    ``export(self, built: Built, request: Request, directory: Path, name: str | None) -> Path``
    writes a version as a Python module that needs no rekernel, and returns its file. The request is the one that the
    version was built for, without what only a build needs. ``start(self, text: str) -> None`` is for a language whose
    texts rely on a runtime that the program has started: it starts one as far as the text does not.
    ``waiting(self, built: Built) -> Mapping[str, Callable[[], object]]`` gives, for each kernel that is compiled when
    it is first called, what compiles it.

    Two more are optional, for watching files. ``files(self, built: Built) -> Mapping[str, object]`` gives the files
    beside the text that a version was built with, each with the `key.content` of what was read;
    ``mentions(self, path: str, text: bytes, options: Mapping[str, Any]) -> Iterable[str]`` those that a text may mean,
    also where they are missing or the text is wrong.
    """

    name: str
    suffixes: tuple[str, ...]
    """File suffixes that mean this language and no other."""
    options: Mapping[str, str]
    """The options of ``load`` that this language knows, each with one line of help. Where that begins with ``True``,
    the option is a switch, and takes no value in a notebook's ``%%kernel``."""
    threads: bool
    """Whether it may build on another thread (``background=True``)."""
    exclusive: Any
    """A lock that every build takes before the locks of ids, or None."""

    def recognise(self, text: str) -> str | None:
        """Return the mark that shows the text to be of this language, or None. Pure; never compiles."""

    def read(self, source: Source, *, kernel_id: str, number: int) -> Draft:
        """Read the text without executing it; a syntax error raises `KernelSourceError`. Pure."""

    def build(self, request: Request) -> Built:
        """Make a version aside. On any error nothing has changed."""

    def commit(self, built: Built, previous: Built | None) -> None:
        """Take effect outside the version's own objects (move instances to new classes). Must not fail."""

    def renewed(self, built: Built) -> Built:
        """Return `built`, or the same text built again when what it ran in is gone. Microseconds if nothing is."""

    def same(self, built: Built) -> bool:
        """Whether what the build used beside the text is still so (program, helper modules). Microseconds."""

    def reusable(self, built: Built, live: Built) -> bool:
        """Whether `built`, kept from before, may serve again after `live` without being made anew."""

    def recheck(self, built: Built, previous: Built, check: Any, keeps: int | None) -> None:
        """Check a kept version for the argument types of the live one before it serves again."""

    def attach(
        self, built: Built, live: Any, failed: Callable[..., Any] | None, renewed: Callable[[Built], None]
    ) -> None:
        """Tell whose version it is, and where to report a call that fails to compile and a version built again."""

    def retire(self, built: Built) -> None:
        """Give back what garbage collection alone does not. Called when the loader lets the version go."""

    def reset(self) -> None:
        """End the language's own runtime and give back its memory (``cleanup_all(reset_taichi=True)``)."""


_table: dict[str, Language] = {}
_BUILT_IN = {"taichi": (), "cpp": (".cpp", ".cc", ".cxx", ".hpp"), "cuda": (".cu", ".cuh"), "stencil": ()}
"""The rows that come with rekernel, with their suffixes: one that is named is imported without the others."""
_known = False


def _built_in(name: str) -> Language:
    if name not in _table:
        _table[name] = getattr(import_module(f"rekernel.languages.{name}"), name.upper())
    return _table[name]


def languages() -> Mapping[str, Language]:
    """Return the table, the built-in rows filled in."""
    global _known, _table
    if not _known:
        rows = {name: _built_in(name) for name in _BUILT_IN}  # in this order, whichever was used first
        if not _known:
            _table, _known = rows, True
    return _table


def register(language: Language) -> None:
    """Add a row, or replace the row of that name."""
    languages()
    _table[language.name] = language


def unregister(name: str) -> None:
    """Take a row out again."""
    languages()
    _table.pop(name, None)


def find(name: str) -> Language:
    """Return the row called `name`; a ValueError lists the known ones."""
    if not _known and name in _BUILT_IN:
        return _built_in(name)
    table = languages()
    if name not in table:
        raise ValueError(f"language={name!r} is not known; known are: {', '.join(sorted(table))}")
    return table[name]


def plain(text: str) -> str:
    r"""Return a text as marks are looked for in it: no byte-order mark, lines that end in ``\n``, no form feeds."""
    return "\n".join(split_lines(text.removeprefix("\ufeff"))).replace("\f", " ")


def detect(text: str, filename: str | None = None, live: str | None = None) -> Language:
    """Choose the language of a text: suffix, the id's live version, then marks in the text.

    Never compiles, so a text with a syntax error still gets its own language's error. Two candidates or
    none is a ValueError that says what was seen.
    """
    if filename is not None and not _known:
        for name, suffixes in _BUILT_IN.items():
            if filename.lower().endswith(suffixes):
                return _built_in(name)
    text = plain(text)
    table = languages()
    if filename is not None:
        for language in table.values():
            if filename.lower().endswith(language.suffixes):
                return language
    if live is not None and live in table:
        return table[live]
    seen = {name: mark for name, language in table.items() if (mark := language.recognise(text))}
    if len(seen) == 1:
        return table[next(iter(seen))]
    if not seen:
        what = "it has none of the known marks" if text.strip() else "nothing is in it"
        raise ValueError(f"cannot tell the language of this text: {what}; pass language= ({', '.join(sorted(table))})")
    marks = "; ".join(f"{name}: {mark!r}" for name, mark in sorted(seen.items()))
    raise ValueError(f"the text has marks of more than one language ({marks}); pass language=")
