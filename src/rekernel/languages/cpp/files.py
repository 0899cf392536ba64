"""Files for debuggers and profilers: the loaded library, and its text beside it."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rekernel import workdirs
from rekernel.errors import JitError

if TYPE_CHECKING:
    from rekernel.languages import Request
    from rekernel.objcache import ObjectCache

__all__ = ["KEEP", "kept", "place", "stem", "text_in"]

KEEP = "REKERNEL_KEEP"
"""The variable that names a directory: every C++ text is loaded from files in it, which stay there."""


def place(request: Request, debug: bool, cache: ObjectCache, closing: ExitStack) -> str | None:
    """Return a new directory for the files of a version, or None where none are wanted.

    `closing` removes it. JitError if it cannot be made where the user wants it.
    """
    if not kept():
        return closing.enter_context(cache.workdir()) if debug else None
    import tempfile

    try:
        os.makedirs(kept(), exist_ok=True)
        made = tempfile.mkdtemp(prefix=f"{stem(request)}-v{request.number}-", dir=os.path.abspath(kept()))
    except OSError as error:
        raise JitError(f"{KEEP}={kept()}: no directory for {request.kernel_id} can be made there ({error})") from None
    closing.callback(workdirs.remove, made)
    return made


def kept() -> str:
    """Return the directory where the user wants to keep all files, or nothing."""
    return os.environ.get(KEEP, "")


def stem(request: Request) -> str:
    """Return an id as the name of a file."""
    return re.sub(r"[^\w.-]", "_", request.kernel_id)[:64].lstrip("-.") or "kernel"


def text_in(place: str, request: Request, text: str, *, own: bool) -> tuple[str, str]:
    """Return the name of the file that has the text, and its directory.

    `own`: the user's own file will do, if it has this very text.
    """
    filename = request.source.filename
    if own and filename is not None and not os.path.basename(filename).startswith("-"):
        path = os.path.abspath(filename)
        try:
            with open(path, encoding="utf-8", newline="") as file:
                if file.read().removeprefix("\ufeff") == text:
                    return os.path.basename(path), os.path.dirname(path)
        except (OSError, ValueError):
            pass
    name = f"{stem(request)}.cpp"
    with open(os.path.join(place, name), "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
    return name, place
