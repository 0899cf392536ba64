"""The configuration of pystencils 1.x: where it is, what it may say, what is wrong with it. It is read, never written.

file -> JSON -> `merged`: checked, with defaults -> `compiler_info`, `cache_place`: what `CpuJit` takes
"""

from __future__ import annotations

import copy
import json
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from rekernel.cachedir import AUTO, Auto
from rekernel.compilers import NAMES, which
from rekernel.errors import JitError, RekernelWarning

__all__ = ["Config", "cache_place", "defaults", "find", "load", "merged"]

Config = dict[str, dict[str, Any]]
"""The sections ``compiler`` and ``cache`` with all their keys."""

BUILT_IN = "the built-in configuration"


def defaults() -> Config:
    """Return what counts where a configuration says nothing."""
    named = os.environ.get("REKERNEL_CXX", "").strip() or os.environ.get("CXX", "").strip()
    cpu = "-march=native" if platform.machine() in ("x86_64", "AMD64", "i686") else "-mcpu=native"
    return {
        "compiler": {
            "os": "darwin" if sys.platform == "darwin" else "linux",
            "command": named or next(filter(which, NAMES), NAMES[0]),
            "flags": f"-Ofast -DNDEBUG -fPIC {cpu} -fopenmp -std=c++17",
            "restrict_qualifier": "__restrict__",
            "env": {},
        },
        "cache": {"object_cache": True, "clear_cache_on_start": False},
    }


def find() -> str | None:
    """Return the path of the configuration that counts now, or None where there is none."""
    if named := os.environ.get("PYSTENCILS_CONFIG"):
        return os.path.abspath(os.path.expanduser(named))
    here = os.path.abspath("pystencils.json")
    if os.path.exists(here) and _trusted(here):
        return here
    home = os.environ.get("XDG_CONFIG_HOME", "")
    places = [home if os.path.isabs(home) else os.path.expanduser("~/.config")]
    if sys.platform == "darwin":
        places.insert(0, os.path.expanduser("~/Library/Application Support"))
    files = (os.path.join(place, "pystencils", "config.json") for place in places)
    return next(filter(os.path.exists, files), None)


