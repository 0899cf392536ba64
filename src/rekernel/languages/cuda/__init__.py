"""CUDA text: write it, run it, change it.

::

    text -> reading: which kernels, on which lines        (a parser; only where something must be compiled)
         -> unit: the text, then one line for each        -> NVRTC, or the object cache
         -> signature: what NVRTC says they take          -> modules, on each device when first called there
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from rekernel.languages import Built, Request
from rekernel.languages.cpp import CompiledText, CppDraft
from rekernel.languages.cuda.options import HELP
from rekernel.source import Source

if TYPE_CHECKING:
    from rekernel.languages.cuda.reading import Reading

__all__ = ["CUDA", "STRIPPED", "Cuda"]

STRIPPED = (
    r"//(?:[^\\\n]|\\.|\\\n)*|/\*.*?\*/|(?:u8|[uUL])?R\"(?P<d>[^()\\\s]{0,16})\(.*?\)(?P=d)\""
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'"
)
"""Comments and literals, in which no word counts."""
_MARK = re.compile(r"(?:extern\s*\"\"\s*)?\b__global__\b[^;{}]*")


class Cuda(CompiledText):
    """The row of the table of languages."""

    name: str = "cuda"
    suffixes: tuple[str, ...] = (".cu", ".cuh")
    options: Mapping[str, str] = HELP

    def recognise(self, text: str) -> str | None:
        """Return the mark that shows the text to be CUDA: ``__global__``."""
        code = re.sub(STRIPPED, lambda m: '""' if m[0].startswith('"') else " ", text, flags=re.S)
        found = _MARK.search(code)
        return None if found is None else " ".join(found[0].split())

    def read(self, source: Source, *, kernel_id: str, number: int) -> CudaDraft:
        """Return what the text alone tells; it is only looked at when somebody asks for it."""
        return CudaDraft(source, kernel_id, number)

    def titles_of_broken(self, text: str) -> tuple[str, ...]:
        """Return the names by which the id of a broken text is found."""
        return CudaDraft(Source(text, "cuda"), "new text", 1).kernels

    def build(self, request: Request) -> Built:
        """Make a version aside."""
        from rekernel.languages.cuda.building import build

        return build(request)

    def retire(self, built: Built) -> None:
        """Nothing: its modules are unloaded with the last that can launch a kernel of them."""


class CudaDraft(CppDraft):
    """A draft that reads the text when it is asked: a warm start with an id needs no parser."""

    language = ("cuda", "CUDA")

    @cached_property
    def reading(self) -> Reading:  # type: ignore[override]  # it has what a draft asks for
        """The kernels of the text."""
        from rekernel.languages.cuda.reading import read

        return read(self.facts[0].text.removeprefix("\ufeff"))


CUDA = Cuda()
