"""Precompiled headers: `<immintrin.h>` and `<cmath>` cost a second of parsing, once.

Only system headers that a text itself includes before anything else are taken, so nothing comes into a unit that
was not there before. They are precompiled as one file that holds these ``#include`` lines; a unit that uses it is
the same text with these lines blank. Where anything is doubtful, or a unit does not build with it, it is done without.

`<cmath>` of libstdc++ has inline functions that call templates (Bessel functions and the like). GCC would instantiate
them anew in each unit that loads the precompiled header, which takes four times as long as loading it. So the file
ends by declaring these instantiations ``extern``: a unit that calls one does not link, and is built without.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from rekernel import underway
from rekernel.found import Toolchain, stamp
from rekernel.gnutext import dependencies
from rekernel.leading import leading_headers
from rekernel.locks import rlock
from rekernel.pchchecks import digest_of, shadowed, turn, usable
from rekernel.process import environment, private, run, working
from rekernel.why import Reason

__all__ = ["Precompiled", "PrecompiledHeaders"]

SCHEMA = 1
WORTH = 0.15
"""A build that took fewer seconds gains nothing."""

_NUMBER = r"(?:unsigned )?(?:int|long|float|double|long double)"
_INSTANTIATED = re.compile(
    rf"^[0-9a-f]+ W ({_NUMBER} std::__detail::__\w+<{_NUMBER}>\((?:{_NUMBER}(?:, )?)*\))$", re.MULTILINE
)


@dataclass(frozen=True)
class Precompiled:
    """A precompiled header that fits a unit."""

    directory: str
    """Where it is."""
    flags: tuple[str, ...]
    """What makes the compiler use it."""
    rest: str
    """The unit without the lines that are in it."""
    headers: tuple[str, ...]
    """The files that are in it."""


class PrecompiledHeaders:
    """The precompiled headers of one directory, each for one compiler, one list of flags and one list of headers.

    At most `size` bytes are kept; the ones that were used least recently go first.
    """

    def __init__(self, directory: str | os.PathLike[str], size: int = 512 << 20) -> None:
        self.directory = os.path.abspath(directory)
        self.size = size
        self._lock = rlock()
        self._checked: dict[str, tuple[object, ...]] = {}
        self._busy: dict[tuple[int, str], threading.Thread] = {}
        self._given_up: set[str] = set()

    @contextmanager
    def find(self, toolchain: Toolchain, flags: Sequence[str], text: str) -> Iterator[Precompiled | None]:
        """Give the precompiled header for a unit, if there is one that fits."""
        names, rest = leading_headers(text)
        yield self._find(toolchain, flags, names, rest) if names and usable(toolchain, flags) else None

    def _find(self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str], rest: str) -> Precompiled | None:
        place = self._place(toolchain, flags, names)
        try:
            if not private(self.directory) or not private(place):
                return None
            manifest = json.loads(Path(place, "manifest").read_bytes())
            header, compiled = os.path.join(place, "lead.hpp"), os.path.join(place, _name(toolchain))
            fits = (
                manifest["schema"] == SCHEMA
                and all(stamp(path) == (path, *rest_) for path, *rest_ in manifest["headers"])
                and not shadowed(flags, toolchain, [path for path, *_ in manifest["headers"]])
                and self._whole(compiled, manifest["digest"])
            )
            if not fits:
                return None
            os.utime(os.path.join(place, "manifest"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        use = ("-include", header) if toolchain.kind == "gcc" else ("-include-pch", compiled)
        return Precompiled(place, use, rest, tuple(path for path, *_ in manifest["headers"]))

    def later(self, toolchain: Toolchain, flags: Sequence[str], text: str, seconds: float) -> None:
        """Precompile the leading headers of a unit on another thread, if its build took long enough to gain by it."""
        names, _rest = leading_headers(text)
        if seconds < WORTH or not names or not usable(toolchain, flags):
            return
        place = self._place(toolchain, flags, names)
        key = (os.getpid(), place)  # a forked child has no such thread
        with self._lock:
            if key in self._busy or place in self._given_up:
                return
            thread = threading.Thread(
                target=self._make_quietly, args=(toolchain, list(flags), names, key), daemon=True,
                name="rekernel headers",
            )  # fmt: skip
            self._busy[key] = thread
        thread.start()

    def wait(self) -> None:
        """Wait until nothing is being precompiled on other threads."""
        for (pid, _place), thread in list(self._busy.items()):
            if pid == os.getpid():
                thread.join()

    def precompile(self, toolchain: Toolchain, flags: Sequence[str], text: str) -> bool:
        """Precompile the leading headers of a unit now; return whether there is something to use."""
        names, _rest = leading_headers(text)
        if not names or not usable(toolchain, flags):
            return False
        if self._find(toolchain, flags, names, "") is None:
            underway.refuse("precompiled headers", "cpp", Reason("headers", f"<{'>, <'.join(names)}> are new"))
        thread = self._busy.get((os.getpid(), self._place(toolchain, flags, names)))
        if thread is not None:
            thread.join()
        return self._make(toolchain, flags, names)

    def _make_quietly(
        self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str], key: tuple[int, str]
    ) -> None:
        try:
            if not self._make(toolchain, flags, names, background=True):
                self._given_up.add(key[1])
        except Exception:  # it only saves time
            self._given_up.add(key[1])
        finally:
            with self._lock:
                self._busy.pop(key, None)

    def _make(
        self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str], *, background: bool = False
    ) -> bool:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        place = self._place(toolchain, flags, names)
        os.makedirs(place, mode=0o700, exist_ok=True)
        if not private(self.directory) or not private(place):
            return False
        with turn(place) as mine:
            if self._find(toolchain, flags, names, "") is None and (mine or not background):
                return self._publish(toolchain, flags, names, place)
        return True  # another process has made it, or is about to

    def _publish(self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str], place: str) -> bool:
        header = os.path.join(place, "lead.hpp")
        with working(self.directory) as work:
            draft = Path(work, "lead.hpp")
            draft.write_text(self._lead(toolchain, flags, names, work))
            with suppress(FileExistsError):  # never written anew: a compiler may compare its time
                os.link(draft, header)
            made, listed = os.path.join(work, "made"), os.path.join(work, "made.d")
            at_once = ["-fpch-instantiate-templates"] if toolchain.kind == "clang" and toolchain.number >= (11,) else []
            command = [
                *toolchain.command, *flags, *at_once, "-x", "c++-header", header, "-o", made, "-MD", "-MF", listed,
            ]  # fmt: skip
            if run(command, work, environment(work, toolchain.environment), background=True).returncode:
                return False
            found = [path for path in dependencies(os.fsdecode(Path(listed).read_bytes())) if path != header]
            roots = tuple(directory.rstrip("/") + "/" for directory in toolchain.system_dirs)
            stamps = [stamp(path) for path in found]
            if not all(path.startswith(roots) for path in found) or None in stamps:
                return False
            manifest = {"schema": SCHEMA, "headers": stamps, "digest": digest_of(made)}
            Path(work, "manifest").write_text(json.dumps(manifest))
            # Two that do this at once leave a manifest that does not fit: a miss, and it is made again.
            os.replace(made, os.path.join(place, _name(toolchain)))
            os.replace(os.path.join(work, "manifest"), os.path.join(place, "manifest"))
        self.prune(keep=place)
        return True

    def _lead(self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str], work: str) -> str:
        """Return the text that is precompiled."""
        text = "".join(f"#include <{name}>\n" for name in names)
        nm = shutil.which("nm") if toolchain.kind == "gcc" else None
        if nm is None:
            return text
        Path(work, "lead.cpp").write_text(text)
        kept = [*toolchain.command, *flags, "-O0", "-fkeep-inline-functions", "-c", "lead.cpp", "-o", "lead.o"]
        env = environment(work, toolchain.environment)
        if run(kept, work, env, background=True).returncode:
            return text
        listed = run([nm, "-C", "lead.o"], work).output
        external = "".join(f"extern template {line};\n" for line in _INSTANTIATED.findall(listed))
        Path(work, "lead.cpp").write_text(text + external)
        check = [*toolchain.command, *flags, "-fsyntax-only", "lead.cpp"]
        return text + external if external and run(check, work, env, background=True).returncode == 0 else text

    def prune(self, keep: str = "") -> None:
        """Remove the least recently used ones until the rest fits into `size`."""
        entries = []
        with suppress(OSError):
            for entry in os.scandir(self.directory):
                if entry.is_dir(follow_symlinks=False) and re.fullmatch(r"[0-9a-f]{32}", entry.name):
                    with suppress(OSError):
                        size = sum(file.stat().st_size for file in os.scandir(entry.path))
                        used = Path(entry.path, "manifest")
                        entries.append((used.stat().st_mtime if used.exists() else time.time(), size, entry.path))
        total = sum(size for _used, size, _path in entries)
        for _used, size, path in sorted(entries):
            if total > self.size and path != keep:
                shutil.rmtree(path, ignore_errors=True)
                total -= size

    def _place(self, toolchain: Toolchain, flags: Sequence[str], names: Sequence[str]) -> str:
        fields = (SCHEMA, toolchain.identity, toolchain.stamps, toolchain.cpu, tuple(flags), tuple(names))
        return os.path.join(self.directory, blake2b(json.dumps(fields).encode(), digest_size=16).hexdigest())

    def _whole(self, path: str, digest: str) -> bool:
        """Return whether a file is undamaged; read once in a process, then known by size and time."""
        now = stamp(path)
        if now is None:
            return False
        known = (now, digest)
        if self._checked.get(path) != known:
            if digest_of(path) != digest:
                return False
            self._checked[path] = known
        return True


def _name(toolchain: Toolchain) -> str:
    return "lead.hpp.gch" if toolchain.kind == "gcc" else "lead.hpp.pch"
