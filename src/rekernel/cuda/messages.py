r"""What NVRTC said, as data. Pure.

>>> parse('kernel.cu(3): error: identifier "sr" is undefined\n    x[0] = sr;\n           ^\n', "kernel.cu")[0].column
10
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from rekernel.cuda.headertexts import instead_of
from rekernel.errors import Diagnostic
from rekernel.gnumessages import INCLUDED, character_column, readable

__all__ = ["parse"]

_MESSAGE = re.compile(
    r"(?:(?P<file>[^\n]+?)\((?P<line>\d+)\)|At end of source): "
    r"(?P<kind>catastrophic error|internal error|error|warning|remark|note)(?P<number> #\d+(?:-\w)?)?: (?P<text>.*)"
)
_PLACELESS = re.compile(r"(?:ptxas|nvlink|nvrtc|nvcc)\s*:?\s*(?P<kind>fatal|error|warning|info)\s*: (?P<text>.*)")
_STEP = re.compile(r"(?P<text>.*?) at line (?P<line>\d+)(?: of (?P<file>.+))?")
_NOT_FOUND = re.compile(r'(?:could not|cannot) open source file "(?P<name>[^"]*)"')
_SEVERITY = {"warning": "warning", "remark": "note", "note": "note", "info": "note"}
_INDENT = "  "  # of the line that is shown, and of the mark below it
_NAMES = "__nv_name_map"  # what NVRTC calls the names that it was asked for
_BUILTIN = "__nv_nvrtc_builtin_header.h"  # what it reads before every text
_CLEARER = {
    "A function without": "this is a function for the host; device code needs __device__ before it",
    "A namespace scope variable without": "this is a variable of the host; write __device__ or __constant__ before it",
}


def parse(
    log: str, name: str, *, names: Mapping[str, str] | None = None,
    includes: Mapping[str, tuple[str, int]] | None = None, quiet: Collection[str] = (),
) -> tuple[Diagnostic, ...]:  # fmt: skip
    """Return the errors, warnings and notes of a log, in its order; what cannot be read is left out.

    `name`: what the text is called. `names`: how files are to be called instead of what NVRTC calls them. `includes`:
    of a header, the file and line that include it, which NVRTC does not tell. Warnings about headers in `quiet`
    (names, or directories with a final slash) are left out, for nobody can mend those.
    """
    found: list[Diagnostic] = []
    lines = log.replace("\r", "").rstrip("\n").split("\n")
    at = 0
    while at < len(lines):
        match = _MESSAGE.fullmatch(lines[at])
        end = _end(lines, at + 1)
        if match is not None:
            one = _placed(match, lines[at + 1 : end], name, names or {}, includes or {})
            if one is not None and not (one.severity != "error" and _below(one.filename, quiet)):
                if one.severity == "note" and one.via and found and not found[-1].via:
                    found[-1] = replace(found[-1], via=one.via)  # of the error to which the note belongs
                found.append(one)
        elif match := _PLACELESS.match(lines[at]):
            found.append(Diagnostic(readable(match["text"]), severity=_SEVERITY.get(match["kind"], "error")))
        at = end
    return tuple(_without_builtin(found))


def _without_builtin(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return one message for all those about CUDA's own header, which only a macro can break."""
    inside = [one for one in found if one.filename == _BUILTIN and one.severity == "error"]
    kept = [one for one in found if one.filename != _BUILTIN]
    if not inside:
        return kept
    said = f"a macro of the options or of a header that comes first breaks CUDA's own header: {inside[0].text or ''}"
    return [Diagnostic(f"{said.rstrip()}: {inside[0].message}; #define it in the text"), *kept]


def _end(lines: Sequence[str], at: int) -> int:
    """Return where the next message begins: what belongs to one is indented."""
    while at < len(lines) and (not lines[at] or lines[at].startswith(_INDENT) or lines[at][:1] in " \t"):
        at += 1
    return at


def _placed(
    match: re.Match[str], below: Sequence[str], name: str, names: Mapping[str, str],
    includes: Mapping[str, tuple[str, int]],
) -> Diagnostic | None:  # fmt: skip
    said = readable(match["text"])
    if match["file"] == _NAMES:  # said twice, of a name; the text that it stands in is ours
        return None if said.startswith("Error in parsing name expression") else Diagnostic(said)
    severity = _SEVERITY.get(match["kind"], "error")
    said = next((clear for start, clear in _CLEARER.items() if said.startswith(start)), said)
    if missing := _NOT_FOUND.match(said):
        advice = instead_of(missing["name"])
        said = f"there is no header {missing['name']}" + (f": {advice}" if advice else " in the include directories")
    if match["file"] is None:
        return Diagnostic(f"at the end of the text: {said}", filename=name, severity=severity)
    file = names.get(match["file"], match["file"])
    text, column, rest = _excerpt(below)
    more, via = _steps(rest, file, names)
    return Diagnostic(
        said + "".join(f"; {line}" for line in more), int(match["line"]), column, None, text, file, severity,
        (*via, *_chain(file, includes)),
    )  # fmt: skip


def _excerpt(below: Sequence[str]) -> tuple[str | None, int | None, list[str]]:
    """Return the line that is shown, the column that is marked, in characters, and the lines that are neither."""
    marks = [n for n, line in enumerate(below) if line.strip() == "^"]
    if not marks or marks[0] == 0:
        return None, None, list(below)
    mark = marks[0]
    text = below[mark - 1].removeprefix(_INDENT)
    column = character_column(text, below[mark].index("^") + 1 - len(_INDENT))
    return text, column, [*below[: mark - 1], *below[mark + 1 :]]


def _steps(rest: Iterable[str], file: str, names: Mapping[str, str]) -> tuple[list[str], list[Diagnostic]]:
    """Return what else is said, and how the compiler got there: through which instantiations."""
    more: list[str] = []
    via: list[Diagnostic] = []
    inside = False
    for line in rest:
        said = line.strip()
        inside = inside or said.startswith("detected during")
        said = said.removeprefix("detected during:").removeprefix("detected during").strip()
        if not said or said.startswith("Remark:"):
            continue
        if not inside:
            more.append(readable(said))
        elif match := _STEP.fullmatch(said):
            place = names.get(match["file"], match["file"]) if match["file"] else file
            place = place.strip('"')
            via.append(Diagnostic(readable(match["text"]), int(match["line"]), filename=place, severity="note"))
    return more, via


def _chain(file: str, includes: Mapping[str, tuple[str, int]]) -> tuple[Diagnostic, ...]:
    steps: list[Diagnostic] = []
    while file in includes and len(steps) < 100:
        file, line = includes[file]
        steps.append(Diagnostic(INCLUDED, line, filename=file, severity="note"))
    return tuple(steps)


def _below(file: str | None, quiet: Collection[str]) -> bool:
    return file is not None and any(file == one or (one.endswith("/") and file.startswith(one)) for one in quiet)


def with_text(found: Sequence[Diagnostic], lines: Mapping[tuple[str, int], str]) -> tuple[Diagnostic, ...]:
    """Return diagnostics with their lines as they are in the unit, which NVRTC does not show for every message."""
    return tuple(
        one if one.text is not None else replace(one, text=lines.get((one.filename or "", one.line or 0)))
        for one in found
    )
