"""What a compiler is and can do: found out once, kept on disk and in the process.

Asking GCC takes about 20 ms, Clang 150; an answer that is known costs a search of PATH and four ``stat`` calls.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from rekernel.compilerflags import compile_flags
from rekernel.compilers import Command, split_command, toolchain_error, which
from rekernel.found import Toolchain, stamp
from rekernel.gnutext import LinkLine, commands, link_line, native_flags
from rekernel.process import changing_variables, private, working

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Toolchain", "cpu_features", "flags", "key_fields", "probe"]

SCHEMA = 1
"""Raise it when `Toolchain` or its meaning changes."""

_known: dict[str, Toolchain] = {}


def probe(info: Any, directory: str | os.PathLike[str] | None = None) -> Toolchain:
    """Return what the compiler of a `CompilerInfo` is and can do. With `directory`, the answer is kept there.

    ToolchainError for a compiler that is missing or broken.
    """
    if os.name == "nt":
        raise toolchain_error("compiling C++ on Windows is not supported; use Linux, or WSL")
    text = info.cxx()
    given = getattr(info, "env", {})
    search = given.get("PATH")
    path = which(text, search)
    command = Command((), text, (), ()) if path else split_command(text)
    path = path or which(command.driver, search)
    if path is None:
        searched = os.path.dirname(command.driver) or f"PATH ({search or os.environ.get('PATH') or 'which is empty'})"
        raise toolchain_error(
            f"the C++ compiler {command.driver!r} was not found: looked in {searched}; install it, or name another one "
            "with REKERNEL_CXX, CXX or CompilerInfo"
        )
    path, cpu, variables = os.path.abspath(path), cpu_features(), changing_variables(given)
    launcher = tuple(which(word, search) or word for word in command.launcher)
    asked = (SCHEMA, path, launcher, command.verbs, command.flags, cpu, variables)
    key = blake2b(json.dumps(asked).encode(), digest_size=16).hexdigest()
    found = _known.get(key)
    if found is None or not _unchanged(found):
        store = None if directory is None else os.path.join(os.fspath(directory), f"{key}.json")
        found = _load(store) if store else None
        if found is None:
            found = _ask(Command(launcher, path, command.verbs, command.flags), cpu, variables, directory)
            if store:
                _save(store, found)
        _known[key] = found
    return found


def flags(
    toolchain: Toolchain, info: Any, *, openmp: bool = False, include_dirs: Sequence[str | os.PathLike[str]] = (),
    debug: bool = False,
) -> list[str]:  # fmt: skip
    """Return the exact flags of a compile, ``native`` spelled out; they belong into the key."""
    gcc = toolchain.kind == "gcc"
    given = [*info.cxxflags(), *info.include_flags([os.path.abspath(directory) for directory in include_dirs])]
    wanted = openmp and getattr(info, "openmp", True)
    result = compile_flags(given, gcc=gcc, native=toolchain.native, openmp=wanted, debug=debug)
    return result + (["-fdiagnostics-column-unit=byte"] if gcc and toolchain.number >= (11,) else [])


def key_fields(
    toolchain: Toolchain, info: Any, *, openmp: bool = False, include_dirs: Sequence[str | os.PathLike[str]] = (),
    debug: bool = False,
) -> tuple[tuple[str, Any], ...]:  # fmt: skip
    """Return all that a compiler adds to a key, as labelled fields: what it is, its flags, where it matters the CPU.

    Code for a named target is the same on every machine, so the CPU is not asked for then.
    """
    chosen = flags(toolchain, info, openmp=openmp, include_dirs=include_dirs, debug=debug)
    given = {*toolchain.flags, *info.cxxflags()}
    native = not given.isdisjoint(("-march=native", "-mcpu=native", "-mtune=native"))
    linking = ("linker flags", tuple(info.linker_flags()))
    return (*toolchain.identity, ("cxxflags", "\0".join(chosen)), linking, ("cpu", toolchain.cpu if native else None))


@cache
def cpu_features() -> str:
    """Return a digest of the CPU's model and features, as the system reports them."""
    try:
        with open("/proc/cpuinfo", "rb") as file:  # only the first CPU: with hundreds of them the file takes long
            text = os.read(file.fileno(), 16384).decode("ascii", "replace")
    except OSError:
        text = " ".join(os.uname())
    first = text.split("\n\n")[0]
    lines = re.findall(
        r"^(?:vendor_id|cpu family|model|stepping|flags|Features|CPU (?:implementer|part|variant))\s*:.*", first, re.M
    )
    return blake2b("\n".join(lines or [first]).encode(), digest_size=16).hexdigest()


def _unchanged(toolchain: Toolchain) -> bool:
    return all(stamp(known[0]) == known for known in toolchain.stamps)


