"""``rekernel build``: compile kernels ahead of time, so that a program which loads the same files compiles nothing.

The builds run on threads, for compilers are processes of their own and NVRTC releases the GIL; what may only be
built on the thread of its runtime (Taichi) is built on this one meanwhile.
"""

from __future__ import annotations

import argparse
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.commands import console, existing, subcommand, table, texts, whole
from rekernel.commands.answers import CommandError, dump, error_document, message_of

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.jit.cpu import CpuJit
    from rekernel.objcache import ObjectCache
    from rekernel.values import KernelInfo

__all__ = ["add"]


@dataclass
class Result:
    """What became of one file."""

    path: Path
    language: str = ""
    kernels: tuple[str, ...] = ()
    from_cache: bool = False
    waiting: tuple[str, ...] = ()
    """Kernels that are compiled at their first call, because nothing else tells the types of its arguments."""
    skipped: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    exported: Path | None = None
    error: Exception | None = None

    @property
    def state(self) -> str:
        """What happened, in a word or two."""
        if self.error is not None:
            return "failed"
        if self.waiting:
            return f"{len(self.kernels) - len(self.waiting)} of {len(self.kernels)} compiled"
        return "from cache" if self.from_cache else "compiled"

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        made = {"file": str(self.path), "state": self.state, **vars(self)}
        del made["path"]
        made["error"] = None if self.error is None else error_document(self.error)
        return made


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "build", _run,
        help="compile kernels ahead of time",
        description="Compile all kernels of the files into the object cache, in parallel: a program that loads the\n"
        "same files with the same options has nothing to compile. A file that fails does not stop the others.\n"
        "Taichi keeps its own cache; what waits there for the types of a first call is named.",
    )  # fmt: skip
    parser.add_argument("files", nargs="+", type=existing, metavar="FILE", help="texts with kernels")
    parser.add_argument("-j", "--jobs", type=whole(1), help="how many at the same time (default: one for each CPU)")
    parser.add_argument("--export", type=Path, metavar="DIR", help="write importable modules into this directory, too")
    parser.add_argument("--arch", help="GPU architecture such as sm_90, where there is no device: -O arch=sm_90")
    texts.add_load_arguments(parser)


def _run(arguments: argparse.Namespace) -> int:
    from rekernel.objcache import ObjectCache

    if arguments.arch:
        arguments.option.append(("arch", arguments.arch))
    found = texts.read(arguments.files, arguments)
    cache = ObjectCache()
    if cache.directory is None:
        raise CommandError("there is no cache directory, so nothing would stay", "to see why: rekernel doctor")
    started = time.perf_counter()
    jobs = min(arguments.jobs or _cpus(), len(found))
    with _progress(len(found), arguments.json) as advance:
        results = _all(found, cache, arguments.export, jobs, advance)
    seconds, failed = time.perf_counter() - started, [one for one in results if one.error is not None]
    if arguments.json:
        dump({"files": [one.document() for one in results], "seconds": seconds, "cache": cache.directory})
    else:
        _show(results, seconds, cache.directory)
    return int(bool(failed))


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _all(
    found: Sequence[texts.Text | tuple[Path, Exception]], cache: ObjectCache, export: Path | None, jobs: int,
    advance: Callable[[Path], None],
) -> list[Result]:  # fmt: skip
    """Build all files; the results are in their order. Ctrl-C ends the compilers and waits for their threads."""
    from rekernel.jit.cpu import CpuJit
    from rekernel.process import abandon

    jit = CpuJit(objcache=cache)
    results: dict[Path, Result] = {}
    todo: queue.SimpleQueue[texts.Text] = queue.SimpleQueue()
    here: list[texts.Text] = []
    for one in found:
        if not isinstance(one, texts.Text):
            results[one[0]] = Result(one[0], error=one[1])
            advance(one[0])
            continue
        results[one.path] = Result(one.path, one.language.name)
        (todo.put if one.language.threads else here.append)(one)
    stopped, ended = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        try:
            while not stopped.is_set():
                text = todo.get_nowait()
                _one(text, jit, export, results[text.path])
                advance(text.path)
        except queue.Empty:
            pass
        finally:
            ended.release()

    threads = [threading.Thread(target=work, name=f"rekernel build {n}", daemon=True) for n in range(jobs)]
    running = 0
    try:
        for thread in threads:
            thread.start()
            running += 1
        for text in here:
            _one(text, jit, export, results[text.path])
            text.language.reset()  # by which its runtime writes what it has compiled
            advance(text.path)
        for _ in threads:  # not `join`: after Ctrl-C, Python up to 3.12 takes the thread for one that has ended
            ended.acquire()
            running -= 1
    except BaseException:
        stopped.set()
        for thread in threads:
            abandon(thread)
        for _ in range(running):
            ended.acquire(timeout=10)
        raise
    return list(results.values())


