"""Making versions visible, going back, taking ids away: everything that changes what people see."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rekernel import events
from rekernel.errors import FrozenError, KernelSourceError, RekernelWarning
from rekernel.holds import holds
from rekernel.languages import Built, languages
from rekernel.live import Edition, Live, Past
from rekernel.locks import rlock, unbroken
from rekernel.show import calls_of
from rekernel.values import ReloadEvent

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


def dependents(live: Live) -> list[Live]:
    """Return the ids that use this one, directly or through others, each after what it uses."""
    uses: dict[Live, set[Live]] = {}
    reached = [live]
    with _swapping:
        for one in reached:  # grows on the way
            for user in list(one.users):
                if user.current is not None and one in user.current.helpers:
                    if user not in uses:
                        reached.append(user)
                    uses.setdefault(user, set()).add(one)
    ordered: list[Live] = []
    left = set(uses)
    while left:
        ready = sorted((one for one in left if not uses[one] & left), key=lambda one: (one.kernel_id, one.token))
        ordered += ready
        left -= set(ready)
        if not ready:  # pragma: no cover - cycles are refused when they would come about
            raise AssertionError("cyclic dependencies")
    return ordered


def refuse_cycles(live: Live, helpers: list[Live]) -> None:
    """Raise when a text uses an id that depends on it."""
    above = {live, *dependents(live)}
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


def publish(planned: Mapping[Live, Edition]) -> bool:
    """Swap in several ids at once, or tell that they have to be built again over what others loaded meanwhile.

    Nothing here can fail half way: everything was built and checked before.
    """
    with unbroken(), _swapping:
        if _outdated(planned):
            return False
        _publish(planned)
        return True


_swapping = rlock()
"""Held for moments: while ids are swapped, and while it is read who uses whom. No build happens inside."""


def _outdated(planned: Mapping[Live, Edition]) -> bool:
    """Whether a helper has another version than the one built over, or an id came to depend on one of these."""
    for edition in planned.values():
        for helper, used in edition.helpers.items():
            if helper.current not in (None, used) and planned.get(helper) is not used:
                return True
    return any(one not in planned for live in planned for one in dependents(live))


def _publish(planned: Mapping[Live, Edition]) -> None:
    before = {live: live.current for live in planned}
    for live, edition in planned.items():
        live.loader()._numbers[live.kernel_id] = live.last_number = edition.number
        edition.language.attach(edition.built, live, _failure(live, edition), _renewal(live))
        for helper in edition.helpers:
            helper.users.add(live)
    holds.swap([(live, live.table(edition.built), edition) for live, edition in planned.items()])
    for live, edition in planned.items():
        _remember(live.loader(), live, edition, before[live])
    for live, edition in planned.items():
        old = before[live]

        def commit(edition: Edition = edition, old: Edition | None = old) -> None:
            same = old is not None and old.language is edition.language
            edition.language.commit(edition.built, old.built if old is not None and same else None)

        holds.when_free(live, commit)  # objects change their class only when nobody holds the old one


def discard(planned: Mapping[Live, Edition]) -> None:
    """Give back what was built and is not to be swapped in."""
    for live, edition in planned.items():
        if all(edition.built is not kept.built for kept in live.kept.values()):
            edition.language.retire(edition.built)


def failed(loader: KernelLoader, kernel_id: str, error: BaseException) -> None:
    """Park an error at its id and tell of it. Nothing else has changed."""
    loader._counts["failures"] += 1
    live = loader._lives.get(kernel_id)
    current = live.current if live is not None else None
    if isinstance(error, KernelSourceError | FrozenError) and error.kernel_id == kernel_id:
        error.keeps = None if current is None else current.number
    if live is not None and isinstance(error, Exception):
        live.error = error
    if isinstance(error, Exception):
        number = None if current is None else current.number
        language = getattr(error, "language", None if current is None else current.source.language)
        events.tell(loader, ReloadEvent("failed", kernel_id, number, language, error=error))


def _remember(loader: KernelLoader, live: Live, edition: Edition, old: Edition | None) -> None:
    with loader._lock:
        if loader._retired.pop(live.kernel_id, None) is not None:
            loader._counts["calls"] -= calls_of(live)  # counted there when it was unloaded
        loader._lives[live.kernel_id] = live
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
        _forget_text(loader, live, old)
    if edition.derived:
        loader._texts[edition.source.text] = live.kernel_id
    loader._counts["reused" if edition.version.restores is not None and old is not None else "loads"] += 1


def _forget_text(loader: KernelLoader, live: Live, edition: Edition) -> None:
    if loader._texts.get(edition.source.text) == live.kernel_id:
        del loader._texts[edition.source.text]


def again(live: Live, kept: Edition, *, undo_to: int | None, restores: int) -> Edition:
    """Return a new version with the content of one whose callables are still held."""
    number = live.loader()._number(live.kernel_id)
    version = replace(kept.version, number=number, loaded_at=time.time(), restores=restores)
    return replace(kept, version=version, undo_to=undo_to)


def unload(loader: KernelLoader, live: Live, how: str) -> None:
    """Take an id away. Its module and handles stay, raise, and work again when the id is loaded again."""
    current = live.current
    with live.lock, unbroken(), _swapping, loader._lock:
        if loader._lives.pop(live.kernel_id, None) is None:
            return
        current = live.current
        loader._retired[live.kernel_id] = live
        live.removed = how
        live.error = None
        holds.swap([(live, None, None)])
        loader._counts["calls"] += calls_of(live)
        kept, live.kept = live.kept, {}
        live.history = []
        if current is not None:
            _forget_text(loader, live, current)
        if live.kernel_id in loader._recent:
            loader._recent.remove(live.kernel_id)
    for built, edition in {id(e.built): (e.built, e) for e in kept.values()}.values():
        edition.language.retire(built)
    number = None if current is None else current.number
    events.tell(loader, ReloadEvent("unloaded", live.kernel_id, number))


def _renewal(live: Live) -> Any:
    """Return what a language calls when it had to build a version again by itself (after another ``ti.init``)."""

    def renewed(built: Built) -> None:
        edition = live.current
        if edition is None or edition.built.private.successor is not built:
            return
        edition.built = built
        holds.swap([(live, live.table(built), edition)])

    return renewed


def _failure(live: Live, edition: Edition) -> Any:
    """Return what a language calls when a call does not compile, or None: ``auto_rollback=True``."""
    loader = live.loader()
    if not loader.auto_rollback:
        return None

    def failed(
        name: str, error: KernelSourceError, arguments: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})
    ) -> Any:
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
        return target(*arguments, **named)

    return failed
