"""What the user holds: modules and handles that follow an id, over one reference that is swapped.

Each id has one native `Cell`: a table of callables and the version they belong to, replaced together and for
several ids at once. A handle reads its cell at every call; a module reads it at every attribute. A thread inside
``loader.hold()`` sees the versions of the moment it entered, however often others swap meanwhile.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rekernel import _native
from rekernel.errors import KernelRemovedError, parked
from rekernel.holds import holds
from rekernel.languages import Built, Draft, Language
from rekernel.locks import rlock
from rekernel.source import Source
from rekernel.spelling import meant
from rekernel.values import Version

if TYPE_CHECKING:
    from rekernel.handle import KernelHandle
    from rekernel.namespace import Borrowed


@dataclass(eq=False)
class Edition:
    """One successful load of one id, with what it built. The public, frozen side of it is `version`."""

    version: Version
    source: Source
    draft: Draft
    built: Built
    language: Language
    namespace: Mapping[str, Any] | None
    borrowed: Borrowed
    """What the namespace had for the names that the text wants, as it was given (before resolving)."""
    helpers: Mapping[Live, Edition]
    """The helpers that the text uses, with the versions it was built over."""
    build_seconds: float
    undo_to: int | None
    """The number that ``rollback()`` goes to from here."""
    derived: bool
    """Whether the id was derived from the text."""
    thread: threading.Thread = field(default_factory=threading.current_thread)
    """The thread that has built it: a language that is bound to a thread is built there again."""

    @property
    def number(self) -> int:
        """The version's number."""
        return self.version.number


@dataclass(frozen=True)
class Past:
    """What is remembered of a version whose callables may be gone: enough to build it again.

    Not its namespace, which may hold arrays: that belongs to the id, and the live version has it.
    """

    version: Version
    source: Source
    undo_to: int | None
    derived: bool

    @classmethod
    def of(cls, edition: Edition) -> Past:
        """Take from a version what is to be remembered."""
        return cls(edition.version, edition.source, edition.undo_to, edition.derived)


class Live:
    """The record of one id: its cell, its handles, its module, its versions. Outlives unloading while held."""

    def __init__(self, kernel_id: str, loader: Any) -> None:
        self.kernel_id = kernel_id
        # Held: a kernel keeps its loader, so that it can travel and go back after everybody else let go of it.
        self.loader: Callable[[], Any] = lambda: loader
        self.users: weakref.WeakSet[Live] = weakref.WeakSet()
        self.token: str = loader.token
        self.lock = rlock()
        self.cell = _native.Cell()
        self.cell.hook = _Hook(self)
        self.order: dict[str, int] = {}
        self.handles: dict[str, KernelHandle] = {}
        self.pins: weakref.WeakSet[KernelHandle] = weakref.WeakSet()
        self.kept: dict[int, Edition] = {}
        self.history: list[Past] = []
        self.error = None
        self.removed: str | None = None
        self.waiting = False
        self.last_number = 0
        self.module = LiveModule(kernel_id)
        _slot.__set__(self.module, self)

    @property
    def current(self) -> Edition | None:
        """The version that serves everybody, whatever the asking thread holds."""
        return self.cell.version  # type: ignore[no-any-return]

    @property
    def error(self) -> Exception | None:
        """The last failed load, until a load succeeds; kept without the frames that it was raised through."""
        return None if self._error is None else self._error()

    @error.setter
    def error(self, error: Exception | None) -> None:
        self._error = None if error is None else parked(error)

    def seen(self) -> Edition | None:
        """The version that the asking thread sees: the current one, or the one it holds."""
        if self.cell.override:
            hold = holds.mine(self.loader())
            if hold is not None and self in hold.snapshot:
                return hold.snapshot[self]
        return self.current

    def table(self, built: Built) -> tuple[Any, ...]:
        """Return the callables in the order of this id's handles; None where this version lacks one."""
        for name in built.entries:
            self.order.setdefault(name, len(self.order))
        return tuple(built.entries.get(name) for name in self.order)

    def handle(self, name: str) -> KernelHandle:
        """Return the one handle for a kernel name of this id."""
        found = self.handles.get(name)
        if found is None:
            from rekernel.handle import KernelHandle

            found = self.handles.setdefault(name, KernelHandle.following(self, name))
        return found

    def catch_up(self) -> None:
        """Load what a changed file has left for this moment."""
        if self.waiting:
            loader = self.loader()
            loader._waiting.catch_up(loader)

    def must_see(self) -> Edition:
        """Return the version seen, or raise `KernelRemovedError`."""
        return self._renewed(self.seen())

    def must_serve(self) -> Edition:
        """Return the version that serves everybody, whatever the asking thread holds, or raise."""
        return self._renewed(self.current)

    def _renewed(self, edition: Edition | None) -> Edition:
        if edition is None:
            raise self.gone()
        built = edition.language.renewed(edition.built)
        if built is not edition.built:
            edition.built = built
        return edition

    def gone(self, name: str | None = None) -> KernelRemovedError:
        """Make the error of a handle or module that has nothing behind it."""
        edition = self.seen()
        what = self.kernel_id if name is None else f"{self.kernel_id}.{name}"
        if edition is not None:
            how = f"version {edition.number} of {self.kernel_id!r} has no kernel {name!r}"
            number: int | None = edition.number
        else:
            how, number = self.removed or "it was unloaded", self.last_number or None
        last = f" (it was v{number})" if edition is None and number else ""
        return KernelRemovedError(
            f"{what} is gone: {how}{last}; load {self.kernel_id!r} again and this same object works again",
            kernel_id=self.kernel_id, version=number, how=how,
        )  # fmt: skip


