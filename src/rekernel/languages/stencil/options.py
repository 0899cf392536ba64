"""The options of a load, as settings of the compiler and of the code generator. Pure."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rekernel.compilers import CompilerInfo

__all__ = ["HELP", "Settings", "settings"]

HELP: Mapping[str, str] = {
    "target": "a ps.Target or its name ('X86_AVX512'), or what the compiler's -march= takes; 'native' if not given",
    "openmp": "True or False; told by the text's config if not given",
    "optlevel": "'0' to '3', or 'fast' (no NaN, no infinity); '3' if not given",
    "flags": "more flags for the compiler, a list or one text: '-funroll-loops'",
    "allow_alias": "True: restrict is not promised to the compiler, and overlap is not checked",
    "eager": "True: every kernel is built before the swap, not at its first call",
}
_LEVELS = ("0", "1", "2", "3", "s", "g", "fast")


@dataclass(frozen=True)
class Settings:
    """What the options of one load mean."""

    target: Any = None
    """A target of pystencils."""
    openmp: bool | None = None
    march: str | None = None
    optlevel: str | None = None
    flags: tuple[str, ...] = ()
    allow_alias: bool = False
    eager: bool = False

    def compiler(self, base: CompilerInfo) -> CompilerInfo:
        """Return what the compiler is to be told, from what it is told for every kernel."""
        info = copy.copy(base)  # the list that changes is made anew
        info.extra_cxxflags = [*info.extra_cxxflags, *self.flags]
        if self.optlevel is not None:
            info.optlevel = self.optlevel
        if self.march is not None:
            info.target = self.march
        return info


def settings(options: Mapping[str, Any], targets: Mapping[str, Any]) -> Settings:
    """Return what the options mean. TypeError or ValueError names the option and its value.

    `targets` are those of pystencils by their names.
    """
    target = options.get("target")
    if isinstance(target, str):
        target = targets.get(target, target)
    named = target is None or isinstance(target, str)
    if not named and not callable(getattr(target, "is_cpu", None)):
        raise TypeError(f"target= takes a ps.Target, or a name such as 'native', not {target!r}")
    return Settings(
        target=None if named else target,
        march=target if named else None,
        openmp=_flag(options, "openmp"),
        optlevel=_level(options.get("optlevel")),
        flags=_words(options.get("flags")),
        allow_alias=bool(_flag(options, "allow_alias")),
        eager=bool(_flag(options, "eager")),
    )


def _flag(options: Mapping[str, Any], name: str) -> bool | None:
    value = options.get(name)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{name}= takes True, False or None, not {value!r}")
    return value


def _level(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool) or str(value) not in _LEVELS:
        raise ValueError(f"optlevel= is one of {', '.join(map(repr, _LEVELS))}, not {value!r}")
    return str(value)


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise ValueError(f"flags={value!r} cannot be read: {error}") from None
    if isinstance(value, Sequence) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise TypeError(f"flags= takes a list of texts, or one text, not {value!r}")
