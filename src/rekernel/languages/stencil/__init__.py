"""Symbolic stencils: a Python text that builds assignments with pystencils; each of them becomes a kernel.

::

    text -> pyrun: run privately           -> collecting: which public names are kernels
         -> entries: built at the first call, or before the swap if the version before had them
         -> pystencils: C code             -> the JIT of the target

pystencils and SymPy are imported when the first such text is built.
"""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rekernel.kernel import Kernel
from rekernel.languages import Built, Draft, Request, plain, pyrun
from rekernel.languages.stencil import reading
from rekernel.languages.stencil.options import HELP
from rekernel.source import Source

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["STENCIL", "StencilLanguage"]


class StencilLanguage:
    """The row of the table of languages."""

    name = "stencil"
    suffixes: tuple[str, ...] = ()  # ``.py`` may hold anything: its content decides
    options: Mapping[str, str] = HELP
    threads = True
    exclusive: Any = None

    def recognise(self, text: str) -> str | None:
        """See `Language.recognise`: what pystencils calls its things."""
        return reading.mark(text)

    def read(self, source: Source, *, kernel_id: str, number: int) -> Draft:
        """See `Language.read`."""
        tree = pyrun.parse(source, kernel_id, number)
        likely, others = reading.names(tree)
        return Draft(likely, others, reading.wants(tree), lambda: _values(source, tree, likely), tree)

    def titles_of_broken(self, text: str) -> tuple[str, ...]:
        """Return kernel names of a text that does not parse, so that its error lands at the right id."""
        return reading.titles_of_broken(plain(text))

    def build(self, request: Request) -> Built:
        """See `Language.build`."""
        from rekernel.languages.stencil.building import build

        return build(request)

    def commit(self, built: Built, previous: Built | None) -> None:
        """Nothing outside a version changes with it."""

    def renewed(self, built: Built) -> Built:
        """Return `built`: compiled code needs nothing that could go away."""
        return built

    def same(self, built: Built) -> bool:
        """Whether what the build used beside the text is still so: there is nothing."""
        return True

    def reusable(self, built: Built, live: Built) -> bool:
        """Whether a kept version may serve again: always, for it has no state."""
        return True

    def recheck(self, built: Built, previous: Built, check: Any, keeps: int | None) -> None:
        """See `Language.recheck`: what the live version has built is built before this one serves."""
        from rekernel.languages.stencil.building import ahead

        ahead(built.private, previous.private, check)

    def attach(
        self, built: Built, live: Any, failed: Callable[..., Any] | None, renewed: Callable[[Built], None]
    ) -> None:
        """See `Language.attach`."""
        built.private.failed = failed
        built.private.execution.loader.owner = weakref.ref(live)

    def owner(self, value: Any) -> tuple[Any, str] | None:
        """Return whose text defined a function or class, and under which name."""
        return pyrun.owner(value)

    def waiting(self, built: Built) -> Mapping[str, Callable[[], object]]:
        """Return what builds each kernel that is not built yet."""
        return {name: one.build for name, one in built.private.entries.items() if one.wrapper is None}

    def retire(self, built: Built) -> None:
        """Nothing: the code of a version goes with its last callable."""

    def export(self, built: Built, request: Request, directory: Path, name: str | None) -> Path:
        """Write all kernels of a version as an importable extension module, with its types."""
        from rekernel.languages.stencil.building import export

        return export(built.private, request.kernel_id, directory, name)

    def reset(self) -> None:
        """There is no runtime to end."""


def _values(source: Source, tree: ast.Module, names: tuple[str, ...]) -> tuple[Kernel, ...]:
    found = reading.bindings(tree)
    return tuple(
        Kernel(n, (), "stencil", code=source.code, doc=found[n].doc, line=found[n].line, policy="pystencils")
        for n in names
    )


STENCIL = StencilLanguage()
