"""Every error that rekernel raises on purpose.

    RekernelError
    ├── KernelSourceError              the user's text is wrong; knows the line
    ├── KernelNotFoundError            (KeyError, ValueError)  no such id, or no such kernel
    ├── KernelRemovedError             (RuntimeError)  called after its id was unloaded
    ├── ArgumentTypeError              (TypeError)     wrong kind of argument
    ├── ArgumentValueError             (ValueError)    right kind, impossible value
    ├── ToolchainError                 (RuntimeError)  a compiler or package is missing or broken
    ├── JitError                       pystencils' name for what a JIT cannot do
    └── FrozenError                    a compile was asked for after ``rekernel.freeze()``
    RekernelWarning                    (UserWarning)

An error carries its data as attributes, its text is made from them, and it pickles.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "Diagnostic",
    "FrozenError",
    "JitError",
    "KernelNotFoundError",
    "KernelRemovedError",
    "KernelSourceError",
    "RekernelError",
    "RekernelWarning",
    "ToolchainError",
]


class RekernelWarning(UserWarning):
    """Something that the user should know and that stops nothing."""


class RekernelError(Exception):
    """Base class of all errors that rekernel raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The default recipe calls the class with self.args, which a keyword-built error does not have.
        return _rebuild, (type(self), self.args, dict(self.__dict__))

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the user's own frames and this error, nothing of how rekernel works."""
        from rekernel.frames import rendered

        return rendered(self)


def _rebuild(cls: type[RekernelError], args: tuple[Any, ...], state: dict[str, Any]) -> RekernelError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def parked(error: Exception) -> Callable[[], Exception]:
    """Return a way back to `error` that keeps no frame alive, for a frame holds the arrays of whoever called.

    It leads to the error itself as long as somebody else holds it, then to a copy without traceback.
    """
    kept = _without_frames(error)
    kept.__cause__ = None if not isinstance(error.__cause__, Exception) else _without_frames(error.__cause__)
    try:
        alive: Callable[[], Exception | None] = weakref.ref(error)
    except TypeError:  # built-in exceptions have no weak references
        return lambda: kept
    return lambda: alive() or kept


def _without_frames(error: Exception) -> Exception:
    try:
        made = copy.copy(error)
    except Exception:  # a class of the user's that cannot be made from its arguments
        return RekernelError(f"{type(error).__name__}: {error}")
    return made if type(made) is type(error) and made is not error else RekernelError(str(error))


@dataclass(frozen=True)
class Diagnostic:
    """One message about the user's text."""

    message: str
    """What is wrong, one line, without a place."""
    line: int | None = None
    """The user's line, counted from ``first_line`` of the source."""
    column: int | None = None
    """Counted from 1, in characters of the user's own line."""
    end_column: int | None = None
    """One past the last marked column."""
    text: str | None = None
    """The user's line itself."""
    filename: str | None = None
    """The user's file, where the text has one."""
    severity: str = "error"
    """``error``, ``warning`` or ``note``."""
    via: tuple[Diagnostic, ...] = ()
    """How the compiler got there, nearest first: uses of macros, instantiations, then ``#include`` lines."""


