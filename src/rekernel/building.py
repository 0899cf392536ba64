"""From text to versions: detect, read, resolve, build aside, check, publish. One load on one screen in `run`."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rekernel import events, namespace, publishing
from rekernel.errors import KernelSourceError, RekernelWarning
from rekernel.languages import Draft, Language, Request, detect, find, languages
from rekernel.live import Edition, Live
from rekernel.publishing import record
from rekernel.source import Source
from rekernel.values import ReloadEvent, Version

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader


@dataclass
class Job:
    """What one call of ``load`` asks for, filled in on the way."""

    text: str
    kernel_id: str | None
    language_name: str | None
    namespace: Mapping[str, Any] | None
    filename: str | None
    first_line: int
    check: Any
    keep_state: bool
    options: dict[str, Any]
    hints: Mapping[str, Any] = field(default_factory=dict)
    restores: int | None = None
    undo_to: int | None = None
    language: Language = field(init=False)
    draft: Draft = field(init=False)
    source: Source = field(init=False)
    derived: bool = False
    still_wanted: Callable[[], bool] = field(default=lambda: True)


def refuse_source(source: Any) -> None:
    """Raise for a source that is not text."""
    if isinstance(source, Path):
        raise TypeError(f"load takes the text itself; for a file use load_file({str(source)!r})")
    if not isinstance(source, str):
        raise TypeError(f"load takes text, not {type(source).__name__}; for a function, pass its source text")


def read_text(file: Path) -> str:
    """Read a file as UTF-8 (a byte-order mark is allowed); what is not text is a ValueError with its place."""
    data = file.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{file}:{line}: not UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8") from None


def prepare(loader: KernelLoader, job: Job) -> None:
    """Find language, draft and id, all pure; wrong calls of ``load`` raise here."""
    if job.kernel_id is not None and (not isinstance(job.kernel_id, str) or not job.kernel_id.strip()):
        raise TypeError(f"kernel_id= takes a name or None, not {job.kernel_id!r}")
    if job.namespace is not None and not isinstance(job.namespace, Mapping):
        raise TypeError(f"namespace= takes a mapping such as globals(), not {type(job.namespace).__name__}")
    _refuse_paths(job)
    live = loader._lives.get(job.kernel_id or "")
    current = live.current if live is not None else None
    if job.language_name is not None:
        job.language = find(job.language_name)
    else:
        job.language = detect(job.text, job.filename, None if current is None else current.source.language)
    if unknown := [name for name in job.options if name not in job.language.options]:
        known = ", ".join([*job.language.options, *_COMMON])
        raise TypeError(f"load() got an unknown option {unknown[0]!r}; options for {job.language.name}: {known}")
    _read(loader, job)
    assert job.kernel_id is not None
    live = loader._lives.get(job.kernel_id)
    current = live.current if live is not None else None
    if current is not None and current.source.language == job.language.name:
        # Language, namespace and options belong to the id: what is not given is as it was.
        job.options = {**current.source.options, **job.options}
        job.source = replace(job.source, options=MappingProxyType(job.options))
        if job.namespace is None:
            job.namespace = current.namespace


_COMMON = ("language", "namespace", "filename", "first_line", "check", "keep_state", "background")


def _refuse_paths(job: Job) -> None:
    text = job.text
    if job.filename is None and "\n" not in text and 0 < len(text) < 4096:
        try:
            if Path(text.strip()).is_file():
                raise ValueError(f"{text!r} is a file, not the text of a kernel; use load_file({text!r})")
        except OSError:
            return


def _source(job: Job) -> Source:
    options = MappingProxyType(dict(job.options))
    return Source(job.text, job.language.name, options, job.filename, job.first_line)


def _read(loader: KernelLoader, job: Job) -> None:
    """Read the draft and derive the id where none was given."""
    job.source = _source(job)
    known = job.kernel_id
    try:
        number = loader._number(known) if known is not None else 1
        job.draft = job.language.read(job.source, kernel_id=known or "new text", number=number)
    except KernelSourceError as error:
        if known is None:
            names = getattr(job.language, "titles_of_broken", lambda text: ())(job.text)
            known = _derive(loader, names, job.language.name) if names else None
        _name_failure(loader, known, error)
        raise error.with_traceback(None) from error.__cause__
    if known is None:
        names = job.draft.kernels or job.draft.titles
        if not names:
            raise ValueError("the text has no kernel to derive an id from; pass kernel_id=")
        job.kernel_id, job.derived = _derive(loader, names, job.language.name), True
    else:
        live = loader._lives.get(known)
        job.derived = live is not None and live.current is not None and live.current.derived


def _name_failure(loader: KernelLoader, kernel_id: str | None, error: KernelSourceError) -> None:
    """Let an error that came before the id was known name it, and park it there."""
    if kernel_id is None:
        return
    error.kernel_id = kernel_id
    error.version = loader._number(kernel_id)
    failed(loader, kernel_id, error)


def _derive(loader: KernelLoader, names: tuple[str, ...], language: str) -> str:
    """Derive the id: that of a derived id which holds one of these kernels, else the first name, made unique."""
    with loader._lock:
        for name in names:
            for kernel_id, live in loader._lives.items():
                edition = live.current
                if edition is None or not edition.derived or edition.source.language != language:
                    continue
                if name in edition.built.entries or (kernel_id == name and not edition.built.entries):
                    return kernel_id
        candidate, count = names[0], 1
        while candidate in loader._lives:
            count += 1
            candidate = f"{names[0]}_{count}"
        return candidate


def run(loader: KernelLoader, job: Job) -> Live:
    """Make a new version of an id and swap it in, with everything that depends on it, or change nothing."""
    started = time.perf_counter()
    kernel_id = job.kernel_id
    assert kernel_id is not None
    with locked(loader, kernel_id, job.language) as live:
        current = live.current
        if not job.still_wanted() or (job.restores is None and unchanged(live, job)):
            return live
        try:
            edition, kind = reuse(loader, live, job), "restored"
            if edition is None:
                edition, kind = build(loader, live, job, {}), "loaded"
            planned = {live: edition}
            for dependent in publishing.dependents(loader, live):
                planned[dependent] = rebuild(loader, dependent, planned)
        except (Exception, SystemExit) as error:
            trouble: BaseException = error
        else:
            edition.build_seconds = time.perf_counter() - started
            publishing.publish(loader, planned)
            trouble = None  # type: ignore[assignment]
    if trouble is not None:
        failed(loader, kernel_id, trouble)
        raise trouble
    _warn_of_origin(current, edition)
    for one, made in planned.items():
        events.tell(loader, _event(kind if one is live else "loaded", made))
    return live


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

    def resolved() -> dict[str, Any]:
        used.clear()
        taken = namespace.lookup(job.namespace, job.draft.wants)
        return namespace.resolve(taken, edition_of, publishing.owner)[0]

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
            with ExitStack() as stack:
                for one in concerned:
                    stack.enter_context(one.lock)
                again = [live, *publishing.dependents(loader, live)]
                if record(loader, kernel_id) is live and {*again} <= {*concerned}:
                    yield live
                    return


class Background:
    """Builds that run on threads of their own: last started wins."""

    def __init__(self) -> None:
        self.running: dict[str, threading.Thread] = {}
        self.errors: dict[str, BaseException] = {}
        self.tickets: dict[str, int] = {}

    def start(self, loader: KernelLoader, job: Job) -> Any:
        """Start a build and return the module at once; the old version serves until the new one is ready."""
        if not job.language.threads:
            raise ValueError(
                f"background=True does nothing good for {job.language.name}: it holds the GIL while it compiles, "
                "so the program would stand still all the same; load without it"
            )
        kernel_id = job.kernel_id
        assert kernel_id is not None
        ticket = self.tickets[kernel_id] = self.tickets.get(kernel_id, 0) + 1
        job.still_wanted = lambda: self.tickets[kernel_id] == ticket
        live = record(loader, kernel_id)
        if live.current is None:
            live.removed = "it is still being built in the background (loader.wait() waits for it)"

        def work() -> None:
            try:
                run(loader, job)
            except BaseException as error:
                if job.still_wanted():
                    self.errors[kernel_id] = error

        self.errors.pop(kernel_id, None)
        thread = threading.Thread(target=work, name=f"rekernel build {kernel_id}", daemon=True)
        self.running[kernel_id] = thread
        thread.start()
        return live.module

    def overtake(self, kernel_id: str) -> None:
        """A load that is not in the background was started later: older background results are dropped."""
        if kernel_id in self.tickets:
            self.tickets[kernel_id] += 1

    def wait(self, kernel_id: str | None, timeout: float | None) -> None:
        """Wait for builds; see ``KernelLoader.wait``."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for name in [kernel_id] if kernel_id is not None else list(self.running):
            thread = self.running.get(name)
            if thread is None:
                continue
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise TimeoutError(f"{name} is still being built after {timeout} s")
            if self.running.get(name) is thread:
                self.running.pop(name, None)
            error = self.errors.pop(name, None)
            if error is not None:
                raise error


def parse(source: str, *, language: str | None = None) -> tuple[Any, ...]:
    """Return the kernels of a text as values; nothing is executed or built.

    >>> import rekernel
    >>> rekernel.parse("@ti.kernel\\ndef f(x: ti.f32) -> ti.f32:\\n    return x")[0].name
    'f'
    """
    refuse_source(source)
    chosen = find(language) if language is not None else detect(source)
    assert languages()
    text = Source(source, chosen.name)
    return chosen.read(text, kernel_id="new text", number=1).values()
