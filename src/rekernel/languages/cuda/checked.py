"""debug=True: what a kernel has noted on the device, as the exception that C++ text raises for it.

The other side of ``include/rekernel/cudachecks.hpp``: the layout here is that there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from rekernel.source import Source

__all__ = ["SIZE", "SYMBOL", "Note", "exception", "note_of"]

SYMBOL = "rekernel_failed"
"""The variable of the module that has the note."""
_HEAD = struct.Struct("=I4i3i3ii9q")
_TEXT = 256
SIZE = _HEAD.size + 2 * _TEXT
"""How many bytes it has."""
_INDEX = 2


@dataclass(frozen=True)
class Note:
    """What the first failed check of a launch has noted."""

    kind: int
    line: int
    axis: int
    index: int
    shape: tuple[int, ...]
    block: tuple[int, ...]
    thread: tuple[int, ...]
    file: str
    text: str


def note_of(data: bytes) -> Note | None:
    """Return the note in the bytes of the variable, or None where no check has failed."""
    taken, kind, line, axis, rank, *rest = _HEAD.unpack_from(data)
    if not taken:
        return None
    block, thread, (_padding, index, *shape) = tuple(rest[:3]), tuple(rest[3:6]), rest[6:]
    file, text = (_text(data[at : at + _TEXT]) for at in (_HEAD.size, _HEAD.size + _TEXT))
    return Note(kind, line, axis, index, tuple(shape[:rank]), block, thread, file, text)


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def exception(note: Note, kernel_id: str, name: str, source: Source, own: Callable[[str], bool]) -> Exception:
    """Return the exception for a note. `own`: whether a file is the text itself."""
    if own(note.file):
        line = note.line + source.first_line - 1
        shown = " ".join((source.filename or "").splitlines())
        place = f"{shown}:{line}" if shown else f"line {line}"
    else:
        place = f"{note.file}:{note.line}"
    where = f"{kernel_id}.{name}(), {place}"
    threads = f"(block {note.block}, thread {note.thread})"
    if note.kind == _INDEX:
        return IndexError(
            f"{where}: index {note.index} is out of bounds for axis {note.axis} with size {note.shape[note.axis]} of "
            f"an array of shape {note.shape} {threads}"
        )
    return AssertionError(f"{where}: assert({note.text}) failed {threads}")