class KernelSourceError(RekernelError):
    """The text of a kernel does not read, compile or run.

    The first line of ``str(error)`` names id, version, language, place and message; below it the user's
    own lines are shown. The version that ran before keeps running.

    Attributes: ``message``; ``kernel_id``, ``version`` (the number that it would have had), ``language``; the place:
    ``filename``, ``line``, ``column``, ``end_column`` and ``text``, each None if it is not known; ``source`` and
    ``first_line``, what was loaded; ``diagnostics``, all messages, the first of which is shown; ``command`` and
    ``output`` of the compiler; ``keeps``, the version that goes on, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel_id: str,
        version: int,
        language: str,
        source: str = "",
        first_line: int = 1,
        filename: str | None = None,
        line: int | None = None,
        column: int | None = None,
        end_column: int | None = None,
        diagnostics: Sequence[Diagnostic] = (),
        command: Sequence[str] | None = None,
        output: str = "",
        keeps: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kernel_id = kernel_id
        self.version = version
        self.language = language
        self.source = source
        self.first_line = first_line
        self.filename = filename
        self.line = line
        self.column = column
        self.end_column = end_column
        self.diagnostics = tuple(diagnostics) or (Diagnostic(message, line, column, end_column, self.text, filename),)
        self.command = None if command is None else tuple(command)
        self.output = output
        self.keeps = keeps
        """The version that goes on running, or None where there was none."""

    @property
    def text(self) -> str | None:
        """The user's line at which the error points, or None."""
        from rekernel.excerpt import line_of

        return line_of(self.source, self.first_line, self.line)

    def __str__(self) -> str:
        from rekernel.excerpt import render

        return render(self)

    def _repr_html_(self) -> str:
        from rekernel.excerpt import render_html

        return render_html(self)


class KernelNotFoundError(RekernelError, KeyError, ValueError):
    """There is no kernel, id or version of that name. The message lists those that there are."""

    def __str__(self) -> str:  # KeyError would print the repr of the text
        return str(self.args[0]) if self.args else ""


class KernelRemovedError(RekernelError, RuntimeError):
    """A handle or module was used after its id, or its kernel, was removed. Loading the id again revives it.

    Attributes: ``kernel_id``, ``version`` (the last one, or None) and ``how`` it was removed.
    """

    def __init__(self, message: str, *, kernel_id: str, version: int | None, how: str) -> None:
        super().__init__(message)
        self.kernel_id = kernel_id
        self.version = version
        self.how = how


class _ArgumentError(RekernelError):
    def __init__(
        self, message: str, *, argument: str | None = None, expected: str | None = None, got: str | None = None
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.expected = expected
        self.got = got


class ArgumentTypeError(_ArgumentError, TypeError):
    """An argument is of the wrong kind: another dtype, a float for an integer, None. Also a TypeError.

    Attributes: ``argument`` (its name), ``expected`` and ``got``, each None if it is not known. Nothing was run.
    """


class ArgumentValueError(_ArgumentError, ValueError):
    """An argument is of the right kind and cannot be used: out of range, read-only, wrong rank or layout.

    Also a ValueError. Attributes as those of `ArgumentTypeError`. Nothing was run.
    """


class ToolchainError(RekernelError, RuntimeError):
    """A compiler, a package or a device that is needed is missing or broken."""


class JitError(RekernelError):
    """A just-in-time compiler was asked for something that it cannot do."""


class FrozenError(RekernelError, RuntimeError):
    """Something had to be compiled after ``rekernel.freeze()``. The version that ran goes on.

    Attributes: ``kernel_id``, ``language``, ``version``; ``field``, the first field of the key that differs from the
    nearest kernel in the cache, and ``reason``, the same in words; ``command``, what fills the cache, or None; ``key``;
    ``keeps``.
    """

    def __init__(
        self,
        message: str,
        *,
        kernel_id: str,
        language: str,
        field: str,
        reason: str,
        version: int | None = None,
        command: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kernel_id = kernel_id
        self.language = language
        self.field = field
        """The first field of the key that differs from the nearest kernel in the cache: ``unit``, ``cxxflags``."""
        self.reason = reason
        """The same in words: ``text changed``, ``not seen before``."""
        self.version = version
        """The number that the version would have had, or None where no loader was asked."""
        self.command = command
        """The command that fills the cache, or None where the text is in no file."""
        self.key = key
        """The key that the cache does not have, or None."""
        self.keeps: int | None = None
        """The version that goes on running, or None where there was none."""

    def __str__(self) -> str:
        goes_on = "" if self.keeps is None else f"\n{self.kernel_id} v{self.keeps} keeps running."
        return f"{self.args[0]}{goes_on}"


for _name in __all__:
    if _name != "Diagnostic":  # a traceback shows the name that users import: rekernel.KernelSourceError
        globals()[_name].__module__ = "rekernel"
