"""From text to versions: detect, read, resolve, build aside, check, publish. One load on one screen in `run`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from rekernel import events, namespace, publishing
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
        with locked(loader, kernel_id, job.language) as live:
            current = live.current
            if not job.still_wanted() or unchanged(live, job):
                return live
            edition, kind = reuse(loader, live, job), "restored"
            if edition is None:
                edition, kind = build(loader, live, job, {}), "loaded"
            planned = with_dependents(loader, live, edition)
            edition.build_seconds = time.perf_counter() - started
            publishing.publish(loader, planned)
    except (Exception, SystemExit) as error:
        failed(loader, kernel_id, error)
        raise
    _warn_of_origin(current, edition)
    for one, made in planned.items():
        events.tell(loader, _event(kind if one is live else "loaded", made))
    return live


def with_dependents(loader: KernelLoader, live: Live, edition: Edition) -> dict[Live, Edition]:
    """Build all that depends on an id over its new version; together they will be swapped in, or none."""
    planned = {live: edition}
    for dependent in publishing.dependents(loader, live):
        planned[dependent] = rebuild(loader, dependent, planned)
    return planned


def unchanged(live: Live, job: Job) -> bool:
    """Whether another thread has loaded just this while we waited for the lock."""
    edition = live.current
    return (
        edition is not None
        and job.keep_state
        and isinstance(job.check, bool)
        and edition.source == job.source
        and namespace.same(edition.borrowed, job.namespace, job.draft.wants)
        and edition.language.renewed(edition.built) is edition.built
        and edition.language.same(edition.built)
    )


def reuse(loader: KernelLoader, live: Live, job: Job) -> Edition | None:
    """Return a kept version that is what is asked for (A to B to A), as a new version, or None."""
    current = live.current
    if current is None or not job.keep_state or not isinstance(job.check, bool):
        return None
    for kept in live.kept.values():
        if kept is current or kept.source != job.source or any(e is not h.current for h, e in kept.helpers.items()):
            continue
        if not namespace.same(kept.borrowed, job.namespace, job.draft.wants):
            continue
        if not kept.language.reusable(kept.built, current.built):
            continue
        kept.language.recheck(kept.built, current.built, job.check, current.number)
        return publishing.again(loader, live, kept, undo_to=current.number, restores=kept.number)
    return None


def build(loader: KernelLoader, live: Live, job: Job, planned: Mapping[Live, Edition]) -> Edition:
    """Build one id aside. `planned` are the versions that helpers will have after the swap."""
    current, kernel_id = live.current, live.kernel_id
    borrowed = namespace.lookup(job.namespace, job.draft.wants)
    used: dict[Live, Edition] = {}

    def edition_of(helper: Live) -> Edition:
        edition = planned.get(helper) or helper.must_see()
        used[helper] = edition
        return edition

    # The version keeps this as long as it lives: it must hold neither the job nor other ids' versions.
    given, wants = job.namespace, job.draft.wants

    def resolved() -> dict[str, Any]:
        return namespace.resolve(namespace.lookup(given, wants), Live.must_see, publishing.owner)[0]

    values, helpers = namespace.resolve(borrowed, edition_of, publishing.owner)
    publishing.refuse_cycles(loader, live, helpers)
    request = Request(
        source=job.source,
        draft=job.draft,
        kernel_id=kernel_id,
        number=loader._number(kernel_id),
        borrowed=values,
        refresh=resolved,
        previous=None if current is None else current.built,
        keeps=None if current is None else current.number,
        check=job.check,
        keep_state=job.keep_state,
        jit=loader.jit,
        hints=job.hints,
    )
    started = time.perf_counter()
    built = job.language.build(request)
    names = tuple(built.entries)
    undo_to = job.undo_to if job.restores is not None else None if current is None else current.number
    options = job.source.options
    version = Version(kernel_id, request.number, job.text, options, names, time.time(), restores=job.restores)
    return Edition(
        version, job.source, job.draft, built, job.language, job.namespace, borrowed,
        {h: used.get(h) or h.must_see() for h in helpers}, time.perf_counter() - started, undo_to, job.derived,
    )  # fmt: skip


def rebuild(loader: KernelLoader, dependent: Live, planned: Mapping[Live, Edition]) -> Edition:
    """Build a dependent's own text again over the new version of its helper."""
    old = dependent.current
    assert old is not None
    job = Job(
        old.source.text, dependent.kernel_id, None, old.namespace, old.source.filename, old.source.first_line,
        True, True, dict(old.source.options), derived=old.derived,
    )  # fmt: skip
    job.language, job.draft, job.source = old.language, old.draft, old.source
    return build(loader, dependent, job, planned)


def failed(loader: KernelLoader, kernel_id: str, error: BaseException) -> None:
    """Park an error at its id and tell of it. Nothing else has changed."""
    loader._counts["failures"] += 1
    live = loader._lives.get(kernel_id)
    current = live.current if live is not None else None
    if isinstance(error, KernelSourceError) and error.kernel_id == kernel_id:
        error.keeps = None if current is None else current.number
    if live is not None and isinstance(error, Exception):
        live.error = error
    if isinstance(error, Exception):
        number = None if current is None else current.number
        events.tell(loader, ReloadEvent("failed", kernel_id, number, error=error))


def _event(kind: str, edition: Edition) -> ReloadEvent:
    built = edition.built
    return ReloadEvent(
        kind, edition.version.kernel_id, edition.number, edition.source.language, tuple(built.entries),
        built.anew if kind == "loaded" else (), built.notes, edition.build_seconds,
    )  # fmt: skip


def _warn_of_origin(old: Edition | None, new: Edition) -> None:
    if old is None or not new.derived or old.source.filename == new.source.filename:
        return
    origins = [e.source.filename or "a text without a file name" for e in (old, new)]
    warnings.warn(
        f"{new.version.kernel_id!r} from {origins[0]} was replaced by a kernel of that name from {origins[1]}; "
        "pass kernel_id= to have both",
        RekernelWarning,
        stacklevel=4,
    )


@contextmanager
def locked(loader: KernelLoader, kernel_id: str, language: Language | None) -> Iterator[Live]:
    """Hold what must not change during a build: the language's own lock first, then all ids concerned, sorted."""
    with getattr(language, "exclusive", None) or nullcontext():
        while True:
            live = record(loader, kernel_id)
            concerned = sorted([live, *publishing.dependents(loader, live)], key=lambda one: one.kernel_id)
            with holding([one.lock for one in concerned]):
                again = [live, *publishing.dependents(loader, live)]
                if record(loader, kernel_id) is live and {*again} <= {*concerned}:
                    yield live
                    return