class _Hook:
    """Answers a handle whose cell cannot be used directly: a thread holds, or the kernel is gone."""

    def __init__(self, live: Live) -> None:
        self.live = weakref.ref(live)

    def __call__(self, handle: Any) -> Any:
        live = self.live()
        if live is None:  # pragma: no cover - a handle keeps its Live alive
            raise RuntimeError("the handle has lost its id")
        live.catch_up()
        edition = live.seen()
        target = None if edition is None else edition.built.entries.get(handle._name)
        if target is None:
            raise live.gone(handle._name)
        return target


_SHOWN = ("_repr_", "_ipython_")  # what notebooks ask for, also of a module that is gone


class LiveModule(ModuleType):
    """What ``loader[id]`` returns: always the same object, every read goes to the id's current version.

    It has the user's names and dunders only. What rekernel knows of it: ``rekernel.info(module)``.
    """

    __slots__ = ("_live",)

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__name__"):
            return object.__getattribute__(self, name)
        live: Live = _slot.__get__(self)
        if name == "__dict__":
            return contents(live)
        if name.startswith("__") and name.endswith("__"):
            return _dunder(self, live, name)
        if name.startswith(_SHOWN) and live.seen() is None:
            return object.__getattribute__(self, name)
        live.catch_up()
        edition = live.must_see()
        if name in edition.built.entries:
            return live.handle(name)
        try:
            return edition.built.names[name]
        except KeyError:
            pass
        if name.startswith(_SHOWN):
            return object.__getattribute__(self, name)
        raise AttributeError(_missing(live, edition, name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        live = _slot.__get__(self)
        raise AttributeError(
            f"module {live.kernel_id!r} is read-only: compiled kernels would not see a new {name!r}; "
            "load the text with the new value, or pass it as an argument or a field"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"module {_slot.__get__(self).kernel_id!r} is read-only; to remove it: loader.unload(id)")

    def __dir__(self) -> list[str]:
        return sorted(contents(_slot.__get__(self)))

    def __repr__(self) -> str:
        from rekernel.show import module_line

        return module_line(_slot.__get__(self))

    def _repr_html_(self) -> str:
        from rekernel.show import module_html

        return module_html(_slot.__get__(self))

    def __copy__(self) -> LiveModule:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LiveModule:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from rekernel.pickling import reduce_module

        return reduce_module(_slot.__get__(self))


def _dunder(module: LiveModule, live: Live, name: str) -> Any:
    edition = live.seen()
    if edition is not None:
        if name == "__doc__":
            return edition.built.doc
        if name == "__file__" and edition.source.filename is not None:
            return edition.source.filename
    return object.__getattribute__(module, name)


def _missing(live: Live, edition: Edition, name: str) -> str:
    said = f"module {live.kernel_id!r} (v{edition.number}) has no {name!r}"
    if name in edition.built.skipped:
        return f"{said}: {edition.built.skipped[name]}"
    kernels = ", ".join(edition.built.entries) or "none"
    return f"{said}; its kernels: {kernels}{meant(name, [*edition.built.entries, *edition.built.names])}"


def contents(live: Live) -> dict[str, Any]:
    """Return a module's names with their values, kernels as handles."""
    edition = live.must_see()
    found: dict[str, Any] = {"__name__": live.kernel_id}
    found.update(edition.built.names)
    found.update({name: live.handle(name) for name in edition.built.entries})
    return found


# The slot is reached through its descriptor alone, so that no name of ours shows among the user's names.
_slot: Any = vars(LiveModule)["_live"]
delattr(LiveModule, "_live")


def live_of(module: Any) -> Live | None:
    """Return the record behind a module that a loader gave out, or None for anything else."""
    return _slot.__get__(module) if isinstance(module, LiveModule) else None
