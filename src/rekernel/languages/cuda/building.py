"""From a CUDA text to callables: settings, key, object cache or NVRTC, modules on demand, kernels."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rekernel import underway
from rekernel.cuda import cubins, modules, nvrtc
from rekernel.errors import JitError
from rekernel.languages.cpp.building import beside_file, entries_of, relative_to, text_of, warning_lines, watched
from rekernel.languages.cpp.signature import Entry, from_json
from rekernel.languages.cpp.unit import digest_of
from rekernel.languages.cuda import code, options, signature, unit
from rekernel.languages.cuda.compiling import compile_unit
from rekernel.languages.cuda.failure import source_error
from rekernel.languages.cuda.variables import DeviceVariable
from rekernel.objcache import ObjectCache
from rekernel.product import CompileFailed

if TYPE_CHECKING:
    from rekernel.jit.obtain import Artefact
    from rekernel.languages import Built, Request

__all__ = ["Private", "build"]

SCHEMA = 1
"""Raise it when the same text and headers become another unit."""
UNIT = "kernel.cu"
"""What NVRTC calls a text. The user's name for it does not enter the key."""
_QUOTED = re.compile(r"(?:#|%:)\W*include(?:_next)?\b(?![ \t]*<)|__has_include")


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
    """The kernels, with their names in the module."""
    arch: str
    relative_to: str | None = None
    """The current directory of the load, where a path of it is relative."""


def build(request: Request) -> Built:
    """Make a version: it is compiled, and loaded on a device when it is first called there."""
    from rekernel.languages import Built, Request
    from rekernel.values import MachineCode

    source, text = request.source, text_of(request.source)
    chosen = options.settings(source.options, text)
    objcache = _objcache(request)
    arch = chosen.arch or nvrtc.architecture(code.capability(), cubins.about(objcache))
    directory = beside_file(source, text, _QUOTED)
    order = cubins.Order(
        text, arch, options=chosen.flags, headers=unit.headers(), before=(unit.HEADER,),
        include_dirs=chosen.include_dirs, directory=directory, name=UNIT, subject=("cuda", request.kernel_id),
        fields=(("cuda", SCHEMA), ("reader", _reader_version())),
    )  # fmt: skip
    artefact = _obtain(request, objcache, order, text)
    kept = artefact.manifest
    found = [from_json(row, text) for row in kept["entries"]]

    alone = Request(source, request.draft, request.kernel_id, request.number)  # without what keeps the version before
    work = underway.current()

    def image(other: str) -> bytes:
        """Return the code for an architecture: a process may have devices of several."""
        if other == arch:
            return artefact.data
        with underway.doing(work):
            return _obtain(alone, objcache, replace(order, arch=other), text).data

    def architecture(of_device: int) -> str:
        return chosen.arch or nvrtc.architecture(of_device, cubins.about(objcache))

    loaded = code.Code(modules.Module(image, architecture))
    functions = [code.kernel(loaded, one, request, chosen, UNIT) for one in found]
    entries = entries_of(found, functions, code.one_of)
    variables = {one.name: DeviceVariable(loaded, one) for one in signature.from_json(kept["variables"])}
    return Built(
        entries=entries, kernels=tuple(one.kernel for one in found),
        names={name: one for name, one in variables.items() if name not in entries},
        skipped=dict(kept["skipped"]), warnings=warning_lines(artefact.warnings, source), notes=tuple(kept["notes"]),
        from_cache=artefact.from_cache, rebuilt_because=artefact.rebuilt_because,
        machine=lambda: (MachineCode("ptx" if arch.startswith("compute") else "cubin", artefact.data),),
        private=Private(
            watched(kept.get("headers")), text, artefact.command, artefact.key, found, arch,
            relative_to(chosen.relative, directory, source),
        ),
    )  # fmt: skip


@cache
def _default_objcache() -> ObjectCache:
    return ObjectCache()


def _objcache(request: Request) -> ObjectCache:
    """Return the cache of the loader's JIT, whichever that is: a cubin is kept beside other compiled bytes."""
    if request.jit is None:
        return _default_objcache()
    found = getattr(request.jit, "objcache", None)
    if not isinstance(found, ObjectCache):
        raise JitError(f"{request.kernel_id} is CUDA, which needs a CupyJit; the loader was made with {request.jit!r}")
    return found


_READER = ("reading", "unit", "signature", "compiling")
_SHARED = ("candidates", "macros", "nodes", "reading", "unit", "signature", "compiling")


def _reader_version() -> str:
    """Return what the key says of the code that finds kernels and makes the unit from them."""
    here = os.path.dirname(__file__)
    cpp = os.path.join(os.path.dirname(here), "cpp")
    own = [os.path.join(here, f"{name}.py") for name in _READER]
    return digest_of((*own, *(os.path.join(cpp, f"{name}.py") for name in _SHARED)))


def _obtain(request: Request, objcache: ObjectCache, order: cubins.Order, text: str) -> Artefact:
    try:
        return cubins.obtain(objcache, order, lambda compiled: compile_unit(text, compiled))
    except CompileFailed as failure:
        raise source_error(
            failure, request.source, text, UNIT, kernel_id=request.kernel_id, number=request.number,
            python=request.hints,
        ) from None  # fmt: skip
