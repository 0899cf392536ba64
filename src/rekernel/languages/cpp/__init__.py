"""C++ text: write it, run it, change it.

::

    text -> reading: which functions, on which lines      (a parser; only where something must be compiled)
         -> unit: the text, then one line for each         -> the compiler, or the object cache
         -> signature: what the compiler says they take    -> functions of the native call path
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from rekernel.errors import JitError, KernelSourceError
from rekernel.kernel import Kernel, Parameter
from rekernel.languages import Built, Draft, Request
from rekernel.languages.cpp.options import HELP
from rekernel.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from rekernel.languages.cpp.candidates import Reading

__all__ = ["CPP", "CompiledText", "Cpp", "CppDraft"]

_STRIPPED = re.compile(
    r"""\"{3}.*?\"{3}|'{3}.*?'{3}|//(?:[^\\\n]|\\.|\\\n)*|/\*.*?(?:\*/|\Z)|(?:u8|[uUL])?R"(?P<d>[^()\\\s]{0,16})\(.*?(?:\)(?P=d)"|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.S,
)
_FUNCTION = r"""
    (?: ^ | [;}] ) [ \t]*
    (?! (?:else|return|new|delete|throw|raise|typedef|using|class|struct|enum|if|while|for) \b )
    (?: (?!def\b) [^\W\d][\w:$]* (?: <[^;{}()]{0,200}> )? [ \t\n*&]+ ){1,12}    # its type
    [^\W\d][\w:$]* [ \t]*    # its name
    \( (?: [^(){};] | \([^(){};]{0,200}\) ){0,4000} \)    # its parameters
    \s* (?: (?: const | noexcept (?: [ ]?\([^()]{0,80}\) )? | -> (?: [^;{}()=:] | :: ){1,80} ) \s* ){0,3}
    \{
"""
# The counts bound the time that a long text of another language can take.
_MARKS = (
    re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]*[>\"]", re.M),
    re.compile(_FUNCTION, re.M | re.X),
    re.compile(r"^[ \t]*(?:template\s*<|namespace\s+[\w:]*\s*\{|extern\s+\"\"|using\s+namespace\b)", re.M),
    # Also where the rest of the line is wrong: no other language begins a line with such a word and a call.
    re.compile(
        r"^[ \t]*(?:(?:static|inline|constexpr|const|unsigned|signed)[ \t]+)*"
        r"(?:void|bool|char|short|int|long|float|double|auto|size_t|u?int\d+_t)\b[ \t*&]+\w+[ \t]*\(",
        re.M,
    ),
)
_SPLICE = re.compile(r"\\[ \t]*\n")
_OTHERS = re.compile(r"\b__global__\b|\b__device__\b")


class CompiledText:
    """What a row of the table says of texts that are compiled as a whole, before they are called."""

    threads: bool = True
    exclusive: Any = None

    def commit(self, built: Built, previous: Built | None) -> None:
        """Nothing outside a version changes with it: its statics are its own."""

    def renewed(self, built: Built) -> Built:
        """Return `built`: compiled code needs nothing that could go away."""
        return built

    def same(self, built: Built) -> bool:
        """Whether the headers that the text includes are as they were, and relative paths lead where they did."""
        import os

        from rekernel import headers

        private = built.private
        if private.headers is None or private.relative_to not in (None, os.getcwd()):
            return False
        rows = private.headers["headers"]
        if not rows["user"] and not rows["directories"]:
            return True
        if headers.valid(private.headers) is not None:
            return False
        private.headers = headers.settled(private.headers)
        return True

    def files(self, built: Built) -> Mapping[str, object]:
        """See `Language`: the user's headers."""
        headers = built.private.headers
        return {} if headers is None else {row[0]: row[1] for row in headers["headers"]["user"]}

    def mentions(self, path: str, text: bytes, options: Mapping[str, Any]) -> Iterable[str]:
        """See `Language`: what the text includes."""
        from rekernel.languages.given import paths
        from rekernel.places import included

        return included(path, text, paths(options.get("include_dirs")))

    def reusable(self, built: Built, live: Built) -> bool:
        """Whether a kept version is what its text would be compiled to now."""
        return self.same(built)

    def recheck(self, built: Built, previous: Built, check: Any, keeps: int | None) -> None:
        """Nothing is compiled at a call, so there is nothing to check before one."""

    def attach(
        self, built: Built, live: Any, failed: Callable[..., Any] | None, renewed: Callable[[Built], None]
    ) -> None:
        """Nothing to tell: a call of compiled code cannot fail to compile."""

    def reset(self) -> None:
        """There is no runtime to end."""


