"""The code blocks of a document, and how a reader's session with them goes: ``python docblocks.py FILE [--gpu]``.

Blocks run in their order, in one process, and their lines are those of the document:

- ``python`` runs; ``py`` needs a GPU and runs with ``--gpu``;
- a block whose first line begins with ``%`` is a cell of a notebook and runs through IPython, as does then every other;
- ``{code-block}`` with a ``:caption:`` is a file of that name and is written to the working directory;
- ``sh`` and ``console``: the lines that begin with ``python -m rekernel`` are run, and have to succeed.

A comment in the line above a block says what else holds for it: ``<!-- not run: reason -->``,
``<!-- raises: KernelSourceError -->``, and, for a block of ``text``, ``<!-- output -->``: this is what the block before
printed or raised, where ``...`` stands for anything.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(
    r"^(?P<note><!--[^\n]*-->\n)?^(?P<ticks>```+)(?P<language>[\w{}-]*) ?(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=ticks)$",
    re.M | re.S,
)
_COMMAND = re.compile(r"^(?:\$ )?python -m rekernel\b([^\n]*)", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    kind: str
    """``python``, ``gpu``, ``cell``, ``file``, ``shell``, ``output`` or ``other``."""
    text: str
    line: int
    """Of its text, counted from 0: how many lines are above it."""
    note: str = ""
    """What the comment above it says."""
    name: str = ""
    """Of a file."""

    def told(self, what: str) -> str | None:
        """What the comment says of this, or None."""
        head, _, rest = self.note.partition(":")
        return rest.strip() if head.strip() == what else None


def blocks(document: str) -> Iterator[Block]:
    """All fenced blocks, in their order."""
    for match in _FENCE.finditer(document):
        text, line = match["text"], document[: match.start("text")].count("\n")
        note = (match["note"] or "").strip().removeprefix("<!--").removesuffix("-->").strip()
        language, name = match["language"], ""
        caption = re.match(r"(?::[\w-]+:[^\n]*\n)*?:caption: *(\S+)\n(?::[\w-]+:[^\n]*\n)*\n?", text)
        if language == "{code-block}" and caption is not None:
            kind, name = "file", caption[1]
            line += caption[0].count("\n")
            text = text[caption.end() :]
        elif text.startswith("%"):
            kind = "cell"
        elif note == "output":
            kind = "output"
        else:
            kind = {"python": "python", "py": "gpu", "sh": "shell", "console": "shell"}.get(language, "other")
        yield Block(kind, text, line, note, name)


def commands(text: str) -> list[list[str]]:
    """The arguments of each ``python -m rekernel`` in a block of shell lines."""
    return [shlex.split(match[1], comments=True) for match in _COMMAND.finditer(text)]


class Session:
    """What a reader does with one document after another block."""

    def __init__(self, path: Path, *, gpu: bool) -> None:
        self.path = path
        self.found = list(blocks(path.read_text(encoding="utf-8")))
        self.gpu = gpu
        self.printed = ""
        self.shell: Any = None
        if any(block.kind == "cell" and block.told("not run") is None for block in self.found):
            from IPython.core.interactiveshell import InteractiveShell

            self.shell = InteractiveShell.instance(user_ns=sys.modules["__main__"].__dict__, colors="NoColor")
            self.shell.showtraceback = lambda *_, **__: None  # we tell of errors ourselves

    def run(self) -> None:
        """Run all that can be run here; raise for the first that is not as the document says."""
        skipped = False
        for block in self.found:
            reason = block.told("not run")
            if reason is None and block.kind == "gpu" and not self.gpu:
                reason = "needs an NVIDIA GPU"
            if block.kind == "output" and skipped:
                continue
            skipped = reason is not None
            if reason is not None:
                print(f"{self.path.name}:{block.line}: skipped: {reason}")
            elif block.kind == "file":
                Path(block.name).parent.mkdir(parents=True, exist_ok=True)
                Path(block.name).write_text(block.text, encoding="utf-8")
            elif block.kind == "shell":
                self.call(block)
            elif block.kind == "output":
                self.compare(block)
            elif block.kind in ("python", "gpu", "cell"):
                self.execute(block)

    def call(self, block: Block) -> None:
        """Run the commands of ours in a block for a shell."""
        self.printed = ""
        for words in commands(block.text):
            done = subprocess.run(
                [sys.executable, "-m", "rekernel", *words], capture_output=True, text=True, timeout=200,
                stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "100"},
            )  # fmt: skip
            self.printed += done.stdout
            assert (done.returncode == 0) is (block.told("fails") is None), (
                f"{self.path}:{block.line}: {' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
            )

    def execute(self, block: Block) -> None:
        """Run Python, at the document's own lines, so that errors and `inspect` find them there."""
        out, error = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(out):
                if self.shell is not None:
                    self.shell.run_cell(block.text).raise_error()
                else:
                    code = compile("\n" * block.line + block.text, str(self.path), "exec")
                    exec(code, sys.modules["__main__"].__dict__)
        except Exception as raised:
            error = raised
        self.printed = out.getvalue()
        wanted = block.told("raises")
        if wanted is None and error is not None:
            raise error
        if wanted is not None:
            assert error is not None, f"{self.path}:{block.line}: raised nothing, and not {wanted}"
            assert type(error).__name__ == wanted, f"{self.path}:{block.line}: raised {error!r}, not {wanted}"
            raised_text = "".join(traceback.format_exception_only(error))
            # IPython has printed the error itself, in colours.
            self.printed = raised_text if self.shell is not None else self.printed + raised_text

    def compare(self, block: Block) -> None:
        """Compare what the block before has printed with what the document says."""
        checker = doctest.OutputChecker()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(block.text, self.printed, flags), (
            f"{self.path}:{block.line}: the document says\n{block.text}\nand what came was\n{self.printed}"
        )


if __name__ == "__main__":
    sys.path[0] = ""  # as in a session: modules of the working directory, none of the tests
    session = Session(Path(sys.argv[1]).resolve(), gpu="--gpu" in sys.argv)
    sys.argv = [sys.argv[0]]
    session.run()
