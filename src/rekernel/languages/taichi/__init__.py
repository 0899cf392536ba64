"""The Taichi row: text with ``@ti.kernel``s, executed privately and compiled by Taichi.

``package`` is the one place that imports Taichi, ``execute`` runs a text, ``state`` decides what goes on from
the version before, ``precheck`` compiles before the swap, ``guards`` is the checked way into a kernel,
``failure`` turns what went wrong into the user's line, ``making`` puts them together into a ``version``.
"""

from __future__ import annotations

import ast
import ctypes
import re
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from rekernel import key, underway
from rekernel.errors import KernelSourceError
from rekernel.excerpt import split_lines
from rekernel.languages import Built, Draft, Request, plain, pyrun, pytext
from rekernel.languages.taichi.package import LOCK
from rekernel.source import Source

_MARK = re.compile(
    r"^[ \t]*(@[ \t]*(?!(?:ps|pystencils)\.)(?:\w+\.)?(?:kernel|func|real_func|pyfunc|data_oriented)\b|"
    r"(?:import|from)[ \t]+(?:taichi|quadrants|taichi_forge)\b)",
    re.MULTILINE,
)
_NAMED = re.compile(r"^[ \t]*@[ \t]*(?:\w+\.)?kernel\b.*\n(?:[ \t]*@.*\n)*[ \t]*def[ \t]+(\w+)", re.MULTILINE)
_MARKS = frozenset({"kernel", "func", "real_func", "pyfunc", "data_oriented", "dataclass"})
_LONGEST = 9999  # Taichi wraps the lines of a kernel's source at this width, which breaks longer ones


class TaichiLanguage:
    """Taichi, quadrants and taichi_forge: one kernel API, one row."""

    name = "taichi"
    suffixes: tuple[str, ...] = ()  # ``.py`` may hold anything: its content decides
    options: Mapping[str, str] = {}
    exclusive = LOCK
    threads = False  # Taichi holds the GIL while it compiles: a background thread would hide nothing

    def recognise(self, text: str) -> str | None:
        """See `Language.recognise`: a decorator of Taichi's, or an import of the package."""
        match = _MARK.search(pytext.without_strings(text))
        return match[1].strip() if match else None

    def read(self, source: Source, *, kernel_id: str, number: int) -> Draft:
        """See `Language.read`."""
        tree = _parse(source, kernel_id, number)
        found = pytext.decorated(tree, _MARKS)
        kernels = tuple(d.name for d in found if d.mark == "kernel")
        public = tuple(name for name in kernels if not name.startswith("_")) or kernels
        others = [d.name for mark in ("data_oriented", "dataclass") for d in found if d.mark == mark]
        others += [d.name for d in found if d.mark in ("func", "real_func", "pyfunc")]
        _check_widths(source, tree, kernel_id, number)
        from rekernel.languages.taichi import values

        nodes = {d.name: d.node for d in found if d.mark == "kernel" and isinstance(d.node, ast.FunctionDef)}
        return Draft(public, tuple(others), pytext.wanted(tree), lambda: values.literal(nodes, source.code), tree)

    def titles_of_broken(self, text: str) -> tuple[str, ...]:
        """Return kernel names of a text that does not parse, so that its error lands at the right id."""
        return tuple(_NAMED.findall(plain(text)))

    def build(self, request: Request) -> Built:
        """See `Language.build`."""
        from rekernel.languages.taichi import making

        with underway.compiling("", self.name, making.ANEW, advice=making.ADVICE):
            return making.build(request)

    def commit(self, built: Built, previous: Built | None) -> None:
        """See `Language.commit`: instances of the old classes go on as instances of the new ones."""
        if previous is None or not (previous.private.classes or previous.private.struct_types):
            return
        from rekernel.languages.taichi import instances

        if previous.private.program is built.private.program:
            instances.move(previous.private.classes, built.private.classes)
            instances.move_structs(previous.private.struct_types, built.private.struct_types)

    def start(self, text: str) -> None:
        """Start a program on the CPU for a text, unless one runs already or the text starts it."""
        from rekernel.languages.taichi import starting

        starting.start(text)

    def renewed(self, built: Built) -> Built:
        """See `Language.renewed`: after another ``ti.init`` the text runs again."""
        version = built.private
        program = version.package.program
        if program is version.program or program is None:
            return built
        with LOCK:
            return version.renew()  # type: ignore[no-any-return]

    def same(self, built: Built) -> bool:
        """See `Language.same`: local helper modules are as they were."""
        return all(helper.unchanged() for helper in built.private.helpers)

    def files(self, built: Built) -> Mapping[str, object]:
        """See `Language`: local helper modules."""
        return {helper.file: key.content(helper.content) for helper in built.private.helpers}

    def reusable(self, built: Built, live: Built) -> bool:
        """See `Language.reusable`: the program runs on, and all state is what the live version has."""
        old, now = built.private, live.private
        if old.program is not now.program or not self.same(built) or not self.same(live):
            return False
        return all(now.globals.get(name) is old.globals[name] for name in old.state_names)

    def recheck(self, built: Built, previous: Built, check: Any, keeps: int | None) -> None:
        """See `Language.recheck`."""
        from rekernel.languages.taichi.precheck import precheck

        with LOCK:
            precheck(built.private, previous.private, check, keeps)

    def attach(
        self, built: Built, live: Any, failed: Callable[..., Any] | None, renewed: Callable[[Built], None]
    ) -> None:
        """See `Language.attach`."""
        version = built.private
        version.on_failure, version.on_renewal = failed, renewed
        version.execution.loader.owner = weakref.ref(live)

    def owner(self, value: Any) -> tuple[Any, str] | None:
        """Return whose text defined a function or class, and under which name."""
        return pyrun.owner(value)

    def stats(self) -> Mapping[str, int]:
        """Count what Taichi keeps until ``ti.reset``: kernels in its list, and compiled specialisations."""
        from rekernel.languages.taichi.package import imported, specialisations

        kernels = [k for found in imported() for k in list(found.runtime.kernels)]
        return {"kernels": len(kernels), "compiled": sum(len(specialisations(k)) for k in kernels)}

    def retire(self, built: Built) -> None:
        """Nothing: the kernels are held weakly by Taichi, and the rest is garbage with the version."""

    def reset(self) -> None:
        """See `Language.reset`: end the program, and give its memory back to the system."""
        from rekernel.languages.taichi.package import imported

        with LOCK:
            for found in imported():
                found.module.reset()
        _trim()


