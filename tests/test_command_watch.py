"""``rekernel watch``: files alone, a script under it, its arguments, its failures and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from cppkit import answer, load_with, needs_cpp
from rekernel import KernelLoader
from rekernel.commands.watchscript import Followed, _wait_at_first_loads
from watchkit import until

BROKEN = "int f() { retur 2; }\n"


class Program:
    """A process whose output is read while it runs."""

    def __init__(self, place: Path, *arguments: str) -> None:
        self.out, self.err = place / "out.txt", place / "err.txt"
        env = {
            **os.environ, "REKERNEL_CACHE_DIR": str(place / "cache"), "XDG_CACHE_HOME": str(place / "cache"),
            "TI_SKIP_VERSION_CHECK": "ON", "ENABLE_TAICHI_HEADER_PRINT": "False", "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        with self.out.open("w") as out, self.err.open("w") as err:
            command = [sys.executable, "-m", "rekernel", "watch", *arguments]
            self.process = subprocess.Popen(command, cwd=place, env=env, stdout=out, stderr=err)

    def said(self, text: str) -> bool:
        """Wait until it has printed something."""

        def found() -> bool:
            shown = self.out.read_text() + self.err.read_text()
            assert text in shown or self.process.poll() is None, shown
            return text in shown

        return until(found, text)

    def end(self, *, interrupt: bool = False) -> int:
        """Wait for its end, after Ctrl-C if asked to, and return its exit status."""
        if interrupt:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@pytest.fixture
def start(tmp_path):
    """Start ``rekernel watch`` with arguments, in the directory of the test."""
    started = []

    def begin(*arguments: str) -> Program:
        started.append(Program(tmp_path, *arguments))
        return started[-1]

    yield begin
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


@contextmanager
def script(place: Path, text: str):
    (place / "script.py").write_text("import sys, time\nimport rekernel\n" + text)
    yield


@needs_cpp
def test_files_are_loaded_and_watched_until_ctrl_c(start, tmp_path):
    path = tmp_path / "k.cpp"
    path.write_text(answer(1))
    program = start("k.cpp")
    program.said("k v1 loaded")
    path.write_text(answer(2))
    program.said("k v2 loaded")
    path.write_text(BROKEN)
    program.said("k v3 (cpp), k.cpp:1:11: 'retur' was not declared in this scope")
    program.said("k v2 keeps running.")
    path.write_text(answer(3))
    program.said("k v3 loaded")
    assert program.end(interrupt=True) == 130
    assert "Traceback" not in program.err.read_text()


@needs_cpp
def test_json_is_one_object_a_line(start, tmp_path):
    path = tmp_path / "k.cpp"
    path.write_text(answer(1))
    program = start("--json", "k.cpp")
    program.said('"loaded"')
    path.write_text(BROKEN)
    program.said('"failed"')
    program.end(interrupt=True)
    rows = [json.loads(line) for line in program.out.read_text().splitlines()]
    assert [(row["kind"], row["kernel_id"], row["version"]) for row in rows] == [("loaded", "k", 1), ("failed", "k", 1)]
    assert (rows[1]["error"]["filename"], rows[1]["error"]["line"]) == ("k.cpp", 1)
    assert rows[0]["kernels"] == ["f"]


LOOP = """
module = rekernel.KernelLoader().load_file("k.cpp")
print("first", module.f(), flush=True)
while module.f() != 9:
    time.sleep(0.01)
