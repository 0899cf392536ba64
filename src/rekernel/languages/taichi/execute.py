"""Run a Taichi text under a private, unique module name, so that Taichi and Python find its source for ever.

Taichi reads a kernel's source at the first call of every new specialisation, long after the load. That works in
every case only with a private unique name in ``sys.modules``, a loader with ``get_source``, and a ``linecache``
entry under a file name of its own that is there before the text runs.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.machinery import ModuleSpec
from typing import Any

from rekernel.excerpt import split_lines
from rekernel.languages.pyrun import Shadow, forget, names_of_its_own
from rekernel.languages.taichi.failure import Text
from rekernel.languages.taichi.state import Plan
from rekernel.source import Source

#: A form feed before code starts the indent anew for Python; Taichi makes a blank of it, which is another indent.
_FEED = re.compile(r"(?<![^\r\n])[ \t\f]*\f")
#: Where ``linecache`` splits a text that it gets from a loader, and no compiler does.
_BREAKS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def _readable(code: str) -> str:
    return _BREAKS.sub(" ", _FEED.sub("", code))


class SourceLoader:
    """What ``linecache`` asks for the text. It lives exactly as long as the globals of the text do."""

    def __init__(self, text: Text, module_name: str) -> None:
        self.text = text
        self.module_name = module_name
        self.globals: dict[str, Any] = {}
        self.owner: Any = None

    def get_source(self, fullname: str) -> str:
        """Return the text, whatever name is asked for."""
        return _readable(self.text.source.code)


class _TextOnly:
    def __init__(self, code: str) -> None:
        self._code = code

    def get_source(self, fullname: str) -> str:
        return self._code


class Execution:
    """One text on its way from source to globals."""

    def __init__(self, source: Source, kernel_id: str, number: int, names: Mapping[str, Any]) -> None:
        # Never used twice: an old kernel must not be compiled from new text.
        self.module_name, self.filename = names_of_its_own(source, kernel_id, number)
        self.text = Text(source, kernel_id, number, self.filename)
        self.warnings: list[str] = []
        self.loader = SourceLoader(self.text, self.module_name)
        # Before anything is entered anywhere: Ctrl-C may come at any time.
        weakref.finalize(self.loader, forget, self.module_name, self.filename).atexit = False
        module = types.ModuleType(self.module_name)
        self.globals = module.__dict__
        self.loader.globals = self.globals
        self.globals.update(names)
        self.globals.update(
            __file__=self.filename,
            __loader__=self.loader,
            __spec__=ModuleSpec(self.module_name, self.loader, origin=self.filename),  # type: ignore[arg-type]
        )
        self.injected = frozenset(self.globals)
        self.module: types.ModuleType | None = module

    def enter(self) -> None:
        """Make the text known to Python, before it runs. What was made before has touched nothing outside."""
        assert self.module is not None
        self.show_source()
        sys.modules[self.module_name] = self.module

    def show_source(self) -> None:
        """Put the text where Taichi and tracebacks look for it, unless it is there; others may have cleared it."""
        if self.filename not in linecache.cache:
            code = self.text.source.code
            lines = [line + "\n" for line in split_lines(_FEED.sub("", code))]
            linecache.cache[self.filename] = (len(code), None, lines, self.filename)

    def compile(self, node: ast.Module) -> types.CodeType:
        """Compile statements of the text; Python's warnings are kept for ``info.warnings``."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            code = compile(node, self.filename, "exec", dont_inherit=True)
        self.warnings += [f"line {w.lineno}: {w.message}" for w in caught]
        return code

    def run(self, tree: ast.Module, plan: Plan, wanted: Callable[[int], bool], adopt: Callable[[int], None]) -> None:
        """Run the statements as planned: ask `wanted` for those that may run, tell `adopt` of those that make state.

        Both want to see what the statements before have done, so the text runs in as many pieces as they need.
        """
        pending: list[ast.stmt] = []
        for index, statement in enumerate(tree.body):
            if index in plan.skip:
                continue
            if index in plan.maybe:
                self._exec(pending)
                pending = []
                if not wanted(index):
                    continue
            pending.append(statement)
            if index in plan.adopt:
                self._exec(pending)
                pending = []
                adopt(index)
        self._exec(pending)

    def _exec(self, body: list[ast.stmt]) -> None:
        if body:
            exec(self.compile(ast.Module(body=body, type_ignores=[])), self.globals)

    def settle(self) -> None:
        """Leave in ``sys.modules`` only what finds the source, so that the text can be freed."""
        shadow = Shadow.of(self.loader, self.module_name, self.filename)
        only = _TextOnly(_readable(self.text.source.code))
        shadow.__loader__ = only  # type: ignore[assignment]
        shadow.__spec__ = ModuleSpec(self.module_name, only, origin=self.filename)  # type: ignore[arg-type]
        sys.modules[self.module_name] = shadow
        self.module = None

    def discard(self) -> None:
        """Forget a text whose run failed."""
        forget(self.module_name, self.filename)


class OwnNames(Mapping[str, Any]):
    """What a text itself put into its globals, read at the moment of asking; dunders and kernels left out.

    A view and no copy, because functions of the text may set its globals later (``global x``).
    """

    def __init__(self, values: Mapping[str, Any], bound: set[str], without: Collection[str] = ()) -> None:
        self._values = values
        self._bound = {n for n in bound if n not in without and not (n.startswith("__") and n.endswith("__"))}

    def __getitem__(self, name: str) -> Any:
        if name not in self._bound:
            raise KeyError(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._values if name in self._bound])

    def __len__(self) -> int:
        return len(list(iter(self)))
