"""`KernelLoader`: text in, callable out; new text in, and the callable you hold runs the new code."""

from __future__ import annotations

import os
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from rekernel import about, building, events, jobs, publishing, rollback, show
from rekernel.background import Background
from rekernel.errors import KernelNotFoundError, KernelSourceError
from rekernel.holds import Inside, holds
from rekernel.live import Edition, Live
from rekernel.locks import rlock
from rekernel.namespace import callers_globals, same
from rekernel.spelling import meant
from rekernel.values import KernelInfo, LoaderStats, LogEvent, ReloadEvent, Version
from rekernel.waiting import Waiting

if TYPE_CHECKING:
    from rekernel.eventlog import Log
    from rekernel.watch import Watch

__all__ = ["KernelLoader", "MetaKernelLoader"]

_loaders: weakref.WeakValueDictionary[str, KernelLoader] = weakref.WeakValueDictionary()


class KernelLoader:
    """Loads kernels from text, and replaces them while they are in use.

    >>> import numpy as np, taichi as ti, rekernel
    >>> ti.init(arch=ti.cpu, log_level=ti.ERROR)  # doctest: +ELLIPSIS
    [Taichi]...
    >>> loader = rekernel.KernelLoader()
    >>> m = loader.load('''
    ... @ti.kernel
    ... def scale(x: ti.types.ndarray(dtype=ti.f32, ndim=1), k: ti.f32):
    ...     for i in x:
    ...         x[i] = k * x[i]
    ... ''')
    >>> x = np.ones(3, np.float32)
    >>> scale = m.scale
    >>> scale(x, 2.0); x
    array([2., 2., 2.], dtype=float32)

    A broken text never replaces the working kernel; `KernelSourceError` shows the line, and `scale` goes on.

    Any method may be called from any thread. As a context manager, leaving it unloads everything.
    """

    def __init__(self, *, jit: Any = None, auto_rollback: bool = False, token: str | None = None) -> None:
        """Make an empty loader.

        `jit`: the just-in-time compiler for languages that need one, such as ``CpuJit(objcache=None)``; by default one
        that takes compiler and cache from the environment. With `auto_rollback`, a call that fails to compile for a
        new kind of argument goes back to the version before and is answered by it. `token` is for pickles alone.
        """
        self.jit = jit
        self.auto_rollback = auto_rollback
        self.token = token or uuid.uuid4().hex
        self._lives: dict[str, Live] = {}
        self._retired: weakref.WeakValueDictionary[str, Live] = weakref.WeakValueDictionary()
        self._numbers: dict[str, int] = {}
        self._lock = rlock()
        self._recent: list[str] = []
        self._texts: dict[str, str] = {}
        self._callbacks: dict[int, Callable[[ReloadEvent], None]] = {}
        self._log: deque[LogEvent] = deque(maxlen=1000)
        self._timed = False
        self._counts = {"loads": 0, "unchanged": 0, "reused": 0, "failures": 0, "calls": 0}
        self._kept: list[Any] = []
        self._background = Background()
        self._files: dict[str, tuple[str, str]] = {}
        self._waiting = Waiting()
        self._watches: list[Watch] = []
        _loaders[self.token] = self

    # --- loading -------------------------------------------------------------------------------------------

    def compile_and_load(self, kernel_code: str, kernel_id: str | None = None) -> None:
        """Load a text; like `load` with default options, and returns None: the verb of taichi-meta.

        ``loader[kernel_id]``, or ``loader[None]`` for the last one, is the module then.
        """
        self.load(kernel_code, kernel_id)

    def load(
        self,
        source: str,
        kernel_id: str | None = None,
        *,
        language: str | None = None,
        namespace: Mapping[str, Any] | None = None,
        filename: str | None = None,
        first_line: int = 1,
        check: Any = True,
        keep_state: bool = True,
        background: bool = False,
        **options: Any,
    ) -> ModuleType:
        """Load a text and return its module, whose kernels follow every later load of the same id.

        - `kernel_id`: under which name; without one it is derived from the first kernel's name, and a later
          text with a kernel of that name replaces it.
        - `language`: ``cpp``, ``cuda``, ``stencil`` or ``taichi``; told by the text if not given.
        - `namespace`, such as ``globals()``: where names come from that the text uses and does not define.
        - `filename` and `first_line`: what errors show as the place of the text.
        - `check`: compile for the argument types that the live version was called with before the swap; a tuple of
          arguments, or a dict of them by kernel name, adds types; False switches it off.
        - `keep_state=False` makes module-level fields and arrays anew.
        - `background=True` returns at once where the language allows it; see `wait`.
        - `options` belong to the language; what is not given is as in the id's live version.

        The text of the live version, with the same options, headers and values, is not built again.

        Raises `KernelSourceError` when the text is wrong (the version that ran goes on), `ToolchainError` when what
        compiles it is missing, TypeError for an unknown option, and ValueError for a text whose language cannot be
        told, that has no kernel to take an id from, or that is the name of a file.

        >>> half = KernelLoader().load("double half(double x) { return x / 2; }").half
        >>> half, half(3)
        (<kernel half.half v1 (cpp): half(x: float64) -> float64>, 1.5)
        """
        if type(source) is not str:
            jobs.refuse_source(source)
        if kernel_id is not None:
            jobs.refuse_id(kernel_id)
        live = self._lives.get(kernel_id if kernel_id is not None else self._texts.get(source, ""))
        if (
            live is not None
            and not background
            and self._is_live(live, source, language, namespace, filename, check, keep_state, options)
        ):
            self._counts["unchanged"] += 1
            self._background.overtake(live.kernel_id)
            self._touch(live.kernel_id)
            return live.module
        job = jobs.Job(
            source, kernel_id, language, namespace, filename, first_line, check, keep_state, dict(options),
            hints=callers_globals(),
        )  # fmt: skip
        try:
            jobs.prepare(self, job)
            if background:
                return self._background.start(self, job)
            self._background.overtake(job.kernel_id or "")
            live = building.run(self, job)
        except KernelSourceError as error:
            raise error.with_traceback(None) from error.__cause__
        self._touch(live.kernel_id)
        return live.module

    def load_file(self, path: str | PathLike[str], kernel_id: str | None = None, **same_as_load: Any) -> ModuleType:
        """Load the text of a file, as `load` does. The id is the file's stem; errors name the file and its lines.

        The suffix tells the language: ``.cpp .cc .cxx .hpp``, ``.cu .cuh``, and ``.py`` together with what is in it.
        Includes are looked up beside the file. Raises OSError for a file that cannot be read, ValueError for one that
        is not UTF-8, or whose id another file has: pass `kernel_id` then.
        """
        file = str(Path(path))  # one spelling: no ./ and no //
        text = jobs.read_text(file)
        if kernel_id is None:
            kernel_id = jobs.id_of_file(self, file)
        module = self.load(text, kernel_id, filename=file, **same_as_load)
        self._files[kernel_id] = file, os.path.abspath(file)
        return module

    def _is_live(
        self, live: Live, source: str, language: str | None, namespace: Mapping[str, Any] | None, filename: str | None,
        check: Any, keep_state: bool, options: Mapping[str, Any],
    ) -> bool:  # fmt: skip
        """Whether what is asked for is what serves already. On the way of every unchanged load: microseconds."""
        edition = live.current
        if (
            edition is None
            or edition.source.text != source
            or not keep_state
            or (check is not True and check is not False)
        ):
            return False
        if language is not None and language != edition.source.language:
            return False
        if options and any(edition.source.options.get(k, edition) != v for k, v in options.items()):
            return False
        if filename is not None and filename != edition.source.filename:
            return False
        given = namespace if namespace is not None else edition.namespace
        if edition.draft.wants and not same(edition.borrowed, given, edition.draft.wants):
            return False
        edition = live.must_serve()
        if not edition.language.same(edition.built):
            return False
        live.error = None
        if live.cell.override:
            holds.show(live)
        return True

    # --- looking up ------------------------------------------------------------------------------------------

    def __getitem__(self, kernel_id: str | None) -> ModuleType:
        """Return the module of an id; None means the id of the last successful load.

        It is the same object for as long as the id is loaded. KernelNotFoundError, a KeyError, lists what is loaded.
        """
        if self._waiting:
            self._waiting.catch_up(self)
        return self._find(kernel_id).module

    def get(self, kernel_id: str | None, default: Any = None) -> Any:
        """Return the module of an id, or `default`."""
        try:
            return self[kernel_id]
        except KernelNotFoundError:
            return default

    def __contains__(self, kernel_id: object) -> bool:
        return kernel_id in self._lives

    def __len__(self) -> int:
        return len(self._lives)

    def __bool__(self) -> bool:
        return True  # also while it is empty: `given or KernelLoader()` must not make another one

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._lives))

    def _find(self, kernel_id: str | None) -> Live:
        if kernel_id is None:
            with self._lock:
                for name in reversed(self._recent):
                    if name in self._lives:
                        return self._lives[name]
            raise KernelNotFoundError("nothing is loaded yet: loader.load(text) first")
        live = self._lives.get(kernel_id)
        if live is None:
            known = ", ".join(map(repr, list(self._lives)[:8])) or "none"
            near = meant(kernel_id, self)
            raise KernelNotFoundError(f"no kernel id {kernel_id!r} is loaded; loaded: {known}{near}")
        return live

    def _touch(self, kernel_id: str) -> None:
        """Note the user's last successful load."""
        recent = self._recent
        if not recent or recent[-1] != kernel_id:
            with self._lock:
                if kernel_id in recent:
                    recent.remove(kernel_id)
                recent.append(kernel_id)

    # --- versions --------------------------------------------------------------------------------------------

    def rollback(self, kernel_id: str | None = None, version: int | None = None) -> ModuleType:
        """Bring the content of an earlier version back, as a new version; without `version`, the one before.

        Nothing is compiled while the old version is still held (the live one and the one before always are). Raises
        `KernelNotFoundError` for a version that is not in the history, which has the last 32.
        """
        live = self._find(kernel_id)
        self._background.overtake(live.kernel_id)
        try:
            rollback.roll_back(self, live, version)
        except KernelSourceError as error:
            raise error.with_traceback(None) from error.__cause__
        return live.module

    def history(self, kernel_id: str | None = None) -> tuple[Version, ...]:
        """Return the last 32 versions of an id, oldest first. `KernelNotFoundError` for an unknown id."""
        return about.history_of(self._find(kernel_id))

    def info(self, kernel_id: str | None = None) -> KernelInfo:
        """Return all that is known about an id, as `rekernel.info` does. `KernelNotFoundError` for an unknown id."""
        return about.info_of(self._find(kernel_id))

    def stats(self) -> LoaderStats:
        """Return counts over the life of this loader."""
        return about.stats_of(self)

    @property
    def log(self) -> Log:
        """The last 1,000 events (`LogEvent`), oldest first: compiled or found and why, swapped, failed.

        A tuple that shows itself as a table. The logger ``rekernel`` gets the same events, as ``record.rekernel``. A
        load that changes nothing is no event.
        """
        from rekernel.eventlog import Log

        return Log(self._log.copy())

    def timing(self, on: bool = True) -> None:
        """Time each call of all handles of this loader, also of ids that are loaded later; or stop it.

        ``handle.stats`` has the results. To switch it on begins anew; to switch it off keeps what was measured. It
        costs about 40 ns a call, and nothing while it is off. For a GPU it is the time of the launch: nobody waits for
        the device. The first call of a stencil, or of a Taichi kernel with a new kind of argument, compiles.

        >>> loader.timing()  # doctest: +SKIP
        >>> heat.step(dst, src, 0.5); heat.step.stats["p50"]  # doctest: +SKIP
        1.2e-05
        """
        self._timed = bool(on)
        for live in [*list(self._lives.values()), *list(self._retired.values())]:
            for handle in [*list(live.handles.values()), *list(live.pins)]:
                handle._timed = self._timed

    # --- unloading -------------------------------------------------------------------------------------------

    def unload(self, kernel_id: str | None) -> None:
        """Remove an id; so does ``del loader[kernel_id]``. None means that of the last successful load.

        Its handles raise `KernelRemovedError` until the id is loaded again; then they go on. Numbers of versions go on,
        too.
        """
        self._remove(self._find(kernel_id), "it was unloaded")

    def __delitem__(self, kernel_id: str) -> None:
        self._remove(self._find(kernel_id), "it was deleted from its loader")

    def _remove(self, live: Live, how: str) -> None:
        self._background.overtake(live.kernel_id)
        publishing.unload(self, live, how)

    def cleanup_all(self, reset_taichi: bool = False) -> None:
        """Unload everything, and stop watching files.

        With `reset_taichi`, also end the Taichi program and give back the memory of its compiled kernels: all
        fields and ndarrays of the process, whoever made them, are gone, and ``ti.init`` is needed again.
        """
        for watch in list(self._watches):
            watch.stop()
        for live in list(self._lives.values()):
            self._remove(live, "cleanup_all() was called")
        self._kept.clear()
        if reset_taichi:
            from rekernel.languages import languages

            languages()["taichi"].reset()

    def __enter__(self) -> KernelLoader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cleanup_all()

    # --- living with it --------------------------------------------------------------------------------------

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep a time step whole: inside, no swap made by another thread becomes visible to this one.

        A load of this thread is visible at once. Blocks may be nested; the swap shows when the outermost ends.

        >>> with loader.hold():  # doctest: +SKIP
        ...     heat.step(b, a, 0.1)
        ...     heat.border(b)
        """
        inside = Inside()
        try:
            holds.enter(self, inside)
            yield
        finally:
            holds.leave(self, inside)
        if self._waiting:
            self._waiting.catch_up(self)

    def watch(self, *paths: str | PathLike[str], polling: bool | None = None) -> Watch:
        """Reload what is saved: follow files from now on, and return the `Watch`, which is at work already.

        Without `paths`, every file that `load_file` has loaded or will load, and what these texts include (headers of
        C++ and CUDA) or import (local modules of Taichi). A path is a file, a directory (of its files, the sources of
        kernels) or a pattern such as ``"kernels/**/*.cpp"``; what is not loaded yet is loaded, and so are new files.

        The content decides, not the time: a save that changes nothing does nothing. A text that does not compile is
        told once (`on_reload`, the logger ``rekernel``, `Watch.errors`) while the version before goes on. C++, CUDA
        and stencils are built in the background. Taichi texts are loaded at the next call of one of their kernels, or
        at the end of a `hold`, on the thread that has loaded them before. ``loader[None]`` is not moved.

        With `polling` the files are looked at again and again, for file systems that give no notice.

        Raises FileNotFoundError for a path that is not there, and ToolchainError without the package watchfiles.

        >>> with loader.watch("kernels/") as watch:  # doctest: +SKIP
        ...     for event in watch:
        ...         print(event.kernel_id, event.kind, event.version)
        """
        from rekernel.watch import Watch

        return Watch(self, paths, polling=polling)

    def wait(self, kernel_id: str | None = None, timeout: float | None = None) -> None:
        """Wait until the builds of ``load(..., background=True)`` are done, of one id or of all.

        Raises what the last one raised, and TimeoutError after `timeout` seconds; the builds go on then.
        """
        self._background.wait(kernel_id, timeout)

    def on_reload(self, callback: Callable[[ReloadEvent], None]) -> Callable[[], None]:
        """Call `callback` with a `ReloadEvent` after every load, rollback, unload and failure.

        Runs on the thread that loads, outside all locks; what it raises is logged. Returns its own removal.

        >>> loader = KernelLoader()
        >>> stop = loader.on_reload(lambda event: print(event.kernel_id, event.version, event.kind))
        >>> loader.load("double half(double x) { return x / 2; }").half(3)
        half 1 loaded
        1.5
        >>> stop()
        """
        key = events.next_key()
        self._callbacks[key] = callback

        def remove() -> None:
            self._callbacks.pop(key, None)

        return remove

    def save(self, path: str | PathLike[str]) -> None:
        """Write texts, options and numbers of all ids to a readable JSON file (no values, never a pickle).

        TypeError, before anything is written, for an option that JSON has no form for.
        """
        from rekernel.saved import save

        save(self, Path(path))

    def export(self, kernel_id: str | None, directory: str | PathLike[str], name: str | None = None) -> Path:
        """Write all kernels of an id as one importable extension module, and return its file.

        It runs in a Python of this version with NumPy and without rekernel. Beside it are ``<name>.pyi`` and the
        text, ``<name>.cpp``. `name` is made from the id if not given; ValueError where it is no identifier or hides a
        module of Python's own. JitError for a language that cannot be exported, and for a version that is built for
        debugging; FileExistsError where another text is in the place of this one.

        >>> loader.export("heat", "build")  # doctest: +SKIP
        PosixPath('build/heat.cpython-311-x86_64-linux-gnu.so')
        """
        from rekernel.exporting import export

        return export(self._find(kernel_id), self.jit, Path(directory), name)

    @classmethod
    def load_saved(cls, path: str | PathLike[str], *, namespace: Mapping[str, Any] | None = None) -> KernelLoader:
        """Make a loader from a file of `save`: all its texts are loaded, and the ids have their numbers.

        `namespace`: values of the names that the texts took from one. KernelNotFoundError lists those that are missing;
        ValueError says what is wrong in a file that `save` has not written so.

        >>> loader.save("kernels.json")  # doctest: +SKIP
        >>> loader = KernelLoader.load_saved("kernels.json", namespace=globals())  # doctest: +SKIP
        """
        from rekernel.saved import load_saved

        return load_saved(cls, Path(path), namespace)

    def __repr__(self) -> str:
        return show.loader_text(list(self._lives.values()))

    def _repr_html_(self) -> str:
        return show.loader_html(list(self._lives.values()))

    def _number(self, kernel_id: str) -> int:
        """Return the number that the next successful load of an id gets."""
        return self._numbers.get(kernel_id, 0) + 1

    def _editions(self) -> list[Edition]:
        return [e for live in list(self._lives.values()) for e in list(live.kept.values())]


MetaKernelLoader = KernelLoader


def loader_of(token: str) -> KernelLoader:
    """Return the loader of a token, made if this process does not have it (unpickling in another process)."""
    if token == "default":
        from rekernel.default import kernels

        return kernels
    found = _loaders.get(token)
    if found is None:
        found = KernelLoader(token=token)
        _adopted.append(found)  # nothing else would keep it
    return found


_adopted: list[KernelLoader] = []
