"""The options of a load, as flags of the compiler. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekernel.compilerflags import absolute
from rekernel.languages.cpp.macros import has_c_restrict
from rekernel.languages.given import directories, flag, level, paths, words

__all__ = ["HELP", "Settings", "settings"]

HELP: Mapping[str, str] = {
    "include_dirs": "directories for #include, a list of paths",
    "flags": "more flags for the compiler, a list or one text: '-DN=8 -funroll-loops'",
    "openmp": "True or False; told by the text (#pragma omp) if not given",
    "optlevel": "'0' to '3', or 'fast' (no NaN, no infinity); '3' if not given",
    "target": "'native', 'generic', or a name that -march= takes; 'native' if not given",
    "nogil": "True releases the GIL in every call, False in none; by the size of the arrays if not given",
    "allow_alias": "True: restrict is not promised to the compiler, and overlap is not checked",
    "debug": "True: indices, divisions and assert are checked, and a debugger finds the text; slow, one thread",
}

_OPENMP = re.compile(
    r"^[ \t]*#[ \t]*(?:pragma[ \t]+omp\b|include[ \t]*[<\"]omp\.h[>\"])|\b_Pragma\s*\(\s*\"\s*omp\b", re.M
)


@dataclass(frozen=True)
class Settings:
    """What the options of one load mean."""

    include_dirs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """For the compiler."""
    linking: tuple[str, ...] = ()
    """For the linker: libraries and where they are."""
    openmp: bool = False
    optlevel: str | None = None
    target: Any = None
    nogil: bool | None = None
    allow_alias: bool = False
    debug: bool = False
    relative: bool = False
    """Whether a path is relative to the current directory."""


def settings(options: Mapping[str, Any], text: str) -> Settings:
    """Return what the options mean for a text. TypeError or ValueError names the option and its value."""
    openmp = flag(options, "openmp")
    debug, allow_alias = bool(flag(options, "debug")), bool(flag(options, "allow_alias"))
    flags = ["-DREKERNEL=1", "-fno-math-errno"]  # a sqrt that may set errno is not turned into vector instructions
    if allow_alias:
        flags += ["-Drestrict=", "-D__restrict=", "-D__restrict__="]
    elif has_c_restrict(text):
        flags.append("-Drestrict=__restrict__")
    if debug:
        flags += ["-DREKERNEL_DEBUG=1", "-D_GLIBCXX_ASSERTIONS=1"]
    else:
        flags.append("-DNDEBUG=1")  # an assert that fails would end the process
    compiling, linking = _parted(words(options.get("flags")))
    given = paths(options.get("include_dirs"))
    return Settings(
        include_dirs=directories(given),
        relative=not all(map(os.path.isabs, given)) or absolute(compiling) != [*compiling],
        flags=(*flags, *compiling, *(["-UNDEBUG"] if debug else [])),
        linking=linking,
        openmp=bool(_OPENMP.search(text)) if openmp is None else openmp,
        optlevel=level(options.get("optlevel")),
        target=options.get("target"),
        nogil=flag(options, "nogil"),
        allow_alias=allow_alias,
        debug=debug,
    )


def _parted(given: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words for the compiler and those for the linker; -Xlinker, -l and -L may stand before their value."""
    parts: tuple[list[str], list[str]] = ([], [])
    value_of_linker = False
    for word in given:
        links = value_of_linker or word.startswith(("-l", "-L", "-Wl,", "-Xlinker"))
        parts[links].append(word)
        value_of_linker = not value_of_linker and word in ("-l", "-L", "-Xlinker")
    return tuple(parts[0]), tuple(parts[1])
