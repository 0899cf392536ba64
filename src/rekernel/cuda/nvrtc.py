"""NVRTC, CUDA's compiler: text in, cubin and lowered names out. One call for a unit; the GIL is released meanwhile."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from rekernel.cuda import missing
from rekernel.cuda.headertexts import HEADERS
from rekernel.cuda.messages import parse, with_text
from rekernel.errors import Diagnostic
from rekernel.gnumessages import source_lines
from rekernel.product import CompileFailed

__all__ = ["About", "Compiled", "about", "api", "architecture", "compile_text"]

_NOWHERE = "/rekernel"
# NVRTC looks for "x.h" beside the text first. A text without a file gets a directory that does not exist; without one
# it would be the current directory of the process.
_LIBRARIES = ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12")


@dataclass(frozen=True)
class About:
    """What a key has to know of NVRTC."""

    version: tuple[int, int]
    architectures: tuple[int, ...]
    """The compute capabilities that it compiles for: 90 for 9.0."""


@dataclass(frozen=True)
class Compiled:
    """What became of a text."""

    data: bytes
    """The cubin; or, for a virtual architecture, PTX with its final zero."""
    names: Mapping[str, str]
    """The lowered name of each name expression: that of the symbol."""
    warnings: tuple[Diagnostic, ...]
    command: tuple[str, ...]
    output: str
    """All that NVRTC wrote."""
    seconds: float


_known: list[About] = []


def api() -> Any:
    """Return CuPy's binding of NVRTC, loaded. ToolchainError says what is missing."""
    try:
        from cupy_backends.cuda.libs import nvrtc
    except Exception as error:  # whatever a broken installation raises
        raise missing.cupy(error) from error
    try:
        nvrtc.getVersion()
    except Exception as error:
        raise missing.nvrtc(error) from error
    return nvrtc


def about(directory: str | None = None) -> About:
    """Return NVRTC's version and architectures.

    Loading the library takes 20 ms, which a warm start need not spend: where it is one file of a package, the answer
    is kept in `directory` under the file's name, size and time.
    """
    if not _known:
        store = _store(directory)
        found = None if store is None else _load(store)
        if found is None:
            nvrtc = api()
            found = About(tuple(nvrtc.getVersion()), tuple(nvrtc.getSupportedArchs()))
            if store is not None:
                _save(store, found)
        _known.append(found)
    return _known[0]


def architecture(capability: int, known: About) -> str:
    """Return the architecture to compile for: the device's own, or the nearest older one, whose PTX the driver takes.

    >>> architecture(90, About((13, 0), (75, 80, 90))), architecture(91, About((13, 0), (75, 80, 90)))
    ('sm_90', 'compute_90')
    """
    if capability in known.architectures:
        return f"sm_{capability}"
    older = [one for one in known.architectures if one < capability]
    if not older:
        raise missing.architecture(capability, known.version, known.architectures)
    return f"compute_{max(older)}"


def compile_text(
    text: str,
    *,
    arch: str,
    options: Sequence[str] = (),
    expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    system_dirs: Sequence[str] = (),
    shadowed: Collection[str] = (),
    name: str = "kernel.cu",
    directory: str | None = None,
    includes: Mapping[str, tuple[str, int]] | None = None,
) -> Compiled:
    """Compile a text. CompileFailed where NVRTC refuses it, with diagnostics at the lines of `name`.

    `arch`: ``sm_90``, or ``compute_90`` for PTX. `expressions`: what to find in the result, such as ``&scale<float>``.
    `headers`: more texts by the name in their ``#include``; `before` names those that are read before the text.
    `directory`: where ``#include "x.h"`` looks first. `shadowed`: headers of ours that the user has as files.
    `includes`: of each header, who includes it, for the messages.
    """
    nvrtc = api()
    known = {one: code for one, code in {**HEADERS, **(headers or {})}.items() if one not in shadowed}
    standard = [] if any("-std" in one for one in options) else ["-std=c++17"]
    flags = [
        f"-arch={arch}", *standard, *(f"--pre-include={one}" for one in before), *options,
        *(f"-I{one}" for one in (*include_dirs, *system_dirs)),
    ]  # fmt: skip
    path = f"{directory or _NOWHERE}/{name}"
    command = ("nvrtc", *flags, name)
    started = time.perf_counter()
    texts = [code.encode("utf-8", "surrogateescape") for code in known.values()]
    program = nvrtc.createProgram(
        text.encode("utf-8", "replace").decode(), path, tuple(texts), tuple(one.encode() for one in known)
    )
    try:
        for one in expressions:
            nvrtc.addNameExpression(program, one)
        problem: Exception | None = None
        try:
            nvrtc.compileProgram(program, tuple(flags))
        except nvrtc.NVRTCError as error:
            problem = error
        log = str(nvrtc.getProgramLog(program)).replace(path, name)
        quiet = {*known, *(f"{one.rstrip('/')}/" for one in system_dirs)}
        said = with_text(parse(log, name, includes=includes, quiet=quiet), source_lines(text, name))
        if problem is not None:
            raise _failed(problem, said, command, log)
        data = nvrtc.getPTX(program) if arch.startswith("compute") else nvrtc.getCUBIN(program)
        data = data.encode() if isinstance(data, str) else data
        if arch.startswith("compute") and not data.endswith(b"\0"):
            data += b"\0"  # by which the driver knows its end
        names = {one: str(nvrtc.getLoweredName(program, one)) for one in expressions}
    finally:
        nvrtc.destroyProgram(program)
    warnings = tuple(one for one in said if one.severity != "error")
    return Compiled(data, names, warnings, command, log, time.perf_counter() - started)


def _failed(
    problem: Exception, said: tuple[Diagnostic, ...], command: tuple[str, ...], log: str
) -> CompileFailed:  # fmt: skip
    errors = [one for one in said if one.severity == "error"]
    found = said if errors else (Diagnostic(" ".join(str(problem).split())),)
    return CompileFailed((errors or found)[0].message, command=command, output=log, diagnostics=found)


def _store(directory: str | None) -> str | None:
    """Return the file of a kept answer, if the library is one file that can be named without loading it."""
    if directory is None:
        return None
    found = [path for place in sys.path for name in _LIBRARIES if os.path.isfile(path := os.path.join(place, name))]
    if len(set(found)) != 1:
        return None
    status = os.stat(found[0])
    asked = f"{found[0]}\n{status.st_size}\n{status.st_mtime_ns}\n{status.st_ino}"
    digest = blake2b(asked.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return os.path.join(directory, f"nvrtc-{digest}.json")


def _load(store: str) -> About | None:
    with suppress(OSError, ValueError, TypeError, KeyError), open(store, encoding="ascii") as file:
        values = json.load(file)
        major, minor = values["version"]
        return About((int(major), int(minor)), tuple(map(int, values["architectures"])))
    return None


def _save(store: str, found: About) -> None:
    from rekernel.files import replace

    directory = os.path.dirname(store)
    with suppress(OSError):
        os.makedirs(directory, mode=0o700, exist_ok=True)
        replace(store, json.dumps(vars(found)).encode("ascii"), directory)
