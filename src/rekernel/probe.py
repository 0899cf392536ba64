"""What a compiler is and can do: found out once, kept on disk and in the process.

Asking GCC takes about 20 ms, Clang 150; an answer that is known costs a search of PATH and four ``stat`` calls.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rekernel.compilers import Command, split_command, toolchain_error
from rekernel.gnutext import LinkLine, commands, link_line, native_flags
from rekernel.process import Finished, changing_variables, private, run, working

__all__ = ["Toolchain", "cpu_features", "probe"]

SCHEMA = 1
"""Raise it when `Toolchain` or its meaning changes."""

Stamp = tuple[str, int, int, int]
"""A file as it was: path, inode, size, time of the last change in ns."""

_known: dict[str, Toolchain] = {}


@dataclass(frozen=True)
class Toolchain:
    """A compiler as it was found: what `rekernel.toolchain` needs to call it, and what goes into a key."""

    driver: str
    """The compiler's path, as PATH gives it: the name may matter (a link to ccache)."""
    resolved: str
    """The same with links followed."""
    launcher: tuple[str, ...]
    """What runs it: ``("ccache",)``."""
    verbs: tuple[str, ...]
    """Words that belong to the driver."""
    flags: tuple[str, ...]
    """Flags that the command carried."""
    kind: str
    """``gcc`` or ``clang``, by what it says itself."""
    version: str
    """The line in which it tells its version."""
    triple: str
    """What it compiles for: ``x86_64-linux-gnu``."""
    native: tuple[str, ...]
    """The concrete flags for this CPU; empty where they could not be read."""
    cpu: str
    """A digest of the CPU's model and features."""
    compiler: str
    """The compiler proper: ``.../cc1plus``."""
    system_dirs: tuple[str, ...]
    """Where it looks for system headers."""
    link: LinkLine | None
    """How to call the linker; None: through the driver."""
    stamps: tuple[Stamp, ...]
    """The files that the answers depend on."""
    environment: tuple[tuple[str, str], ...]
    """The environment variables that change what it does."""

    @property
    def number(self) -> tuple[int, ...]:
        """The version as numbers: ``(12, 2, 0)``."""
        match = re.search(r"(?:version |\) )(\d+(?:\.\d+)*)", self.version)
        return tuple(map(int, match[1].split("."))) if match else ()

    @property
    def command(self) -> list[str]:
        """What a call of the driver begins with."""
        return [self.driver, *self.verbs, *self.flags]

    @property
    def identity(self) -> tuple[tuple[str, Any], ...]:
        """The labelled fields that tell this compiler from others; for keys. Times of files are not among them."""
        sizes = tuple((path, size) for path, _inode, size, _time in self.stamps)
        return (
            ("launcher", self.launcher), ("driver", (self.driver, self.resolved, *self.verbs)), ("flags", self.flags),
            ("version", self.version), ("triple", self.triple), ("files", sizes), ("environment", self.environment),
            ("linker", None if self.link is None else self.link.before[0]),
        )  # fmt: skip


def probe(info: Any, directory: str | os.PathLike[str] | None = None) -> Toolchain:
    """Return what the compiler of a `CompilerInfo` is and can do. With `directory`, the answer is kept there.

    ToolchainError for a compiler that is missing or broken.
    """
    if os.name == "nt":
        raise toolchain_error("compiling C++ on Windows is not supported; use Linux, or WSL")
    text = info.cxx()
    path = shutil.which(text)
    command = Command((), text, (), ()) if path else split_command(text)
    path = path or shutil.which(command.driver)
    if path is None:
        searched = os.path.dirname(command.driver) or f"PATH ({os.environ.get('PATH') or 'which is empty'})"
        raise toolchain_error(
            f"the C++ compiler {command.driver!r} was not found: looked in {searched}; install it, or name another one "
            "with REKERNEL_CXX, CXX or CompilerInfo"
        )
    path, cpu, variables = os.path.abspath(path), cpu_features(), changing_variables()
    launcher = tuple(shutil.which(word) or word for word in command.launcher)
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


