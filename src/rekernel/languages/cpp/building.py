"""From a C++ text to callables: settings, key, object cache or compiler, library, functions."""

from __future__ import annotations

import copy
import json
import os
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.errors import JitError
from rekernel.languages.cpp import files, options, unit
from rekernel.languages.cpp.compiling import compile_unit
from rekernel.languages.cpp.failure import source_error, warning_lines
from rekernel.languages.cpp.signature import Entry, from_json

if TYPE_CHECKING:
    from rekernel.compilers import CompilerInfo
    from rekernel.jit.cpu import CpuJit
    from rekernel.jit.obtain import Artefact, Order
    from rekernel.languages import Built, Request
    from rekernel.source import Source

__all__ = ["Private", "build", "text_of", "watched"]

SCHEMA = 1
"""Raise it when the same text and headers become another unit."""
UNIT = "kernel.cpp"
"""What the compiler calls a text. The user's name for it does not enter the key."""
_SANITIZED = ("-fsanitize=integer-divide-by-zero,signed-integer-overflow",)
_QUOTED = re.compile(r"(?:#|%:)\W*(?:include(?:_next)?|embed)\b(?![ \t]*<)|__has_(?:include|embed)")


def _nothing() -> None:
    pass


@dataclass(eq=False)
class Private:
    """The language's own record of a version."""

    headers: Mapping[str, Any] | None
    """The user's headers, as they were read; None where one was written meanwhile, and nobody knows what was read."""
    unit: str
    """The text that was compiled, headers of ours left out."""
    command: tuple[str, ...]
    key: str
    entries: Sequence[Entry]
    """The kernels, with the names of their entry points."""
    relative_to: str | None = None
    """The current directory of the load, where a path of it is relative."""
    close: Callable[[], object] = _nothing
    """Removes the files of a debug build. It is called at the end of the process at the latest."""


@cache
def default_jit() -> CpuJit:
    """Return the compiler of loaders that were made without one."""
    from rekernel.jit.cpu import CpuJit

    return CpuJit()


def text_of(source: Source) -> str:
    """Return the text as a compiler sees it."""
    return source.text.removeprefix("\ufeff")


def build(request: Request) -> Built:
    """Make a version: its library is loaded, nobody sees it yet."""
    from rekernel.jit.loading import load
    from rekernel.languages import Built

    source, text = request.source, text_of(request.source)
    chosen = options.settings(source.options, text)
    with ExitStack() as closing:
        place = files.place(request, chosen.debug, _jit(request).objcache, closing)
        order, name = _order(request, text, chosen, place)
        artefact = _obtain(request, order, text, name)
        kept = artefact.manifest
        found = [from_json(row, text) for row in kept["entries"]]
        path = None
        if place is not None:
            path = os.path.join(place, f"{files.stem(request)}.so")
            with open(path, "wb") as file:
                file.write(artefact.data)
        library = load(artefact.data, request.kernel_id, path)
        functions = [_function(library, one, request, chosen) for one in found]
        relative_to = os.getcwd() if chosen.relative or _relative(order, source) else None
        private = Private(watched(kept.get("headers")), text, artefact.command, artefact.key, found, relative_to)
        made = closing.pop_all()
        if place is not None and not files.kept():
            private.close = weakref.finalize(private, made.close)
    return Built(
        entries=_entries(found, functions), kernels=tuple(one.kernel for one in found), names={},
        skipped=dict(kept["skipped"]), warnings=warning_lines(artefact.warnings, source), notes=tuple(kept["notes"]),
        from_cache=artefact.from_cache, rebuilt_because=artefact.rebuilt_because, private=private,
    )  # fmt: skip


def _jit(request: Request) -> CpuJit:
    jit = request.jit if request.jit is not None else default_jit()
    if not hasattr(jit, "objcache") or not hasattr(jit, "compiler_info"):
        raise JitError(f"{request.kernel_id} is C++, which needs a CpuJit; the loader was made with jit={jit!r}")
    return jit


