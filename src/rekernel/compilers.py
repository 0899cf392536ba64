"""Which C++ compiler, and with which flags: values that read the environment and start nothing.

Flags and commands are lists, so blanks and quotes in paths need no care. What a compiler can really do is
found out by `rekernel.probe`; `rekernel.toolchain` runs it.
"""

from __future__ import annotations

import copy
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rekernel.compilerflags import LEVELS, loading_flags
from rekernel.errors import ToolchainError

__all__ = ["ClangInfo", "Command", "CompilerInfo", "GccInfo", "split_command", "toolchain_error", "which"]

CONTRACT = "-ffp-contract=off"
"""One value for all compilers and levels. GCC would otherwise fuse ``a * b + c`` wherever it can, Clang within one
expression and ``-O0`` nowhere, and the same text would give four results. ``extra_cxxflags=["-ffp-contract=fast"]``
comes later on the command line and wins."""

NAMES = ("g++", "c++", "clang++")
"""What is looked for on PATH, in this order, when neither REKERNEL_CXX nor CXX is set."""

_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc", "buildcache"})
_PYSTENCILS_TARGETS = {
    "CurrentCPU": "native",
    "GenericCPU": "generic",
    "_CPU": "generic",  # what Python calls the same member
    "X86_SSE": "x86-64-v2",
    "X86_AVX": "x86-64-v3",
    "X86_AVX512": "x86-64-v4",
    "X86_AVX512_FP16": "x86-64-v4 -mavx512fp16",
    "ARM_NEON": "armv8-a",
    "ARM_NEON_FP16": "armv8.2-a+fp16",
    "ARM_SVE": "armv8.2-a+sve",
}


def toolchain_error(message: str) -> ToolchainError:
    """Return the error about a missing or broken compiler; each one ends with the command that looks around."""
    return ToolchainError(f"{message}\nto see what is there: python -m rekernel doctor")


def which(name: str, searched: str | None = None) -> str | None:
    """Return the path of a program, as ``shutil.which`` does, without importing what that module needs."""
    if os.name == "nt":
        import shutil

        return shutil.which(name, path=searched)
    searched = os.environ.get("PATH", os.defpath) if searched is None else searched
    places = [""] if os.path.dirname(name) else searched.split(os.pathsep) if searched else []
    found = (os.path.join(place, name) for place in places if "\0" not in name)
    return next((path for path in found if os.access(path, os.X_OK) and not os.path.isdir(path)), None)


@dataclass(frozen=True)
class Command:
    """How a compiler is called, taken apart."""

    launcher: tuple[str, ...]
    """What runs the compiler and is left out where it does not matter: ``("ccache",)``."""
    driver: str
    """The compiler itself, as it was named."""
    verbs: tuple[str, ...]
    """Words that belong to the driver: ``("c++",)`` of ``zig c++``."""
    flags: tuple[str, ...]
    """Flags that the command carries, as ``-m64`` of ``CXX="g++ -m64"``; they go to every call."""


def split_command(text: str) -> Command:
    """Take a command such as ``ccache g++ -m64`` apart. The name of an existing program is taken whole.

    >>> split_command("ccache g++ -m64")
    Command(launcher=('ccache',), driver='g++', verbs=(), flags=('-m64',))
    """
    if which(text):
        return Command((), text, ("c++",) if os.path.basename(text) == "zig" else (), ())
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise toolchain_error(f"the compiler command {text!r} cannot be read: {error}") from None
    first = 0
    while first < len(words) - 1 and os.path.basename(words[first]) in _LAUNCHERS:
        first += 1
    if not words:
        raise toolchain_error("the compiler command is empty; set CXX to a C++ compiler such as g++")
    end = first + 1
    if os.path.basename(words[first]).startswith(("zig", "python")) and "c++" in words:
        end = words.index("c++") + 1
    return Command(tuple(words[:first]), words[first], tuple(words[first + 1 : end]), tuple(words[end:]))


