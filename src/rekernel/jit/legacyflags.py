"""The compiler that a configuration of pystencils 1.x describes: one text of flags, for compiling and for linking."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rekernel.compilerflags import absolute
from rekernel.compilers import CompilerInfo

__all__ = ["LegacyInfo", "changed", "compiler_info", "words"]

_OPENMP = ("-fopenmp", "-qopenmp", "-openmp")
_LINKING = ("-l", "-L", "-Wl,")
_LINKING_TWO = ("-l", "-L", "-Xlinker", "-framework", "-u", "-z", "-T")
_COMPILING_TWO = (
    "-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-isysroot", "-B", "-Xclang",
    "-Xpreprocessor", "-mllvm", "--param", "-x", "-target", "-arch", "--sysroot",
)  # fmt: skip


@dataclass
class LegacyInfo(CompilerInfo):
    """A compiler whose flags are those of the configuration, as they are, in their order, and no others.

    `extra_cxxflags` are all flags for compiling. `openmp`, `optlevel`, `cxx_standard` and `target` only tell what
    the flags say.
    """

    libraries: list[str] = field(default_factory=list)
    """The flags that are for linking."""
    qualifier: str = "__restrict__"
    """What `restrict_qualifier` returns."""

    def cxxflags(self) -> list[str]:
        """Return the flags for compiling."""
        return list(self.extra_cxxflags)

    def linker_flags(self) -> list[str]:
        """Return the flags for linking a shared object."""
        return ["-shared", *self.libraries]

    def restrict_qualifier(self) -> str:
        """Return the word of the configuration."""
        return self.qualifier


def compiler_info(compiler: Mapping[str, Any]) -> LegacyInfo:
    """Return what the checked section ``compiler`` describes.

    >>> info = compiler_info({"command": "g++", "flags": "-O2 -fopenmp -lm", "restrict_qualifier": "", "env": {}})
    >>> info.cxxflags(), info.linker_flags(), info.openmp
    (['-O2'], ['-shared', '-lm'], True)
    """
    compiling, linking, openmp = _sorted(words(compiler["flags"]))

    def last(*starts: str) -> str | None:
        return next((f[len(s) :] for f in reversed(compiling) for s in starts if f.startswith(s)), None)

    return LegacyInfo(
        openmp=openmp, optlevel=last("-O"), cxx_standard=last("-std=") or "", extra_cxxflags=compiling,
        target=last("-march=", "-mcpu=") or "generic", command=os.path.expanduser(compiler["command"]),
        env=dict(compiler["env"]), libraries=linking, qualifier=compiler["restrict_qualifier"],
    )  # fmt: skip


def words(flags: Any) -> list[str]:
    """Return flags as a list: as in pystencils 1.x, a text is split at blanks, and quotes mean nothing."""
    return flags.split() if isinstance(flags, str) else list(flags)


def changed(flags: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return flags with new ones at the end, which take the place of those that set the same.

    >>> changed(["-Ofast", "-std=c++11", "-DN=2", "-DNDEBUG"], ["-O2", "-std=c++17", "-DN=3"])
    ['-DNDEBUG', '-O2', '-std=c++17', '-DN=3']
    """
    named = {_what(flag) for flag in new}
    return [*(flag for flag in flags if _what(flag) not in named), *new]


def _what(flag: str) -> str:
    if flag.startswith("-Wl,"):
        return flag
    return "-O" if flag.startswith("-O") else flag.partition("=")[0]


def _sorted(flags: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Return the flags for compiling, those for linking, and whether OpenMP is on.

    What switches OpenMP on is left out: it is passed to units that use it.
    """
    compiling: list[str] = []
    linking: list[str] = []
    openmp = False
    rest = iter(flags)
    for flag in rest:
        if flag in (*_LINKING_TWO, *_COMPILING_TWO):
            pair = [flag, *(value for value in [next(rest, None)] if value is not None)]
            if pair[0] in ("-Xclang", "-Xpreprocessor") and pair[-1] in _OPENMP:
                openmp = True
            else:
                (linking if flag in _LINKING_TWO else compiling).extend(pair)
        elif flag in _OPENMP or flag == "-fno-openmp":
            openmp = flag in _OPENMP
        elif flag.startswith(_LINKING):
            linking.append(flag)
        elif not flag.startswith("-"):  # a library's file
            linking.append(os.path.abspath(flag))
        else:
            openmp = openmp or flag.startswith("-fopenmp=")
            compiling.append(flag)
            if flag == "-pthread":
                linking.append(flag)
    return compiling, absolute(linking), openmp
