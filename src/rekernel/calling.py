"""Calling a compiler, and telling one that is broken from a text that is wrong."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

from rekernel.compilers import toolchain_error
from rekernel.gnutext import commands
from rekernel.process import Finished, environment, run

__all__ = ["breakage", "call", "refuse_breakage", "refuse_broken"]


def call(command: list[str], directory: str, variables: Iterable[tuple[str, str]] = ()) -> Finished:
    """Run a compiler, with `variables` of its own; one that cannot be started at all is a ToolchainError."""
    try:
        return run(command, directory, environment(directory, variables))
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
    killed = _KILLED.search(finished.output)
    if finished.returncode < 0 or (finished.returncode and killed):
        how = killed[0].strip() if killed else signal.strsignal(-finished.returncode)
        raise toolchain_error(f"{finished.command[0]} was killed ({how}); the machine may be out of memory")
    if finished.returncode and (said := breakage(finished.output)) is not None:
        part = "its C++ part (cc1plus) is missing" if "cc1plus" in said else "a part of it is missing"
        raise toolchain_error(
            f"the C++ compiler {finished.command[0]} is broken, {part}: {said}\ninstall it completely (Debian, Ubuntu: "
            "apt install g++), or name another one with REKERNEL_CXX or CXX"
        )


def refuse_broken(finished: Finished) -> None:
    """Raise where a compiler does not even answer questions about itself."""
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
