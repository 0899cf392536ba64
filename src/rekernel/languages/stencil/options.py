"""The options of a load, as settings of the compiler and of the code generator. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rekernel.languages.given import flag, level, words

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
        openmp=flag(options, "openmp"),
        optlevel=level(options.get("optlevel")),
        flags=words(options.get("flags")),
        allow_alias=bool(flag(options, "allow_alias")),
        eager=bool(flag(options, "eager")),
    )
