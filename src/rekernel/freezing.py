"""``rekernel.freeze()``: from then on nothing is compiled in this process.

What is asked of it stands right before each compile: `refused` says whether to go on. A lookup in the cache comes
first, so that what is built goes on being loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rekernel.errors import FrozenError

if TYPE_CHECKING:
    from rekernel.source import Source

__all__ = ["Freeze", "command", "error", "freeze", "is_frozen", "looking", "refused", "thaw"]


class _State:
    frozen = False


_state = _State()
_looks = threading.local()


class Freeze:
    """What `freeze` returns. As a context manager, leaving it brings back what was before."""

    def __init__(self, before: bool) -> None:
        self._before = before

    def __enter__(self) -> Freeze:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _state.frozen = self._before

    def __repr__(self) -> str:
        return f"<rekernel is {'frozen: nothing is compiled' if _state.frozen else 'not frozen'}>"


def freeze() -> Freeze:
    """Let nothing be compiled in this process from now on: for production, once all kernels are loaded.

    What would have to be compiled raises `FrozenError`, which names the id, what differs from the nearest kernel in
    the cache, and the command that would fill it; the version that runs goes on. Unchanged loads, rollback to versions
    that are held, and kernels that are in the cache work as before. Taichi has no such cache: each new version, and
    each call with a new kind of argument, is refused.

    It counts for all threads and loaders, until `thaw`. ``with rekernel.freeze():`` ends with the block.

    >>> import rekernel
    >>> with rekernel.freeze():
    ...     rekernel.KernelLoader()
    <KernelLoader: 0 ids, frozen>
    """
    before, _state.frozen = _state.frozen, True
    return Freeze(before)


def thaw() -> None:
    """Let kernels be compiled again, after `freeze`."""
    _state.frozen = False


def is_frozen() -> bool:
    """Whether `freeze` counts now."""
    return _state.frozen


def refused() -> bool:
    """Whether the asking thread may compile nothing: after `freeze`, or inside of `looking`."""
    return _state.frozen or bool(getattr(_looks, "depth", 0))


@contextmanager
def looking() -> Iterator[None]:
    """Let this thread compile nothing inside: to find out what is in the cache."""
    _looks.depth = getattr(_looks, "depth", 0) + 1
    try:
        yield
    finally:
        _looks.depth -= 1


def error(
    kernel_id: str, language: str, field: str, said: str, *, version: int | None = None, source: Source | None = None,
    key: str | None = None, advice: str | None = None,
) -> FrozenError:  # fmt: skip
    """Return the error for something that would have to be compiled."""
    line = None if source is None or advice else command(source)
    advice = advice or (
        "load it before rekernel.freeze()" if line is None else f"this fills the cache beforehand: {line}"
    )
    number = "" if version is None else f" v{version}"
    return FrozenError(
        f"{kernel_id}{number} ({language}) would have to be compiled, and rekernel is frozen: {said}; {advice}",
        kernel_id=kernel_id, version=version, language=language, field=field, reason=said, command=line, key=key,
    )  # fmt: skip


def command(source: Source) -> str | None:
    """Return the command that builds a text ahead of time, or None where the text is in no file.

    >>> from rekernel.source import Source
    >>> command(Source("", "cpp", {"openmp": False, "flags": ("-O2",)}, "my heat.cpp"))
    "python -m rekernel build 'my heat.cpp' --language cpp --option openmp=false --option 'flags=[\\"-O2\\"]'"
    """
    import os
    import shlex

    if source.filename is None or not os.path.exists(source.filename):
        return None
    words = ["python", "-m", "rekernel", "build", source.filename, "--language", source.language]
    for name, value in source.options.items():
        words += ["--option", f"{name}={_option(value)}"]
    return shlex.join(words)


def _option(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, default=str)