def _ask(
    command: Command, cpu: str, variables: tuple[tuple[str, str], ...], directory: str | os.PathLike[str] | None
) -> Toolchain:
    """Call the driver: once for its commands, once with OpenMP, once for the directories of its headers."""
    from rekernel.calling import call, refuse_broken  # not needed where the answer is known

    with working(directory) as place:
        base = [command.driver, *command.verbs, *command.flags]
        source, library = os.path.join(place, "unit.cpp"), os.path.join(place, "unit.so")
        open(source, "x").close()
        native = f"-m{'arch' if os.uname().machine in ('x86_64', 'i686') else 'cpu'}=native"
        # zig links by itself, even when it is only asked how; it resolves the CPU by itself, too.
        rest = ["-fPIC", "-c" if command.verbs else "-shared", source, "-o", library]
        shown = call([*base, "-###", native, *rest], place, variables)
        if shown.returncode:  # a compiler for another kind of CPU
            shown = call([*base, "-###", *rest], place, variables)
        refuse_broken(shown)
        with_openmp = call([*base, "-###", "-fopenmp", *rest], place, variables)
        headers = call([*base, "-E", "-v", "-x", "c++", source], place, variables)
        refuse_broken(headers)
        lines = commands(shown.output)
        compiler = next((line for line in lines if "-cc1" in line or os.path.basename(line[0]) == "cc1plus"), [])
        clang = "-cc1" in compiler or "clang version" in shown.output
        linker = _linker(lines, base, place, variables)
        link = link_line(lines[-1], place, linker) if linker and len(lines) > 1 else None
        if link is not None:
            link = _with_openmp(link, commands(with_openmp.output), place)
    files = dict.fromkeys(os.path.realpath(f) for f in (command.driver, *compiler[:1], *([linker] if linker else ())))
    return Toolchain(
        driver=command.driver, resolved=os.path.realpath(command.driver), launcher=command.launcher,
        verbs=command.verbs, flags=command.flags, kind="clang" if clang else "gcc",
        version=_line(r".*(?:gcc|clang) version .*", shown.output), triple=_line(r"Target: (.*)", shown.output),
        native=() if command.verbs else native_flags(compiler), cpu=cpu, compiler=compiler[0] if compiler else "",
        system_dirs=_system_dirs(headers.output), link=link,
        stamps=tuple(found for file in files if (found := stamp(file)) is not None), environment=variables,
    )  # fmt: skip


def _linker(
    lines: list[list[str]], base: list[str], place: str, variables: tuple[tuple[str, str], ...]
) -> str | None:  # fmt: skip
    """Return the linker's path: Clang shows it, GCC shows collect2, which looks for it."""
    if len(lines) < 2:
        return None
    shown = lines[-1][0]
    if os.path.basename(shown) != "collect2":
        return which(shown)
    from rekernel.calling import call

    answer = call([*base, "-print-prog-name=ld"], place, variables).output.strip()
    return which(answer, dict(variables).get("PATH")) if answer else None


def _with_openmp(link: LinkLine, lines: list[list[str]], place: str) -> LinkLine:
    """Return the link line with what ``-fopenmp`` adds to the libraries."""
    other = link_line(lines[-1], place, link.before[0]) if len(lines) > 1 else None
    if other is None:
        return link
    plain, added = list(link.libraries), []
    for word in other.libraries:
        if plain[:1] == [word]:
            plain.pop(0)
        else:
            added.append(word)
    return link if plain else replace(link, openmp=tuple(added))


def _system_dirs(output: str) -> tuple[str, ...]:
    match = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", output, re.S)
    lines = [line.strip().removesuffix(" (framework directory)") for line in match[1].splitlines()] if match else []
    return tuple(line for line in lines if line)


def _line(pattern: str, text: str) -> str:
    match = re.search(rf"^{pattern}$", text, re.M)
    return "" if match is None else match[match.lastindex or 0].strip()


def _load(store: str) -> Toolchain | None:
    """Read a kept answer; whatever is wrong with it, the compiler is asked again."""
    try:
        if not private(os.path.dirname(store)):  # it names programs to run
            return None
        with open(store, "rb") as file:
            digest, _, body = file.read().partition(b"\n")
        if blake2b(body, digest_size=16).hexdigest().encode() != digest:
            return None
        values = json.loads(body)
        link = values.pop("link")
        if set(values) != {field.name for field in fields(Toolchain)} - {"link"}:
            return None
        toolchain = Toolchain(
            **{name: _frozen(value) for name, value in values.items()},
            link=None if link is None else LinkLine(**{name: tuple(words) for name, words in link.items()}),
        )
        return toolchain if _unchanged(toolchain) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _save(store: str, toolchain: Toolchain) -> None:
    """Keep an answer: whole, by one rename. Where that is not possible, the next process asks again."""
    body = json.dumps(asdict(toolchain)).encode()
    data = blake2b(body, digest_size=16).hexdigest().encode() + b"\n" + body
    import tempfile

    with suppress(OSError):
        directory = os.path.dirname(store)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not private(directory):
            return
        handle, name = tempfile.mkstemp(prefix="probe-", dir=directory)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            os.replace(name, store)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
