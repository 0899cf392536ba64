"""Frozen values that tell the user about ids, versions and reloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from rekernel.kernel import Kernel

__all__ = ["KernelInfo", "LoaderStats", "LogEvent", "MachineCode", "ReloadEvent", "Version"]


class _Pickles:
    """Pickles read-only mappings, which Python by itself does not."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: dict(v) if isinstance(v, MappingProxyType) else v for name, v in vars(self).items()}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update({name: MappingProxyType(v) if type(v) is dict else v for name, v in state.items()})


@dataclass(frozen=True)
class Version(_Pickles):
    """One successful load of one id, as `KernelLoader.history` lists them."""

    kernel_id: str
    """Of which id."""
    number: int
    """Counted from 1 for each id; never goes backwards."""
    source: str
    """The text, exactly as it was given."""
    options: Mapping[str, Any]
    """The options of the language that it was loaded with."""
    kernels: tuple[str, ...]
    """The names of its kernels."""
    loaded_at: float
    """Seconds since the epoch."""
    live: bool = False
    """Whether this version serves the id now."""
    restores: int | None = None
    """The number of the version whose content a rollback, or loading its text again, brought back."""


@dataclass(frozen=True)
class MachineCode:
    """Compiled code as it was loaded."""

    kind: str
    """``elf`` for a CPU, ``cubin`` or ``ptx`` for a GPU."""
    data: bytes = field(repr=False)
    """Exactly the bytes that were loaded."""
    title: str = ""
    """Whose code it is, where a version has several."""

    @cached_property
    def text(self) -> str:
        """The same as assembly text; ToolchainError names the tool that is missing."""
        from rekernel.disassembly import disassemble

        return disassemble(self)


@dataclass(frozen=True, repr=False)
class KernelInfo(_Pickles):
    """All that rekernel knows about an id."""

    kernel_id: str
    version: int
    language: str
    source: str
    filename: str | None
    options: Mapping[str, Any]
    kernels: tuple[Kernel, ...]
    skipped: Mapping[str, str]
    """Public functions that are no kernels, with the reason."""
    code: str
    """What was compiled."""
    machine: tuple[MachineCode, ...] = field(repr=False)
    """What it was compiled to, as far as something is compiled already; nothing for Taichi, which keeps it."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """What happened during the load and may surprise (a skipped ``ti.init``)."""
    error: Exception | None
    """The last failed load, until a load succeeds."""
    build_seconds: float
    from_cache: bool
    rebuilt_because: str | None
    depends_on: tuple[str, ...]
    """Ids of the helpers whose kernels, functions or values the text uses."""
    history: tuple[Version, ...]
    """The last 32 versions, oldest first."""

    @property
    def assembly(self) -> str | None:
        """The compiled code as assembly text, or None where there is none (Taichi, a stencil that was never called).

        It is made when it is asked for: by ``objdump`` from exactly the bytes that were loaded, with the lines of the
        text where it was loaded with ``debug=True``; for CUDA by ``nvdisasm`` or ``cuobjdump``. ToolchainError names
        the tool that is missing.
        """
        parts = [f"{code.title}:\n{code.text}" if code.title else code.text for code in self.machine]
        return "\n".join(parts) if parts else None

    def __repr__(self) -> str:
        from rekernel.infotext import info_text

        return info_text(self)

    def _repr_html_(self) -> str:
        from rekernel.infotext import info_html

        return info_html(self)

    def diff(self, version: int) -> str:
        """Return a unified diff from the text of `version` to the text of this one.

        Lines keep their endings, so that a change of these shows, too.
        """
        import difflib

        from rekernel.errors import KernelNotFoundError

        for old in self.history:
            if old.number == version:
                marked = old.source.endswith("\n") != self.source.endswith("\n")
                rows = difflib.unified_diff(
                    _lines(old.source, marked), _lines(self.source, marked),
                    f"{self.kernel_id} v{version}", f"{self.kernel_id} v{self.version}", lineterm="",
                )  # fmt: skip
                return "\n".join(rows)
        known = ", ".join(f"v{v.number}" for v in self.history)
        raise KernelNotFoundError(f"{self.kernel_id} has no version {version} in its history; it has {known}")


def _lines(text: str, marked: bool) -> list[str]:
    r"""Return the lines of a text; `marked`: with what diffs say of a last line that has no end.

    >>> _lines("a\r\nb", marked=True)
    ['a\r', 'b\n\\ No newline at end of file']
    """
    *lines, rest = text.split("\n")
    end = "\n\\ No newline at end of file" if marked else ""
    return [*lines, *([f"{rest}{end}"] if rest else [])]


@dataclass(frozen=True)
class ReloadEvent:
    """What ``loader.on_reload`` tells."""

    kind: str
    """``loaded``, ``rolled back``, ``restored``, ``unloaded``, ``renewed``, ``failed``; ``recovered`` where a watched
    file is, after a failure, again that of the version which runs."""
    kernel_id: str
    version: int | None
    """The new version's number; for ``failed`` the one that goes on running, or None."""
    language: str | None = None
    kernels: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    """Module-level state that began anew although the version before had it."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    error: Exception | None = None
    from_cache: bool = False
    """Whether the compiled code came out of the object cache."""
    rebuilt_because: str | None = None
    """Why it did not."""


@dataclass(frozen=True)
class LogEvent:
    """One line of ``loader.log``. It holds texts and numbers only, so that it keeps nothing alive."""

    time: float
    """Seconds since the epoch."""
    kind: str
    """``compiling``, ``compiled``, ``from cache``, ``swapped``, ``restored``, ``rolled back``, ``renewed``,
    ``unloaded`` or ``failed``."""
    kernel_id: str
    version: int | None
    """The number that the version has or would have; for ``failed`` that of the one that goes on, or None."""
    language: str | None = None
    seconds: float = 0.0
    """How long it took."""
    from_cache: bool = False
    rebuilt_because: str | None = None
    """Why it had to be compiled: ``text changed``, ``flags changed: -O2 -> -O3``, ``not seen before``."""
    message: str = ""
    """The same in one line, as the logger ``rekernel`` gets it."""
    error: str | None = None
    """All that the error says."""

    @property
    def title(self) -> str:
        """``heat v3 (cpp)``."""
        number = "" if self.version is None else f" v{self.version}"
        return f"{self.kernel_id}{number}{f' ({self.language})' if self.language else ''}"


@dataclass(frozen=True)
class LoaderStats:
    """Counts over the life of a loader."""

    ids: int
    loads: int
    """Successful loads that made a new version, dependents included."""
    unchanged: int
    """Loads that found the live version to be what was asked for."""
    reused: int
    """Versions that came back without being built (rollback, A to B to A)."""
    failures: int
    calls: int
    versions_held: int
    """Versions whose callables are in memory for rollback."""
    languages: Mapping[str, Any] = field(default_factory=dict)
    """What each language counts itself, such as compiled kernels that Taichi keeps until ``ti.reset``."""
