"""One unit from a text: what NVRTC says of its kernels and variables, in one call where the text is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rekernel.languages.cpp.candidates import Reading
from rekernel.languages.cpp.compiling import for_manifest, simpler
from rekernel.languages.cpp.failure import blamed
from rekernel.languages.cuda import signature, unit
from rekernel.languages.cuda.reading import read
from rekernel.product import CompileFailed

if TYPE_CHECKING:
    from rekernel.cuda.cubins import Compile
    from rekernel.cuda.nvrtc import Compiled

__all__ = ["compile_unit"]


def compile_unit(text: str, compiled: Compile) -> tuple[Compiled, Mapping[str, Any]]:
    """Compile a text with the lines that name its kernels; return what came out, and its kernels for the manifest.

    CompileFailed where the text itself is wrong. A kernel or variable whose own line of ours fails is left out, and the
    reason is kept.
    """
    reading = read(text)
    kernels, variables = reading.candidates, reading.variables
    plan: dict[int, Any] = dict.fromkeys(range(len(kernels) + len(variables)))
    left_out: dict[int, str] = {}
    checked = False
    while True:
        try:
            product = compiled(unit.render(text, kernels, variables, plan), [unit.address(n) for n in plan])
            break
        except CompileFailed as failure:
            wrong = blamed(failure)
            if wrong is None and all(d.filename != unit.OWN for d in failure.diagnostics):
                raise
            if not checked:
                compiled(text, ())  # an open brace makes our lines wrong: then this raises
                checked = True
            if wrong is None or not _simpler(plan, wrong, left_out, kernels):
                raise
    found, skipped, known = signature.found_in(product.data, text, reading, [*plan], product.names)
    of_kernels = {number: why for number, why in left_out.items() if number < len(kernels)}
    kept = for_manifest(Reading(kernels, dict(reading.skipped)), found, skipped, of_kernels)
    return product, {**kept, "variables": signature.to_json(known)}


def _simpler(plan: dict[int, Any], wrong: Mapping[int, str], left_out: dict[int, str], kernels: list[Any]) -> bool:
    """Change the plan where it was wrong; return whether there was something to change."""
    variables = {number for number in wrong if number >= len(kernels) and number in plan}
    for number in variables:
        del plan[number]
    rest = {number: why for number, why in wrong.items() if number not in variables}
    return bool(variables) if not rest else simpler(plan, rest, left_out, kernels)
