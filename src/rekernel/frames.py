"""How an error looks in IPython: the user's own frames and the error's text, no frame of ours."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

_OTHERS = frozenset(
    {"rekernel", "_rekernel_live", "taichi", "quadrants", "taichi_forge", "sympy", "IPython", "ipykernel"}
)


def rendered(error: BaseException) -> list[str]:
    """Return the lines that IPython prints for an error, in colours where it has them switched on."""
    shell = _shell()
    paint = _painted if shell is not None and shell.colors.lower() != "nocolor" else _plain
    kind, words = type(error), str(error)
    title = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "__main__" else kind.__qualname__
    first, *rest = words.split("\n")
    frames = list(_users_frames(error, paint))
    head = f"{paint(title, _RED)}: {paint(first, _BOLD)}" if words else paint(title, _RED)
    return [*frames, *([""] if frames else []), head, *(paint(row, _look(row)) for row in rest)]


_RED, _GREEN, _BOLD, _NONE = "31", "32", "1", ""  # no bold red: on the dark red of an error nobody can read it
_LINE = re.compile(r"> *\d+ \| ")  # the wrong line of an excerpt
_POINTER = re.compile(r"  +\| +\^+$")  # what points at a part of it


def _look(row: str) -> str:
    return _BOLD if _LINE.match(row) else _RED if _POINTER.match(row) else _NONE


def _painted(words: str, look: str) -> str:
    return f"\033[{look}m{words}\033[0m" if look and words else words


def _plain(words: str, look: str) -> str:
    return words


def _users_frames(error: BaseException, paint: Callable[[str, str], str]) -> Iterator[str]:
    step = error.__traceback__
    while step is not None:
        frame, line = step.tb_frame, step.tb_lineno
        if frame.f_globals.get("__name__", "").split(".")[0] not in _OTHERS and not _is_a_magics(step.tb_next):
            code = frame.f_code
            name = "" if code.co_name == "<module>" else f", in {code.co_name}"
            yield f"{paint(_place(code.co_filename), _GREEN)}, line {line}{name}"
            text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
            if text:
                yield f"    {text}"
        step = step.tb_next


def _is_a_magics(step: TracebackType | None) -> bool:
    """Whether a frame leads into a magic: its line is not the user's but what IPython made of a cell."""
    return step is not None and step.tb_frame.f_code.co_name in ("run_cell_magic", "run_line_magic")


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _place(filename: str) -> str:
    """Return a file as the user knows it; for IPython's cells, whose files have made-up names, ``Cell In[3]``."""
    shell = _shell()
    known = None if shell is None else shell.compile.format_code_name(filename)
    return f"File {filename}" if known is None else " ".join(known)
