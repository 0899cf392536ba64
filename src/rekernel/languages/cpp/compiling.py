"""One unit from a text: each function gets an entry point, the shortest one that the compiler accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rekernel.languages.cpp import unit
from rekernel.languages.cpp.candidates import Candidate, Reading
from rekernel.languages.cpp.failure import blamed
from rekernel.languages.cpp.reading import read
from rekernel.languages.cpp.signature import Entry, entries, to_json
from rekernel.languages.cpp.spelled import Spelled, spelled
from rekernel.product import CompileFailed, Product

if TYPE_CHECKING:
    from rekernel.jit.obtain import Compile

__all__ = ["compile_unit", "for_manifest", "simpler"]


def compile_unit(text: str, compiled: Compile) -> tuple[Product, Mapping[str, Any]]:
    """Compile a text with the entry points of its functions; return what came out, and its kernels for the manifest.

    CompileFailed where the text itself is wrong. A function whose own line of ours fails is tried the general way,
    then left out, and its reason is kept.
    """
    reading = read(text)
    plan: dict[int, tuple[Spelled, ...] | None] = {n: spelled(one) for n, one in enumerate(reading.candidates)}
    left_out: dict[int, str] = {}
    checked = False
    while True:
        try:
            product = compiled(unit.render(text, reading.candidates, plan), ("-include", unit.header(plan)))
            break
        except CompileFailed as failure:
            wrong = blamed(failure)
            if wrong is None and all(d.filename != unit.OWN for d in failure.diagnostics):
                raise
            if not checked:
                compiled(text, ("-include", unit.header(plan)))  # an open brace makes our lines wrong: then this raises
                checked = True
            if wrong is None or not simpler(plan, wrong, left_out, reading.candidates):
                raise
    found, skipped = entries(product.data, unit.marker(text), reading.candidates, plan)
    return product, for_manifest(reading, found, skipped, left_out)


def for_manifest(
    reading: Reading, found: list[Entry], skipped: dict[str, str], left_out: Mapping[int, str]
) -> Mapping[str, Any]:
    """Return what is kept beside the compiled bytes: the kernels, and why other functions are none."""
    names = {one.kernel.name for one in found}
    for number, why in left_out.items():  # or nearly left out
        name = reading.candidates[number].name
        if name not in names:
            skipped.setdefault(name, f"{name} cannot be called from outside: {why}")
    for name, why in reading.skipped.items():
        if name not in names:
            skipped.setdefault(name, why)
    kept, notes = _one_scope_each(found, skipped)
    return {"entries": [to_json(one) for one in kept], "skipped": skipped, "notes": notes}


def simpler(
    plan: dict[int, tuple[Spelled, ...] | None], wrong: Mapping[int, str], left_out: dict[int, str],
    candidates: list[Candidate],
) -> bool:  # fmt: skip
    """Change the plan where it was wrong; return whether there was something to change."""
    if any(number not in plan for number in wrong):  # a macro has the name of a type: believe no word
        changed = any(plan.values())
        plan.update(dict.fromkeys(plan))
        return changed
    for number, why in wrong.items():
        if plan[number] is not None:
            plan[number] = None
        elif not candidates[number].overloaded:  # a header may have functions of its name
            candidates[number] = replace(candidates[number], overloaded=True)
            left_out[number] = why
        else:
            left_out.setdefault(number, why)
            del plan[number]
    return bool(wrong)


def _one_scope_each(found: list[Entry], skipped: dict[str, str]) -> tuple[list[Entry], list[str]]:
    """Return the kernels whose names are clear: of two namespaces with one name, the outer or earlier one has it."""
    chosen: dict[str, str] = {}
    for one in sorted(found, key=lambda e: e.kernel.function.count("::")):
        chosen.setdefault(one.kernel.name, one.kernel.function)
    kept = [one for one in found if one.kernel.function == chosen[one.kernel.name]]
    for one in found:
        if one not in kept:
            skipped[one.kernel.function] = (
                f"{one.kernel.function} has the name of {chosen[one.kernel.name]}; rename one"
            )
    hidden = [name for name in skipped if "::" in name]
    return kept, [skipped[name] for name in hidden]
