"""From text to versions: detect, read, resolve, build aside, check, publish. One load on one screen in `run`."""

from __future__ import annotations

import time
import warnings
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from rekernel import events, namespace, publishing, underway
from rekernel.errors import KernelSourceError, RekernelWarning
from rekernel.jobs import Job
from rekernel.languages import Language, Request
from rekernel.live import Edition, Live
from rekernel.locks import holding
from rekernel.publishing import record
from rekernel.values import ReloadEvent, Version

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader


def run(loader: KernelLoader, job: Job) -> Live:
    """Make a new version of an id and swap it in, with everything that depends on it, or change nothing."""
    started = time.perf_counter()
    kernel_id = job.kernel_id
    assert kernel_id is not None
    try:
        while True:
            with locked(record(loader, kernel_id), job.language) as live:
                current = live.current
                if not job.still_wanted() or unchanged(live, job):
                    return live
                edition, kind = reuse(live, job), "restored"
                if edition is None:
                    edition, kind = build(live, job, {}), "loaded"
                planned = with_dependents(live, edition)
                edition.build_seconds = time.perf_counter() - started
                if job.still_wanted() and job.ready() and publishing.publish(planned):
                    break
                publishing.discard(planned)
    except (Exception, SystemExit) as error:
        if not job.still_wanted():
            return record(loader, kernel_id)
        if job.tells:
            publishing.failed(loader, kernel_id, error)
        raise
    for one, made in planned.items():
        events.tell(one.loader(), _event(kind if one is live else "loaded", made))
    _warn_of_origin(current, edition)
    return live


def with_dependents(live: Live, edition: Edition) -> dict[Live, Edition]:
    """Build all that depends on an id over its new version; together they will be swapped in, or none."""
    planned = {live: edition}
    try:
        for dependent in publishing.dependents(live):
            planned[dependent] = rebuild(dependent, planned)
    except BaseException:
        publishing.discard(planned)
        raise
    return planned


def unchanged(live: Live, job: Job) -> bool:
    """Whether another thread has loaded just this while we waited for the lock, or it was not seen before."""
    if not _unchanged(live.current, job):
        return False
    live.error = None
    live.loader()._counts["unchanged"] += 1
    return True


def _unchanged(edition: Edition | None, job: Job) -> bool:
    return (
        edition is not None
        and job.keep_state
        and isinstance(job.check, bool)
        and edition.source == job.source
        and namespace.same(edition.borrowed, job.namespace, job.draft.wants)
        and edition.language.renewed(edition.built) is edition.built
        and edition.language.same(edition.built)
    )


def reuse(live: Live, job: Job) -> Edition | None:
    """Return a kept version that is what is asked for (A to B to A), as a new version, or None."""
    current = live.current
    if current is None or not job.keep_state or not isinstance(job.check, bool):
        return None
    for kept in live.kept.values():
        if kept is current or kept.source != job.source or any(e is not h.current for h, e in kept.helpers.items()):
            continue
        if not namespace.same(kept.borrowed, job.namespace, job.draft.wants):
            continue
        if kept.language is not current.language or not kept.language.reusable(kept.built, current.built):
            continue
        with underway.doing(_work(live, job)):
            kept.language.recheck(kept.built, current.built, job.check, current.number)
        return publishing.again(live, kept, undo_to=current.number, restores=kept.number)
    return None


