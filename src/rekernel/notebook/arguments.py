"""What the first line of a ``%%kernel`` cell says. Pure: text in, values out; a ValueError says what is wrong."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

__all__ = ["OWN", "Asked", "dashed", "id_and_version", "is_switch", "known_flags", "read", "usage", "words"]

OWN: Mapping[str, str] = {
    "quiet": "show nothing when all is well",
    "background": "build while the notebook goes on; the version before serves until then",
    "no-check": "swap without compiling first for the argument types in use (Taichi)",
    "no-keep-state": "make fields and arrays of the text anew (Taichi)",
}
"""The flags that every language has."""

_LOAD = {"background": {"background": True}, "no-check": {"check": False}, "no-keep-state": {"keep_state": False}}
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True)
class Asked:
    """What a cell asks for."""

    kernel_id: str | None = None
    language: str | None = None
    quiet: bool = False
    load: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``load`` that belong to no language."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the language."""


def dashed(name: str) -> str:
    """Return an option of ``load`` as it is written in a cell: ``--include-dirs``."""
    return "--" + name.replace("_", "-")


def is_switch(help_text: str) -> bool:
    """Whether an option takes no value in a cell: its line of help begins with the value that it then has."""
    return help_text.startswith("True")


def usage(name: str, told: str) -> str:
    """Return an option as help shows it: ``--flags VALUE``."""
    return dashed(name) + ("" if is_switch(told) or name in OWN else " VALUE")


def known_flags(languages: Mapping[str, Mapping[str, str]], language: str | None = None) -> dict[str, str]:
    """Return all that may stand in a cell's first line, with a line of help each.

    `languages` are the options of each language, as its row of the table has them. With `language`, the options of
    the others are left out.
    """
    found = {dashed(name): f"the text is {name}" for name in languages}
    for name in [language] if language is not None and language in languages else languages:
        found.update({dashed(option): told for option, told in languages[name].items()})
    found.update({dashed(name): told for name, told in OWN.items()})
    return found


def read(
    line: str, languages: Mapping[str, Mapping[str, str]], language: str | None = None, likely: str | None = None
) -> Asked:
    """Return what a line says.

    `language` is that of the text where the line does not name one, if it is known for sure; `likely` is what an error
    is to speak of.
    """
    rest = iter(words(line))
    ids: list[str] = []
    named: list[str] = []
    quiet = False
    load: dict[str, Any] = {}
    options: dict[str, Any] = {}
    flags: list[tuple[str, str | None]] = []
    options_of = _options(languages, [word[2:] for word in words(line) if word[2:] in languages] or [language])
    for word in rest:
        if word.startswith("#"):
            break
        name, _, value = word.partition("=")
        option = name[2:].replace("-", "_")
        if not word.startswith("-"):
            ids.append(word)
        elif not word.startswith("--"):
            raise ValueError(f"{word} is no option of %%kernel; flags for the compiler: --flags '{word}'")
        elif name[2:] in languages:
            named.append(name[2:])
        elif word == "--quiet":
            quiet = True
        elif word[2:] in _LOAD:
            load.update(_LOAD[word[2:]])
        elif option.removeprefix("no_") in options_of and option not in options_of:
            flags.append((name, "off"))
        elif option in options_of:
            flags.append((name, value if "=" in word else None))
            if "=" not in word and not is_switch(options_of[option]):
                flags[-1] = (name, _value(name, rest, languages))
        else:
            raise ValueError(_unknown(name, languages, named[0] if named else language or likely))
    if len(ids) > 1:
        raise ValueError(f"one id, not {len(ids)}: {', '.join(ids)}; a value of an option stands behind its name")
    if len(set(named)) > 1:
        raise ValueError(f"one language, not {len(named)}: {', '.join(map(dashed, named))}")
    for name, text in flags:
        option = name[2:].replace("-", "_")
        option = option if option in options_of else option.removeprefix("no_")
        _put(options, option, text, options_of[option])
    return Asked(ids[0] if ids else None, named[0] if named else None, quiet, load, options)


def words(line: str) -> list[str]:
    """Return the words of a line, read as a shell reads them."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ValueError(f"the first line cannot be read: {str(error).lower()}") from None


def id_and_version(line: str, ids: Set[str]) -> tuple[str | None, int | None]:
    """Return what ``[id] [version]`` says; a number alone is a version, unless there is such an id."""
    given = words(line)
    if len(given) > 2:
        raise ValueError(f"an id and a version, not {len(given)} words: {line.strip()}")
    if len(given) == 1 and given[0] not in ids and _version(given[0]) is not None:
        given = ["", *given]
    kernel_id = given[0] if given else ""
    version = _version(given[1]) if len(given) == 2 else None
    if len(given) == 2 and version is None:
        raise ValueError(f"a version is a number such as 3 or v3, not {given[1]!r}")
    return kernel_id or None, version


def _version(word: str) -> int | None:
    digits = word.removeprefix("v")
    return int(digits) if digits.isdecimal() else None


def _options(languages: Mapping[str, Mapping[str, str]], wanted: Sequence[str | None]) -> dict[str, str]:
    tables = [languages[name] for name in wanted if name is not None and name in languages] or list(languages.values())
    return {option: told for table in tables for option, told in table.items()}


def _value(name: str, rest: Iterator[str], languages: Mapping[str, Mapping[str, str]]) -> str:
    value = next(rest, None)
    if value is None or value in known_flags(languages):
        raise ValueError(f"{name} needs a value: {name} VALUE, or {name}=VALUE")
    return value


def _put(options: dict[str, Any], option: str, text: str | None, told: str) -> None:
    """Note the value of an option; several values of one that takes a list go together."""
    if is_switch(told):
        if text is not None and text.lower() not in _WORDS:
            raise ValueError(f"{dashed(option)} takes no value, or on or off, not {text!r}")
        options[option] = True if text is None else _WORDS[text.lower()]
        return
    value = _number_or_list(text or "")
    if option in options and "a list" in told:
        before = options[option]
        options[option] = [*_listed(before), *_listed(value)]
    else:
        options[option] = value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _number_or_list(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, int | float | list | tuple) else text


def _unknown(name: str, languages: Mapping[str, Mapping[str, str]], language: str | None) -> str:
    known = known_flags(languages, language)
    option = (
        name if name in known_flags(languages) else next(iter(get_close_matches(name, known_flags(languages), 1)), "")
    )
    hint, owners = ".", " and ".join(lang for lang, table in languages.items() if option[2:].replace("-", "_") in table)
    if option == name:
        hint = f": it is for {owners}, and this text is {language}."
    elif option in known:
        hint = f": did you mean {option}?"
    elif option:
        hint = f": did you mean {option}, which is for {owners}? This text is {language}."
    return f"unknown option {name}{hint} Known{f' for {language}' if language else ''}: {', '.join(known)}"
