r"""What the reader does about macros and continued lines: it has no preprocessor. Pure.

What macros of the text stand for is written out, where they only decorate (``#define API static inline``), are types
(``#define FIELD(T) rekernel::Array<T, 2>``), or make functions on a line of their own (``MAKE_KERNEL(step, double)``).
Lines keep their numbers. Nothing of this is compiled: a wrong guess is a function that is not found, or one that the
compiler then refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

__all__ = ["changed_after", "has_c_restrict", "restored", "written_out"]

_C_RESTRICT = re.compile(r"\*\s*(?:const\s+|volatile\s+)*restrict\b(?!\s*[(;=])")
_NAMED_RESTRICT = re.compile(r"[\w>]\s+restrict\s*[=;({\[]")

_SPLICED = re.compile(r"^(?:[^\n]*\\[ \t\r]*\n)+[^\n]*", re.M)
_SPLICE = re.compile(r"\\[ \t\r]*\n")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?:\((?P<parameters>[^()\n]*)\))?(?P<body>[^\n]*)", re.M)
_CHANGE = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.M)
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_DECORATION = re.compile(
    r"(?:\s*(?:\b(?:static|void|register|mutable|thread_local|inline|extern|constexpr|const|volatile|noexcept|restrict|__restrict|__restrict__|__inline|"
    r"__inline__|__forceinline)\b|\"C\"|\[\[[^\[\]]*\]\]|"
    r"\b(?:__attribute__|__declspec|alignas)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)))*\s*"
)
_TYPE = re.compile(r"[A-Za-z_][\w\s:]*[<*&][\w\s:<>,*&]*")
_UNTOUCHED = r"^[ \t]*#[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\""
_CALL = re.compile(r"^(?P<before>[ \t]*)(?P<name>\w+)[ \t]*\((?P<given>[^(){}\n]*)\)[ \t]*;?[ \t\r]*$", re.M)
_PASTE = re.compile(r"\s*##\s*")
_DEPTH = 4
"""How often the result of a macro may be a call of another."""

_STAND_INS = {"_Complex": "_Noreturn", "__restrict": "__restrict__", "__inline": "inline", "__inline__": "inline"}
"""Words that the parser does not know, and words that it takes in their places. ``_Noreturn`` is none of C++."""

_OWN_RESTRICT = "rekernel_restrict_"


def has_c_restrict(text: str) -> bool:
    """Return whether a text has C's word ``restrict``. In C++ it is free for a name of the user's."""
    return bool(_C_RESTRICT.search(text)) and not _NAMED_RESTRICT.search(text)


def restored(text: str) -> str:
    """Return a part of a written-out text with the words that the user wrote and that mean something else."""
    return text.replace("_Noreturn", "_Complex").replace(_OWN_RESTRICT, "restrict")


def written_out(text: str) -> str:
    r"""Return the text for a parser, of as many lines.

    >>> written_out("#define OUT __restrict__\n#define MAKE(n) void n() {}\nMAKE(f)\nvoid g(int* OUT x);")
    '#define OUT __restrict__\n#define MAKE(n) void n() {}\nvoid f() {}\nvoid g(int* __restrict__ x);'
    """
    if "\\" in text:
        text = _SPLICED.sub(_joined, text)
    words, calls = dict(_STAND_INS), dict[str, tuple[list[str], str]]()
    if "restrict" in text and not has_c_restrict(text):
        words["restrict"] = _OWN_RESTRICT
    for define in _DEFINE.finditer(text):
        name, body = define["name"], _COMMENT.sub(" ", define["body"]).strip()
        if define["parameters"] is not None:
            calls[name] = ([one.strip() for one in define["parameters"].split(",")], body)
        elif _DECORATION.fullmatch(body) or _TYPE.fullmatch(body):
            words[name] = body
    for _ in range(_DEPTH if calls else 0):
        after = _CALL.sub(lambda match: _called(match, calls, "{"), text)
        if after == text:
            break
        text = after
    types = [name for name, (_parameters, body) in calls.items() if _TYPE.fullmatch(body)]
    text = _replaced(text, types, r"[ \t]*\((?P<given>[^(){}\n]*)\)", lambda match: _called(match, calls, ""))
    return _replaced(text, [word for word in words if word in text], "", lambda match: words[match[0]])


def _replaced(text: str, names: Sequence[str], after: str, by: Callable[[re.Match[str]], str]) -> str:
    """Replace words with what follows them, but not in directives, comments and texts."""
    if not names:
        return text
    word = "|".join(map(re.escape, names))
    pattern = re.compile(rf"{_UNTOUCHED}|(?P<before>)\b(?P<name>{word})\b{after}", re.M | re.S)
    return pattern.sub(lambda match: match[0] if match["name"] is None else by(match), text)


def changed_after(text: str) -> Mapping[str, int]:
    """Return the macros that a text defines or takes back, with the number of the last line that does so."""
    return {match[1]: text.count("\n", 0, match.start(1)) + 1 for match in _CHANGE.finditer(text)}


def _joined(match: re.Match[str]) -> str:
    return _SPLICE.sub("", match[0]) + "\n" * match[0].count("\n")


def _called(match: re.Match[str], calls: Mapping[str, tuple[list[str], str]], needs: str) -> str:
    """Return what a call of a macro stands for, where that has what it needs."""
    parameters, body = calls.get(match["name"], (None, ""))
    if parameters is None or needs not in body:
        return match[0]
    given = [one.strip() for one in match["given"].split(",")]
    if parameters[-1:] == ["..."]:
        parameters = [*parameters[:-1], "__VA_ARGS__"]
        given[len(parameters) - 1 :] = [", ".join(given[len(parameters) - 1 :])]
    if len(given) != len(parameters):
        return match[0]
    values = dict(zip(parameters, given, strict=True))
    return match["before"] + _PASTE.sub("", re.sub(r"\w+", lambda word: values.get(word[0], word[0]), body))
