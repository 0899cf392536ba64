"""What one call of ``load`` asks for: the text, its language, its draft and its id, all found without side effects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rekernel import publishing
from rekernel.errors import KernelSourceError
from rekernel.kernel import Kernel
from rekernel.languages import Draft, Language, detect, find
from rekernel.source import Source

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
    ahead: bool = False
    language: Language = field(init=False)
    draft: Draft = field(init=False)
    source: Source = field(init=False)
    derived: bool = False
    still_wanted: Callable[[], bool] = field(default=lambda: True)
    ready: Callable[[], bool] = field(default=lambda: True)
    """Asked before the swap; may wait. False: it is not wanted any more."""
    tells: bool = True
    """Whether a failure is told at once, and not later by who has started this."""


def refuse_source(source: Any) -> None:
    """Raise for a source that is not text."""
    if isinstance(source, Path):
        raise TypeError(f"load takes the text itself; for a file use load_file({str(source)!r})")
    if not isinstance(source, str):
        raise TypeError(f"load takes text, not {type(source).__name__}; for a function, pass its source text")


def refuse_id(kernel_id: Any) -> None:
    """Raise for an id that is no name."""
    if type(kernel_id) is not str or not kernel_id.strip():
        raise TypeError(f"kernel_id= takes a name or None, not {kernel_id!r}")


def read_text(file: str | os.PathLike[str]) -> str:
    """Read a file as UTF-8 (a byte-order mark is allowed); what is not text is a ValueError with its place."""
    try:
        with open(file, "rb") as opened:
            data = opened.read()
    except IsADirectoryError:
        raise IsADirectoryError(f"{file} is a directory; load_file takes one file") from None
    return decoded(file, data)


def decoded(file: str | os.PathLike[str], data: bytes) -> str:
    """Return the text that a file holds; ValueError with the place of what is no UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{file}:{line}: not UTF-8 text (byte {data[error.start]:#04x}); save it as UTF-8") from None


def id_of_file(loader: KernelLoader, file: str) -> str:
    """Return the file's stem; ValueError where it is the id of something else."""
    kernel_id = os.path.splitext(os.path.basename(file))[0]
    live = loader._lives.get(kernel_id)
    origin = live.current.source.filename if live is not None and live.current is not None else None
    if live is not None and origin != file and (origin is None or not same_file(origin, file)):
        raise ValueError(
            f"the id {kernel_id!r} is taken by {origin or 'a text without a file'}; pass kernel_id= for {file}"
        )
    return kernel_id


def same_file(one: str, other: str) -> bool:
    """Whether two names lead to one file, which may be gone."""
    return os.path.realpath(one) == os.path.realpath(other)


def prepare(loader: KernelLoader, job: Job) -> None:
    """Find language, draft and id, all pure; wrong calls of ``load`` raise here."""
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


_FILE_NAME = re.compile(r"[\w./~\\ -]+\.(?:py|cpp|cc|cxx|hpp|cu|cuh)")
_COMMON = ("language", "namespace", "filename", "first_line", "check", "keep_state", "background")


def _refuse_paths(job: Job) -> None:
    text = job.text
    if job.filename is None and "\n" not in text and 0 < len(text) < 4096:
        try:
            if Path(text.strip()).is_file():
                raise ValueError(f"{text!r} is a file, not the text of a kernel; use load_file({text!r})")
        except OSError:
            return
        if _FILE_NAME.fullmatch(text.strip()):
            raise ValueError(f"{text!r} looks like the name of a file, and there is no such file in {Path.cwd()}")


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
            known = derive(loader, names, job.language.name) if names else None
        _name_failure(loader, known, error, job.tells)
        raise error.with_traceback(None) from error.__cause__
    if known is None:
        names = job.draft.kernels or job.draft.titles
        if not names:
            raise ValueError("the text has no kernel to derive an id from; pass kernel_id=")
        job.kernel_id, job.derived = derive(loader, names, job.language.name), True
    else:
        live = loader._lives.get(known)
        job.derived = live is not None and live.current is not None and live.current.derived


def _name_failure(loader: KernelLoader, kernel_id: str | None, error: KernelSourceError, tells: bool) -> None:
    """Let an error that came before the id was known name it, and park it there."""
    if kernel_id is None:
        return
    error.kernel_id = kernel_id
    error.version = loader._number(kernel_id)
    if tells:
        publishing.failed(loader, kernel_id, error)


def derive(loader: KernelLoader, names: tuple[str, ...], language: str) -> str:
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


def parse(source: str, *, language: str | None = None) -> tuple[Kernel, ...]:
    r"""Return the kernels of a text as values; nothing is executed or built.

    What only a compiler or the running text can tell, such as the types of a C++ text's parameters, is left out. Raises
    `KernelSourceError` for a text that cannot be read, ValueError where its language cannot be told.

    >>> import rekernel
    >>> rekernel.parse("@ti.kernel\ndef f(x: ti.f32) -> ti.f32:\n    return x")[0].name
    'f'
    """
    refuse_source(source)
    chosen = find(language) if language is not None else detect(source)
    text = Source(source, chosen.name)
    return chosen.read(text, kernel_id="new text", number=1).values()
