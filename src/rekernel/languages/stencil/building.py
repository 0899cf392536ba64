"""From a stencil text to a version: run it aside, find its kernels, build those that must not fail later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rekernel import freezing
from rekernel.errors import JitError
from rekernel.languages import Built, Request
from rekernel.languages.pyrun import Execution, source_error
from rekernel.languages.stencil import options, reading
from rekernel.languages.stencil.entries import Entry, StencilVersion
from rekernel.languages.stencil.package import given, is_config, symbols_of
from rekernel.values import MachineCode

__all__ = ["ahead", "build", "export"]


def build(request: Request) -> Built:
    """Make a version; nobody sees it yet."""
    tree: ast.Module = request.draft.facts
    settings = options.settings(request.source.options, given()["ps"].Target.__members__)
    names = {**request.borrowed, **given()}
    execution = Execution(request.source, request.kernel_id, request.number, names)
    try:
        execution.run(tree)
    except (Exception, SystemExit) as error:
        hints = [name for name in request.draft.wants if name not in request.borrowed and name in request.hints]
        line = _line_in_decorated(error, tree)
        raise source_error(error, execution, line=line, hints=hints) from error
    version = StencilVersion(execution, settings, request.jit)
    own, notes, skipped = _own(execution, tree), [], {}
    config = own.get("config")
    if config is not None and not is_config(config):
        notes.append(f"config is a {type(config).__name__}, not a ps.CreateKernelConfig: it applies to no kernel")
        config = None
    previous: StencilVersion | None = request.previous.private if request.previous is not None else None
    bound = reading.bindings(tree)
    for name, value in own.items():
        found = symbols_of(value)
        if isinstance(found, str):
            skipped[name] = f"{name} is no kernel: {found}"
        elif found is not None:
            if found.note:
                notes.append(f"{name} {found.note}")
            version.entries[name] = Entry(version, name, found, bound[name], config)
    for name, entry in version.entries.items():
        entry.adopt(previous.entries.get(name) if previous is not None else None)
    # Frozen, a version comes whole out of the cache or not at all.
    ahead(version, previous, request.check, everything=request.ahead or settings.eager or freezing.is_frozen())
    built = [entry.wrapper for entry in version.entries.values() if entry.wrapper is not None]
    return Built(
        entries={name: entry.handle for name, entry in version.entries.items()},
        kernels=tuple(entry.kernel for entry in version.entries.values()),
        names={name: value for name, value in own.items() if name not in version.entries},
        doc=execution.globals["__doc__"],
        originals={name: entry.symbols.what for name, entry in version.entries.items()},
        skipped=skipped,
        warnings=tuple(execution.warnings),
        notes=tuple(notes),
        from_cache=bool(built) and all(wrapper.from_cache for wrapper in built),
        rebuilt_because=next((wrapper.rebuilt_because for wrapper in built if wrapper.rebuilt_because), None),
        code=lambda: _code(version.entries.values()),
        machine=lambda: _machine(version.entries.values()),
        private=version,
    )


def ahead(version: StencilVersion, previous: StencilVersion | None, check: Any, *, everything: bool = False) -> None:
    """Build before the swap what the version before has built, what `check` names, or all.

    So an edit that breaks a kernel in use never takes it away, and a list that nobody calls costs nothing.
    """
    named = _named(version, check)
    used = {name for name, entry in previous.entries.items() if entry.wrapper is not None} if previous else set()
    for name, entry in version.entries.items():
        if everything or name in named or (name in used and check is not False):
            entry.build()


def export(version: StencilVersion, kernel_id: str, directory: Path, name: str | None) -> Path:
    """Write all kernels as one extension module; see ``KernelLoader.export``."""
    from rekernel.jit.export import export, name_of_module

    made = [(entry.generate(), entry.kernel.doc) for entry in version.entries.values()]
    if not made:
        raise JitError(f"{kernel_id!r} has no kernels, so there is nothing to export")
    jit = made[0][0].jit
    if any(not hasattr(one.jit, "module_builder") for one, _doc in made):
        raise JitError(f"{kernel_id!r} cannot be exported: an exported module has kernels for a CPU, made by a CpuJit")
    return export(jit, [replace(one.value, doc=doc) for one, doc in made], directory, name_of_module(name, kernel_id))


def _named(version: StencilVersion, check: Any) -> set[str]:
    known = version.entries
    if isinstance(check, bool):
        return set()
    if isinstance(check, Mapping):
        if unknown := [name for name in check if name not in known]:
            said = f"check= names no kernel of the text: {', '.join(map(str, unknown))}"
            raise ValueError(f"{said}; it has {', '.join(known) or 'none'}")
        return set(check)
    if isinstance(check, tuple):
        if not known:
            raise ValueError("check= gives arguments, but the text has no kernel")
        return {next(iter(known))}
    raise TypeError(f"check= takes True, False, a tuple of arguments or a dict of them, not {check!r}")


def _own(execution: Execution, tree: ast.Module) -> dict[str, Any]:
    """Return what the text has bound to public names, in its order."""
    order = [*reading.bindings(tree)]
    return {n: execution.globals[n] for n in order if not n.startswith("_") and n in execution.globals}


def _code(entries: Iterable[Entry]) -> str:
    """Return the code of the kernels that have been generated."""
    return "\n".join(entry.generated.value.code for entry in entries if entry.generated is not None)


def _machine(entries: Iterable[Entry]) -> tuple[MachineCode, ...]:
    """Return the code of the kernels that have been built."""
    found = {one.name: getattr(one.wrapper, "_details", {}).get("machine") for one in entries}
    return tuple(MachineCode(code[0], code[1], name) for name, code in found.items() if code is not None)


def _line_in_decorated(error: BaseException, tree: ast.Module) -> int | None:
    """Return the line on which a function failed that ``@ps.kernel`` has run under a name of its own."""
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and (code.co_filename, code.co_name) == ("<ast>", node.name):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return first + traceback.tb_lineno - 1
        traceback = traceback.tb_next
    return None
