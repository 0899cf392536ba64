"""One version of a Taichi text: what it holds, and how it is renewed after another ``ti.init``."""

from __future__ import annotations

import ast
import dataclasses
import functools
import weakref
from collections.abc import Callable
from typing import Any

from rekernel import underway
from rekernel.languages import Built, Request, pytext
from rekernel.languages.taichi import helpers, instances, kinds, signature, written
from rekernel.languages.taichi.execute import Execution
from rekernel.languages.taichi.failure import Text
from rekernel.languages.taichi.package import Package, is_class_kernel


class TaichiVersion:
    """What a Taichi build leaves behind: the language's own record of a version."""

    def __init__(self, request: Request, found: Package, execution: Execution, tree: ast.Module) -> None:
        self.request = request
        self.work = underway.current()
        self.package = found
        self.execution = execution
        self.tree = tree
        self.text: Text = execution.text
        self.globals = execution.globals
        missing = (n for n in request.draft.wants if n not in request.borrowed)
        self.hints = frozenset(n for n in missing if n in request.hints)
        self.program: Any = None
        self.entries: dict[str, Any] = {}
        self.kernels: dict[tuple[str, bool], Any] = {}
        self.rows: dict[Any, tuple[signature.Row, ...]] = {}
        self.classes: dict[str, type] = {}
        self.struct_types: dict[str, Any] = {}
        self.helpers: list[helpers.Helper] = []
        self.prints: dict[str, int | None] = {}
        self.ended_by: Any = None
        self.dead: dict[int, weakref.ref[Any]] = {}
        self.successor: Built | None = None
        self.on_failure: Callable[[str, Exception, tuple[Any, ...]], Any] | None = None
        self.on_renewal: Callable[[Built], None] | None = None
        self.state_names: frozenset[str] = frozenset()

    def known_names(self, guard: Any) -> set[str]:
        """Names that the user may have meant inside a kernel."""
        code = guard.call.__self__.func.__code__
        return set(self.globals) | set(code.co_varnames) | set(code.co_names)

    def definition_line(self, kernel: Any) -> int:
        """Return the line of the text on which a kernel's ``def`` stands, below its decorators."""
        node = written.functions_of(self.tree).get(kernel.func.__name__)
        first = int(kernel.func.__code__.co_firstlineno)
        return node.lineno if node is not None and first <= node.lineno <= first + 20 else first

    def waits_for_globals(self, kernel: Any) -> bool:
        """Whether a kernel uses a global that a function of the text will set later (``global x; x = ...``)."""
        late = pytext.declared_global(self.tree)
        late = {name for name in late if self.globals.get(name) is None}
        return bool(late & (set(kernel.func.__code__.co_names) | _reached(self.tree, kernel.func.__name__)))

    def counterpart(self, previous: TaichiVersion, value: Any) -> Any:
        """Return what this version has under the name that `value` had in the previous one, or `value`."""
        if isinstance(value, int | float | complex | str):
            return value  # equal numbers are often one object, and mean nothing by it
        for name, old in previous.globals.items():
            if old is value and name in self.globals and not name.startswith("__"):
                return self.globals[name]
        return value

    def renewed(self, guard: Any) -> Any:
        """Answer a call whose program is gone: run the text again in the new program, give the new callable."""
        function = guard.call.__self__.func
        built = self.renew()
        version: TaichiVersion = built.private
        adjoint = not str(guard.call.__self__.autodiff_mode).endswith("NONE")
        kernel = version.kernels.get((function.__qualname__, adjoint))
        target = guard.call if kernel is None else kernel._rekernel_guard
        if is_class_kernel(guard.call.__self__):
            return functools.partial(self._if_alive, target, function.__qualname__.split(".")[0])
        return target

    def renew(self) -> Built:
        """Return this text as built for the running program, running it again if need be."""
        from rekernel.languages.taichi import making

        program = self.package.program
        if self.successor is None or self.successor.private.program is not program:
            request = self.request
            borrowed = request.refresh() if request.refresh is not None else request.borrowed
            dead = [n for n, v in borrowed.items() if v is request.borrowed.get(n) and kinds.holds_program_state(v)]
            if dead:
                raise RuntimeError(
                    f"{self.text.kernel_id}: of the namespace, {', '.join(dead)} was made in a program that ti.init or "
                    "ti.reset has ended; make it again and load the text again"
                )
            request = dataclasses.replace(request, borrowed=borrowed, previous=None, check=False)
            with underway.doing(self.work):
                built = making.build(request, tree=self.tree, survivor=self)
            version: TaichiVersion = built.private
            version.on_failure, version.on_renewal = self.on_failure, self.on_renewal
            self.successor = built
            if self.on_renewal is not None:
                self.on_renewal(built)
        return self.successor

    def program_ended(self) -> None:
        """Remember which objects of the text's classes have lost their fields. Called by Taichi's own reset."""
        if self.ended_by is self.package.runtime:
            return  # another kernel of this text has said so already
        self.ended_by = self.package.runtime
        for cls in self.classes.values():
            for item in instances.instances(cls):
                if kinds.holds_program_state(item):
                    self.dead[id(item)] = weakref.ref(item)

    def _if_alive(self, target: Any, owner: str, *arguments: Any) -> Any:
        """Call a class kernel, unless its object was made in a program that has ended."""
        dead = self.dead.get(id(arguments[0])) if arguments else None
        if dead is not None and dead() is arguments[0]:
            raise RuntimeError(
                f"{self.text.kernel_id}.{owner}: the object was made before ti.init ended its program, and its fields "
                "are gone; make a new one"
            )
        return target(*arguments)


def _reached(tree: ast.Module, name: str) -> set[str]:
    """Names that a function reads, through the functions of the text that it calls."""
    functions = written.functions_of(tree)
    reached: set[str] = set()
    todo = [name]
    while todo:
        node = functions.get(todo.pop())
        if node is not None:
            new = pytext.reads(node) - reached
            reached |= new
            todo += list(new & set(functions))
    return reached
