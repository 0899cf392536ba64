"""What NVRTC said about a text, as an error at the user's own line, with what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from rekernel.errors import Diagnostic, KernelSourceError
from rekernel.languages.cpp import failure as cpp
from rekernel.product import CompileFailed
from rekernel.source import Source

__all__ = ["source_error"]

_HOST = "a CUDA text is device code alone: Python has the memory (cupy.empty) and the launch, kernel[grid, block](...)"
_ADVICE = (
    (re.compile(r'identifier "(?:cuda(?:Malloc|Free|Mem|Device|Stream|Event|Get|Set|Launch)\w*|exit|rand)"'), _HOST),
    (re.compile(r"device-side kernel launch|kernel launch from __device__"), _HOST),
    (re.compile(r'namespace "std" has no member'), "device code has more of it in cuda::std, by <cuda/std/...>"),
    (
        re.compile(r"uses too much shared data"),
        "give it by the fourth value in the brackets: kernel[grid, block, stream, bytes] and extern __shared__",
    ),
)
_MANGLED = re.compile(r"(?P<what>Unresolved extern function|Entry function) '(?P<name>\w+)'")
_LENGTH = re.compile(r"\d+")


def _readable(match: re.Match[str]) -> str:
    """Return what the assembler says with the name as the text has it, and of a function as other linkers say it."""
    what = "undefined reference to" if match["what"].startswith("Un") else "the kernel"
    return f"{what} '{_name(match['name'])}'"


def _name(mangled: str) -> str:
    """Return the name at the end of a mangled path: ``f`` of ``_ZN1a1fEi``."""
    at, name = 3 if mangled.startswith("_ZN") else 2, mangled
    while mangled.startswith("_Z") and (length := _LENGTH.match(mangled, at)):
        name = mangled[length.end() : length.end() + int(length[0])]
        at = length.end() + int(length[0])
    return name


def source_error(
    failure: CompileFailed, source: Source, text: str, name: str, *, kernel_id: str, number: int,
    python: Mapping[str, Any] = MappingProxyType({}),
) -> KernelSourceError:  # fmt: skip
    """Return the error to raise. `name` is what NVRTC called the text, `python` has the names of the caller."""
    said = [_advised(one) for one in failure.diagnostics]
    advised = CompileFailed(
        str(failure), command=failure.command, output=failure.output, diagnostics=said or [Diagnostic(str(failure))]
    )
    return cpp.source_error(advised, source, text, name, kernel_id=kernel_id, number=number, python=python)


def _advised(one: Diagnostic) -> Diagnostic:
    one = replace(one, message=_MANGLED.sub(_readable, one.message))
    advice = next((advice for pattern, advice in _ADVICE if pattern.search(one.message)), None)
    return one if advice is None or one.severity != "error" else replace(one, message=f"{one.message}; {advice}")
