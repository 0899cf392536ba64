"""Functions whose types are spelled in plain words: ``double *``, ``const int64_t n``, ``rekernel::Array<float, 2>``.

Their entry points need no templates, which saves 5 of 50 ms. Nothing is believed that the compiler has not confirmed:
an entry point assigns the function to a pointer of just these types, and where that fails it is written again the
general way. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rekernel.languages.cpp.candidates import Candidate

__all__ = ["GUARD", "Part", "Spelled", "spelled"]

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+|::|\S")
_SIZES = {"short": 2, "int": 4, "long": 8, "long long": 8}
_NUMBERS = {"bool": ("b", 1), "signed char": ("i", 1), "unsigned char": ("u", 1), "float": ("f", 4), "double": ("f", 8)}
for _name, _size in _SIZES.items():
    _NUMBERS[_name] = ("i", _size)
    _NUMBERS[f"unsigned {_name}"] = ("u", _size)
for _bits in (8, 16, 32, 64):
    _NUMBERS[f"int{_bits}_t"] = ("i", _bits // 8)
    _NUMBERS[f"uint{_bits}_t"] = ("u", _bits // 8)
_NUMBERS |= {"size_t": ("u", 8), "ptrdiff_t": ("i", 8)}
_WORDS = frozenset(word for name in _NUMBERS for word in name.split()) | {"signed", "const"}
_RESTRICT = frozenset({"restrict", "__restrict", "__restrict__"})

GUARD = (
    "#if "
    + " || ".join(f"defined({word})" for word in sorted(_WORDS | {"rekernel", "Array", "RestrictArray"}))
    + ("\n#error a macro has the name of a type\n#endif\n")
)
"""With such a macro the words would not mean what they say."""

Part = tuple[int, ...]
"""What `rekernel.languages.cpp.signature` knows of a parameter; see ``entry.hpp``."""


@dataclass(frozen=True)
class Spelled:
    """A type in canonical words, what is known of it, and how an argument of it is taken from slot ``{n}``."""

    text: str
    part: Part
    taken: str
    slots: int = 1


def spelled(candidate: Candidate) -> tuple[Spelled, ...] | None:
    """Return the result's type, then those of the parameters; None where a type is not in plain words.

    >>> from rekernel.languages.cpp.reading import read
    >>> [one.text for one in spelled(read("void f(const double *x, long unsigned n) {}").candidates[0])]
    ['void', 'const double *', 'unsigned long']
    """
    if candidate.conditions:  # whether it is compiled at all, only a record in the object tells
        return None
    result = _result(candidate.returns)
    found = [_parameter(argument.text, argument.name) for argument in candidate.arguments]
    if result is None or any(one is None for one in found):
        return None
    return (result, *(one for one in found if one is not None))


def _number(words: list[str]) -> tuple[str, str, int] | None:
    """Return a number's type in canonical words, its letter and its size."""
    kept = [word for word in words if word not in ("std", "::")]
    longs = kept.count("long")
    rest = [word for word in kept if word not in ("long", "signed", "int", "unsigned")]
    if "char" in rest:
        name = f"{'unsigned ' if 'unsigned' in kept else 'signed ' if 'signed' in kept else ''}char"
        if rest != ["char"] or longs or "int" in kept:
            return None
    elif rest:
        name = rest[0]
        if len(kept) != 1:
            return None
    elif not kept or longs > 2 or len(set(kept)) + max(0, longs - 1) != len(kept):
        return None
    else:
        name = ("unsigned " if "unsigned" in kept else "") + (" ".join(["long"] * longs) or "int")
    known = _NUMBERS.get(name)
    return None if known is None else (name, *known)


def _result(text: str) -> Spelled | None:
    words = _TOKEN.findall(text)
    if words == ["void"]:
        return Spelled("void", (5, *[0] * 9), "")
    number = _number([word for word in words if word != "const"])
    if number is None:
        return None
    name, code, size = number
    return Spelled(name, (1, ord(code), size, *[0] * 7), f"rekernel_to_{_letter(code, size)}")


def _letter(code: str, size: int) -> str:
    return {"b": "u", "i": "i", "u": "u"}.get(code) or ("f" if size == 4 else "d")


def _parameter(text: str, name: str) -> Spelled | None:
    words = [word for word in _TOKEN.findall(text) if word not in _RESTRICT]
    if words[-2:] == ["[", "]"]:
        words = [*words[:-2], "*", *words[-2:]][:-2]
        if name in words:
            words.remove(name)
    elif words and words[-1] == name:
        words.pop()
    if "<" in words:
        return _array(words)
    pointer = "*" in words
    at = words.index("*") if pointer else len(words)
    if any(word != "const" for word in words[at + 1 :]):
        return None
    base = [word for word in words[:at] if word != "const"]
    number = _number(base)
    if number is None:
        return None
    kind, code, size = number
    if not pointer:
        part = (1, ord(code), size, *[0] * 7)
        return Spelled(kind, part, f"static_cast<{kind}>(rekernel_{_letter(code, size)}(rekernel_slots + {{n}}))")
    const = "const " if "const" in words[:at] else ""
    full = f"{const}{kind} *"
    part = (2, ord(code), size, 0, int(not const), *[0] * 5)
    return Spelled(full, part, f"static_cast<{full}>(rekernel_p(rekernel_slots + {{n}}))")


def _array(words: list[str]) -> Spelled | None:
    text = " ".join(words)
    match = re.fullmatch(
        r"(?P<const>const )?rekernel :: (?P<restrict>Restrict)?Array < (?P<element>[\w :]+) , (?P<rank>[0-9]) >"
        r"(?P<after> const)?(?P<reference> &)?",
        text,
    )
    if match is None or (match["reference"] and not (match["const"] or match["after"])):
        return None
    element = match["element"].split()
    number = _number([word for word in element if word != "const"])
    if number is None:
        return None
    kind, code, size = number
    const, rank = "const " if "const" in element else "", int(match["rank"])
    restrict = match["restrict"] or ""
    own = f"rekernel::{restrict}Array<{const}{kind}, {rank}>"
    taken = (
        f"{own}(static_cast<{const}{kind} *>(rekernel_p(rekernel_slots + {{n}})), "
        f"rekernel_n(rekernel_slots + {{n}} + 1), rekernel_n(rekernel_slots + {{n}} + {1 + rank}), 2)"
    )
    part = (3, ord(code), size, rank, int(not const), int(bool(restrict)), *[0] * 4)
    return Spelled(f"const {own} &" if match["reference"] else own, part, taken, 1 + 2 * rank)
