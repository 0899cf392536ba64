"""A unit's cubin: out of the object cache, or compiled and published."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as once
from typing import TYPE_CHECKING, Any

from rekernel import headers, key, underway, why
from rekernel.cuda import headertexts, includes, nvrtc, toolkit
from rekernel.cuda.nvrtc import Compiled
from rekernel.jit.obtain import Artefact, beside, line_of_warning

if TYPE_CHECKING:
    from rekernel.objcache import ObjectCache

__all__ = ["Compile", "Make", "Order", "about", "obtain"]

_UNCACHED = re.compile(r"__(?:DATE|TIME|TIMESTAMP)__|#\s*embed")


@dataclass(frozen=True)
class Order:
    """What is to be compiled, and how."""

    text: str
    """The text as the key has it; what is compiled may be longer, if it is made from this alone."""
    arch: str
    """``sm_90``; ``compute_90`` for PTX."""
    options: Sequence[str] = ()
    """NVRTC's options."""
    expressions: Sequence[str] = ()
    """What to find in the result: ``&scale<float>``. Their lowered names are ``manifest["names"]``."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Texts of headers that are no files, by the name in their ``#include``."""
    before: Sequence[str] = ()
    """Names among `headers` that are read before the text."""
    include_dirs: Sequence[str] = ()
    directory: str | None = None
    """Where ``#include "x.h"`` looks first."""
    name: str = "kernel.cu"
    """What messages call the unit."""
    subject: tuple[str, str] = ("cuda", "")
    """Whose unit it is: the language, and the id or the kernel's name. For words, not for the key."""
    fields: Sequence[tuple[str, object]] = ()
    """What else changes the result, labelled, for the key."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """What is to be kept beside the bytes."""


Compile = Callable[[str, Sequence[str]], Compiled]
"""Compiles a text, and finds names in the result."""
Make = Callable[[Compile], "tuple[Compiled, Mapping[str, Any]]"]


def about(cache: ObjectCache) -> nvrtc.About:
    """Return what is known of NVRTC; kept beside the cache, so that a warm start does not load it."""
    return nvrtc.about(beside(cache, "probes"))


def obtain(cache: ObjectCache, order: Order, make: Make | None = None) -> Artefact:
    """Return a unit's cubin, with the lowered names of the order's expressions in ``manifest["names"]``.

    `make` is given a function that compiles a text and finds names in it, and returns what became of it with more for
    the manifest; without it the order's own text is compiled. CompileFailed where NVRTC refuses it, ToolchainError
    where there is no NVRTC.
    """
    fields = _fields(order, about(cache))
    digest = key.digest(fields)
    language, name = order.subject
    entry = cache.lookup(digest, headers.valid)
    if entry is None:
        words = why.words(fields)
        reason = cache.because(digest, words, order.subject)
        underway.refuse(name, language, reason, key=digest)  # before waiting for whoever may be building it
        with cache.building(digest):
            entry = cache.lookup(digest, headers.valid, again=True)
            if entry is None:
                with underway.compiling(name, language, reason, key=digest):
                    return _build(cache, order, make, digest, words, reason)
    underway.found(name, language, digest)
    kept = entry.manifest
    return Artefact(entry.data, digest, True, None, tuple(kept["warnings"]), tuple(kept["command"]), kept)


def _fields(order: Order, known: nvrtc.About) -> list[tuple[str, object]]:
    # Directories and the toolkit matter to a text that includes something; the same text without hits everywhere.
    including = "include" in order.text
    places = (order.directory, *map(os.path.abspath, _include_dirs(order)), toolkit.environment()) if including else ()
    return [
        ("unit", order.text), ("architecture", order.arch), ("nvrtc", known.version), ("options", order.options),
        ("expressions", order.expressions), ("headers", order.headers), ("our headers", _our_headers()),
        ("before", order.before), ("places", places), ("name", order.name), *order.fields,
    ]  # fmt: skip


@once
def _our_headers() -> str:
    return key.digest([("texts", headertexts.HEADERS)])


def _include_dirs(order: Order) -> list[str]:
    """Return all directories in which the user's headers are looked for, those of the options too."""
    found = list(order.include_dirs)
    words = iter(order.options)
    for word in words:
        for flag in ("--include-path=", "--include-path", "-I"):
            if word.startswith(flag):
                found.append(word[len(flag) :] or next(words, "."))
                break
    return found


def _build(
    cache: ObjectCache, order: Order, make: Make | None, digest: str, words: Mapping[str, Any], reason: why.Reason
) -> Artefact:
    started = time.time_ns()
    texts = {**headertexts.HEADERS, **order.headers}
    seen = includes.scan(order.text, order.name, order.directory, _include_dirs(order), texts)
    system = toolkit.directories(about(cache).version, _keep(cache)) if seen.missing else ()

    def compiled(text: str, expressions: Sequence[str]) -> Compiled:
        return nvrtc.compile_text(
            text, arch=order.arch, options=order.options, expressions=expressions, headers=order.headers,
            before=order.before, include_dirs=order.include_dirs, system_dirs=system, shadowed=seen.shadowed,
            name=order.name, directory=order.directory, includes=seen.via,
        )  # fmt: skip

    made, more = (compiled(order.text, order.expressions), {}) if make is None else make(compiled)
    said = tuple(line_of_warning(one) for one in made.warnings if one.severity == "warning")
    told = {"names": dict(made.names), "warnings": said, "command": made.command, "fields": words}
    manifest: dict[str, Any] = {**order.manifest, **more, **told}
    of_cuda = [path for name in seen.missing for place in system if os.path.isfile(path := os.path.join(place, name))]
    watched = [*([order.directory] if order.directory else []), *_include_dirs(order)] if seen.files else []
    try:
        manifest["headers"] = headers.record(seen.files, of_cuda, watched, text=order.text, started_ns=started)
        if seen.exact and not _UNCACHED.search(order.text):
            cache.publish(digest, manifest, made.data, subject=order.subject)
    except headers.HeaderChangedError:
        pass  # what was built is good for this call; nobody knows which text of the header it has seen
    return Artefact(made.data, digest, False, reason.said, said, made.command, manifest)


def _keep(cache: ObjectCache) -> str:
    """Return where CUDA's headers may be written: beside the cache, or for this process only."""
    return cache.directory or _temporary().name


@once
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="rekernel-cuda-")
