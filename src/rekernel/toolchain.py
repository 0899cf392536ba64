r"""From the text of a unit to the bytes of a shared object. Everything that calls a compiler for a kernel is here.

::

    text -> compile (driver -c) -> object -> its open symbols -> link (ld directly) -> bytes

The linker is called directly, by the line that the compiler itself would use: 3 to 7 ms instead of 17 and more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.calling import call, refuse_breakage
from rekernel.compilerflags import driver_link_flags, linker_words
from rekernel.compilers import toolchain_error
from rekernel.diagnostics import format_flags, parse, point, render
from rekernel.errors import Diagnostic
from rekernel.gnumessages import source_lines
from rekernel.gnutext import dependencies, needs, undefined_symbols
from rekernel.openmp import openmp_works
from rekernel.probe import Toolchain, flags, key_fields, probe
from rekernel.process import Finished, working
from rekernel.product import CompileFailed, Header, Product

if TYPE_CHECKING:
    from rekernel.pch import Precompiled, PrecompiledHeaders
    from rekernel.product import Beside

__all__ = ["CompileFailed", "Header", "Product", "Toolchain", "build", "flags", "key_fields", "openmp_works", "probe"]


def build(
    toolchain: Toolchain, info: Any, text: str, *, openmp: bool = False,
    include_dirs: Sequence[str | os.PathLike[str]] = (), workdir: str | os.PathLike[str] | None,
    debug: bool = False, link_cxx: bool | None = None, allow_undefined: bool = False,
    name: str = "unit.cpp", debug_dir: str | None = None, pch: PrecompiledHeaders | None = None,
    extra: Sequence[str] = (), beside: Beside | None = None,
) -> Product:  # fmt: skip
    """Compile and link a unit.

    `workdir` is where private work directories are made. Libraries are linked where the object needs them;
    `link_cxx` overrides this for the C++ library. `allow_undefined` is for Python modules, whose symbols are the
    interpreter's. `name` is what messages call the unit, and debuggers and profilers find it in `debug_dir`.
    `extra` are flags for the compile of the unit alone, not for precompiled headers. `beside` is
    compiled after it, and linked with it.

    CompileFailed for a wrong text, ToolchainError for a broken compiler.
    """
    start = time.perf_counter()
    chosen = flags(toolchain, info, openmp=openmp, include_dirs=include_dirs, debug=debug)
    pch = None if debug or debug_dir or allow_undefined else pch
    with working(workdir) as place, ExitStack() as using:
        exact = chosen
        if debug_dir:  # with lines at least, and with C++ for whatever the user has called his file
            lines = [] if debug else ["-g1"]
            exact = [*chosen, *lines, f"-ffile-prefix-map={place}={os.path.abspath(debug_dir)}", "-x", "c++"]
        threads = openmp and getattr(info, "openmp", True) and not debug
        other = None
        if beside is not None:
            others = flags(toolchain, beside.info, include_dirs=beside.include_dirs)
            other = _Unit(toolchain, beside.info, place, "beside.cpp", beside.text, others, False, stem="beside")
        unit = _Unit(toolchain, info, place, name, text, exact, threads, list(extra), other)
        header = None if pch is None else using.enter_context(pch.find(toolchain, chosen, text))
        try:
            compiled, linked = unit.make(header, link_cxx, allow_undefined)
        except CompileFailed:
            if header is None:
                raise
            header = None
            compiled, linked = unit.make(None, link_cxx, allow_undefined)
        output = compiled.output + linked.output
        warnings = tuple(message for message in unit.messages(output) if message.severity != "error")
        product = Product(
            Path(place, "unit.so").read_bytes(), unit.headers(header), warnings, compiled.command,
            unit.rendered(output), time.perf_counter() - start, linked.command, header is not None,
        )  # fmt: skip
    if pch is not None and header is None:
        pch.later(toolchain, chosen, text, product.seconds)
    return product


@dataclass
class _Unit:
    """One unit in its work directory."""

    toolchain: Toolchain
    info: Any
    place: str
    name: str
    text: str
    flags: list[str]
    openmp: bool
    extra: list[str] = field(default_factory=list)
    beside: _Unit | None = None
    stem: str = "unit"
    """Of the files that the compiler makes."""

    def make(self, header: Precompiled | None, cxx: bool | None, allow_undefined: bool) -> tuple[Finished, Finished]:
        """Compile and link."""
        compiled = self.compile(header)
        if self.beside is not None:
            self.beside.compile(None)
        return compiled, self.link(cxx, allow_undefined)

    @property
    def objects(self) -> list[str]:
        """The objects that are linked, its own first."""
        return [f"{self.stem}.o", *(self.beside.objects if self.beside else ())]

    @cached_property
    def lines(self) -> dict[tuple[str, int], str]:
        """The unit's lines, by the names and numbers that messages use."""
        return source_lines(self.text, self.name)

    def messages(self, output: str) -> tuple[Diagnostic, ...]:
        """Return what a compiler or linker said about the unit."""
        return parse(output, self.lines) if output else ()

    def rendered(self, output: str) -> str:
        """Return the same for people to read."""
        return render(output, self.lines) if output else ""

    def compile(self, header: Precompiled | None) -> Finished:
        """Compile to an object."""
        Path(self.place, self.name).write_bytes(_encoded(self.text if header is None else header.rest))
        driver = [*self.toolchain.launcher, *self.toolchain.command]
        rest = [
            *self.flags, "-c", self.name, "-o", self.objects[0],
            "-MD", "-MF", f"{self.stem}.d", *(() if header is None else header.flags), *self.extra,
            *(["-pipe"] if self.toolchain.kind == "gcc" else []),  # the assembler starts meanwhile: 3 of 37 ms
        ]  # fmt: skip
        form = format_flags(self.toolchain)
        finished = call([*driver, *form, *rest], self.place, self.toolchain.environment)
        if form and finished.returncode > 0 and header is None and not self._placed(finished.output):
            # Data does not say how GCC came to a header, its text does.
            finished = call([*driver, *rest], self.place, self.toolchain.environment)
        finished = replace(finished, command=(*driver, *rest))  # which a user can call and read
        if finished.returncode:
            self._refuse(finished, "compile")
        if not os.path.exists(os.path.join(self.place, self.objects[0])):
            raise toolchain_error(f"{self.toolchain.driver} is no C++ compiler: it makes no object file")
        return finished

    def link(self, cxx: bool | None, allow_undefined: bool) -> Finished:
        """Link to ``unit.so``, by the linker itself where that is possible."""
        each = [undefined_symbols(Path(self.place, name).read_bytes()) for name in self.objects]
        symbols = None if None in each else frozenset[str]().union(*filter(None, each))
        some, needs_cxx, needs_openmp = needs(symbols)
        given = self.info.linker_flags()
        read = [flag for flag in self.toolchain.flags if not flag.startswith(("-m", "-stdlib=", "--sysroot", "-B"))]
        extra = linker_words(given, [*read, *self.info.cxxflags()])  # the rest of them is in the line already
        line = self.toolchain.link
        needs_openmp = needs_openmp and (symbols is not None or self.openmp)
        if line is not None and extra is not None and (line.openmp or not needs_openmp):
            wanted = needs_cxx if cxx is None else cxx
            command = line.render(
                "unit.so", self.objects, extra=extra, libraries=some, cxx=wanted, openmp=needs_openmp,
                allow_undefined=allow_undefined,
            )  # fmt: skip
            finished = call(command, self.place, self.toolchain.environment)
            if finished.returncode == 0:
                return finished
        through = self._through_driver(given, needs_cxx, needs_openmp, allow_undefined)
        finished = call(through, self.place, self.toolchain.environment)
        if finished.returncode:
            self._refuse(finished, "link")
        return finished

    def _through_driver(self, given: Sequence[str], cxx: bool, openmp: bool, allow_undefined: bool) -> list[str]:
        kept = driver_link_flags(given, [*self.toolchain.flags, *self.info.cxxflags()])
        elf = self.toolchain.link is not None or "linux" in self.toolchain.triple
        sanitized = any(flag.startswith("-fsanitize") for flag in kept)
        strict = ["-Wl,-z,defs", "-Wl,--as-needed"] if elf and not allow_undefined and not sanitized else []
        threads = ["-fopenmp"] if openmp and "-fopenmp" not in kept else []
        # Libraries that the user names come after the object that needs them.
        # To link C++, zig first builds a C++ library, for minutes.
        verbs = ["cc" if verb == "c++" and not cxx else verb for verb in self.toolchain.verbs]
        command = [self.toolchain.driver, *verbs]
        return [*command, "-shared", "-fPIC", *strict, "-o", "unit.so", *self.objects, *kept, *threads]

    def headers(self, used: Precompiled | None) -> tuple[Header, ...]:
        """Return the files that the unit included."""
        try:
            text = os.fsdecode(Path(self.place, f"{self.stem}.d").read_bytes())
        except OSError:
            text = ""
        named = [os.path.join(self.place, path) for path in dependencies(text)]
        if used is not None:
            named = [*used.headers, *(path for path in named if not path.startswith(used.directory))]
        own = os.path.join(self.place, self.name)
        roots = tuple(directory.rstrip("/") + "/" for directory in self.toolchain.system_dirs)
        found = tuple(Header(path, path.startswith(roots)) for path in dict.fromkeys(named) if path != own)
        return found if self.beside is None else (*found, *self.beside.headers(None))

    def _placed(self, output: str) -> bool:
        """Return whether a way is known from the first error to a line of the unit."""
        own = {name for name, _line in self.lines}
        errors = [message for message in self.messages(output) if message.severity == "error"]
        return bool(errors) and point(errors[:1], own).filename in own

    def _refuse(self, finished: Finished, what: str) -> None:
        """Raise for a call that failed: the compiler is broken, has no OpenMP, or the text is wrong."""
        found = self.messages(finished.output)
        finished = replace(finished, output=self.rendered(finished.output))
        refuse_breakage(finished)
        if "No space left on device" in finished.output:
            raise toolchain_error(f"the disk is full: {self.place} (set TMPDIR or REKERNEL_CACHE_DIR to another place)")
        if self.openmp and not openmp_works(self.toolchain, os.path.dirname(self.place)):
            raise toolchain_error(
                f"{self.toolchain.driver} cannot compile and link OpenMP; install its OpenMP runtime (Debian, Ubuntu: "
                "apt install libomp-dev for clang, libgomp1 for g++), choose another one with REKERNEL_CXX or CXX, or "
                f"set openmp=False in CompilerInfo. It says: {finished.output.strip()[:500]}"
            )
        errors = [message for message in found if message.severity == "error"]
        if not errors:
            text = finished.output.strip() or f"exit code {finished.returncode} without a word"
            errors = [Diagnostic(text.splitlines()[0])]
            found = (*errors, *found)
        raise CompileFailed(
            errors[0].message if what == "compile" else f"linking failed: {errors[0].message}",
            command=finished.command, output=finished.output, diagnostics=found,
        )  # fmt: skip


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
