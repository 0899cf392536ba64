"""What is known of ids, versions and loaders, as values for the user."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rekernel.languages import languages
from rekernel.live import Edition, Live
from rekernel.show import calls_of
from rekernel.values import KernelInfo, LoaderStats, Version

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader


def history_of(live: Live) -> tuple[Version, ...]:
    """Return the remembered versions, oldest first; the live one is marked."""
    current = live.current
    number = None if current is None else current.number
    return tuple(replace(p.version, live=p.version.number == number) for p in live.history)


def info_of(live: Live, edition: Edition | None = None) -> KernelInfo:
    """Return all that is known of an id, or of one version of it."""
    edition = edition or live.must_see()
    built, source = edition.built, edition.source
    return KernelInfo(
        kernel_id=live.kernel_id, version=edition.number, language=source.language, source=source.text,
        filename=source.filename, options=source.options, kernels=built.kernels, skipped=built.skipped,
        code=source.code if built.code is None else built.code(),
        machine=() if built.machine is None else built.machine(), warnings=built.warnings,
        notes=built.notes, error=live.error,
        build_seconds=edition.build_seconds, from_cache=built.from_cache, rebuilt_because=built.rebuilt_because,
        depends_on=tuple(sorted(h.kernel_id for h in edition.helpers)), history=history_of(live),
    )  # fmt: skip


def stats_of(loader: KernelLoader) -> LoaderStats:
    """Return a loader's counts."""
    lives = list(loader._lives.values())
    counts = loader._counts
    builts = {id(e.built) for e in loader._editions()}
    return LoaderStats(
        ids=len(lives), loads=counts["loads"], unchanged=counts["unchanged"], reused=counts["reused"],
        failures=counts["failures"], calls=counts["calls"] + sum(map(calls_of, lives)), versions_held=len(builts),
        languages={n: lang.stats() for n, lang in languages().items() if hasattr(lang, "stats")},
    )  # fmt: skip