def load() -> tuple[Config, str]:
    """Read the configuration that counts now. Return it with its defaults, and where it is from.

    JitError names the file, and the line and column or the key, where it is wrong.
    """
    path = find()
    if path is None:
        return defaults(), BUILT_IN
    try:
        with open(path, encoding="utf-8-sig") as file:
            given = json.load(file)
    except OSError as error:
        named = "; PYSTENCILS_CONFIG names it" if os.environ.get("PYSTENCILS_CONFIG") else ""
        raise JitError(f"{path} cannot be read: {error.strerror or error}{named}") from None
    except json.JSONDecodeError as error:
        raise JitError(f"{path}, line {error.lineno}, column {error.colno}: this is no JSON: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise JitError(f"{path} is no text in UTF-8: {error.reason} at byte {error.start}") from None
    return merged(given, path), path


def merged(given: Any, source: str) -> Config:
    """Check a configuration from `source` and return it with the defaults of what it leaves out.

    JitError names source and key of a wrong value; a RekernelWarning those of an unknown key, which counts for nothing.

    >>> merged({"cache": {"object_cache": False}}, "set_config")["cache"]
    {'object_cache': False, 'clear_cache_on_start': False}
    """
    config = defaults()
    for section, values in _object(given, source, "the configuration").items():
        if section not in _RULES:
            _unknown(source, str(section), list(_RULES))
            continue
        for key, value in _object(values, source, section).items():
            rule = _RULES[section].get(key)
            if rule is None:
                _unknown(source, f"{section}.{key}", [f"{section}.{known}" for known in _RULES[section]])
                continue
            if key == "env":
                for name, text in _object(value, source, "compiler.env").items():
                    _check(source, f"compiler.env.{name}", text, _env(str(name), text))
            else:
                _check(source, f"{section}.{key}", value, rule(value))
            config[section][key] = copy.deepcopy(value)
    return config


def cache_place(cache: Mapping[str, Any]) -> str | Auto | None:
    """Return the directory that the section ``cache`` names, None for no cache."""
    place = cache["object_cache"]
    if isinstance(place, bool):
        return AUTO if place else None
    return os.path.abspath(os.path.expanduser(str(place).replace("{pid}", str(os.getpid()))))


def _trusted(path: str) -> bool:
    """Return whether a file that only lies where the program runs may name programs to run; warn where not."""
    try:
        status = os.stat(path)
    except OSError:
        return True  # reading it says what is wrong
    others = status.st_uid not in (0, os.geteuid()) if hasattr(os, "geteuid") else False
    if not others and not (status.st_mode & 0o002 and os.name == "posix"):
        return True
    why = f"it belongs to user {status.st_uid}" if others else "everybody can write to it"
    _warn(f"{path} is not read, because {why}; set PYSTENCILS_CONFIG to it if it is to be trusted")
    return False


def _object(value: Any, source: str, key: str) -> Mapping[str, Any]:
    wrong = "" if isinstance(value, Mapping) else 'write an object: {"name": value, ...}'
    _check(source, key, value, wrong)
    return value  # type: ignore[no-any-return]


def _check(source: str, key: str, value: Any, wrong: str) -> None:
    if wrong:
        try:
            shown = json.dumps(value)
        except (TypeError, ValueError):
            shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise JitError(f"{source}: {key} is {shown}; {wrong}")


def _unknown(source: str, key: str, known: list[str]) -> None:
    import difflib  # here: nearly all configurations are right

    near = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    _warn(f"{source}: {key} is unknown and counts for nothing; {hint}")


def _warn(message: str) -> None:
    warnings.warn(RekernelWarning(message), stacklevel=2)


# Each rule says what is wrong with a value: what to write instead, or "".


def _os(value: Any) -> str:
    name = value.lower() if isinstance(value, str) else ""
    if name == "windows":
        return _windows(value)
    return "" if name in ("linux", "darwin") else 'write "linux" or "darwin"'


def _windows(value: Any) -> str:
    return "it is for the compiler of Windows, which is not supported; use Linux, or WSL, and remove this key"


def _command(value: Any) -> str:
    right = isinstance(value, str) and value.strip() and "\0" not in value
    return "" if right else 'write the name or path of a C++ compiler: "g++"'


def _flags(value: Any) -> str:
    listed = value.split() if isinstance(value, str) else value
    right = isinstance(listed, list | tuple) and all(isinstance(f, str) and f and "\0" not in f for f in listed)
    return "" if right else 'write one text, its flags separated by blanks, or a list of texts: "-O3 -fopenmp"'


def _qualifier(value: Any) -> str:
    right = isinstance(value, str) and re.fullmatch(r"(?:[A-Za-z_]\w*)?", value)
    return "" if right else 'write one word, or nothing for no promise: "__restrict__" or ""'


def _env(name: str, value: Any) -> str:
    if not name or re.search(r"[=\0]", name):
        return "this is no name of an environment variable"
    return "" if isinstance(value, str) and "\0" not in value else f'write a text: "{name}": "..."'


def _object_cache(value: Any) -> str:
    if isinstance(value, str) and (other := re.search(r"\{(?!pid\})[^{}]*\}", value)):
        return f"{other[0]} has no meaning; only {{pid}} has, the number of the process"
    right = isinstance(value, bool) or (isinstance(value, str) and value.strip() and "\0" not in value)
    return "" if right else "write the path of a directory, false for no cache, or true for the usual place"


def _bool(value: Any) -> str:
    return "" if isinstance(value, bool) else "write true or false"


_RULES: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "compiler": {
        "os": _os,
        "command": _command,
        "flags": _flags,
        "restrict_qualifier": _qualifier,
        "env": lambda value: "",  # its variables are checked one by one
        "msvc_version": _windows,
        "arch": _windows,
    },
    "cache": {"object_cache": _object_cache, "clear_cache_on_start": _bool},
}