def build(
    live: Live, job: Job, planned: Mapping[Live, Edition], without: Mapping[Live, Edition] = MappingProxyType({})
) -> Edition:
    """Build one id aside.

    `planned` are the versions that helpers will have after the swap, `without` those to use of helpers that
    were unloaded.
    """
    loader, current, kernel_id = live.loader(), live.current, live.kernel_id
    borrowed = namespace.lookup(job.namespace, job.draft.wants)
    used: dict[Live, Edition] = {}

    def edition_of(helper: Live) -> Edition:
        edition = planned.get(helper) or (without.get(helper) if helper.current is None else None)
        used[helper] = edition = edition or helper.must_serve()
        return edition

    # The version keeps this as long as it lives: it must hold neither the job nor other ids' versions.
    given, wants = job.namespace, job.draft.wants

    def resolved() -> dict[str, Any]:
        return namespace.resolve(namespace.lookup(given, wants), Live.must_serve, publishing.owner)[0]

    values, helpers = namespace.resolve(borrowed, edition_of, publishing.owner)
    publishing.refuse_cycles(live, helpers)
    request = Request(
        source=job.source,
        draft=job.draft,
        kernel_id=kernel_id,
        number=loader._number(kernel_id),
        borrowed=values,
        refresh=resolved,
        previous=None if current is None or current.language is not job.language else current.built,
        keeps=None if current is None else current.number,
        check=job.check,
        ahead=job.ahead,
        keep_state=job.keep_state,
        jit=loader.jit,
        hints=ChainMap(cast("Any", job.namespace or {}), cast("Any", job.hints)),
        kept=loader._kept,
    )
    started = time.perf_counter()
    try:
        with underway.doing(_work(live, job)):
            built = job.language.build(request)
    except KernelSourceError as error:
        if error.kernel_id == kernel_id:
            error.keeps = request.keeps
        raise
    names = tuple(built.entries)
    undo_to = job.undo_to if job.restores is not None else None if current is None else current.number
    options = job.source.options
    version = Version(kernel_id, request.number, job.text, options, names, time.time(), restores=job.restores)
    return Edition(
        version, job.source, job.draft, built, job.language, job.namespace, borrowed,
        {h: used.get(h) or h.must_serve() for h in helpers}, time.perf_counter() - started, undo_to, job.derived,
    )  # fmt: skip


def _work(live: Live, job: Job) -> underway.Work:
    loader = live.loader()
    return underway.Work(live.kernel_id, loader._number(live.kernel_id), job.source, events.teller(loader))


def rebuild(dependent: Live, planned: Mapping[Live, Edition]) -> Edition:
    """Build a dependent's own text again over the new version of its helper."""
    old = dependent.current
    assert old is not None
    job = Job(
        old.source.text, dependent.kernel_id, None, old.namespace, old.source.filename, old.source.first_line,
        True, True, dict(old.source.options), derived=old.derived,
    )  # fmt: skip
    job.language, job.draft, job.source = old.language, old.draft, old.source
    return build(dependent, job, planned, old.helpers)


def _event(kind: str, edition: Edition) -> ReloadEvent:
    built = edition.built
    return ReloadEvent(
        kind, edition.version.kernel_id, edition.number, edition.source.language, tuple(built.entries),
        built.anew if kind == "loaded" else (), built.notes, edition.build_seconds,
        from_cache=built.from_cache, rebuilt_because=built.rebuilt_because,
    )  # fmt: skip


def _warn_of_origin(old: Edition | None, new: Edition) -> None:
    if old is None or not new.derived or old.source.filename == new.source.filename:
        return
    origins = [e.source.filename or "a text without a file name" for e in (old, new)]
    warnings.warn(
        f"{new.version.kernel_id!r} from {origins[0]} was replaced by a kernel of that name from {origins[1]}; "
        "pass kernel_id= to have both",
        RekernelWarning,
        stacklevel=namespace.frames_of_ours(),
    )


@contextmanager
def locked(live: Live, language: Language | None) -> Iterator[Live]:
    """Hold what must not change during a build: the languages' own locks first, then all ids concerned, sorted."""
    while True:
        concerned = sorted([live, *publishing.dependents(live)], key=lambda one: (one.kernel_id, one.token))
        used = _languages(concerned) | ({language} if language is not None else set())
        exclusive = [lang.exclusive for lang in sorted(used, key=lambda lang: lang.name) if lang.exclusive is not None]
        with holding([*exclusive, *[one.lock for one in concerned]]):
            again = [live, *publishing.dependents(live)]
            if {*again} <= {*concerned} and _languages(again) <= used:
                yield live
                return


def _languages(lives: Iterable[Live]) -> set[Language]:
    return {one.current.language for one in lives if one.current is not None}
