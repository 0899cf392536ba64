"""Reading what compilers print: lists of headers, commands, symbols of objects. Pure."""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = [
    "LinkLine",
    "commands",
    "dependencies",
    "link_line",
    "native_flags",
    "undefined_symbols",
]


def dependencies(text: str) -> list[str]:
    r"""Return the files that a dependency file (``-MD``) names, the target left out.

    >>> dependencies("unit.o: unit.cpp a\\ b/x.h \\\n /usr/include/math.h\n")
    ['unit.cpp', 'a b/x.h', '/usr/include/math.h']
    """
    words = re.findall(r"(?:\\.|\$\$|[^\s\\])+", text.replace("\\\n", " "))
    names = [re.sub(r"\\([\s#:\\])", r"\1", word.replace("$$", "$")) for word in words]
    for number, name in enumerate(names):
        if name.endswith(":"):
            return list(dict.fromkeys(names[number + 1 :]))
    return []


def commands(output: str) -> list[list[str]]:
    """Return the commands in the output of a driver called with ``-###``."""
    found = []
    for line in output.splitlines():
        if line.startswith((" /", ' "', " as ", " cc1plus ", " collect2 ", " ld ")):
            try:
                found.append(shlex.split(line))
            except ValueError:
                continue
    return found


def native_flags(command: Sequence[str]) -> tuple[str, ...]:
    """Return the concrete flags for ``-march=native``, from the command of the compiler proper.

    The driver asks the CPU and passes the answer on: GCC as ``-m`` flags and cache sizes, Clang as features.
    """
    flags: list[str] = []
    x86 = any(word.startswith(("x86_64", "i386", "i686")) for word in command)
    for before, word in pairwise(command):
        if before == "--param" and word.startswith(("l1-cache", "l2-cache")):
            flags += ["--param", word]
        elif before == "-target-cpu":  # by the driver's own flag: it also decides for what it tunes
            flags.append(("-march=" if x86 else "-mcpu=") + word)
        elif before == "-target-feature":
            flags += ["-Xclang", before, "-Xclang", word]
        elif "-cc1" not in command and word.startswith("-m"):
            flags.append(word)
    return tuple(flags)


@dataclass(frozen=True)
class LinkLine:
    """How a shared object is linked, without the compiler's driver in between."""

    before: tuple[str, ...]
    """The linker, its options, and the objects that come first."""
    libraries: tuple[str, ...]
    """What is needed in any case where an object needs anything: libm, libgcc, libc."""
    cxx: tuple[str, ...]
    """The C++ library."""
    after: tuple[str, ...]
    """The objects that come last."""
    openmp: tuple[str, ...] = field(default=())
    """The OpenMP library and where it is."""

    def render(
        self, output: str, objects: Sequence[str], *, extra: Sequence[str] = (), libraries: bool = True,
        cxx: bool = True, openmp: bool = False, allow_undefined: bool = False,
    ) -> list[str]:  # fmt: skip
        """Return the command."""
        strict = [] if allow_undefined else ["-z", "defs"]
        chosen = [*(self.cxx if cxx else ()), *(self.openmp if openmp else ()), *self.libraries]
        needed = ["--as-needed", *chosen] if libraries or cxx or openmp else []
        return [*self.before, *strict, "-o", output, *objects, *extra, *needed, *self.after]


_CXX_LIBRARIES = ("-lstdc++", "-lc++", "-lc++abi", "-lsupc++")
_TAKES_VALUE = ("-o", "-plugin", "-dynamic-linker")
_LEFT_OUT = re.compile(r"crt(?:offload\w*|fastmath|prec\d+)\.o$")
"""Objects for graphics cards, and those that change the floating-point environment of the process."""
_CRT = re.compile(r"(?:.*/)?crt[^/]*\.o")


def link_line(command: Sequence[str], temporary: str, linker: str) -> LinkLine | None:
    """Return the link line of a driver's command, or None where it is not understood.

    The object is the one below `temporary`. Plugins (for link-time optimisation) and offloading are left out.
    """
    before: list[str] = [linker]
    libraries: list[str] = []
    after: list[str] = []
    seen = False
    words = iter(command[1:])
    for word in words:
        if word in _TAKES_VALUE:
            next(words, None)
        elif word.startswith(("-plugin-opt", "--build-id")) or _LEFT_OUT.search(word):
            continue
        elif word.startswith(temporary) and word.endswith(".o"):
            seen = True
        elif not seen:
            before.append(word)
        else:
            (after if _CRT.fullmatch(word) else libraries).append(word)
    if not seen or "-shared" not in before or not any("crtbegin" in word for word in before) or not after:
        return None
    if "--eh-frame-hdr" not in before:  # without it, an exception that is caught inside the kernel ends the process
        before.insert(1, "--eh-frame-hdr")
    cxx = tuple(word for word in libraries if word in _CXX_LIBRARIES)
    return LinkLine(tuple(before), tuple(w for w in libraries if w not in cxx), cxx, tuple(after))


def undefined_symbols(data: bytes) -> frozenset[str] | None:
    """Return the names that a 64-bit little-endian ELF object leaves open, or None for another kind of file."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        return None
    try:
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
        symbols = next(section for section in sections if section[1] == 2)
        strings = sections[symbols[6]]
        names = data[strings[4] : strings[4] + strings[5]]
        entries = struct.iter_unpack("<IBBHQQ", data[symbols[4] : symbols[4] + symbols[5]])
        places = [name for name, _info, _other, section, _value, _size in entries if section == 0 and name]
        return frozenset(names[start : names.index(b"\0", start)].decode("utf-8", "replace") for start in places)
    except (struct.error, StopIteration, IndexError, ValueError):
        return None


def needs(symbols: frozenset[str] | None) -> tuple[bool, bool, bool]:
    """Return which libraries an object's open names call for: any at all, that of C++, that of OpenMP."""
    if symbols is None:
        return True, True, True
    names = symbols - {"_GLOBAL_OFFSET_TABLE_", "__dso_handle"}  # the linker and crtbeginS.o have these
    cxx = any(_CXX.match(name) for name in names)
    openmp = any(name.startswith(("GOMP_", "omp_", "__kmpc_", "kmp_")) for name in names)
    return bool(names), cxx, openmp


_CXX = re.compile(r"_Z(?!GV[a-eNns]\w*_)|__gxx_|__cxa_(?!atexit|finalize|thread_atexit_impl)|__dynamic_cast|_ITM_")
"""Names of the C++ library; ``_ZGVdN4v_sin`` and its like are vector functions of the C library."""
