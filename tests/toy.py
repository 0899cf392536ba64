"""A language of one file and one row: it shows that the table is open, and tests the loader without Taichi.

A text has one thing a line::

    # a comment
    step(x, k: float64) = k * x + shift   ## what it is for      a kernel, with its docstring
    func twice(x) = 2 * x                                        a function for kernels, no kernel itself
    shift := 3                                                   a constant
    skip big: it takes a struct                                  a function that is no kernel, and why
"""

from __future__ import annotations

import ast
import re
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rekernel import Kernel, KernelLoader, KernelSourceError, Parameter
from rekernel.languages import Built, Draft, Request, pytext, register, unregister
from rekernel.source import Source

_FUNCTION = re.compile(r"(func )?(\w+)\((.*?)\) = (.+?)(?:\s+## (.*))?$")
_CONSTANT = re.compile(r"(\w+) := (.+)$")
_SKIPPED = re.compile(r"skip (\w+): (.+)$")
_PARAMETER = re.compile(r"(\w+)(?:: ((?:const )?\w+(?:\[[^\]]*\])?))?")
_LONGEST_WAIT = 30.0  # seconds; only a broken test waits that long
_BUILTINS = {"abs": abs, "max": max, "sum": sum}


@dataclass(frozen=True)
class Line:
    """One line of a text, taken apart."""

    kind: str
    name: str
    parameters: tuple[Parameter, ...]
    expression: str
    doc: str | None
    number: int
    column: int


@dataclass
class Gate:
    """Where a build stops until the test lets it go on."""

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def pass_through(self) -> None:
        self.entered.set()
        assert self.opened.wait(_LONGEST_WAIT), "the test never opened the gate"

    def wait_until_entered(self) -> None:
        assert self.entered.wait(_LONGEST_WAIT), "the build never came to the gate"


@dataclass(eq=False)
class Private:
    """The language's own record of a build."""

    functions: dict[str, Any]
    outside: int
    number: int
    made_by: str
    owner: Any = None


class Toy:
    """The row itself. What it was asked to do is in `log`, so that a test can say what must not happen."""

    suffixes: tuple[str, ...] = (".toy",)
    options: Mapping[str, str] = {"scale": "every kernel multiplies its result by this", "plus": "and adds this"}
    threads = True
    exclusive = None

    def __init__(self, name: str = "toy", mark: str = "") -> None:
        self.name = name
        self.mark = mark
        self.log: list[tuple[Any, ...]] = []
        self.gates: dict[str, Gate] = {}
        self.outside = 0
        self.attached: weakref.WeakSet[Private] = weakref.WeakSet()

    def gate(self, text: str) -> Gate:
        """Let the builds of a text wait at a gate."""
        return self.gates.setdefault(text, Gate())

    def done(self, verb: str) -> list[tuple[Any, ...]]:
        """What was done so far, of one kind."""
        return [entry[1:] for entry in self.log if entry[0] == verb]

    def recognise(self, text: str) -> str | None:
        found = next((m for line in text.split("\n") if (m := _FUNCTION.match(line.strip()))), None)
        return found[0] if found and self.mark in text else None

    def read(self, source: Source, *, kernel_id: str, number: int) -> Draft:
        self.log.append(("read", kernel_id))
        lines = list(_lines(source, kernel_id, number))
        defined = {line.name for line in lines}
        wants: set[str] = set()
        for line in lines:
            if line.kind != "skip":
                wants |= pytext.reads(ast.parse(line.expression, mode="eval")) - {p.name for p in line.parameters}
        return Draft(
            kernels=tuple(line.name for line in lines if line.kind == "kernel"),
            titles=tuple(line.name for line in lines if line.kind == "func"),
            wants=tuple(sorted(wants - defined - set(_BUILTINS))),
            values=lambda: _kernels(lines, source),
            facts=lines,
        )

    def build(self, request: Request) -> Built:
        self.log.append(("build", request.kernel_id, request.number))
        if (gate := self.gates.get(request.source.text)) is not None:
            gate.pass_through()
        lines: list[Line] = request.draft.facts
        _refuse_missing(lines, request)
        names: dict[str, Any] = {}
        scope: dict[str, Any] = {"__builtins__": _BUILTINS, **request.borrowed}
        for line in lines:
            if line.kind == "skip":
                continue
            arguments = ", ".join(p.name for p in line.parameters)
            text = line.expression if line.kind == "constant" else f"lambda {arguments}: {line.expression}"
            try:
                scope[line.name] = names[line.name] = eval(text, scope)
            except Exception as error:
                raise _wrong(request.source, request.kernel_id, request.number, line, str(error)) from error
        kernels = {line.name: names.pop(line.name) for line in lines if line.kind == "kernel"}
        for kernel in kernels.values():
            kernel.made_by = self.name
        private = Private({**kernels, **names}, self.outside, request.number, self.name)
        self.log.append(("previous", request.kernel_id, request.previous))
        return Built(
            entries={name: _with_options(made, request.source.options) for name, made in kernels.items()},
            kernels=_kernels(lines, request.source),
            names=names,
            originals=kernels,
            skipped={line.name: line.expression for line in lines if line.kind == "skip"},
            notes=(f"made by {self.name}",),
            private=private,
        )

    def commit(self, built: Built, previous: Built | None) -> None:
        before = None if previous is None else previous.private.number
        self.log.append(("commit", built.private.number, before))

    def renewed(self, built: Built) -> Built:
        return built

    def same(self, built: Built) -> bool:
        return bool(built.private.outside == self.outside)

    def reusable(self, built: Built, live: Built) -> bool:
        assert live.private.made_by == self.name, "a language is never shown what another one has built"
        return self.same(built) and bool(live.private.outside == self.outside)

    def recheck(self, built: Built, previous: Built, check: Any, keeps: int | None) -> None:
        self.log.append(("recheck", built.private.number, previous.private.number))

    def attach(self, built: Built, live: Any, failed: Any, renewed: Any) -> None:
        built.private.owner = weakref.ref(live)
        self.attached.add(built.private)

    def owner(self, value: Any) -> tuple[Any, str] | None:
        for private in list(self.attached):
            for name, made in private.functions.items():
                if made is value and callable(value):
                    return private.owner(), name
        return None

    def retire(self, built: Built) -> None:
        self.log.append(("retire", built.private.number))

    def reset(self) -> None:
        self.log.append(("reset",))