def _one(text: texts.Text, jit: CpuJit, export: Path | None, result: Result) -> None:
    """Build one file, and note what became of it."""
    from rekernel.loader import KernelLoader

    started = time.perf_counter()
    try:
        with KernelLoader(jit=jit) as loader:
            texts.started(text)
            module = texts.load(loader, text, **({"eager": True} if "eager" in text.language.options else {}))
            info = loader.info(text.kernel_id)
            result.notes = tuple(info.notes)
            if getattr(text.language, "start", None) is not None:
                info, result.waiting = _with_types(loader, text, info)
            result.kernels = tuple(kernel.name for kernel in info.kernels)
            result.from_cache, result.skipped = info.from_cache, dict(info.skipped)
            result.warnings = tuple(info.warnings)
            if export is not None:
                result.exported = loader.export(text.kernel_id, export)
            del module
    except (Exception, SystemExit) as error:
        result.error = error if isinstance(error, Exception) else CommandError(f"the text ends the program: {error}")
    result.seconds = time.perf_counter() - started


def _with_types(loader: Any, text: texts.Text, info: KernelInfo) -> tuple[KernelInfo, tuple[str, ...]]:
    """Compile kernels that wait for a call, as far as their annotations tell its types; return who still waits."""
    from rekernel.commands.example import CannotGuessError, example

    known, waiting = {}, []
    for kernel in info.kernels:
        try:
            known[kernel.name] = tuple(example(parameter, 1, careful=False) for parameter in kernel.parameters)
        except CannotGuessError:
            waiting.append(kernel.name)
    if any(known.values()):
        texts.load(loader, text, check=known)
        info = loader.info(text.kernel_id)
    return info, tuple(waiting)


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[Path], None]]:
    """Show a bar on a terminal; gives what is called when a file is done."""
    screen = console(stderr=True)
    if quiet or not screen.is_terminal:
        yield lambda path: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    last = TextColumn("{task.fields[last]}")
    columns = (TextColumn("building"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), last)
    with Progress(*columns, console=screen, transient=True) as progress:
        task = progress.add_task("", total=total, last="")
        yield lambda path: progress.update(task, advance=1, last=path.name)


def _show(results: Sequence[Result], seconds: float, cache: str) -> None:
    """Print errors and warnings, then the table."""
    out, said = console(), console(stderr=True)
    for one in results:
        for line in one.warnings:
            said.print(f"{one.path}: warning: {line}", style="yellow", soft_wrap=True)
        for line in (*(f"{name} is skipped: {why}" for name, why in one.skipped.items()), *one.notes):
            said.print(f"{one.path}: {line}", style="dim", soft_wrap=True)
        if one.waiting:
            names = ", ".join(one.waiting)
            said.print(f"{one.path}: compiled at the first call, which alone tells the types: {names}", soft_wrap=True)
        if one.error is not None:
            first, _, others = message_of(one.error).partition("\n")
            said.print(first if str(one.path) in first else f"{one.path}: {first}", style="bold red", soft_wrap=True)
            if others:
                said.print(others, soft_wrap=True)
    rows = table("file", "kernels", "", ">s", ">warnings")
    for one in results:
        count, style = str(len(one.warnings) or ""), {"failed": "red", "from cache": "green"}.get(one.state, "")
        rows.add_row(str(one.path), ", ".join(one.kernels), one.state, f"{one.seconds:.2f}", count, style=style)
    out.print(rows)
    for one in results:
        if one.exported is not None:
            out.print(f"exported {one.exported}", soft_wrap=True)
    good = sum(one.error is None for one in results)
    failed = f"; {len(results) - good} failed" if good < len(results) else ""
    out.print(f"{good} of {len(results)} files are built{failed}, in {seconds:.1f} s, into {cache}", soft_wrap=True)