@dataclass
class CompilerInfo:
    """A C++ compiler with the options that matter to kernels. Fields may be assigned; a JIT takes its own copy.

    A subclass may override `cxx`, `cxxflags`, `linker_flags`, `include_flags` and `restrict_qualifier`. What
    loading and unloading depend on (``-fPIC``, hidden symbols) is added where a subclass leaves it out.

    >>> GccInfo(optlevel="2", target="x86-64-v3").cxxflags()[:3]
    ['-std=c++17', '-O2', '-march=x86-64-v3']
    """

    openmp: bool = True
    """Whether ``-fopenmp`` is passed when the text uses OpenMP. With False, such a text runs in one thread."""
    optlevel: str | None = "3"
    """``"0"`` to ``"3"``, or ``"fast"``: ``-O3 -ffast-math``, for which NaN and infinity do not exist. No level changes
    the floating-point environment of the process. None: no flag."""
    cxx_standard: str = "c++17"
    """The language: ``c++17``, ``gnu++20``, ..."""
    target: Any = "native"
    """``native`` (resolved to the features of this CPU), ``generic``, or a name that ``-march=`` takes, such as
    ``x86-64-v3``. A member of pystencils' ``Target`` works."""
    extra_cxxflags: list[str] = field(default_factory=list)
    """Put at the end of the flags, so they win over all others."""
    extra_ldflags: list[str] = field(default_factory=list)
    """Put at the end of the flags for linking: ``-lfftw3``, ``-L/opt/lib``."""
    command: str = "c++"
    """The compiler: a name on PATH or a path, and where needed a launcher and flags (``ccache g++ -m64``)."""
    env: dict[str, str] = field(default_factory=dict, repr=False)
    """Variables that the compiler gets besides those of this process, which keeps its own; PATH is searched for it."""

    def cxx(self) -> str:
        """Return the compiler's command."""
        return self.command

    def cxxflags(self) -> list[str]:
        """Return the flags for compiling. ``-fopenmp`` is not among them: it is passed when a unit uses OpenMP."""
        return [
            f"-std={self.cxx_standard}",
            *_optimisation(self.optlevel),
            *_target(self.target),
            CONTRACT,
            *loading_flags(isinstance(self, GccInfo)),
            *self.extra_cxxflags,
        ]

    def linker_flags(self) -> list[str]:
        """Return the flags for linking a shared object. Libraries of C++ and OpenMP are added where they are needed."""
        return ["-shared", *self.extra_ldflags]

    def include_flags(self, include_dirs: Sequence[str]) -> list[str]:
        """Return the flags that let ``#include`` find headers in these directories."""
        return [f"-I{directory}" for directory in include_dirs]

    def restrict_qualifier(self) -> str:
        """Return the word that promises that a pointer's memory is reached through no other pointer."""
        return "__restrict__"

    def copy(self) -> CompilerInfo:
        """Return an equal object of the same class that shares nothing with this one."""
        return copy.deepcopy(self)

    @staticmethod
    def get_default(**kwargs: Any) -> CompilerInfo:
        """Return the compiler that REKERNEL_CXX, then CXX, then PATH names; keywords set its fields.

        ToolchainError where there is none; it says what was looked for, and where.
        """
        for variable in ("REKERNEL_CXX", "CXX"):
            if text := os.environ.get(variable, "").strip():
                command = split_command(text)
                if not which(command.driver):
                    raise toolchain_error(
                        f"{variable} is set to {text!r}, but {command.driver!r} is not a program: looked in "
                        f"{_places(command.driver)}; set {variable} to a C++ compiler, or unset it"
                    )
                return _info(text, command.driver, kwargs)
        for name in NAMES:
            if which(name):
                return _info(name, name, kwargs)
        raise toolchain_error(
            f"no C++ compiler was found: looked for {', '.join(NAMES)} in {_places('')}; install one (Debian, Ubuntu: "
            "apt install g++; Fedora: dnf install gcc-c++; conda: conda install gxx), or set REKERNEL_CXX or CXX to it"
        )

    @staticmethod
    def get_available_compilers() -> list[CompilerInfo]:
        """Return one info for each compiler that `get_default` could choose here, the default first."""
        found: dict[str, CompilerInfo] = {}
        for text in [os.environ.get("REKERNEL_CXX", ""), os.environ.get("CXX", ""), *NAMES]:
            command = split_command(text) if text.strip() else None
            path = which(command.driver) if command is not None else None
            if command is not None and path is not None:
                unique = " ".join([*command.launcher, os.path.realpath(path), *command.verbs, *command.flags])
                found.setdefault(unique, _info(text, command.driver, {}))
        return list(found.values())


@dataclass
class GccInfo(CompilerInfo):
    """The C++ compiler of the GNU Compiler Collection."""

    command: str = "g++"


@dataclass
class ClangInfo(CompilerInfo):
    """The C++ compiler of LLVM."""

    command: str = "clang++"


def _optimisation(level: str | None) -> list[str]:
    if level is None:
        return []
    if str(level) not in LEVELS:
        raise ValueError(f'optlevel is one of "0", "1", "2", "3" and "fast", not {level!r}')
    return ["-O3", "-ffast-math"] if level == "fast" else [f"-O{level}"]


def _target(target: Any) -> list[str]:
    """Return the flags for a target: native, generic, a name that the compiler knows, or a member of pystencils'."""
    name = target if isinstance(target, str) else _PYSTENCILS_TARGETS.get(getattr(target, "name", ""))
    if not name:
        raise ValueError(f"target is native, generic or a name such as x86-64-v3, not {target!r}")
    x86 = platform.machine() in ("x86_64", "AMD64", "i686")
    if name == "native":
        return ["-march=native" if x86 else "-mcpu=native"]
    if name == "generic":
        return ["-march=x86-64", "-mtune=generic"] if x86 else []
    return f"-march={name}".split()


def _info(text: str, driver: str, fields: Mapping[str, Any]) -> CompilerInfo:
    # c++ is a link to the compiler that the system prefers, so the name of the file itself counts.
    names = {os.path.basename(driver), os.path.basename(os.path.realpath(which(driver) or driver))}
    clang = any("clang" in name or name.startswith(("zig", "python")) for name in names)
    return (ClangInfo if clang else GccInfo)(**{"command": text, **fields})


def _places(driver: str) -> str:
    if os.path.dirname(driver):
        return os.path.dirname(driver)
    return f"PATH ({os.environ.get('PATH') or 'which is empty'})"
