"""The magics: ``%%kernel`` loads a cell, ``%kernels`` lists, ``%kernel_rollback`` goes back."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from rekernel.default import kernels
from rekernel.errors import RekernelError, RekernelWarning
from rekernel.infotext import took
from rekernel.languages import languages
from rekernel.live import Edition, Live, live_of
from rekernel.notebook import arguments, completion, tables
from rekernel.notebook.background import Ends, display
from rekernel.notebook.cells import Cells, names_of
from rekernel.notebook.helptext import help_of_kernel
from rekernel.notebook.names import Names, Outside
from rekernel.notebook.status import Status
from rekernel.values import ReloadEvent

__all__ = ["RekernelMagics", "start", "stop"]

_MOST = 8  # signatures below a cell
_PLAIN = ("text changed", "not seen before")  # reasons to build that go without saying


@magics_class
class RekernelMagics(Magics):
    """Kernels in the cells of a notebook, all in the process's default loader, ``rekernel.kernels``."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.host = shell
        self.cells = Cells()
        self.names = Names(shell.user_ns)
        self.ends = Ends(in_place=hasattr(shell, "kernel"))

    def begin(self, info: Any) -> None:
        """Called by IPython before every cell."""
        self.ends.tell()
        self.cells.begin(info)

    @cell_magic
    def kernel(self, line: str, cell: str) -> None:
        """Load the cell."""
        asked, language = self._read(line, cell)
        kernel_id = asked.kernel_id or self.cells.kernel_id(cell, language)
        expected = kernel_id or self.cells.expected(cell, language)
        options = {**self._no_longer_given(expected, asked.options), **asked.options}
        old = _edition(expected)
        with _told() as (events, warned), _usage():
            module = kernels.load(
                cell, kernel_id, language=language, namespace=Outside(self.names.user, expected),
                first_line=self.cells.first_line(cell), **asked.load, **options,
            )  # fmt: skip
        live = live_of(module)
        assert live is not None
        notes = self.cells.note(live.kernel_id, asked.kernel_id is None, set(asked.options), self.host.execution_count)
        if asked.load.get("background"):
            notes += [*warned, *self.names.bind(live, names_of(cell, language))]
            self._follow(live, old, language, notes)
            return
        notes += [*warned, *self._bind(live, old)]
        if not asked.quiet or notes:
            display(status_of(live, old, events, notes))

    def _bind(self, live: Live, old: Edition | None, over: bool = True) -> list[str]:
        edition = live.current
        assert edition is not None
        before = {} if old is None else old.built.names
        return [*self.names.bind(live, edition.built.entries, over), *self.names.add(live, edition.built.names, before)]

    def _follow(self, live: Live, old: Edition | None, language: str, notes: Sequence[str]) -> None:
        """Show that an id is being built, and later what came of it."""
        goes_on = "" if old is None else f"; v{old.number} serves until then"
        begun = Status(live.kernel_id, None, language, f"is being built{goes_on}", (), notes)
        overtaken = Status(live.kernel_id, None, language, "this build was overtaken by a later load")
        self.ends.follow(live, begun, lambda: status_of(live, old, (), notes), overtaken)

    @line_magic
    def kernels(self, line: str) -> None:
        """Show all kernels: version, calls, time of a call, build time, whether the build came from the cache.

        ``%kernels heat paint`` shows these ids only.
        """
        wanted = arguments.words(line)
        for name in wanted:
            _ = kernels[name]  # an unknown one raises
        display(tables.kernels([live for name, live in list(kernels._lives.items()) if not wanted or name in wanted]))

    @line_magic
    def kernel_rollback(self, line: str) -> None:
        """Go back: ``%kernel_rollback [id] [version]``.

        The content of the version before, or of the one named, serves again, in every handle that anybody holds, as a
        new version. Without an id: the id loaded last. The text of the cell stays as it is.
        """
        kernel_id, version = self._id_and_version(line)
        old = kernels.get(kernel_id)
        old = None if old is None else _edition(old.__name__)
        with _told() as (events, notes), _usage():
            module = kernels.rollback(kernel_id, version)
        live = kernels._lives[module.__name__]
        self._bind(live, old, over=False)
        display(status_of(live, old, events, notes))

    @line_magic
    def kernel_history(self, line: str) -> None:
        """Show the versions of an id, newest first: ``%kernel_history [id]``."""
        kernel_id, _ = self._id_and_version(line)
        display(tables.history(kernels.history(kernel_id)))

    @line_magic
    def kernel_diff(self, line: str) -> None:
        """Show what changed in the text since a version, or since the one before: ``%kernel_diff [id] [version]``."""
        kernel_id, version = self._id_and_version(line)
        display(tables.diff(kernels.info(kernel_id), version))

    def _id_and_version(self, line: str) -> tuple[str | None, int | None]:
        with _usage():
            return arguments.id_and_version(line, set(kernels))

    def _read(self, line: str, cell: str) -> tuple[arguments.Asked, str]:
        """Return what the first line asks for, and the language of the text."""
        table = {name: row.options for name, row in languages().items()}
        likely = None
        with suppress(ValueError):
            likely = self.cells.language(cell, None)
        with _usage():
            asked = arguments.read(line, table, likely=likely)
            language = asked.language or self._language(cell, asked.kernel_id)
            return arguments.read(line, table, language), language

    def _language(self, text: str, kernel_id: str | None) -> str:
        try:
            return self.cells.language(text, kernel_id)
        except ValueError as error:
            flags = ", ".join(arguments.dashed(name) for name in languages())
            raise ValueError(f"{str(error).split('; pass')[0]}; say it in the first line: {flags}") from None

    def _no_longer_given(self, kernel_id: str | None, given: Any) -> dict[str, None]:
        """Return the options that the cell named before and names no more: they are as if never given."""
        live = kernels._lives.get(kernel_id or "")
        if live is None or live.current is None:
            return {}
        options = live.current.source.options
        gone = set(self.cells.given.get(live.kernel_id, ())) - set(given)
        return {name: None for name in sorted(gone) if options.get(name) is not None}


