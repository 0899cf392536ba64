"""What the Tab key offers in the first line of the magics: flags of the text's language, ids, versions."""

from __future__ import annotations

import shlex
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from rekernel.default import kernels
from rekernel.languages import languages
from rekernel.notebook import arguments

__all__ = ["complete", "matcher"]

_ROLLBACKS = ("%kernel_rollback", "%kernel_diff")
_MAGICS = ("%kernels", "%kernel_history", *_ROLLBACKS)


@context_matcher(identifier="rekernel")  # type: ignore[untyped-decorator]
def matcher(context: CompletionContext) -> SimpleMatcherResult:
    """Answer IPython for the lines of our magics, and for no other."""
    line = context.text_until_cursor
    word = "" if line[-1:].isspace() else (line.split() or [""])[-1]
    found = [SimpleCompletion(text=text, type=kind) for text, kind in complete(line, word)]
    return {"completions": found, "matched_fragment": word, "suppress": bool(found), "ordered": True}


def complete(line: str, word: str) -> list[tuple[str, str]]:
    """Return what may stand in place of `word`, the last one of a line up to the cursor, each with its kind."""
    magic, *before = line.split() or [""]
    if word and before:
        before.pop()
    elif word:
        return []  # the name of the magic itself: IPython knows it
    if magic == "%%kernel":
        found = [*_ids(before), *_flags(before)]
    elif magic in _ROLLBACKS and before:
        found = _versions(before[0]) if len(before) == 1 else []
    elif magic in _MAGICS and (not before or magic == "%kernels"):
        found = [one for one in _ids([]) if one[0] not in before]
    else:
        found = []
    return [one for one in found if one[0].startswith(word)]


def _flags(before: list[str]) -> list[tuple[str, str]]:
    table: dict[str, Any] = {name: row.options for name, row in languages().items()}
    named = next((word[2:] for word in before if word[2:] in table), None)
    others = set() if named is None else {arguments.dashed(name) for name in table}
    known = arguments.known_flags(table, named)
    return [(flag, "flag") for flag in known if flag not in others and (flag not in before or "-dirs" in flag)]


def _ids(before: list[str]) -> list[tuple[str, str]]:
    taken = any(not word.startswith("-") for word in before)
    return [] if taken else [(shlex.quote(name), "kernel id") for name in kernels]


def _versions(kernel_id: str) -> list[tuple[str, str]]:
    versions = kernels.history(kernel_id) if kernel_id in kernels else ()
    return [(f"v{version.number}", "version") for version in reversed(versions)]
