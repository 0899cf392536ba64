"""How an error looks in IPython: the user's own frames and the error's text, no frame of ours."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from types import TracebackType

_OTHERS = frozenset(
    {"rekernel", "_rekernel_live", "taichi", "quadrants", "taichi_forge", "sympy", "IPython", "ipykernel"}
)


def rendered(error: BaseException) -> list[str]:
    """Return the lines that IPython prints for an error."""
    kind = type(error)
    words = str(error)
    title = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "__main__" else kind.__qualname__
    frames = list(_users_frames(error))
    return [*frames, *([""] if frames else []), *(f"{title}: {words}" if words else title).split("\n")]


def _users_frames(error: BaseException) -> Iterator[str]:
    step = error.__traceback__
    while step is not None:
        frame, line = step.tb_frame, step.tb_lineno
        if frame.f_globals.get("__name__", "").split(".")[0] not in _OTHERS and not _is_a_magics(step.tb_next):
            code = frame.f_code
            name = "" if code.co_name == "<module>" else f", in {code.co_name}"
            yield f"{_place(code.co_filename)}, line {line}{name}"
            text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
            if text:
                yield f"    {text}"
        step = step.tb_next


def _is_a_magics(step: TracebackType | None) -> bool:
    """Whether a frame leads into a magic: its line is not the user's but what IPython made of a cell."""
    return step is not None and step.tb_frame.f_code.co_name in ("run_cell_magic", "run_line_magic")


def _place(filename: str) -> str:
    """Return a file as the user knows it; for IPython's cells, whose files have made-up names, ``Cell In[3]``."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    known = None if shell is None else shell.compile.format_code_name(filename)
    return f"File {filename}" if known is None else " ".join(known)