def _edition(kernel_id: str | None) -> Edition | None:
    live = kernels._lives.get(kernel_id or "")
    return None if live is None else live.current


@contextmanager
def _usage() -> Iterator[None]:
    """Let a wrong call be one line without a traceback; errors of rekernel show themselves."""
    try:
        yield
    except RekernelError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(str(error).replace("pass kernel_id=", "give one: %%kernel NAME")) from None


@contextmanager
def _told() -> Iterator[tuple[list[ReloadEvent], list[str]]]:
    """Collect what is told on this thread: the loader's events, and rekernel's warnings; others go on as usual."""
    events: list[ReloadEvent] = []
    said: list[str] = []
    thread = threading.get_ident()
    remove = kernels.on_reload(lambda event: events.append(event) if threading.get_ident() == thread else None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RekernelWarning)
            yield events, said
    finally:
        remove()
        for warning in caught:
            if issubclass(warning.category, RekernelWarning):
                said.append(str(warning.message))
            else:
                warnings.showwarning(warning.message, warning.category, warning.filename, warning.lineno)


def status_of(live: Live, old: Edition | None, events: Sequence[ReloadEvent], notes: Sequence[str]) -> Status:
    """Return what is shown of an id whose version was `old` before; the events tell what else was built."""
    edition = live.must_serve()
    built = edition.built
    if edition is old:
        how = "unchanged"
    elif edition.version.restores is not None:
        how = f"v{edition.version.restores} again"
    else:
        how = f"{'from cache' if built.from_cache else 'built'} in {took(edition.build_seconds)}"
        if built.rebuilt_because not in (None, *_PLAIN):
            how += f": {built.rebuilt_because}"
    signatures = [str(kernel) for kernel in built.kernels]
    if len(signatures) > _MOST:
        signatures = [*signatures[: _MOST - 1], f"and {len(signatures) - _MOST + 1} more"]
    said = [*notes, *(f"{name} is no kernel: {why}" for name, why in built.skipped.items()), *built.notes]
    if built.anew and edition is not old:
        said.append(f"began anew: {', '.join(built.anew)}")
    told = [event for event in events if event.kind == "loaded" and event.kernel_id != live.kernel_id]
    others = [f"{event.kernel_id} v{event.version}" for event in told]
    if others:
        said.append(f"built again with it: {', '.join(others)}")
    return Status(live.kernel_id, edition.number, edition.source.language, how, signatures, said, built.warnings)


def start(shell: Any) -> None:
    """Register the magics; a second time changes nothing."""
    manager = shell.magics_manager
    if _NAME in manager.registry:
        return
    RekernelMagics.kernel.__doc__ = help_of_kernel({name: row.options for name, row in languages().items()})
    magics = RekernelMagics(shell)
    shell.register_magics(magics)
    shell.events.register("pre_run_cell", magics.begin)
    shell.Completer.custom_matchers.append(completion.matcher)
    if not kernels._timed:
        kernels.timing()


def stop(shell: Any) -> None:
    """Take the magics away. Kernels stay loaded, and their names stay."""
    magics = shell.magics_manager.registry.pop(_NAME, None)
    if magics is None:
        return
    kernels.timing(False)
    shell.events.unregister("pre_run_cell", magics.begin)
    shell.Completer.custom_matchers.remove(completion.matcher)
    for kind in ("line", "cell"):
        for name in magics.magics[kind]:
            shell.magics_manager.magics[kind].pop(name, None)


_NAME = RekernelMagics.__name__  # IPython keeps magics by this name; ipykernel has a KernelMagics of its own
