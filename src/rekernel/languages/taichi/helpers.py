"""Local Python modules that a text imports: noticed when their file changes, imported anew, put back on failure."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import SourceLoader
from types import ModuleType
from typing import Any

from rekernel.excerpt import split_lines


@cache
def _installed() -> tuple[str, ...]:
    """Directories whose modules are installed, not the user's own."""
    import site
    import sysconfig  # both are slow to import, and few texts import anything of their own

    paths = sysconfig.get_paths()
    places = [*paths.values(), *getattr(site, "getsitepackages", list)(), site.getusersitepackages()]
    root = os.path.realpath(paths["data"])
    return tuple({os.path.realpath(p) + os.sep for p in places if p and os.path.realpath(p) != root})


_RACY = 2_000_000_000  # ns: within the coarsest tick of a file system, two contents may have one stamp

#: How often each module was imported anew by `refresh`: what was made before then is code of another content.
_imports: dict[str, int] = {}


@dataclass
class Helper:
    """One local module as it was when the text ran."""

    name: str
    file: str
    stamp: tuple[int, ...] | None
    content: bytes
    imports: int

    def unchanged(self) -> bool:
        """Whether the file has the content that was read; its time stamp alone decides nothing."""
        stamp = _stamp(self.file)
        if stamp is not None and stamp == self.stamp:
            return True
        if _read(self.file) != self.content:
            return False
        self.stamp = stamp
        return True


@contextmanager
def as_loaded(helpers: Iterable[Helper], title: str) -> Iterator[None]:
    """While a kernel is translated, let Taichi read the helpers' text as it was when their functions were made.

    Taichi reads it at every new specialisation, by file name and line, long after the file may have changed.
    """
    entries: dict[str, Any] = {}
    try:
        for helper in helpers:
            if _imports.get(helper.name, 0) != helper.imports:
                raise RuntimeError(
                    f"{title}: the module {helper.name!r} was imported anew since this version was loaded, and this "
                    "call needs it for a new kind of arguments; load the text again"
                )
            for file in {helper.file, getattr(sys.modules.get(helper.name), "__file__", None) or helper.file}:
                entries[file] = linecache.cache.get(file)
                text = importlib.util.decode_source(helper.content)
                # Without a time, so that linecache does not compare it with the file.
                linecache.cache[file] = (len(text), None, [f"{line}\n" for line in split_lines(text)], file)
        yield
    finally:
        for file, entry in entries.items():
            linecache.cache.pop(file, None)
            if entry is not None:
                linecache.cache[file] = entry


class HelperError(Exception):
    """A local module could not be imported anew: the text is its file, the cause says why."""


@dataclass
class Refresh:
    """Helper modules imported anew for one load, which can be undone."""

    saved: list[tuple[ModuleType, dict[str, Any]]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def undo(self) -> None:
        """Give the modules the content back that they had."""
        for module, content in self.saved:
            module.__dict__.clear()
            module.__dict__.update(content)
            _imports[module.__name__] -= 1


def local_helpers(imported: Iterable[str]) -> list[Helper]:
    """Return the local modules among `imported`, and those that they import themselves, innermost first."""
    found: dict[str, Helper] = {}
    for name in sorted(imported):
        _collect(sys.modules.get(name), found, 0)
    return list(found.values())


def _collect(module: ModuleType | None, found: dict[str, Helper], depth: int) -> None:
    file = getattr(module, "__file__", None)
    if module is None or not isinstance(file, str) or module.__name__ in found or depth > 8:
        return
    path = os.path.realpath(file)
    if not path.endswith(".py") or path.startswith(_installed()) or module.__name__ == "__main__":
        return
    stamp, content = _stamp(path), _read(path)
    if content is None:
        return
    for value in list(vars(module).values()):
        owner = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
        if owner is not module:
            _collect(owner, found, depth + 1)
    found[module.__name__] = Helper(module.__name__, path, stamp, content, _imports.get(module.__name__, 0))


def refresh(helpers: Iterable[Helper]) -> Refresh:
    """Import the modules among `helpers` anew whose file has changed."""
    result = Refresh()
    for helper in helpers:
        module = sys.modules.get(helper.name)
        if module is not None and not helper.unchanged():
            result.saved.append((module, dict(module.__dict__)))
            result.names.append(helper.name)
            _imports[helper.name] = _imports.get(helper.name, 0) + 1
            try:
                _import_anew(module)
            except Exception as error:
                result.undo()
                raise HelperError(helper.file) from error
            except BaseException:
                result.undo()
                raise
    return result


def _import_anew(module: ModuleType) -> None:
    """Import a module again from its text: cached bytecode counts as valid for a second after a save."""
    file = str(module.__file__)
    spec = importlib.util.find_spec(module.__name__) if "." not in module.__name__ else module.__spec__
    if spec is None or not isinstance(spec.loader, SourceLoader) or spec.origin is None:
        importlib.reload(module)
        return
    linecache.cache.pop(file, None)
    content = _read(spec.origin)
    if content is None:
        raise ImportError(f"the local module {module.__name__!r} is gone: {spec.origin}")
    exec(spec.loader.source_to_code(content, file), module.__dict__)


def _stamp(file: str) -> tuple[int, ...] | None:
    """Return what changes with every write, or None where two writes could still look the same."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _RACY:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _read(file: str) -> bytes | None:
    try:
        with open(file, "rb") as stream:
            return stream.read()
    except OSError:
        return None
