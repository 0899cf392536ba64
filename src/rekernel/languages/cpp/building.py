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
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.errors import JitError
from rekernel.languages.cpp import files, options, unit
from rekernel.languages.cpp.signature import Entry, from_json

if TYPE_CHECKING:
    from rekernel.compilers import CompilerInfo
    from rekernel.jit.cpu import CpuJit
    from rekernel.jit.obtain import Artefact, Compile, Order
    from rekernel.languages import Built, Request
    from rekernel.product import Product
    from rekernel.source import Source

__all__ = [
    "Private", "beside_file", "build", "entries_of", "info_of", "jit_of", "obtain_unit", "one_of", "order_of",
    "relative_to", "text_of", "warning_lines", "watched",
]  # fmt: skip

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


def text_of(source: Source) -> str:
    """Return the text as a compiler sees it."""
    return source.text.removeprefix("\ufeff")


def build(request: Request) -> Built:
    """Make a version: its library is loaded, nobody sees it yet."""
    from rekernel.jit.loading import load
    from rekernel.languages import Built
    from rekernel.values import MachineCode

    source, text = request.source, text_of(request.source)
    chosen = options.settings(source.options, text)
    with ExitStack() as closing:
        place = files.place(request, chosen.debug, jit_of(request).objcache, closing)
        order, name = order_of(request, text, chosen, place)
        artefact = obtain_unit(request, order, text, name)
        kept = artefact.manifest
        found = [from_json(row, text) for row in kept["entries"]]
        path = None
        if place is not None:
            path = os.path.join(place, f"{files.stem(request)}.so")
            with open(path, "wb") as file:
                file.write(artefact.data)
        library = load(artefact.data, request.kernel_id, path)
        functions = [_function(library, one, request, chosen) for one in found]
        here = relative_to(chosen.relative, order.quote_dir, source)
        private = Private(watched(kept.get("headers")), text, artefact.command, artefact.key, found, here)
        made = closing.pop_all()
        if place is not None and not files.kept():
            private.close = weakref.finalize(private, made.close)
    return Built(
        entries=entries_of(found, functions, one_of), kernels=tuple(one.kernel for one in found), names={},
        skipped=dict(kept["skipped"]), warnings=warning_lines(artefact.warnings, source), notes=tuple(kept["notes"]),
        from_cache=artefact.from_cache, rebuilt_because=artefact.rebuilt_because, private=private,
        machine=lambda: (MachineCode("elf", artefact.data),),
    )  # fmt: skip


def jit_of(request: Request) -> CpuJit:
    """Return the loader's compiler, or that of all loaders without one; JitError for one that takes no C++."""
    from rekernel.jit import cpu

    jit = request.jit if request.jit is not None else cpu.default_jit()
    if not hasattr(jit, "objcache") or not hasattr(jit, "compiler_info"):
        raise JitError(f"{request.kernel_id} is C++, which needs a CpuJit; the loader was made with jit={jit!r}")
    return jit


def order_of(request: Request, text: str, chosen: options.Settings, place: str | None) -> tuple[Order, str]:
    """Return what is to be compiled, and what messages will call it. `place` is for debuggers, or None."""
    from rekernel.jit.obtain import Order

    source, jit = request.source, jit_of(request)
    quote_dir = beside_file(source, text, _QUOTED)
    info = info_of(jit.compiler_info, chosen, quote_dir)
    name, debug_dir = (UNIT, None) if place is None else files.text_in(place, request, text, own=chosen.debug)
    checked = (*_SANITIZED, f"-DREKERNEL_UNIT={json.dumps(name, ensure_ascii=False)}") if chosen.debug else ()
    include = os.path.dirname(os.path.dirname(unit.header_path()))
    order = Order(
        text, info, openmp=chosen.openmp and not chosen.debug, include_dirs=chosen.include_dirs, name=name,
        fields=(("cpp", SCHEMA), ("our headers", unit.header_digest()), ("reader", _reader_version())),
        flags=("-idirafter", include, *checked),
        ours=unit.own_headers(), quote_dir=quote_dir, debug=chosen.debug, debug_dir=debug_dir,
        subject=("cpp", request.kernel_id),
    )  # fmt: skip
    return order, name


_READER = ("candidates", "macros", "nodes", "reading", "spelled", "unit", "signature", "compiling")


def _reader_version() -> str:
    """Return what the key says of the code that finds functions and makes the unit from them."""
    return unit.digest_of(tuple(os.path.join(os.path.dirname(__file__), f"{name}.py") for name in _READER))


def info_of(base: CompilerInfo, chosen: options.Settings, quote_dir: str | None) -> CompilerInfo:
    """Return what the compiler is to be told, from what it is told for every kernel."""
    info = copy.copy(base)  # the lists that change are made anew
    quoted = [] if quote_dir is None else ["-iquote", quote_dir]
    info.extra_cxxflags = [*quoted, *info.extra_cxxflags, *chosen.flags]
    info.extra_ldflags = [*getattr(info, "extra_ldflags", []), *chosen.linking]
    if chosen.optlevel is not None:
        info.optlevel = chosen.optlevel
    if chosen.target is not None:
        info.target = chosen.target
    return info


def obtain_unit(request: Request, order: Order, text: str, name: str) -> Artefact:
    """Return the compiled bytes; KernelSourceError at the user's line where the compiler refuses the text."""
    from rekernel.jit.obtain import obtain
    from rekernel.product import CompileFailed

    jit = jit_of(request)

    def make(compiled: Compile) -> tuple[Product, Mapping[str, Any]]:
        from rekernel.languages.cpp.compiling import compile_unit

        return compile_unit(text, compiled)

    try:
        return obtain(jit.objcache, order, make, jit.precompiled)
    except CompileFailed as failure:
        from rekernel.languages.cpp.failure import source_error

        raise source_error(
            failure, request.source, text, name, kernel_id=request.kernel_id, number=request.number,
            python=request.hints,
        ) from None  # fmt: skip


def beside_file(source: Source, text: str, asks: re.Pattern[str]) -> str | None:
    """Return the directory of the text's file, where a text that `asks` for headers finds them first."""
    if source.filename is None or not asks.search(text) or not os.path.exists(source.filename):
        return None
    return os.path.dirname(os.path.abspath(source.filename))


def relative_to(relative: bool, beside: str | None, source: Source) -> str | None:
    """Return the current directory, if the meaning of a load depends on it.

    It does if an option has a path that is `relative`, or if headers are looked up `beside` a file that is named so.
    """
    named = beside is not None and source.filename is not None and not os.path.isabs(source.filename)
    return os.getcwd() if relative or named else None


def watched(headers: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what `same` looks at for an unchanged load: the user's headers; the system's are trusted meanwhile."""
    if headers is None:
        return None
    trusted = [path for path, *_ in headers.get("system", ())]
    return {"headers": {name: headers.get(name, ()) for name in ("user", "directories")} | {"trusted": trusted}}


def warning_lines(warnings: Sequence[str], source: Source) -> tuple[str, ...]:
    """Return kept warnings with the lines as this source counts them."""
    shift = source.first_line - 1
    if not shift:
        return tuple(warnings)
    return tuple(re.sub(r"^line (\d+):", lambda m: f"line {int(m[1]) + shift}:", one) for one in warnings)


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


def entries_of(
    found: Sequence[Entry], functions: Sequence[Any], choose: Callable[[str, Sequence[tuple[Entry, Any]]], Any]
) -> dict[str, Any]:
    """Return for each name what a handle calls: what `choose` makes of the entries of that name."""
    named: dict[str, list[tuple[Entry, Any]]] = {}
    for entry, function in zip(found, functions, strict=True):
        named.setdefault(entry.kernel.name, []).append((entry, function))
    return {name: choose(name, pairs) for name, pairs in named.items()}


def one_of(name: str, pairs: Sequence[tuple[Entry, Any]]) -> Any:
    """Return a function, or a choice among overloads."""
    if len(pairs) == 1:
        return pairs[0][1]
    signatures = tuple(str(entry.kernel) for entry, _function in pairs)
    return _native.Overloads(tuple(function for _entry, function in pairs), name, signatures=signatures)
