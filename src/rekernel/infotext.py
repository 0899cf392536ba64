"""How a `KernelInfo` reads, in a terminal and in a notebook. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rekernel import htmltext as html

if TYPE_CHECKING:
    from rekernel.values import KernelInfo

__all__ = ["info_html", "info_text", "took"]


def took(seconds: float) -> str:
    """Return a time in the unit that reads best.

    >>> took(0.4123), took(3.2e-6), took(4e-7)
    ('412 ms', '3.2 µs', '400 ns')
    """
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= size:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 10 or unit == "ns" else f"{number:.1f} {unit}"
    return "0 s" if seconds <= 0 else "1 ns"


def info_text(info: KernelInfo) -> str:
    """Return title, signatures, and what else there is to say, one thing a line."""
    facts = [f"  {label:<12} {said}" for label, said in _facts(info)]
    return "\n".join([f"{_title(info)} {_how(info)}", *(f"  {kernel}" for kernel in info.kernels), *facts])


def info_html(info: KernelInfo) -> str:
    """Return the same for a notebook."""
    facts = [f"{html.muted(label)} {html.text(said)}" for label, said in _facts(info)]
    signatures = [html.code(str(kernel)) for kernel in info.kernels]
    colour = html.GREEN if info.error is None else html.RED
    return html.block(f"{html.bold(_title(info))} {html.text(_how(info))}", *signatures, *facts, colour=colour)


def _title(info: KernelInfo) -> str:
    return f"{html.one_line(info.kernel_id)} v{info.version}"


def _how(info: KernelInfo) -> str:
    why = f": {info.rebuilt_because}" if info.rebuilt_because else ""
    return f"({info.language}), {'from cache' if info.from_cache else 'built'} in {took(info.build_seconds)}{why}"


def _facts(info: KernelInfo) -> list[tuple[str, str]]:
    options = ", ".join(f"{name}={value!r}" for name, value in info.options.items() if value is not None)
    number = info.source.count("\n") + (not info.source.endswith("\n"))
    rows = [("file", info.filename or ""), ("options", options), ("depends on", ", ".join(info.depends_on))]
    rows += [("no kernel", f"{name}: {why}") for name, why in info.skipped.items()]
    rows += [("warning", warning) for warning in info.warnings]
    rows += [("note", note) for note in info.notes]
    if info.error is not None:
        rows.append(("last edit", f"failed: {str(info.error).split(chr(10))[0] or type(info.error).__name__}"))
    rows += [("versions", ", ".join(f"v{version.number}" for version in info.history))]
    rows += [("text", f"{number} line{'' if number == 1 else 's'}: .source, .code, .assembly, .diff(version)")]
    return [(label, html.one_line(said)) for label, said in rows if said]
