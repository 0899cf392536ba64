"""Run a Python text privately: a module name and a file name of its own, and what goes wrong at the text's own line.

A text that runs is found again by tracebacks, by `inspect` and by `dataclasses` for as long as anything of it lives,
and leaves nothing behind after that. Nothing is put before the text, so its lines are the user's.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import re
import sys
import types
import warnings
import weakref
from collections.abc import Container, Iterable, Mapping
from importlib.machinery import ModuleSpec
from typing import Any

from rekernel.errors import KernelSourceError
from rekernel.excerpt import split_lines
from rekernel.source import Source
from rekernel.spelling import meant

__all__ = [
    "PREFIX", "Execution", "Shadow", "error_at", "forget", "frames_within", "names_of_its_own", "owner", "parse",
    "source_error", "unknown_name",
]  # fmt: skip

PREFIX = "_rekernel_live."
"""How names in ``sys.modules`` begin that are ours."""

#: Of all texts that run as Python, whatever their language: two with one name would take each other's lines away.
_serials = itertools.count(1)
_UNSAFE = re.compile(r"\W+")
#: What would end a file name where a message, from which lines are read, names it.
_UNSHOWN = re.compile(r'["\x00-\x1f\x7f-\x9f\u2028\u2029]')
_MISSING = re.compile(r"name '(?P<name>\w+)' is not defined")


def parse(source: Source, kernel_id: str, number: int) -> ast.Module:
    """Return the syntax tree of a text; KernelSourceError where Python cannot read it. Pure."""
    cause: Exception
    line = column = end = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said once, when the text is compiled
            return ast.parse(source.code)
    except SyntaxError as error:
        cause, message = error, str(error.msg)
        line, column = error.lineno, error.offset
        end = error.end_offset if error.end_lineno == line else None
    except (ValueError, RecursionError, MemoryError) as error:
        deep = "the text is nested too deeply for Python's parser"
        cause, message = error, str(error) if isinstance(error, ValueError) else deep
    raise error_at(source, kernel_id, number, message, line, column, end) from cause


def error_at(
    source: Source, kernel_id: str, number: int, message: str, line: int | None, column: int | None = None,
    end_column: int | None = None, **more: Any,
) -> KernelSourceError:  # fmt: skip
    """Return an error at a place of a text, given in the text's own numbers."""
    return KernelSourceError(
        message, kernel_id=kernel_id, version=number, language=source.language, source=source.text,
        first_line=source.first_line, filename=source.filename,
        line=None if line is None else line + source.first_line - 1,
        column=column + source.dedent if column and column > 0 else None,
        end_column=end_column + source.dedent if end_column and end_column > 0 else None, **more,
    )  # fmt: skip


def names_of_its_own(source: Source, kernel_id: str, number: int) -> tuple[str, str]:
    """Return a module name and a file name for a text that is about to run; no other text ever had them.

    The file name is never of the form <...>, which linecache does not look up.
    """
    serial = next(_serials)
    safe = _UNSAFE.sub("_", kernel_id)[:60]
    shown = _UNSHOWN.sub("_", source.filename or f"/rekernel/{safe}.py")
    return f"{PREFIX}{safe}_{serial}", f"{shown}#v{number}.{serial}"


class SourceLoader:
    """What Python asks for the text of a module. It lives exactly as long as the globals of the text do."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.globals: dict[str, Any] = {}
        self.owner: Any = None
        """A weak reference to whose text it is."""

    def get_source(self, fullname: str) -> str:
        """Return the text, whatever name is asked for."""
        return self.code


class Shadow(types.ModuleType):
    """Stands in ``sys.modules`` for a text that runs, and keeps nothing of it alive."""

    @classmethod
    def of(cls, loader: Any, module_name: str, filename: str) -> Shadow:
        """Make the one of a text; `loader` has its globals, and whose it is."""
        made = cls(module_name)
        made.__file__ = filename
        made.__dict__["__text__"] = weakref.ref(loader)
        return made

    def __getattr__(self, name: str) -> Any:
        loader = object.__getattribute__(self, "__dict__")["__text__"]()
        if loader is None or name not in loader.globals:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return loader.globals[name]


class Execution:
    """One text on its way from source to globals."""

    def __init__(self, source: Source, kernel_id: str, number: int, names: Mapping[str, Any]) -> None:
        self.source, self.kernel_id, self.number = source, kernel_id, number
        self.module_name, self.filename = names_of_its_own(source, kernel_id, number)
        self.warnings: list[str] = []
        self.loader = SourceLoader(source.code)
        weakref.finalize(self.loader, forget, self.module_name, self.filename).atexit = False
        spec = ModuleSpec(self.module_name, self.loader, origin=self.filename)  # type: ignore[arg-type]
        self.globals: dict[str, Any] = {
            "__name__": self.module_name, "__doc__": None, "__builtins__": __builtins__, **names,
            "__file__": self.filename, "__loader__": self.loader, "__spec__": spec,
        }  # fmt: skip
        self.loader.globals = self.globals

    def run(self, tree: ast.Module) -> None:
        """Run the text. What it raises is not caught; Python's own warnings about it are kept."""
        code = self.source.code
        lines = [line + "\n" for line in split_lines(code)]
        linecache.cache[self.filename] = (len(code), None, lines, self.filename)
        sys.modules[self.module_name] = Shadow.of(self.loader, self.module_name, self.filename)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled = compile(tree, self.filename, "exec", dont_inherit=True)
        self.warnings += [f"line {w.lineno + self.source.first_line - 1}: {w.message}" for w in caught]
        exec(compiled, self.globals)


