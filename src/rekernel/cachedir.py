"""Where the cache is, and whether it can be trusted: nothing is run from where another user can write.

The place that was asked for is tried (the argument, else REKERNEL_CACHE_DIR, else XDG_CACHE_HOME/rekernel, else
~/.cache/rekernel), then a private directory among the temporary ones, then there is memory only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["AUTO", "DEFAULT_SIZE", "Auto", "Place", "choose", "make_private", "parse_size", "prepare", "refusal"]

DEFAULT_SIZE = 1 << 30
_TAG = """Signature: 8a477f597d28d172789f06886806bc55
# This directory holds compiled kernels. It may be deleted at any time.
"""


class Auto:
    """The type of `AUTO`."""

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "AUTO"


AUTO = Auto()
"""Stands for the cache directory that environment and platform name."""


@dataclass(frozen=True)
class Place:
    """Where a cache will be."""

    path: str | None
    """The directory, without symbolic links; None when no directory can be used."""
    tried: tuple[tuple[str, str], ...] = ()
    """The places that were refused, each with the reason."""

    @property
    def warning(self) -> str | None:
        """What the user should know, or None where the first place was good."""
        if not self.tried:
            return None
        reasons = "; ".join(f"{place}: {reason}" for place, reason in self.tried)
        instead = f"kernels are kept in {self.path}" if self.path else "kernels are kept in memory only"
        return f"the kernel cache is not where it should be ({reasons}); {instead}. REKERNEL_CACHE_DIR names a place"


def choose(directory: str | os.PathLike[str] | Auto = AUTO, environ: Mapping[str, str] | None = None) -> Place:
    """Find the first place that can be used, and make it."""
    tried: list[tuple[str, str]] = []
    for path, shown, why in _places(directory, os.environ if environ is None else environ):
        if why:
            tried.append((shown, why))
            continue
        try:
            return Place(prepare(path), tuple(tried))
        except OSError as error:
            tried.append((shown, error.strerror or str(error)))
        except ValueError as error:  # a zero byte in the name
            tried.append((shown, str(error)))
    return Place(None, tuple(tried))


def prepare(path: str) -> str:
    """Make a directory for this user alone, or check the one that is there. Returns it without links."""
    real = os.path.realpath(path)
    why = _link_refusal(path, real)
    if why is None:
        fresh = make_private(real)
        why = refusal(real)
        if why is None and not os.access(real, os.R_OK | os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
            why = "it cannot be written"
        if why is None and fresh:
            _write_tag(real)
    if why is not None:
        raise PermissionError(13, why, path)
    return real


def refusal(path: str) -> str | None:
    """Return why files in this directory may be somebody else's, or None when they are this user's alone."""
    status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        return "it is a file"
    if not hasattr(os, "geteuid"):  # Windows: the profile directory belongs to the user
        return None
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, and this process is user {os.geteuid()}"
    if status.st_mode & 0o022:
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):04o}; chmod 700)"
    while (parent := os.path.dirname(path)) != path:
        path, mode = parent, os.stat(parent).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody can rename it, because {path} has mode {stat.S_IMODE(mode):04o}"
    return None


def make_private(path: str) -> bool:
    """Make a directory and its missing parents, all private. Returns False where it was there."""
    if os.path.isdir(path):
        return False
    parent = os.path.dirname(path)
    if parent != path and not os.path.isdir(parent):
        make_private(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return False
    return True


def parse_size(value: int | str) -> int:
    """Return a number of bytes: an int, or text such as ``500M``, ``2G``, ``1.5g`` or ``1000000``."""
    if isinstance(value, int):
        number = value
    else:
        text = value.strip().upper().removesuffix("B").removesuffix("I")
        power = {"K": 10, "M": 20, "G": 30, "T": 40}.get(text[-1:], 0)
        try:
            number = int(float(text[:-1] if power else text) * (1 << power))
        except (ValueError, OverflowError):
            raise ValueError(f"{value!r} is no size of a cache; write bytes, or a number with K, M or G") from None
    if number < 0:
        raise ValueError(f"a cache cannot have {number} bytes")
    return number


_EFFECTIVE = os.access in os.supports_effective_ids


def _wanted(directory: str | os.PathLike[str] | Auto, environ: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the place that was asked for, how it is called in a message, and why it cannot be, if that is so."""
    if not isinstance(directory, Auto):
        path = os.path.abspath(os.path.expanduser(os.fspath(directory)))
        return path, path, ""
    named = environ.get("REKERNEL_CACHE_DIR")
    if named:
        path = os.path.abspath(os.path.expanduser(named))
        return path, f"{path} (REKERNEL_CACHE_DIR)", ""
    base = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the specification says to ignore a relative one
        path = os.path.join(base, "rekernel")
        return path, f"{path} (XDG_CACHE_HOME)", ""
    home = environ.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        return "", "~/.cache/rekernel", "HOME is not set, and the table of users does not know this one"
    path = os.path.join(home, ".cache", "rekernel")
    # Root could make it: but a home directory is not ours to make.
    return path, path, "" if os.path.isdir(home) else f"{home} does not exist"


def _places(directory: str | os.PathLike[str] | Auto, environ: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield _wanted(directory, environ)
    yield _temporary()


def _temporary() -> tuple[str, str, str]:
    import tempfile  # here, because the first place is good nearly always

    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    try:
        path = os.path.join(tempfile.gettempdir(), f"rekernel-{user}")
    except OSError as error:
        return "", "the temporary directory", error.strerror or str(error)
    return path, path, ""


def _link_refusal(path: str, real: str) -> str | None:
    if not os.path.islink(path) or not hasattr(os, "geteuid"):
        return None
    if os.lstat(path).st_uid not in (0, os.geteuid()):
        return f"it is a link that belongs to user {os.lstat(path).st_uid}"
    parent = os.path.dirname(real)
    if not os.path.isdir(parent):
        return f"it is a link to {real}, which does not exist"
    # The sticky bit of /tmp keeps others from renaming what is there, not from making it first.
    if os.stat(parent).st_mode & stat.S_IWOTH:
        return f"it is a link into {parent}, where everybody can write"
    return None


def _write_tag(path: str) -> None:
    """Tell programs that make backups to leave the directory out."""
    try:
        with open(os.path.join(path, "CACHEDIR.TAG"), "x", encoding="ascii") as stream:
            stream.write(_TAG)
    except OSError:
        pass
