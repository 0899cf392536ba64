"""Making versions visible, going back, taking ids away: everything that changes what people see."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rekernel import events
from rekernel.errors import KernelNotFoundError, KernelSourceError, RekernelWarning
from rekernel.holds import holds
from rekernel.languages import Built, languages
from rekernel.live import Edition, Live, Past
from rekernel.locks import unbroken
from rekernel.show import calls_of
from rekernel.values import KernelInfo, LoaderStats, ReloadEvent, Version

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

HISTORY = 32


def record(loader: KernelLoader, kernel_id: str) -> Live:
    """Return the record of an id, living, retired but still held by somebody, or new."""
    with loader._lock:
        live = loader._lives.get(kernel_id) or loader._retired.get(kernel_id)
        if live is None:
            live = loader._retired[kernel_id] = Live(kernel_id, loader)
        return live


def dependents(loader: KernelLoader, live: Live) -> list[Live]:
    """Return the ids that use this one, directly or through others, each after what it uses."""
    with loader._lock:
        edges = {
            one: list(one.current.helpers)
            for one in loader._lives.values()
            if one.current is not None and one is not live
        }
    reached = {live}
    while True:
        more = {one for one, used in edges.items() if one not in reached and any(u in reached for u in used)}
        if not more:
            break
        reached |= more
    ordered: list[Live] = []
    left = reached - {live}
    while left:
        ready = sorted((one for one in left if not any(u in left for u in edges[one])), key=lambda o: o.kernel_id)
        ordered += ready
        left -= set(ready)
        if not ready:  # pragma: no cover - cycles are refused when they would come about
            raise AssertionError("cyclic dependencies")
    return ordered


def refuse_cycles(loader: KernelLoader, live: Live, helpers: list[Live]) -> None:
    """Raise when a text uses an id that depends on it."""
    above = {live, *dependents(loader, live)}
    for helper in helpers:
        if helper in above:
            raise ValueError(
                f"{live.kernel_id!r} would use {helper.kernel_id!r}, which "
                f"{'is itself' if helper is live else 'depends on it'}; a text cannot depend on itself"
            )


def owner(value: Any) -> tuple[Live, str] | None:
    """Return ``(live, name)`` for an object that a loaded text of any language defined, or None."""
    for language in languages().values():
        found = getattr(language, "owner", lambda value: None)(value)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


def publish(loader: KernelLoader, planned: Mapping[Live, Edition]) -> None:
    """Swap in several ids at once. Nothing here can fail half way: everything was built and checked before."""
    with unbroken():
        _publish(loader, planned)


def _publish(loader: KernelLoader, planned: Mapping[Live, Edition]) -> None:
    before = {live: live.current for live in planned}
    with loader._lock:
        for live, edition in planned.items():
            loader._numbers[live.kernel_id] = live.last_number = edition.number
            edition.language.attach(edition.built, live, _failure(live, edition), _renewal(live))
        foreign = holds.swap(loader, [(live, live.table(edition.built), edition) for live, edition in planned.items()])
        for live, edition in planned.items():
            loader._lives[live.kernel_id] = live
            loader._retired.pop(live.kernel_id, None)
            _remember(loader, live, edition, before[live])
    for live, edition in planned.items():
        old = before[live]

        def commit(edition: Edition = edition, old: Edition | None = old) -> None:
            edition.language.commit(edition.built, None if old is None else old.built)

        if foreign:
            holds.later.append(commit)  # objects change their class only when nobody holds the old one
        else:
            commit()


def _remember(loader: KernelLoader, live: Live, edition: Edition, old: Edition | None) -> None:
    live.error = live.removed = None
    kept = {edition.number: edition}
    if old is not None:
        kept[old.number] = old
    builts = {id(e.built) for e in kept.values()}
    dropped = {id(e.built): e for e in live.kept.values() if id(e.built) not in builts}
    live.kept = kept
    live.history = [*live.history, Past.of(edition)][-HISTORY:]
    for gone in dropped.values():
        gone.language.retire(gone.built)
    if old is not None:
        loader._texts.pop(old.source.text, None)
    if edition.derived:
        loader._texts[edition.source.text] = live.kernel_id
    loader._counts["reused" if edition.version.restores is not None and old is not None else "loads"] += 1


def again(loader: KernelLoader, live: Live, kept: Edition, *, undo_to: int | None, restores: int) -> Edition:
    """Return a new version with the content of one whose callables are still held."""
    number = loader._number(live.kernel_id)
    version = replace(kept.version, number=number, loaded_at=time.time(), restores=restores)
    return replace(kept, version=version, undo_to=undo_to)


def roll_back(loader: KernelLoader, live: Live, version: int | None) -> None:
    """Bring back an earlier version's content, as a new version; see ``KernelLoader.rollback``."""
    from rekernel import building

    current = live.current
    with building.locked(loader, live.kernel_id, None if current is None else current.language):
        current = live.current
        if current is None:
            raise live.gone()
        target = version if version is not None else current.undo_to
        past = {p.version.number: p for p in live.history}
        if target is None:
            raise KernelNotFoundError(f"{live.kernel_id!r} has no version before v{current.number} to go back to")
        if target == current.number:
            return
        if target not in past and target not in live.kept:
            known = ", ".join(f"v{number}" for number in past)
            raise KernelNotFoundError(f"{live.kernel_id!r} has no version {target} to go back to; it has {known}")
        kept = live.kept.get(target)
        if kept is None:  # another number may hold the same content
            kept = next((e for e in live.kept.values() if e.version.restores == target and e is not current), None)
        if kept is not None and all(e is h.current for h, e in kept.helpers.items()):
            renewed = kept.language.renewed(kept.built)
            made = again(loader, live, replace(kept, built=renewed), undo_to=kept.undo_to, restores=target)
        else:
            made = building.build(loader, live, _job_of(loader, past[target], target), {})
        planned = building.with_dependents(loader, live, made)
        publish(loader, planned)
    for one, edition in planned.items():
        kind = "rolled back" if one is live else "loaded"
        events.tell(
            loader,
            ReloadEvent(kind, one.kernel_id, edition.number, edition.source.language, tuple(edition.built.entries)),
        )


