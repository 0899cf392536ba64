"""Local Python modules that a text imports: noticed when their file changes, imported anew, put back on failure."""

from __future__ import annotations

import hashlib
import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

_INSTALLED = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in [
            *sysconfig.get_paths().values(),
            *(site.getsitepackages() if hasattr(site, "getsitepackages") else []),
            site.getusersitepackages(),
        ]
        if path and os.path.realpath(path) != os.path.realpath(sysconfig.get_paths()["data"])
    }
)


@dataclass
class Helper:
    """One local module as it was when the text ran."""

    name: str
    file: str
    stamp: tuple[int, int]
    digest: bytes

    def unchanged(self) -> bool:
        """Whether the file has the content that was read; its time stamp alone decides nothing."""
        stamp = _stamp(self.file)
        if stamp == self.stamp:
            return True
        if stamp is None or _digest(self.file) != self.digest:
            return False
        self.stamp = stamp
        return True


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
    if not path.endswith(".py") or path.startswith(_INSTALLED) or module.__name__ == "__main__":
        return
    stamp = _stamp(path)
    if stamp is None:
        return
    for value in list(vars(module).values()):
        owner = value if isinstance(value, ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
        if owner is not module:
            _collect(owner, found, depth + 1)
    found[module.__name__] = Helper(module.__name__, path, stamp, _digest(path))


def refresh(helpers: Iterable[Helper]) -> Refresh:
    """Import the modules among `helpers` anew whose file has changed."""
    result = Refresh()
    for helper in helpers:
        module = sys.modules.get(helper.name)
        if module is not None and not helper.unchanged():
            result.saved.append((module, dict(module.__dict__)))
            result.names.append(helper.name)
            try:
                importlib.reload(module)
            except BaseException:
                result.undo()
                raise
    return result


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _digest(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return hashlib.blake2b(stream.read()).digest()
    except OSError:
        return b""
