"""Going back: an earlier version's content, as a new version."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rekernel import building, events, publishing
from rekernel.errors import KernelNotFoundError, KernelRemovedError
from rekernel.jobs import Job
from rekernel.languages import find
from rekernel.live import Edition, Live, Past
from rekernel.values import ReloadEvent

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader


def roll_back(loader: KernelLoader, live: Live, version: int | None) -> None:
    """Bring back an earlier version's content, as a new version; see ``KernelLoader.rollback``."""
    try:
        planned = _go_back(live, version)
    except (KernelNotFoundError, KernelRemovedError):
        raise
    except Exception as error:
        publishing.failed(loader, live.kernel_id, error)
        raise
    for one, edition in planned.items():
        kind = "rolled back" if one is live else "loaded"
        kernels = tuple(edition.built.entries)
        events.tell(one.loader(), ReloadEvent(kind, one.kernel_id, edition.number, edition.source.language, kernels))


def _go_back(live: Live, version: int | None) -> dict[Live, Edition]:
    """Swap the content of `version`, or of the one before, in; return what is new, or nothing if it is live."""
    while True:
        current = live.current
        target = None if current is None else _target(live, current, version)
        past = next((p for p in live.history if p.version.number == target), None)
        language = find(past.source.language) if past is not None else None
        with building.locked(live, language):
            if live.current is not current:
                continue
            if current is None:
                raise live.gone()
            assert target is not None
            if target == current.number or current.version.restores == target:
                return {}
            kept = _kept(live, target)
            if kept is not None:
                kept = replace(kept, built=kept.language.renewed(kept.built))
                made = publishing.again(live, kept, undo_to=kept.undo_to, restores=target)
            else:
                assert past is not None
                made = building.build(live, _job_of(live, past), {})
            planned = building.with_dependents(live, made)
            if publishing.publish(planned):
                return planned
            publishing.discard(planned)


def _target(live: Live, current: Edition, version: int | None) -> int:
    """Return the number to go back to; a KernelNotFoundError lists those that there are."""
    target = version if version is not None else current.undo_to
    if target is None:
        raise KernelNotFoundError(f"{live.kernel_id!r} has no version before v{current.number} to go back to")
    known = [p.version.number for p in live.history]
    if target not in known and target not in live.kept:
        listed = ", ".join(f"v{number}" for number in known)
        raise KernelNotFoundError(f"{live.kernel_id!r} has no version {target} to go back to; it has {listed}")
    return target


def _kept(live: Live, target: int) -> Edition | None:
    """Return a version with the content of `target` whose callables are still held and whose helpers are the same."""
    for edition in live.kept.values():
        if target in (edition.number, edition.version.restores) and edition is not live.current:
            return edition if all(used is helper.current for helper, used in edition.helpers.items()) else None
    return None


def _job_of(live: Live, past: Past) -> Job:
    source, number = past.source, live.loader()._number(live.kernel_id)
    namespace = None if live.current is None else live.current.namespace
    job = Job(
        source.text, live.kernel_id, source.language, namespace, source.filename, source.first_line,
        True, True, dict(source.options), restores=past.version.number, undo_to=past.undo_to, derived=past.derived,
    )  # fmt: skip
    job.language, job.source = find(source.language), source
    job.draft = job.language.read(source, kernel_id=live.kernel_id, number=number)
    return job
