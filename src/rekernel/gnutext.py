r"""Reading what compilers print: messages, lists of headers, commands, symbols of objects. Pure.

>>> messages("heat.cpp:3:21: error: 'sr' was not declared in this scope\n")[0].line
3
"""

from __future__ import annotations

import re
import shlex
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rekernel.errors import Diagnostic

__all__ = [
    "LinkLine",
    "commands",
    "dependencies",
    "link_line",
    "messages",
    "native_flags",
    "source_lines",
    "undefined_symbols",
]

_MESSAGE = re.compile(
    r"(?P<file>[^\n]+?):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|warning|note|sorry, unimplemented): (?P<text>[^\n]*)"
)
_PLACELESS = re.compile(r"(?:\S*/)?(?:cc1plus|g\+\+\S*|clang\S*|ld\S*|collect2|as): (?:fatal )?error: (?P<text>[^\n]*)")
_CRASH = re.compile(r"(?P<text>[^\n]*internal compiler error[^\n]*)")
_UNRESOLVED = re.compile(
    r"[^\n]*(?P<text>undefined (?:reference to|symbol:?) [^\n]*)|[^\n]*(?P<twice>multiple definition of [^\n;]*)"
)
_LINE = re.compile(r"\s*#\s*(?:line\s+)?(?P<number>\d+)(?:\s+\"(?P<name>(?:[^\"\\]|\\.)*)\")?")
_SPELLED = re.compile(r"\\U(000[0-9a-f]{5}|0010[0-9a-f]{4})")
_SOURCE = re.compile(r" *(?:\d+ )?\| (?P<text>.*)")


def source_lines(text: str, name: str) -> dict[tuple[str, int], str]:
    r"""Return the lines of a unit by the file and number under which a compiler names them.

    >>> source_lines('a\n#line 7 "heat.cpp"\nb\n', "unit.cpp")[("heat.cpp", 7)]
    'b'
    """
    found: dict[tuple[str, int], str] = {}
    number = 0
    for line in text.split("\n"):
        number += 1
        if match := _LINE.match(line):
            number = int(match["number"]) - 1
            name = name if match["name"] is None else re.sub(r"\\(.)", r"\1", match["name"])
        else:
            found.setdefault((name, number), line)
    return found


def messages(output: str, source: Mapping[tuple[str, int], str] | None = None) -> tuple[Diagnostic, ...]:
    """Return the errors, warnings and notes of a compiler's output, in its order; what cannot be read is left out.

    `source` has the unit's own lines, for GCC does not show those that a ``#line`` gives to another file.
    """
    lines = output.splitlines()
    result: list[Diagnostic] = []
    for number, line in enumerate(lines):
        if match := _MESSAGE.fullmatch(line):
            result.append(_placed(match, lines[number + 1 : number + 3], source or {}))
        elif match := _PLACELESS.fullmatch(line) or _CRASH.fullmatch(line):
            if "ld returned" not in line and "linker command failed" not in line:
                result.append(Diagnostic(match["text"].strip()))
        elif match := _UNRESOLVED.fullmatch(line):
            unresolved = Diagnostic(match["text"].strip())
            if unresolved not in result:
                result.append(unresolved)
    return tuple(result)


def _placed(match: re.Match[str], below: Sequence[str], source: Mapping[tuple[str, int], str]) -> Diagnostic:
    """Return a message with a place. Compilers count columns in bytes; we count characters."""
    kind = "error" if match["kind"] not in ("warning", "note") else match["kind"]
    text, marks = _excerpt(below)
    text = source.get((match["file"], int(match["line"])), text)
    column = int(match["column"]) if match["column"] and match["column"] != "0" else None
    end = None
    if column is not None and text is not None:
        column = len(text.encode()[: column - 1].decode("utf-8", "ignore")) + 1
        if "^" in marks:
            end = column + len(marks[marks.index("^") :].split(" ")[0])
    # Where a terminal may have ASCII only, GCC writes \U000000fc for a letter of a name.
    said = _SPELLED.sub(lambda found: chr(int(found[1], 16)), match["text"])
    return Diagnostic(said, int(match["line"]) or None, column, end, text, match["file"], kind)


def _excerpt(below: Sequence[str]) -> tuple[str | None, str]:
    """Return the quoted source line and the line of marks under it, as GCC (with a gutter) and Clang print them."""
    if not below:
        return None, ""
    marks = below[1] if len(below) > 1 else ""
    if quoted := _SOURCE.fullmatch(below[0]):
        under = _SOURCE.fullmatch(marks)
        return quoted["text"], under["text"] if under else ""
    if "^" in marks and not marks.strip(" \t^~"):
        return below[0], marks
    return None, ""


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