def _order(request: Request, text: str, chosen: options.Settings, place: str | None) -> tuple[Order, str]:
    from rekernel.jit.obtain import Order

    source, jit = request.source, _jit(request)
    quote_dir = None
    if source.filename is not None and _QUOTED.search(text) and os.path.exists(source.filename):
        quote_dir = os.path.dirname(os.path.abspath(source.filename))
    info = _info(jit.compiler_info, chosen, quote_dir)
    name, debug_dir = (UNIT, None) if place is None else files.text_in(place, request, text, own=chosen.debug)
    checked = (*_SANITIZED, f"-DREKERNEL_UNIT={json.dumps(name, ensure_ascii=False)}") if chosen.debug else ()
    include = os.path.dirname(os.path.dirname(unit.header_path()))
    order = Order(
        text, info, openmp=chosen.openmp and not chosen.debug, include_dirs=chosen.include_dirs, name=name,
        fields=(("cpp", SCHEMA), ("our headers", unit.header_digest()), ("reader", _reader_version())),
        flags=("-idirafter", include, *checked),
        ours=unit.own_headers(), quote_dir=quote_dir, debug=chosen.debug, debug_dir=debug_dir,
    )  # fmt: skip
    return order, name


@cache
def _reader_version() -> str:
    """Return what the key says of the code that finds functions and makes the unit from them."""
    from importlib.util import source_hash

    parts = [
        os.path.join(os.path.dirname(__file__), name)
        for name in ("macros.py", "nodes.py", "reading.py", "spelled.py", "unit.py", "signature.py", "compiling.py")
    ]
    state = b""
    for path in parts:
        with open(path, "rb") as file:
            state += source_hash(file.read())
    return state.hex()


def _info(base: CompilerInfo, chosen: options.Settings, quote_dir: str | None) -> CompilerInfo:
    info = copy.copy(base)  # the lists that change are made anew
    quoted = [] if quote_dir is None else ["-iquote", quote_dir]
    info.extra_cxxflags = [*quoted, *info.extra_cxxflags, *chosen.flags]
    info.extra_ldflags = [*getattr(info, "extra_ldflags", []), *chosen.linking]
    if chosen.optlevel is not None:
        info.optlevel = chosen.optlevel
    if chosen.target is not None:
        info.target = chosen.target
    return info


def _obtain(request: Request, order: Order, text: str, name: str) -> Artefact:
    from rekernel.jit.obtain import obtain
    from rekernel.product import CompileFailed

    jit = _jit(request)
    try:
        return obtain(jit.objcache, order, lambda compiled: compile_unit(text, compiled), jit.precompiled)
    except CompileFailed as failure:
        raise source_error(
            failure, request.source, text, name, kernel_id=request.kernel_id, number=request.number
        ) from None


def _relative(order: Order, source: Source) -> bool:
    """Return whether headers are looked up beside a file that is named from the current directory."""
    return order.quote_dir is not None and source.filename is not None and not os.path.isabs(source.filename)


def watched(headers: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what `same` looks at for an unchanged load: the user's headers; the system's are trusted meanwhile."""
    if headers is None:
        return None
    trusted = [path for path, *_ in headers.get("system", ())]
    return {"headers": {name: headers.get(name, ()) for name in ("user", "directories")} | {"trusted": trusted}}


def _function(library: Any, entry: Entry, request: Request, chosen: options.Settings) -> Any:
    from rekernel.jit.calltable import rows

    kernel = entry.kernel
    parameters, slots = rows(kernel)
    if chosen.allow_alias:
        parameters = tuple(_not_restrict(row) for row in parameters)
    return _native.Function(
        library, entry.symbol, kernel.name, parameters, slots, returns=kernel.returns, nogil=chosen.nogil,
        kernel_id=request.kernel_id, openmp=chosen.openmp and not chosen.debug, filename=request.source.filename,
        first_line=request.source.first_line,
    )  # fmt: skip


def _not_restrict(row: Any) -> Any:
    return row if row[1] != "array" else (*row[:11], False, *row[12:])


def _entries(found: list[Entry], functions: list[Any]) -> dict[str, Any]:
    """Return for each name what a handle calls: a function, or a choice among overloads."""
    named: dict[str, list[tuple[Entry, Any]]] = {}
    for entry, function in zip(found, functions, strict=True):
        named.setdefault(entry.kernel.name, []).append((entry, function))
    return {
        name: pairs[0][1]
        if len(pairs) == 1
        else _native.Overloads(
            tuple(function for _entry, function in pairs), name, signatures=tuple(str(e.kernel) for e, _f in pairs)
        )
        for name, pairs in named.items()
    }
