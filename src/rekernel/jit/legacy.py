"""`LegacyCpuJit`: the front door of pystencils 1.x. Its configuration, the engine of `CpuJit`.

The configuration is one dictionary of the process. What is made from it is made anew when it has changed, however
that came about: by a function of this module, or by an assignment into what `get_compiler_config` gave.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rekernel import locks
from rekernel.errors import JitError, KernelSourceError, ToolchainError
from rekernel.jit.base import JitBase, KernelWrapper

if TYPE_CHECKING:
    from rekernel.compilers import CompilerInfo
    from rekernel.jit.cpu import CpuJit
    from rekernel.jit.legacyconfig import Config
    from rekernel.objcache import ObjectCache

__all__ = [
    "LegacyCpuJit",
    "add_or_change_compiler_flags",
    "clear_cache",
    "get_cache_config",
    "get_compiler_config",
    "read_config",
    "set_config",
]

#: What is said of a kernel's text: it has a line, or is about names. All else is said of the flags.
_OF_TEXT = r"(?m)^[^<\s][^\s:]*:\d+:|undefined (?:reference|symbol)|multiple definition"


class _State:
    """What this process knows; guarded by `_lock`."""

    config: Config | None = None
    source: str = ""
    made_from: object = None
    jit: CpuJit | None = None


_lock = locks.rlock()
_state = _State()
_cleared: set[str | None] = set()


def read_config() -> Config:
    """Read the configuration that counts now, and return it with its defaults; what is in use stays as it is.

    It is searched in the file that ``PYSTENCILS_CONFIG`` names, in ``pystencils.json`` in the working directory,
    then in ``pystencils/config.json`` in the user's directory for configurations (``~/.config``). JitError names the
    file, and the place in it or the key, where it is wrong.
    """
    from rekernel.jit.legacyconfig import load

    return load()[0]


def set_config(config: Mapping[str, Any] | None) -> None:
    """Use a configuration in place of that of the file. What it leaves out has its default.

    None: the file is searched and read again when it is next needed. For a wrong configuration, JitError names the key
    and that in use stays.

    >>> set_config({"compiler": {"flags": "-O2 -march=native"}})
    >>> get_compiler_config()["flags"]
    '-O2 -march=native'
    >>> set_config(None)
    """
    from rekernel.jit.legacyconfig import merged

    checked = None if config is None else merged(config, "set_config")
    with _lock:
        _state.config, _state.source, _state.jit = checked, "" if checked is None else "set_config", None


def get_compiler_config() -> dict[str, Any]:
    """Return the section ``compiler`` of the configuration itself: what is assigned to its keys counts."""
    return _config()["compiler"]


def get_cache_config() -> dict[str, Any]:
    """Return the section ``cache`` of the configuration itself: what is assigned to its keys counts."""
    return _config()["cache"]


def add_or_change_compiler_flags(flags: str | Sequence[str]) -> None:
    """Add flags; ``-O2``, ``-std=c++17``, ``-DN=3`` take the place of flags that set the same.

    Kernels that are compiled already stay as they are. The cache stays in use, for the flags belong to its keys.
    """
    from rekernel.jit.legacyconfig import merged
    from rekernel.jit.legacyflags import changed, words

    given = merged({"compiler": {"flags": flags}}, "add_or_change_compiler_flags")["compiler"]["flags"]
    new = words(given) if isinstance(given, str) else [word for text in given for word in words(text)]
    with _lock:
        old = merged(_config(), _state.source)["compiler"]["flags"]
        listed = changed(words(old), new)
        get_compiler_config()["flags"] = " ".join(listed) if isinstance(old, str) else listed


def clear_cache() -> int:
    """Take all compiled kernels out of the cache in use, and return how many there were. What is loaded stays."""
    return _cpu_jit().objcache.prune(0)


class LegacyCpuJit(JitBase):
    """Compiles kernels as the configuration of pystencils 1.x says (see `read_config`), with the engine of `CpuJit`.

    Making one reads nothing: the configuration is read when it is first needed. All objects of this class share it.
    """

    set_config = staticmethod(set_config)
    get_compiler_config = staticmethod(get_compiler_config)
    get_cache_config = staticmethod(get_cache_config)
    add_or_change_compiler_flags = staticmethod(add_or_change_compiler_flags)
    clear_cache = staticmethod(clear_cache)

    @property
    def compiler_info(self) -> CompilerInfo:
        """The compiler and its flags, as the configuration has them now."""
        return _cpu_jit().compiler_info

    @property
    def objcache(self) -> ObjectCache:
        """The cache that the configuration has now."""
        return _cpu_jit().objcache

    def compile(self, kernel: Any) -> KernelWrapper:
        """Compile one kernel and return its callable.

        Raises JitError where the configuration is wrong, and what `CpuJit.compile` raises.
        """
        return self.compile_many([kernel])[0]

    def compile_many(self, kernels: Sequence[Any]) -> tuple[KernelWrapper, ...]:
        """Compile several kernels as one unit: one run of the compiler."""
        jit = _cpu_jit()
        try:
            return jit.compile_many(kernels)
        except ToolchainError as error:
            command = jit.compiler_info.cxx()
            raise ToolchainError(f"{_state.source}: compiler.command is {command!r}: {error}") from error
        except KernelSourceError as error:
            if error.line is not None or re.search(_OF_TEXT, error.output):
                raise
            flags = get_compiler_config()["flags"]
            raise JitError(f"{_state.source}: compiler.flags is {flags!r}: {error.message}") from error

    def __repr__(self) -> str:
        return f"<LegacyCpuJit: {_state.source or 'no configuration read yet'}>"


def _config() -> Config:
    with _lock:
        if _state.config is None:
            from rekernel.jit.legacyconfig import load

            _state.config, _state.source = load()
        return _state.config


def _cpu_jit() -> CpuJit:
    """Return the engine for the configuration as it is now; a forked child has its own, for the sake of ``{pid}``."""
    with _lock:
        config = _config()
        if _state.jit is None or _state.made_from != (os.getpid(), config):
            from rekernel.jit.cpu import CpuJit
            from rekernel.jit.legacyconfig import cache_place, merged
            from rekernel.jit.legacyflags import compiler_info

            made_from = (os.getpid(), copy.deepcopy(config))
            checked = merged(config, _state.source)
            jit = CpuJit(compiler_info(checked["compiler"]), cache_place(checked["cache"]))
            if checked["cache"]["clear_cache_on_start"] and jit.objcache.directory not in _cleared:
                _cleared.add(jit.objcache.directory)
                jit.objcache.prune(0)
            _state.jit, _state.made_from = jit, made_from
        return _state.jit
