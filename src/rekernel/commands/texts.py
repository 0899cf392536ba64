"""Which text a subcommand works on, in which language, with which options of the load: arguments that several share."""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.commands import CommandError, Parser, UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from rekernel.languages import Language
    from rekernel.loader import KernelLoader

__all__ = [
    "Text", "add_load_arguments", "load", "loaded", "one", "option", "options_of", "read", "started", "unreadable",
]  # fmt: skip


def add_load_arguments(parser: Parser) -> None:
    """Add what a load takes: its language and its options. The help lists those of every language."""
    parser.add_argument("--language", metavar="NAME", help="of the texts; told by suffix and content if not given")
    parser.add_argument(
        "-O", "--option", action="append", default=[], type=option, metavar="NAME=VALUE",
        help="an option of load(): -O openmp=false, -O optlevel=2, -O 'flags=-DN=8 -funroll-loops'",
    )  # fmt: skip
    parser.more = _options_help


def option(text: str) -> tuple[str, Any]:
    """Read an option. Its value is JSON or a constant of Python, else text.

    >>> option("openmp=false"), option('flags=["-O2", "-g"]'), option("target=x86-64-v3")
    (('openmp', False), ('flags', ['-O2', '-g']), ('target', 'x86-64-v3'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE, such as openmp=false")
    for reader in (json.loads, ast.literal_eval):
        try:
            return name.strip(), reader(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return name.strip(), value


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given; one that was given twice is a mistake."""
    found: dict[str, Any] = {}
    for name, value in arguments.option:
        if name in found:
            raise UsageError(f"option {name} is given twice: {found[name]!r}, {value!r}; give a list: {name}='[...]'")
        found[name] = value
    return found


@dataclass(frozen=True)
class Text:
    """A file with kernels, and how it is loaded."""

    path: Path
    language: Language
    options: Mapping[str, Any]
    """Those of the options that the language has."""

    @property
    def kernel_id(self) -> str:
        """The id that ``load_file`` would take."""
        return self.path.stem


def read(paths: Sequence[Path], arguments: argparse.Namespace) -> list[Text | tuple[Path, Exception]]:
    """Find the language of each file. An option goes to the languages that have it.

    What is wrong with one file comes back with its path. UsageError for an option that no language of the files has.
    """
    from rekernel.jobs import read_text
    from rekernel.languages import detect, find

    options, found = options_of(arguments), list[Text | tuple[Path, Exception]]()
    for path in dict.fromkeys(paths):
        try:
            language = find(arguments.language) if arguments.language else detect(read_text(path), str(path))
        except (ValueError, OSError) as error:
            if arguments.language:
                raise UsageError(str(error)) from None
            found.append((path, error))
            continue
        found.append(Text(path, language, {n: v for n, v in options.items() if n in language.options}))
    texts = [one for one in found if isinstance(one, Text)]
    for name in options:
        if texts and not any(name in text.options for text in texts):
            rows = {text.language.name: ", ".join(text.language.options) or "none" for text in texts}
            known = "; ".join(f"{language}: {names}" for language, names in sorted(rows.items()))
            raise UsageError(f"no language of these files has an option {name!r}; options of {known}")
    return found


def load(loader: KernelLoader, text: Text, **more: Any) -> ModuleType:
    """Load a text with its options, under the id that is its file's stem."""
    options = {**text.options, **more}
    return loader.load_file(text.path, text.kernel_id, language=text.language.name, **options)


def loaded(loader: KernelLoader, text: Text) -> ModuleType:
    """Load a text for a subcommand that works on one: its runtime is started, and a wrong option is a CommandError."""
    started(text)
    try:
        return load(loader, text)
    except (TypeError, ValueError) as error:
        if type(error).__module__.startswith("rekernel"):
            raise
        raise CommandError(f"{text.path}: {error}") from None


def started(text: Text) -> None:
    """Start what the text runs in, where its language needs that and the text does not do it itself."""
    start = getattr(text.language, "start", None)
    if start is not None:
        from rekernel.jobs import read_text

        start(read_text(text.path))


def one(path: Path, arguments: argparse.Namespace) -> Text:
    """Read one file for a subcommand that works on one; what is wrong with it is a CommandError."""
    found = read([path], arguments)[0]
    if isinstance(found, Text):
        return found
    raise unreadable(*found) from None


def unreadable(path: Path, error: Exception) -> CommandError:
    """Return what ends a subcommand over a file that cannot be read or whose language is unknown; it names the file."""
    said = str(error)
    return CommandError(said if str(path) in said else f"{path}: {said}")


def _options_help() -> str:
    from rekernel.languages import languages

    lines = ["options of load(), by language:"]
    for language in languages().values():
        lines += [f"  {language.name}:{'' if language.options else ' none'}"]
        lines += [f"    {name:<13} {said}" for name, said in language.options.items()]
    return "\n".join(lines)
