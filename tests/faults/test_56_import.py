"""Row 56: ``import rekernel`` does no work: no file, no subprocess, no heavy package, no network, no HOME needed."""

from __future__ import annotations

import subprocess
import sys

from support import run_python

WATCHED = """
import sys, os
events = []
def watch(event, arguments):
    if event in ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.chmod", "os.link", "os.symlink",
                 "shutil.rmtree", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty",
                 "socket.connect", "socket.getaddrinfo", "socket.bind", "tempfile.mkstemp", "tempfile.mkdtemp",
                 "_thread.start_new_thread", "webbrowser.open"):
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) if isinstance(flags, int) else 0
            if not writes:
                return
        events.append((event, *map(str, arguments)))
import numpy
before = set(sys.modules)
sys.addaudithook(watch)
import rekernel
repr(rekernel.kernels), rekernel.__all__
"""


def test_nothing_is_written_started_or_connected(tmp_path):
    program = (
        WATCHED
        + """
print(events)
heavy = {"taichi", "quadrants", "taichi_forge", "cupy", "torch", "pystencils", "sympy", "tree_sitter", "IPython",
         "rich", "PIL", "watchfiles", "pkg_resources", "setuptools", "multiprocessing", "asyncio", "ssl", "http"}
print(sorted({m.split(".")[0] for m in set(sys.modules) - before} & heavy))
import threading
print(threading.active_count())
"""
    )
    printed = run_python(program, cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1").stdout.splitlines()
    assert printed == ["[]", "[]", "1"]
    assert list(tmp_path.iterdir()) == []


def test_ten_processes_at_once_without_home_and_with_an_empty_path(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": "", "TMPDIR": str(tmp_path / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    if sys.platform == "win32":
        import os

        env["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    variants = [{}, {"HOME": "/nonexistent"}, {"HOME": str(home)}, {"HOME": "", "XDG_CACHE_HOME": "relative"}]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", "import rekernel; print(rekernel.__version__)"],
            env={**env, **variants[n % len(variants)]}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
            text=True,
        )
        for n in range(10)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 10, outputs
    assert len(set(outputs)) == 1
    assert outputs[0][1] == ""
    assert list(home.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_warnings_and_the_host_process_are_untouched():
    program = """
import sys, signal, threading, locale, os, warnings, logging, atexit
import numpy
def state():
    handlers = [signal.getsignal(n) for n in signal.valid_signals()]
    hooks = [sys.excepthook, sys.displayhook, threading.excepthook, sys.meta_path[:], sys.path_hooks[:]]
    return [list(sys.path), handlers, hooks, locale.setlocale(locale.LC_ALL),
            list(warnings.filters), dict(os.environ), os.getcwd(), sys.getrecursionlimit(), sys.getswitchinterval(),
            logging.getLogger().handlers, logging.getLogger().level, numpy.geterr(),
            [m for m in sys.modules if m.startswith("_rekernel")], sys.stdout, sys.stderr]
before = state()
import rekernel
print(state() == before)
"""
    process = run_python(program, PYTHONWARNINGS="error")
    assert process.stdout.split() == ["True"]
    assert process.stderr == ""


def test_the_python_optimised_modes_work():
    for mode in ("-O", "-OO", "-I", "-X", "-B"):
        extra = ["dev"] if mode == "-X" else []
        code = "import rekernel; print(len(rekernel.parse('@ti.kernel\\ndef f():\\n    pass\\n')))"
        result = subprocess.run([sys.executable, mode, *extra, "-c", code], capture_output=True, text=True, timeout=60)
        assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "1", ""), mode