def _parse(source: Source, kernel_id: str, number: int) -> ast.Module:
    cause: Exception
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once, when the statements are compiled
            return ast.parse(source.code)
    except SyntaxError as error:
        cause = error
        line, column, end = error.lineno, error.offset, error.end_offset
        message = str(error.msg)
        if line is not None and error.end_lineno != line:
            end = None
    except (ValueError, RecursionError, MemoryError) as error:
        cause = error
        # A null byte or a lone surrogate; expressions nested too deep for the parser.
        line = column = end = None
        deep = "the text is nested too deeply for Python's parser"
        message = str(error) if isinstance(error, ValueError) else deep
    offset = source.first_line - 1
    raise KernelSourceError(
        message,
        kernel_id=kernel_id,
        version=number,
        language=source.language,
        source=source.text,
        first_line=source.first_line,
        filename=source.filename,
        line=None if line is None else line + offset,
        column=None if not column else column + source.dedent,
        end_column=None if not end or end < 0 else end + source.dedent,
    ) from cause


def _check_widths(source: Source, tree: ast.Module, kernel_id: str, number: int) -> None:
    lines = split_lines(source.code)
    if max(map(len, lines)) <= _LONGEST:
        return
    for found in pytext.decorated(tree, _MARKS):
        for line in range(found.node.lineno, (found.node.end_lineno or found.node.lineno) + 1):
            if len(lines[line - 1]) > _LONGEST:
                raise KernelSourceError(
                    f"the line has {len(lines[line - 1])} characters; Taichi breaks lines of more than {_LONGEST} "
                    "inside kernels and functions: split it",
                    kernel_id=kernel_id, version=number, language=source.language, source=source.text,
                    first_line=source.first_line, filename=source.filename, line=line + source.first_line - 1,
                )  # fmt: skip


def _trim() -> None:
    """Give freed memory back to the system, where the C library can."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


TAICHI = TaichiLanguage()
