"""What the tests of the cache share: children that are forked, that are another user, that start together."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rekernel.errors import RekernelWarning
from rekernel.key import digest
from rekernel.objcache import ObjectCache

NOBODY = 54_321  # a user that the table of users does not know

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def key_of(name: object) -> str:
    return digest([("name", name)])


def data_of(name: object, size: int = 5000) -> bytes:
    """An artefact that tells which it is, at both ends."""
    text = repr(name).encode()
    return text + b"\0" * max(0, size - 2 * len(text)) + text


class Child:
    """A forked process that runs a function and sends back what it returned."""

    def __init__(self, function: Callable[..., Any], *args: Any, user: int | None = None) -> None:
        self._reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._reader)
                if user is not None and os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                warnings.simplefilter("error")
                with os.fdopen(writer, "wb") as stream:
                    try:
                        pickle.dump((True, function(*args)), stream)
                    except BaseException:
                        pickle.dump((False, traceback.format_exc()), stream)
                code = 0
            finally:
                os._exit(code)
        os.close(writer)

    def result(self) -> Any:
        """Wait for the end, and return the result."""
        with os.fdopen(self._reader, "rb") as stream:
            text = stream.read()
        os.waitpid(self.pid, 0)
        assert text, "the child has died"
        good, value = pickle.loads(text)
        assert good, value
        return value

    def kill(self) -> None:
        """End it as nobody can refuse."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._reader)


def together(count: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Run a function in several processes that start at the same moment; each gets its number first."""
    reader, writer = os.pipe()

    def begin(number: int) -> Any:
        os.close(writer)
        os.read(reader, 1)  # returns when the last writer is closed
        return function(number, *args)

    children = [Child(begin, number) for number in range(count)]
    os.close(writer)
    os.close(reader)
    return [child.result() for child in children]


@contextmanager
def one_warning(match: str):
    """The block gives just one warning of ours, with this text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [str(w.message) for w in caught if match in str(w.message)] == [str(w.message) for w in caught]
    assert len(caught) == 1
    assert caught[0].category is RekernelWarning


def entry_file(cache: ObjectCache, key: str, slot: int = 0) -> Path:
    assert cache.directory is not None
    return Path(cache.directory, "objects", key[0], key[1], f"{key}.{slot}")


def files_in(path: str | Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if not p.is_dir())
