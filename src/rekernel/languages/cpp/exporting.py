"""A version as an extension module: the unit of the load, linked with a second one that speaks to Python.

::

    kernel.cpp    the user's text and its entry points, as every load compiles them
    beside.cpp    Python.h, the tables of the kernels, PyInit: it knows the entry points by their names alone

So no name, macro or flag of the user's meets Python's headers.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.errors import JitError
from rekernel.files import write_whole
from rekernel.jit.export import name_of_module, python_include_dirs, stub, write_module
from rekernel.languages.cpp import CPP, building, options
from rekernel.languages.cpp.signature import from_json
from rekernel.product import Beside
from rekernel.pymodule import PythonModuleBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rekernel.kernel import Kernel
    from rekernel.languages import Built, Request
    from rekernel.languages.cpp.options import Settings
    from rekernel.languages.cpp.signature import Entry

__all__ = ["export"]


def export(built: Built, request: Request, directory: Path, name: str | None) -> Path:
    """Write ``<name>`` as an importable module, ``<name>.pyi`` and the text into a directory; return the module."""
    kernel_id = request.kernel_id
    chosen = options.settings(request.source.options, building.text_of(request.source))
    if chosen.debug:
        raise JitError(
            f"{kernel_id!r} is loaded with debug=True, which is slow, runs in one thread and leaves a failed call by a "
            "jump; load it with debug=False, then export"
        )
    kernels = [_told(entry.kernel, chosen) for entry in built.private.entries]
    if not kernels:
        raise JitError(f"{kernel_id!r} has no kernels, so there is nothing to export")
    module = name_of_module(name, kernel_id)
    path, data = _place(directory, module, request), request.source.text.encode("utf-8", "surrogateescape")
    types = f"# {path.name}: {_digest(data)}\n{stub(kernels)}"
    _must_not_lose(path, data, directory / f"{module}.pyi")
    artefact = _compiled(request, built.private.entries, kernels, module, chosen)
    directory.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:  # the user's own file stays as it is
        write_whole(path, data, 0o666)
    return write_module(directory, module, artefact, types)


def _compiled(
    request: Request, entries: Sequence[Entry], kernels: Sequence[Kernel], module: str, chosen: Settings
) -> bytes:
    """Return the bytes of the module."""
    text, symbols = building.text_of(request.source), [entry.symbol for entry in entries]
    own = PythonModuleBuilder().render_interface(kernels, module, symbols, nogil=chosen.nogil)
    machine = tuple(flag for flag in chosen.flags if flag.startswith("-m"))  # else the module runs on this CPU alone
    settings = replace(chosen, flags=machine, linking=(), optlevel="2")
    info = building.info_of(building.jit_of(request).compiler_info, settings, None)
    order, unit = building.order_of(request, text, chosen, None)
    order = replace(
        order, allow_undefined=True, flags=(*order.flags, "-DREKERNEL_HIDDEN=1"),
        beside=Beside(own, info, python_include_dirs()),
    )  # fmt: skip
    artefact = building.obtain_unit(request, order, text, unit)
    if [from_json(row, text) for row in artefact.manifest["entries"]] != list(entries):
        raise JitError(f"what {request.kernel_id!r} includes has changed meanwhile; load it again, then export")
    return artefact.data


def _told(kernel: Kernel, chosen: Settings) -> Kernel:
    """Return a kernel with what the options of the load say of it."""
    promised = [replace(p, restrict=p.restrict and not chosen.allow_alias) for p in kernel.parameters]
    return replace(kernel, parameters=tuple(promised), openmp=chosen.openmp)


def _place(directory: Path, name: str, request: Request) -> Path:
    """Return where the text goes: with the suffix that the user's own file has."""
    suffix = os.path.splitext(request.source.filename or "")[1]
    return directory / f"{name}{suffix if suffix.lower() in CPP.suffixes else '.cpp'}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _must_not_lose(path: Path, data: bytes, types: Path) -> None:
    """Refuse a text in the place of ours, unless an export before has written it."""
    try:
        there = path.read_bytes()
    except FileNotFoundError:
        return
    if there == data:
        return
    said = ""
    with suppress(OSError, UnicodeDecodeError):
        said = types.read_text(encoding="utf-8")
    if f"# {path.name}: {_digest(there)}\n" not in said:
        raise FileExistsError(
            f"{path} is another text than the one that is to be exported, and no earlier export has written it; "
            "export to another directory or with another name="
        )