def _job_of(loader: KernelLoader, past: Past, restores: int) -> Any:
    from rekernel.jobs import Job

    source = past.source
    job = Job(
        source.text, past.version.kernel_id, source.language, past.namespace, source.filename, source.first_line,
        True, True, dict(source.options), restores=restores, undo_to=past.undo_to, derived=past.derived,
    )  # fmt: skip
    job.language, job.source = languages()[source.language], source
    number = loader._number(past.version.kernel_id)
    job.draft = job.language.read(source, kernel_id=past.version.kernel_id, number=number)
    return job


def unload(loader: KernelLoader, live: Live, how: str) -> None:
    """Take an id away. Its module and handles stay, raise, and work again when the id is loaded again."""
    current = live.current
    with live.lock, unbroken(), loader._lock:
        if loader._lives.pop(live.kernel_id, None) is None:
            return
        current = live.current
        loader._retired[live.kernel_id] = live
        live.removed = how
        live.error = None
        holds.swap(loader, [(live, None, None)])
        kept, live.kept = live.kept, {}
        live.history = []
        if current is not None:
            loader._texts.pop(current.source.text, None)
        if live.kernel_id in loader._recent:
            loader._recent.remove(live.kernel_id)
    for built, edition in {id(e.built): (e.built, e) for e in kept.values()}.values():
        edition.language.retire(built)
    number = None if current is None else current.number
    events.tell(loader, ReloadEvent("unloaded", live.kernel_id, number))


def _renewal(live: Live) -> Any:
    """Return what a language calls when it had to build a version again by itself (after another ``ti.init``)."""

    def renewed(built: Built) -> None:
        loader = live.loader()
        edition = live.current
        if loader is None or edition is None or edition.built.private.successor is not built:
            return
        edition.built = built
        holds.swap(loader, [(live, live.table(built), edition)])

    return renewed


def _failure(live: Live, edition: Edition) -> Any:
    """Return what a language calls when a call does not compile, or None: ``auto_rollback=True``."""
    loader = live.loader()
    if loader is None or not loader.auto_rollback:
        return None

    def failed(name: str, error: KernelSourceError, arguments: tuple[Any, ...]) -> Any:
        import warnings

        current = live.current
        if current is None or current.built is not edition.built or current.undo_to is None:
            raise error
        loader.rollback(live.kernel_id)
        went_to = live.current
        target = None if went_to is None else went_to.built.entries.get(name)
        if target is None or went_to is None:
            live.error = error
            raise error
        error.keeps = went_to.number
        live.error = error
        warnings.warn(f"went back to the version before (auto_rollback):\n{error}", RekernelWarning, stacklevel=3)
        return target(*arguments)

    return failed


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
        code=source.code, assembly=built.assembly, warnings=built.warnings, notes=built.notes, error=live.error,
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
