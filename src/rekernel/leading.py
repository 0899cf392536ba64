"""The system headers that a text includes before anything else. Pure."""

from __future__ import annotations

import re

__all__ = ["leading_headers"]

_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*<(?P<name>[^>\s]+)>[ \t]*(?P<rest>(?://[^\n]*|/\*[^\n]*\*/[ \t]*)?)")
_PASSED = re.compile(r"[ \t]*(?://.*|#[ \t]*(?:line[ \t]+)?\d+[ \t]*(?:\"[^\"\n]*\")?[ \t]*)?")


def leading_headers(text: str) -> tuple[tuple[str, ...], str]:
    r"""Return the system headers that a text includes before anything else, and the text with these lines blank.

    >>> leading_headers("// heat\n#include <cmath>\nint x;\n")
    (('cmath',), '// heat\n\nint x;\n')
    """
    names: list[str] = []
    lines = text.split("\n")
    inside = False
    for number, line in enumerate(lines):
        if line.endswith("\\") or "??" in line:
            break
        if inside:
            _before, end, after = line.partition("*/")
            if end and after.strip():
                break
            inside = not end
        elif match := _INCLUDE.fullmatch(line):
            names.append(match["name"])
            lines[number] = match["rest"]
        elif line.lstrip().startswith("/*"):
            _before, end, after = line.partition("*/")
            if end and after.strip():
                break
            inside = not end
        elif not _PASSED.fullmatch(line):
            break
    return tuple(names), "\n".join(lines)