def forget(module_name: str, filename: str) -> None:
    """Take back all that Python remembers of a text by its names."""
    sys.modules.pop(module_name, None)
    linecache.cache.pop(filename, None)
    # inspect remembers every module that it ever saw, by name and by file.
    getattr(inspect, "_filesbymodname", {}).pop(module_name, None)
    getattr(inspect, "modulesbyfile", {}).pop(filename, None)


def owner(value: Any) -> tuple[Any, str] | None:
    """Return whose text defined a function or class, and under which name; None for what none of ours did."""
    module = getattr(value, "__module__", None)
    if not isinstance(module, str) or not module.startswith(PREFIX):
        return None
    shadow = sys.modules.get(module)
    loader = shadow.__dict__["__text__"]() if type(shadow) is Shadow else None
    found = None if loader is None or loader.owner is None else loader.owner()
    return None if found is None else (found, getattr(value, "__name__", ""))


def source_error(
    error: BaseException, execution: Execution, *, line: int | None = None, hints: Container[str] = (), output: str = ""
) -> KernelSourceError:
    """Turn any exception that came out of a text into the error that the user sees.

    Its place is the last line of the text that the traceback passes, or `line`. `hints` are names that the text
    lacks and the caller has as globals; `output` is what else is to be kept.
    """
    if isinstance(error, KernelSourceError):
        return error
    column = end = None
    if isinstance(error, SyntaxError) and error.filename == execution.filename and error.lineno:
        line, column = error.lineno, error.offset
        end = error.end_offset if error.end_lineno == line else None
    elif line is None:
        line = _line_of(error, execution.filename)
    message = _improved(_message(error), execution.globals, hints)
    made = error_at(
        execution.source, execution.kernel_id, execution.number, message, line, column, end,
        output="\n".join(part for part in (str(error).strip(), output) if part),
    )  # fmt: skip
    error.__traceback__ = frames_within(error.__traceback__, (execution.filename,))
    made.__cause__ = error
    return made


def _line_of(error: BaseException, filename: str) -> int | None:
    traceback, line = error.__traceback__, None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _message(error: BaseException) -> str:
    """Return what is wrong in one line."""
    if isinstance(error, SyntaxError) and error.lineno:
        return str(error.msg)
    if isinstance(error, SystemExit):
        return f"the text ends the program (SystemExit: {error.code})"
    message = " ".join(str(error).split())
    kind = type(error)
    if kind.__module__ == "builtins" and kind is not NameError:
        return f"{kind.__name__}: {message}" if message else kind.__name__
    return message or kind.__name__


def _improved(message: str, names: Iterable[str], hints: Container[str]) -> str:
    """Add what the user most likely meant to a message about an unknown name."""
    match = _MISSING.search(message)
    return message if match is None else unknown_name(match["name"], names, hints)


def unknown_name(name: str, names: Iterable[str], hints: Container[str]) -> str:
    """Say that a name is unknown, and which of `names` was meant, or that it is among `hints`, the caller's globals."""
    said = f"name {name!r} is not defined"
    if name in hints:
        return f"{said}; it is one of your own globals: pass namespace=globals()"
    return f"{said}{meant(name, names)}"


def frames_within(traceback: types.TracebackType | None, filenames: Container[str]) -> types.TracebackType | None:
    """Keep only the frames that lie in the user's texts."""
    frames = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename in filenames:
            frames.append(traceback)
        traceback = traceback.tb_next
    kept = None
    for frame in reversed(frames):
        kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept
