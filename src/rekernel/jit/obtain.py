"""A unit's compiled bytes: out of the object cache, or compiled aside and published."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rekernel import headers, key, underway, why
from rekernel.compilerflags import include_directories
from rekernel.probe import flags, key_fields, probe

if TYPE_CHECKING:
    from rekernel.compilers import CompilerInfo
    from rekernel.errors import Diagnostic
    from rekernel.objcache import ObjectCache
    from rekernel.pch import PrecompiledHeaders
    from rekernel.product import Beside, Product
    from rekernel.toolchain import Toolchain

__all__ = ["Artefact", "Order", "line_of_warning", "obtain"]

#: What makes the result of a compile depend on more than its text and its headers: built, and not kept.
_UNCACHED = re.compile(r"__(?:DATE|TIME|TIMESTAMP)__|\.incbin|#\s*embed")


@dataclass(frozen=True)
class Order:
    """What is to be compiled, and how."""

    text: str
    """The text as the key has it; what is compiled may be longer, if it is made from this alone."""
    info: CompilerInfo
    fields: Sequence[tuple[str, object]] = ()
    """What else changes the result, labelled, for the key."""
    openmp: bool = False
    include_dirs: Sequence[str] = ()
    allow_undefined: bool = False
    """For Python modules, whose symbols are the interpreter's."""
    name: str = "unit.cpp"
    """What messages call the unit."""
    subject: tuple[str, str] = ("cpp", "")
    """Whose unit it is: the language, and the id or the names of the kernels. For words, not for the key."""
    flags: Sequence[str] = ()
    """Flags that are not part of the key: what they do is in `fields`."""
    ours: Sequence[str] = ()
    """Headers of ours: their contents are in `fields`."""
    quote_dir: str | None = None
    """Where ``#include "x.h"`` looks first; it is among the flags of `info`, too."""
    debug: bool = False
    """Compile for a debugger, not for speed."""
    debug_dir: str | None = None
    """Where a debugger or a profiler finds the text, if it shall. What is compiled so is not kept in the cache."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """What is to be kept beside the bytes."""
    beside: Beside | None = None
    """A second text that is linked with the first."""


@dataclass(frozen=True)
class Artefact:
    """What a unit became."""

    data: bytes
    key: str
    from_cache: bool
    rebuilt_because: str | None
    warnings: tuple[str, ...]
    command: tuple[str, ...]
    manifest: Mapping[str, Any]


Compile = Callable[[str, Sequence[str]], "Product"]
"""Compiles a text, with flags that do not enter the key."""
Make = Callable[[Compile], "tuple[Product, Mapping[str, Any]]"]


def obtain(
    cache: ObjectCache,
    order: Order,
    make: Make | None = None,
    pch: Callable[[], PrecompiledHeaders | None] | None = None,
) -> Artefact:
    """Return a unit's compiled bytes.

    `make` is given a function that compiles a text, and returns what became of it with more for the manifest; without
    it the order's own text is compiled. CompileFailed where the compiler refuses it.
    """
    toolchain = probe(order.info, beside(cache, "probes"))
    traceable = order.debug or order.debug_dir is not None
    fields: list[tuple[str, object]] = [
        ("unit", order.text),
        ("module", order.allow_undefined),
        *order.fields,
        *_beside(toolchain, order),
        *key_fields(toolchain, order.info, openmp=order.openmp, include_dirs=order.include_dirs, debug=order.debug),
    ]
    digest = key.digest(fields)
    language, name = order.subject

    def build(reason: why.Reason) -> Artefact:
        from rekernel.toolchain import build

        started = time.time_ns()
        with underway.compiling(name, language, reason, key=digest), cache.workdir() as place:

            def compiled(text: str, flags: Sequence[str]) -> Product:
                return build(
                    toolchain, order.info, text, openmp=order.openmp, include_dirs=order.include_dirs, workdir=place,
                    allow_undefined=order.allow_undefined, pch=None if pch is None else pch(), debug=order.debug,
                    debug_dir=order.debug_dir, name=order.name, extra=[*flags, *order.flags],
                    beside=order.beside,
                )  # fmt: skip

            product, more = (compiled(order.text, ()), {}) if make is None else make(compiled)
        said = tuple(line_of_warning(message) for message in product.warnings)
        about = {"warnings": said, "command": product.command, "fields": why.words(fields)}
        manifest: dict[str, Any] = {**order.manifest, **more, **about}
        try:
            manifest["headers"] = _headers(order, product, started)
            if not traceable and not _UNCACHED.search(order.text):
                cache.publish(digest, manifest, product.data, subject=order.subject)
        except headers.HeaderChangedError:
            pass  # what was built is good for this call; nobody knows which text of the header it has seen
        return Artefact(product.data, digest, False, reason.said, said, product.command, manifest)

    if traceable:
        return build(why.Reason("entry", "built for a debugger, which is not kept in the cache"))
    entry = cache.lookup(digest, headers.valid)
    if entry is None:
        reason = cache.because(digest, why.words(fields), order.subject)
        underway.refuse(name, language, reason, key=digest)  # before waiting for whoever may be building it
        with cache.building(digest):
            entry = cache.lookup(digest, headers.valid, again=True)
            if entry is None:
                return build(reason)
    underway.found(name, language, digest)
    manifest = entry.manifest
    return Artefact(entry.data, digest, True, None, tuple(manifest["warnings"]), tuple(manifest["command"]), manifest)


def _beside(toolchain: Toolchain, order: Order) -> list[tuple[str, object]]:
    """Return what the key says of the second text."""
    if order.beside is None:
        return []
    text, info, include_dirs = order.beside.text, order.beside.info, order.beside.include_dirs
    return [("beside", (text, flags(toolchain, info, include_dirs=include_dirs)))]


def _headers(order: Order, product: Product, started: int) -> Mapping[str, Any]:
    read = [header for header in product.headers if header.path not in order.ours]
    others = order.beside.include_dirs if order.beside is not None else ()
    flagged = include_directories(order.info.cxxflags())
    directories = [*order.include_dirs, *others, *flagged, *([order.quote_dir] if order.quote_dir else [])]
    return headers.record(
        [h.path for h in read if not h.system], [h.path for h in read if h.system], directories,
        text=order.text, started_ns=started,
    )  # fmt: skip


def beside(cache: ObjectCache, name: str) -> str | None:
    """Return a directory beside the cache's entries, or None where there is no cache on disk."""
    directory = cache.directory
    return None if directory is None else os.path.join(directory, name)


def line_of_warning(message: Diagnostic) -> str:
    """Return a warning as one line."""
    place = "" if message.line is None else f"line {message.line}: "
    return f"{place}{message.message}"
