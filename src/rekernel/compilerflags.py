"""Flags as lists: what a compile needs beyond those of a `CompilerInfo`, and what a link may have of them. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = [
    "LEVELS",
    "absolute",
    "compile_flags",
    "driver_link_flags",
    "include_directories",
    "linker_words",
    "loading_flags",
]

LEVELS = ("0", "1", "2", "3", "s", "g", "fast")
"""What ``optlevel`` may be."""  # fmt: skip


def loading_flags(gcc: bool) -> list[str]:
    """Return the flags without which a library cannot be loaded, replaced and unloaded.

    GCC's unique symbols would make version 2 of a kernel share version 1's inline statics, and keep the
    first library mapped for ever.
    """
    return ["-fPIC", "-fvisibility=hidden", *(["-fno-gnu-unique"] if gcc else [])]


def compile_flags(flags: Sequence[str], *, gcc: bool, native: Sequence[str], openmp: bool, debug: bool) -> list[str]:
    """Return the flags of a compile: those of a `CompilerInfo`, with what loading needs, and ``native`` spelled out."""
    given = [flag for flag in flags if gcc or flag != "-fno-gnu-unique"]
    given = [flag for flag in loading_flags(gcc) if flag not in given] + given
    if debug:  # no check could leave an OpenMP region; with -Og, Clang stops at other lines and has lost the variables
        given = [flag for flag in given if not flag.startswith("-fopenmp")] + ["-g", "-O0", "-fno-omit-frame-pointer"]
    result: list[str] = []
    for flag in given:
        if flag in ("-march=native", "-mcpu=native") and native:
            result += native
        elif flag != "-mtune=native" or not native:
            result.append(flag)
    if openmp and not debug and "-fopenmp" not in result:
        result.append("-fopenmp")
    return absolute(result)


_PATH_FLAGS = ("-I", "-iquote", "-isystem", "-idirafter", "-include", "-imacros", "-L", "-B", "--sysroot")


def absolute(flags: Sequence[str]) -> list[str]:
    """Return the flags with absolute paths: the compiler runs in a directory of its own."""
    result: list[str] = []
    pending = ""
    for flag in flags:
        if pending:
            known = pending not in ("-include", "-imacros") or os.path.exists(flag)
            result.append(os.path.abspath(flag) if known else flag)
            pending = ""
        elif flag in _PATH_FLAGS:
            pending = flag
            result.append(flag)
        elif flag[:2] in ("-I", "-L", "-B"):
            result.append(flag[:2] + (flag[2:] if flag[2:3] == "=" else os.path.abspath(flag[2:])))
        else:
            result.append(flag)
    return result


_SEARCHED = ("-iquote", "-isystem", "-idirafter", "-I")


def include_directories(flags: Sequence[str]) -> list[str]:
    """Return the directories that flags add to those in which headers are looked for.

    >>> include_directories(["-I/a", "-O2", "-isystem", "/b"])
    ['/a', '/b']
    """
    found: list[str] = []
    pending = False
    for flag in absolute(flags):
        if pending:
            found.append(flag)
        elif flag not in _SEARCHED:
            found += [flag.removeprefix(name) for name in _SEARCHED if flag.startswith(name)][:1]
        pending = not pending and flag in _SEARCHED
    return found


_FAST_MATH = ("-Ofast", "-ffast-math", "-funsafe-math-optimizations")
_NOT_FOR_LINKING = ("-shared", "-fPIC", "-fpic", "-O", "-march=", "-mtune=", "-mcpu=", "-std=", "-D", "-I")
_CHANGES_LINKING = (
    "-flto", "-fuse-ld", "-fsanitize", "-static", "-stdlib=", "-m32", "-m64", "-mx32", "--sysroot", "--coverage", "-pg",
    "-fprofile", "-nostd", "-nodefaultlibs", "-B", "--target", "-target", "-rtlib", "-specs",
)  # fmt: skip


def linker_words(linker_flags: Sequence[str], compiler_flags: Sequence[str]) -> list[str] | None:
    """Return a user's linker flags as ``ld`` understands them, or None where only the compiler's driver does.

    >>> linker_words(["-shared", "-Wl,-rpath,/x", "-lfoo"], [])
    ['-rpath', '/x', '-lfoo']
    """
    if any(flag.startswith(_CHANGES_LINKING) for flag in compiler_flags):
        return None
    words: list[str] = []
    following = ""
    for flag in linker_flags:
        if following:
            words += [flag] if following == "-Xlinker" else [following, flag]
            following = ""
        elif flag in ("-Xlinker", "-l", "-L"):
            following = flag
        elif flag.startswith("-Wl,"):
            words += flag[4:].split(",")
        elif flag.startswith(("-l", "-L")):
            words.append(flag)
        elif flag in ("-pthread", "-fopenmp"):  # found by the symbols that the object needs
            continue
        elif flag not in _FAST_MATH and not flag.startswith(_NOT_FOR_LINKING):
            return None
    return words


def driver_link_flags(linker_flags: Sequence[str], compiler_flags: Sequence[str]) -> list[str]:
    """Return the flags for linking through the driver.

    Fast-math flags are left out: with them the driver links ``crtfastmath.o``, and loading the library
    would set the process to flush denormal numbers to zero.
    """
    kept = [flag for flag in compiler_flags if flag.startswith(_CHANGES_LINKING)]
    return kept + [flag for flag in linker_flags if flag not in _FAST_MATH and flag != "-shared"]