def stamp(path: str) -> Stamp | None:
    """Return a file as it is now, or None where it is not."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_ino, status.st_size, status.st_mtime_ns


def _unchanged(toolchain: Toolchain) -> bool:
    return all(stamp(known[0]) == known for known in toolchain.stamps)


def _ask(
    command: Command, cpu: str, variables: tuple[tuple[str, str], ...], directory: str | os.PathLike[str] | None
) -> Toolchain:
    """Call the driver: once for its commands, once with OpenMP, once for the directories of its headers."""
    with working(directory) as place:
        base = [command.driver, *command.verbs, *command.flags]
        source, library = os.path.join(place, "unit.cpp"), os.path.join(place, "unit.so")
        Path(source).touch()
        native = f"-m{'arch' if os.uname().machine in ('x86_64', 'i686') else 'cpu'}=native"
        shown = call([*base, "-###", native, "-fPIC", "-shared", source, "-o", library], place)
        if shown.returncode:  # a compiler for another kind of CPU
            shown = call([*base, "-###", "-fPIC", "-shared", source, "-o", library], place)
        _refuse_broken(shown)
        with_openmp = call([*base, "-###", "-fopenmp", "-fPIC", "-shared", source, "-o", library], place)
        headers = call([*base, "-E", "-v", "-x", "c++", source], place)
        _refuse_broken(headers)
        lines = commands(shown.output)
        compiler = next((line for line in lines if "-cc1" in line or os.path.basename(line[0]) == "cc1plus"), [])
        clang = "-cc1" in compiler or "clang version" in shown.output
        linker = _linker(lines, base, place)
        link = link_line(lines[-1], place, linker) if linker and len(lines) > 1 else None
        if link is not None:
            link = _with_openmp(link, commands(with_openmp.output), place)
    files = dict.fromkeys(os.path.realpath(f) for f in (command.driver, *compiler[:1], *([linker] if linker else ())))
    return Toolchain(
        driver=command.driver, resolved=os.path.realpath(command.driver), launcher=command.launcher,
        verbs=command.verbs, flags=command.flags, kind="clang" if clang else "gcc",
        version=_line(r".*(?:gcc|clang) version .*", shown.output), triple=_line(r"Target: (.*)", shown.output),
        native=native_flags(compiler), cpu=cpu, compiler=compiler[0] if compiler else "",
        system_dirs=_system_dirs(headers.output), link=link,
        stamps=tuple(found for file in files if (found := stamp(file)) is not None), environment=variables,
    )  # fmt: skip


def call(command: list[str], directory: str) -> Finished:
    """Run a compiler; one that cannot be started at all is a ToolchainError."""
    try:
        return run(command, directory)
    except (FileNotFoundError, PermissionError, OSError) as error:
        if error.filename not in (None, command[0]):
            raise
        raise toolchain_error(f"{command[0]} cannot be started: {error.strerror or error}") from error


_BROKEN = re.compile(
    r".*(?:cannot execute|error trying to exec|installation problem, cannot exec|cannot exec|unable to execute command|"
    r"cannot find 'ld'|invalid linker name|posix_spawnp?: No such file|No such file or directory: '?(?:as|ld)\b).*"
)
_KILLED = re.compile(r".*(?:Killed signal terminated program|unable to execute command: Killed|out of memory).*")


def breakage(output: str) -> str | None:
    """Return what a compiler says about itself being broken, or None where it speaks of the text."""
    match = _BROKEN.search(output)
    return match[0].strip() if match else None


def refuse_breakage(finished: Finished) -> None:
    """Raise where a call failed because the compiler is broken or was killed."""
    if finished.returncode and (killed := _KILLED.search(finished.output)):
        raise toolchain_error(
            f"{finished.command[0]} was killed ({killed[0].strip()}); the machine may be out of memory"
        )
    if finished.returncode and (said := breakage(finished.output)) is not None:
        part = "its C++ part (cc1plus) is missing" if "cc1plus" in said else "a part of it is missing"
        raise toolchain_error(
            f"the C++ compiler {finished.command[0]} is broken, {part}: {said}\ninstall it completely (Debian, Ubuntu: "
            "apt install g++), or name another one with REKERNEL_CXX or CXX"
        )


def _refuse_broken(finished: Finished) -> None:
    refuse_breakage(finished)
    if finished.returncode:
        raise toolchain_error(
            f"{finished.command[0]} does not work as a C++ compiler (exit code {finished.returncode}): "
            f"{finished.output.strip()[-2000:] or 'it prints nothing'}\nset REKERNEL_CXX or CXX to another one"
        )
    missing = [line[0] for line in commands(finished.output) if line[0] == "cc1plus"]
    if missing:  # GCC shows the bare name of what it does not find
        raise toolchain_error(
            f"the C++ compiler {finished.command[0]} is broken: its C++ part (cc1plus) is missing; install it "
            "completely (Debian, Ubuntu: apt install g++), or name another one with REKERNEL_CXX or CXX"
        )


def _linker(lines: list[list[str]], base: list[str], place: str) -> str | None:
    """Return the linker's path: Clang shows it, GCC shows collect2, which looks for it."""
    if len(lines) < 2:
        return None
    shown = lines[-1][0]
    if os.path.basename(shown) != "collect2":
        return shutil.which(shown)
    answer = call([*base, "-print-prog-name=ld"], place).output.strip()
    return shutil.which(answer) if answer else None


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
        digest, _, body = Path(store).read_bytes().partition(b"\n")
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