class Cpp(CompiledText):
    """The row of the table of languages."""

    name: str = "cpp"
    suffixes: tuple[str, ...] = (".cpp", ".cc", ".cxx", ".hpp")
    options: Mapping[str, str] = HELP

    def recognise(self, text: str) -> str | None:
        """Return the mark that shows the text to be C++: an include, a function with a body, a template."""
        code = _STRIPPED.sub(lambda m: '""' if m[0].startswith('"') else " ", _SPLICE.sub("", text))
        if _OTHERS.search(code):
            return None
        found = next((match for mark in _MARKS if (match := mark.search(code))), None)
        return None if found is None else " ".join(found[0].split())

    def read(self, source: Source, *, kernel_id: str, number: int) -> Draft:
        """Return what the text alone tells; it is only looked at when somebody asks for it."""
        return CppDraft(source, kernel_id, number)

    def titles_of_broken(self, text: str) -> tuple[str, ...]:
        """Return the names by which the id of a broken text is found."""
        return CppDraft(Source(text, "cpp"), "new text", 1).kernels

    def build(self, request: Request) -> Built:
        """Make a version aside."""
        from rekernel.languages.cpp.building import build

        return build(request)

    def retire(self, built: Built) -> None:
        """Remove what a debugger was to find."""
        built.private.close()

    def export(self, built: Built, request: Request, directory: Path, name: str | None) -> Path:
        """Write a version as an importable extension module, with its types and its text."""
        from rekernel.languages.cpp.exporting import export

        if not self.same(built):
            raise JitError(
                f"a header that {request.kernel_id!r} includes has changed since it was loaded; load it again, then "
                "export"
            )
        return export(built, request, directory, name)


class CppDraft(Draft):
    """A draft that reads the text when it is asked: a warm start with an id needs no parser."""

    language: ClassVar[tuple[str, str]] = ("cpp", "C++")

    def __init__(self, source: Source, kernel_id: str, number: int) -> None:
        object.__setattr__(self, "facts", (source, kernel_id, number))  # the other fields are told when asked for
        object.__setattr__(self, "values", self._values)

    @cached_property
    def reading(self) -> Reading:
        """The functions of the text."""
        from rekernel.languages.cpp.reading import read

        return read(self.facts[0].text.removeprefix("\ufeff"))

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of its functions; a text that has none and does not read either is an error at its line."""
        names = tuple(dict.fromkeys(one.name for one in self.reading.candidates))
        if not names and self.reading.wrong_line is not None:
            source, kernel_id, number = self.facts
            raise KernelSourceError(
                f"this does not read as {self.language[1]}, and there is no function to name the kernel after",
                kernel_id=kernel_id, version=number, language=self.language[0], source=source.text,
                first_line=source.first_line, filename=source.filename,
                line=self.reading.wrong_line + source.first_line - 1,
            )  # fmt: skip
        return names

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """What a text without kernels may be called after: functions that are none, for a reason."""
        return tuple(self.reading.skipped)

    def _values(self) -> tuple[Kernel, ...]:
        return tuple(
            Kernel(
                one.name, tuple(Parameter(a.name, "other", type=a.text) for a in one.arguments), self.language[0],
                code=self.facts[0].text, doc=one.doc, line=one.line,
            )
            for one in self.reading.candidates
        )  # fmt: skip


CPP = Cpp()
