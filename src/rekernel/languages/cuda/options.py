"""The options of a load, as flags of NVRTC. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rekernel.languages.given import directories, flag, paths, words

__all__ = ["HELP", "Settings", "settings"]

HELP: Mapping[str, str] = {
    "include_dirs": "directories for #include, a list of paths",
    "flags": "more flags for NVRTC, a list or one text: '-DN=8 --use_fast_math -std=c++20'",
    "arch": "'sm_90', to compile where there is no device; that of the device if not given",
    "allow_alias": "True: __restrict__ is not promised to the compiler, and overlap is not checked",
    "debug": "True: indices of rekernel::Array and assert are checked, and every call waits for its kernel",
}

_ARCH = re.compile(r"(?:sm|compute)_\d{2,3}[af]?")
_MORE_THAN_MINIMAL = re.compile(
    r"\b(?:cuda\w+|tex\w*|surf\w*)\b|#\s*include\s*(?!<(?:c?(?:math|stdint|stddef|stdio|assert|stdlib|string|limits|float)"
    r"(?:\.h)?|algorithm|rekernel/[^>]*)>)"
)


@dataclass(frozen=True)
class Settings:
    """What the options of one load mean."""

    include_dirs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    arch: str | None = None
    allow_alias: bool = False
    debug: bool = False
    relative: bool = False
    """Whether a path is relative to the current directory."""


def settings(options: Mapping[str, Any], text: str) -> Settings:
    """Return what the options mean for a text. TypeError or ValueError names the option and its value."""
    debug, allow_alias = bool(flag(options, "debug")), bool(flag(options, "allow_alias"))
    given, own = paths(options.get("include_dirs")), [*words(options.get("flags"))]
    if refused := next((word for word in own if re.match(r"-{1,2}(?:gpu-arch|arch)\b", word)), None):
        raise ValueError(f"flags= has {refused!r}; the architecture is that of the device, or that of arch='sm_90'")
    flags = ["-default-device", "-DREKERNEL=1"]  # functions without a word of CUDA's are for the device
    if not _MORE_THAN_MINIMAL.search(text) and "--minimal" not in own:
        flags.append("--minimal")  # without textures and CUDA's own functions, which takes a fifth off
    if allow_alias:
        flags += ["-Drestrict=", "-D__restrict=", "-D__restrict__="]
    if debug:
        flags += ["-DREKERNEL_DEBUG=1", "-lineinfo"]
    return Settings(
        include_dirs=directories(given), flags=(*flags, *own), arch=_arch(options.get("arch")),
        allow_alias=allow_alias, debug=debug, relative=not all(map(os.path.isabs, given)),
    )  # fmt: skip


def _arch(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"arch= takes a text such as 'sm_90', not {value!r}")
    if not _ARCH.fullmatch(value):
        raise ValueError(f"arch= takes a text such as 'sm_90', not {value!r}")
    return value