def _lines(source: Source, kernel_id: str, number: int) -> Iterator[Line]:
    for index, text in enumerate(source.text.split("\n")):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        at = source.first_line + index
        if match := _FUNCTION.match(line):
            parameters = tuple(
                Parameter(
                    name,
                    "array" if kind.endswith("]") else "scalar",
                    kind or "float64",
                    written=kind.endswith("]") and not kind.startswith("const "),
                )
                for name, kind in _PARAMETER.findall(match[3])
            )
            kind = "func" if match[1] else "kernel"
            found = Line(kind, match[2], parameters, match[4], match[5], at, text.index(line) + match.start(4) + 1)
        elif match := _CONSTANT.match(line):
            found = Line("constant", match[1], (), match[2], None, at, text.index(line) + match.start(2) + 1)
        elif match := _SKIPPED.match(line):
            yield Line("skip", match[1], (), match[2], None, at, 1)
            continue
        else:
            found = Line("wrong", "", (), line, None, at, text.index(line) + 1)
            raise _wrong(source, kernel_id, number, found, "this is neither a kernel nor a constant")
        try:
            ast.parse(found.expression, mode="eval")
        except SyntaxError as error:
            raise _wrong(source, kernel_id, number, found, error.msg, (error.offset or 1) - 1) from error
        yield found


def _wrong(
    source: Source, kernel_id: str, number: int, line: Line, message: str, offset: int = 0, width: int = 1
) -> KernelSourceError:
    column = line.column + offset
    return KernelSourceError(
        message, kernel_id=kernel_id, version=number, language=source.language, source=source.text,
        first_line=source.first_line, filename=source.filename, line=line.number, column=column,
        end_column=column + width,
    )  # fmt: skip


def _refuse_missing(lines: list[Line], request: Request) -> None:
    """Raise for the first name that nobody has."""
    for line in lines:
        if line.kind == "skip":
            continue
        for node in ast.walk(ast.parse(line.expression, mode="eval")):
            if isinstance(node, ast.Name) and node.id in set(request.draft.wants) - set(request.borrowed):
                if node.id in {p.name for p in line.parameters}:
                    continue
                message = f"name {node.id!r} is not defined"
                if node.id in request.hints:
                    message += "; your program has it: pass namespace=globals()"
                place = (node.col_offset, len(node.id))
                raise _wrong(request.source, request.kernel_id, request.number, line, message, *place)


def _kernels(lines: list[Line], source: Source) -> tuple[Kernel, ...]:
    return tuple(
        Kernel(line.name, line.parameters, source.language, source.code, line.doc, line=line.number)
        for line in lines
        if line.kind == "kernel"
    )


def _with_options(made: Any, options: Mapping[str, Any]) -> Any:
    scale, plus = options.get("scale", 1), options.get("plus", 0)

    def entry(*arguments: Any, **named: Any) -> Any:
        return scale * made(*arguments, **named) + plus

    return entry


def fresh_toy() -> Iterator[Toy]:
    """Fixture: the row, in the table for the time of one test."""
    language = Toy()
    register(language)
    yield language
    unregister(language.name)


def fresh_loader(toy: Toy) -> Iterator[KernelLoader]:
    """Fixture: an empty loader that can load toy texts."""
    with KernelLoader() as loader:
        yield loader
