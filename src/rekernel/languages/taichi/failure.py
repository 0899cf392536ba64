"""What went wrong in a Taichi text, turned into a `KernelSourceError` at the user's line."""

from __future__ import annotations

import re
import weakref
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from rekernel.errors import KernelSourceError
from rekernel.excerpt import line_of, split_lines
from rekernel.languages.pyrun import error_at, frames_within, unknown_name
from rekernel.source import Source

_PLACE = re.compile(r'File "(?P<file>.+?)", line (?P<line>\d+), in \S+:?')
_HINT = re.compile(r"^[ ~]*\^[ ~^]*$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MISSING = re.compile(r"""[Nn]ame ["'](?P<name>\w+)["'] is not defined""")


class Text:
    """A text under the file name that the compiled code carries; found again from tracebacks and messages."""

    def __init__(self, source: Source, kernel_id: str, number: int, virtual: str) -> None:
        self.source = source
        self.kernel_id = kernel_id
        self.number = number
        self.virtual = virtual
        texts[virtual] = self


#: File name -> text, for as long as the text's own version is alive.
texts: weakref.WeakValueDictionary[str, Text] = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Spot:
    """A place in a text, in the text's own numbers (before ``first_line`` and the dedent are added)."""

    text: Text
    line: int | None = None
    column: int | None = None
    end_column: int | None = None


def source_error(
    error: BaseException,
    text: Text,
    *,
    keeps: int | None = None,
    line: int | None = None,
    names: Iterable[str] = (),
    hints: Container[str] = (),
) -> KernelSourceError:
    """Turn any exception that came out of `text` into the error that the user sees.

    `line` is used where the exception itself has no place; `names` are the names in scope (for "did you
    mean"), `hints` the missing names that the caller has as globals.
    """
    if isinstance(error, KernelSourceError):
        return error
    spot = _place(error, text, line)
    message = _improve(_message(error), names, hints)
    made = error_at(
        spot.text.source, spot.text.kernel_id, spot.text.number, message, spot.line, spot.column, spot.end_column,
        output=_COLOUR.sub("", str(error)).strip(), keeps=keeps,
    )  # fmt: skip
    error.__traceback__ = frames_within(error.__traceback__, texts)
    made.__cause__ = error
    return made


def helper_error(error: BaseException, file: str, kernel_id: str, number: int, language: str) -> KernelSourceError:
    """Turn what a local module raised while it was imported anew into an error at the module's own line."""
    line = column = None
    if isinstance(error, SyntaxError):
        line, column = error.lineno, error.offset
    traceback = error.__traceback__
    while traceback is not None and not isinstance(error, SyntaxError):
        if traceback.tb_frame.f_code.co_filename == file:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            source = stream.read()
    except OSError:
        source = ""
    return KernelSourceError(
        _message(error),
        kernel_id=kernel_id,
        version=number,
        language=language,
        source=source,
        filename=file,
        line=line,
        column=column or None,
    )


def _place(error: BaseException, text: Text, line: int | None) -> Spot:
    if isinstance(error, SyntaxError) and error.lineno and error.filename is not None and error.filename in texts:
        end = error.end_offset if error.end_lineno == error.lineno else None
        return Spot(texts[error.filename], error.lineno, error.offset or None, end if end and end > 0 else None)
    spot = _spot_in_message(_COLOUR.sub("", str(error)))
    if spot is not None:
        return spot
    if line is not None:
        return Spot(text, line)
    traceback, found = error.__traceback__, None
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name in texts:
            found = Spot(texts[name], traceback.tb_lineno)
        traceback = traceback.tb_next
    if found is not None and found.line is not None and not isinstance(error, AttributeError | NameError):
        lines = split_lines(found.text.source.code)
        while found.line < len(lines) and lines[found.line - 1].lstrip().startswith("@"):
            found = replace(found, line=found.line + 1)  # a decorator complains of what is below it
    return found or Spot(text)


def _spot_in_message(message: str) -> Spot | None:
    """Find the innermost place of Taichi's own message that lies in a text of ours.

    Taichi writes for each call on the way ``File "...", line N, in f:``, the line, and carets under it.
    """
    lines = message.split("\n")
    for index in range(len(lines) - 1, -1, -1):
        match = _PLACE.search(lines[index])
        if match is None or match["file"] not in texts:
            continue
        text = texts[match["file"]]
        number = int(match["line"])
        if index + 2 < len(lines) and _HINT.match(lines[index + 2]):
            hint = lines[index + 2]
            start, end = hint.index("^"), len(hint.rstrip())
            own = line_of(text.source.code, 1, number) or ""
            return Spot(text, number, _narrow(own, start) + 1, _narrow(own, end) + 1)
        return Spot(text, number)
    return None


def _narrow(line: str, column: int) -> int:
    """Turn a column of a line whose tabs were widened to four blanks into one of the line itself."""
    wide = at = 0  # in characters, as tabs are widened; in bytes, as Python's syntax tree and thus Taichi count
    for index, character in enumerate(line):
        if at >= column:
            return index
        step = 4 - wide % 4 if character == "\t" else 1
        wide += step
        at += step if character == "\t" else len(character.encode("utf-8", "surrogatepass"))
    return len(line)


def _message(error: BaseException) -> str:
    """Return what is wrong in one line, without places, source lines and carets."""
    if isinstance(error, SyntaxError) and error.lineno:
        return str(error.msg)
    if isinstance(error, SystemExit):
        return f"the text ends the program (SystemExit: {error.code})"
    if "not placed" in str(error):
        return "the field has no shape and no place yet: give it a shape, or place it with ti.root"
    lines = [line.rstrip() for line in split_lines(_COLOUR.sub("", str(error)))]
    last_hint = max((i for i, line in enumerate(lines) if _HINT.match(line) or _PLACE.search(line)), default=-1)
    rest = [line.strip() for line in lines[last_hint + 1 :] if line.strip()]
    if "Traceback (most recent call last):" in "\n".join(lines):
        rest = rest[-1:]
    message = " ".join(rest) or next((line.strip() for line in lines if line.strip()), "")
    if not message:
        return type(error).__name__
    plain = type(error).__module__ == "builtins" and not isinstance(error, NameError)
    return f"{type(error).__name__}: {message}" if plain else message


def _improve(message: str, names: Iterable[str], hints: Container[str]) -> str:
    """Add what the user most likely meant to a message about an unknown name."""
    match = _MISSING.search(message)
    return message if match is None else unknown_name(match["name"], names, hints)