print("last", module.f(), flush=True)
"""


@needs_cpp
def test_a_script_runs_as_itself_and_follows_its_files(start, tmp_path):
    path = tmp_path / "k.cpp"
    path.write_text(answer(1))
    with script(tmp_path, "print(__name__, __file__, sys.argv, sys.path[0], flush=True)\n" + LOOP + "sys.exit(7)\n"):
        program = start("--run", "script.py", "--json", "-x", "k.cpp")
    program.said("first 1")
    path.write_text(answer(9))
    assert program.end() == 7
    first, *rest = program.out.read_text().splitlines()
    assert first == f"__main__ script.py ['script.py', '--json', '-x', 'k.cpp'] {tmp_path}"
    assert rest == ["first 1", "last 9"]
    assert "k v2 loaded" in program.err.read_text()


@needs_cpp
def test_a_first_load_that_fails_waits_for_the_next_save(start, tmp_path):
    path = tmp_path / "k.cpp"
    path.write_text(BROKEN)
    with script(tmp_path, LOOP):
        program = start("--run", "script.py")
    program.said("'retur' was not declared in this scope")
    program.said("waiting for k.cpp to be saved again")
    path.write_text(BROKEN)  # the same text: nothing to try
    path.write_text(answer(4))
    program.said("first 4")
    path.write_text(answer(9))
    assert program.end() == 0
    assert program.err.read_text().count("'retur' was not declared") == 1


@needs_cpp
def test_a_first_load_waits_for_a_header_and_for_a_file_too(start, tmp_path):
    with script(tmp_path, LOOP):
        program = start("--run", "script.py")
    program.said("waiting for k.cpp")
    (tmp_path / "k.cpp").write_text('#include "n.hpp"\nint f() { return N; }\n')
    program.said("n.hpp")
    (tmp_path / "n.hpp").write_text("#define N 9\n")
    assert program.end() == 0


@needs_cpp
@pytest.mark.parametrize("saved", ["k.cpp", "n.hpp", "deep.hpp"])
def test_a_save_while_a_failure_is_being_told_is_not_missed(tmp_path, monkeypatch, saved):
    texts = {
        "k.cpp": '#include "n.hpp"\nint f() { return N; }\n',
        "n.hpp": '#include "deep.hpp"\n',
        "deep.hpp": "#define N 9\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text("int f( {\n" if name == saved else text)

    class Saves:
        def event(self, event):
            (tmp_path / saved).write_text(texts[saved])

        def head(self, line):
            pass

    monkeypatch.setattr(KernelLoader, "load_file", KernelLoader.load_file)  # given back after the test
    followed = Followed(Saves())
    _wait_at_first_loads(followed)
    try:
        with load_with(tmp_path / "cache") as loader:
            assert loader.load_file(tmp_path / "k.cpp").f() == 9
    finally:
        followed.end()


@needs_cpp
def test_ctrl_c_ends_a_script_that_waits(start, tmp_path):
    (tmp_path / "k.cpp").write_text(BROKEN)
    with script(tmp_path, LOOP):
        program = start("--run", "script.py")
    program.said("waiting for k.cpp")
    assert program.end(interrupt=True) == 130
    assert "Traceback" not in program.err.read_text()


def test_what_a_script_raises_is_shown_as_python_shows_it(start, tmp_path):
    with script(tmp_path, "def inner():\n    1 / 0\ninner()\n"):
        program = start("--run", "script.py")
    assert program.end() == 1
    said = program.err.read_text()
    assert "ZeroDivisionError" in said
    assert 'File "script.py", line 5' in said
    assert "commands/watch.py" not in said


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("sys.exit()", 0, ""),
        ("sys.exit('no')", 1, "no"),
        ("x = (", 1, "SyntaxError"),
        ("raise KeyboardInterrupt", 130, ""),
    ],
)
def test_the_exit_status_of_a_script_is_passed_on(start, tmp_path, text, status, said):
    with script(tmp_path, text + "\n"):
        program = start("--run", "script.py")
    assert program.end() == status
    assert said in program.err.read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "name FILEs"), (("--run",), 2, "--run needs a script"), (("nix.cpp",), 1, "nix.cpp"),
        (("--run", "nix.py"), 1, "nix.py"),
    ],
)  # fmt: skip
def test_wrong_calls_say_so(start, arguments, status, said):
    program = start(*arguments)
    assert program.end() == status
    assert said in program.err.read_text()
    assert "Traceback" not in program.err.read_text()


def test_a_taichi_file_is_loaded_again_with_a_program_that_nobody_started(start, tmp_path, ti):
    path = tmp_path / "paint.py"
    path.write_text("@ti.kernel\ndef f() -> ti.i32:\n    return 1\n")
    program = start("paint.py")
    program.said("paint v1 loaded")
    path.write_text("@ti.kernel\ndef f() -> ti.i32:\n    return 2\n")
    program.said("paint v2 loaded")
    assert program.end(interrupt=True) == 130
