"""``loader.log``: what was compiled and why, what was swapped, what failed; and a line while it takes long."""

from __future__ import annotations

import gc
import io
import logging
import os
import pickle
import pty
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import toy as toys
from jitkernels import AXPY, needs_compiler
from rekernel import FrozenError, KernelLoader, KernelSourceError, LogEvent, journal, progress, underway
from rekernel.eventlog import Log
from rekernel.jit import CpuJit
from rekernel.why import Reason

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

TEXT = "void fill(rekernel::Array<double, 1> x) {\n  for (long i = 0; i < x.shape(0); ++i) x(i) = 1;\n}\n"


def kinds(loader: KernelLoader) -> list[tuple[str, int | None]]:
    return [(event.kind, event.version) for event in loader.log]


# --- which events -----------------------------------------------------------------------------------------------


def test_a_life_is_told_in_order(loader: KernelLoader) -> None:
    loader.load("step(x) = 1 * x", "heat")
    loader.load("step(x) = 1 * x", "heat")
    loader.load("step(x) = 2 * x", "heat")
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = kk", "heat")
    loader.load("step(x) = 1 * x", "heat")
    loader.rollback("heat")
    loader.unload("heat")
    assert kinds(loader) == [
        ("swapped", 1), ("swapped", 2), ("failed", 2), ("restored", 3), ("rolled back", 4), ("unloaded", 4),
    ]  # fmt: skip
    assert {event.kernel_id for event in loader.log} == {"heat"}


@needs_compiler
def test_compiling_and_the_cache_are_told_with_the_reason(tmp_path: Path) -> None:
    jit = CpuJit(objcache=tmp_path / "cache")
    with KernelLoader(jit=jit) as cpp:
        cpp.load(TEXT, "heat")
        cpp.load(TEXT.replace("= 1", "= 2"), "heat")
        assert kinds(cpp) == [("compiling", 1), ("compiled", 1), ("swapped", 1),
                              ("compiling", 2), ("compiled", 2), ("swapped", 2)]  # fmt: skip
        first, done, swapped = cpp.log[3:]
        assert first.rebuilt_because == done.rebuilt_because == swapped.rebuilt_because == "text changed"
        assert (first.seconds, first.language, swapped.from_cache) == (0, "cpp", False)
        assert swapped.seconds >= done.seconds > 0
        assert first.message == "heat v2 (cpp): compiling: text changed"
    with KernelLoader(jit=jit) as again:
        again.load(TEXT, "heat")
        assert [(event.kind, event.from_cache) for event in again.log] == [("from cache", True), ("swapped", True)]


@needs_compiler
def test_a_text_that_does_not_compile_is_told_once(tmp_path: Path) -> None:
    with KernelLoader(jit=CpuJit(objcache=tmp_path / "cache")) as cpp:
        with pytest.raises(KernelSourceError) as caught:
            cpp.load("void f(double *x) { x[0] = y; }\n", "f")
        assert kinds(cpp) == [("compiling", 1), ("failed", None)]
        assert cpp.log[-1].error == str(caught.value)
        assert cpp.log[-1].language == "cpp"


@needs_compiler
def test_kernels_that_are_built_later_are_told_at_their_loader(tmp_path: Path) -> None:
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    text = ('import pystencils as ps\nu, v = ps.fields("u, v: double[2D]")\n'
            "one = ps.Assignment(v[0, 0], u[1, 0] + 1)\n")  # fmt: skip
    with KernelLoader(jit=CpuJit(objcache=tmp_path / "cache")) as made:
        module = made.load(text, "st")
        assert kinds(made) == [("swapped", 1)]
        module.one(u=np.zeros((3, 3)), v=np.zeros((3, 3)))
        assert kinds(made) == [("swapped", 1), ("compiling", 1), ("compiled", 1)]
        assert made.log[-1].message.startswith("st.one v1 (stencil): compiled in ")


def test_taichi_compiles_what_it_loads(ti: Any) -> None:
    with KernelLoader() as made:
        made.load("@ti.kernel\ndef f(x: ti.f32) -> ti.f32:\n    return x\n", "f")
        assert kinds(made) == [("compiling", 1), ("compiled", 1), ("swapped", 1)]
        assert made.log[0].rebuilt_because == "Taichi compiles each new version"


def test_dependents_are_told_at_their_own_loader(loader: KernelLoader) -> None:
    helper = loader.load("step(x) = x", "helper")
    with KernelLoader() as other:
        other.load("top(x) = h.step(x)", "top", language="toy", namespace={"h": helper})
        loader.load("step(x) = 2 * x", "helper")
        assert kinds(other) == [("swapped", 1), ("swapped", 2)]


def test_the_last_thousand_are_kept(loader: KernelLoader) -> None:
    for number in range(1010):
        loader.load(f"step(x) = {number} * x", "heat")
    assert len(loader.log) == 1000
    assert (loader.log[0].version, loader.log[-1].version) == (11, 1010)


def test_unchanged_loads_are_no_events(loader: KernelLoader) -> None:
    for _ in range(50):
        loader.load("step(x) = x", "heat")
    assert len(loader.log) == 1


def test_a_log_is_what_it_was_when_it_was_asked_for(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "heat")
    log = loader.log
    loader.unload("heat")
    assert (len(log), len(loader.log)) == (1, 2)


def test_an_event_keeps_no_array_and_no_frame_alive(loader: KernelLoader) -> None:
    class Big:
        pass

    def fail() -> weakref.ref[Big]:
        big = Big()
        with pytest.raises(KernelSourceError):
            loader.load("step(x) = kk", "heat")
        return weakref.ref(big)

    kept = fail()
    gc.collect()
    assert kept() is None
    assert type(loader.log[-1].error) is str


def test_an_event_pickles_and_cannot_change(loader: KernelLoader) -> None:
    loader.load("step(x) = x", "heat")
    (event,) = loader.log
    assert pickle.loads(pickle.dumps(event)) == event
    with pytest.raises(AttributeError):
        event.kind = "other"


def test_loads_of_many_threads_are_all_there(loader: KernelLoader) -> None:
    def work(name: str) -> None:
        for number in range(50):
            loader.load(f"step(x) = {number} * x", name)
            assert len(loader.log) > 0

    threads = [threading.Thread(target=work, args=(f"k{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(loader.log) == 200


# --- how it looks -----------------------------------------------------------------------------------------------


def event(kind: str = "swapped", **rest: Any) -> LogEvent:
    told: dict[str, Any] = {"time": 0.0, "kind": kind, "kernel_id": "heat", "version": 3, "language": "cpp", **rest}
    return LogEvent(**told)


def test_a_log_is_a_tuple_that_looks_like_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    log = Log([event("compiling", rebuilt_because="text changed"), event(seconds=0.25),
               event("failed", version=None, error="line 1: no\nmore")])  # fmt: skip
    assert isinstance(log, tuple)
    assert (log[0].kind, log[-1].kind, len(log[1:])) == ("compiling", "failed", 2)
    assert repr(log).split("\n") == [
        "<log: 3 events>",
        "   00:00:00  compiling  heat v3 (cpp)         text changed",
        "   00:00:00  swapped    heat v3 (cpp)  0.250",
        "   00:00:00  failed     heat (cpp)            line 1: no",
    ]
    assert repr(Log()) == "<log: 0 events>"
    assert repr(log[:1]).startswith("<log: 1 event>")


def test_a_long_log_shows_its_end() -> None:
    lines = repr(Log(event(version=number) for number in range(1, 101))).split("\n")
    assert len(lines) == 22
    assert "80 earlier" in lines[1]
    assert "v100" in lines[-1]


@pytest.mark.parametrize("name", ["a\nb", "x" * 500, "\x1b[31mred", "größe"])
def test_no_name_and_no_message_breaks_a_row(name: str) -> None:
    lines = repr(Log([event(kernel_id=name, error=f"{name}!")])).split("\n")
    assert len(lines) == 2
    assert "\x1b" not in lines[1]
    assert len(lines[1]) < 200


def test_html_is_escaped() -> None:
    shown = Log([event(kernel_id="<b>", error="a < b")])._repr_html_()
    assert "<b>" not in shown.replace("<table>", "")
    assert "&lt;b&gt;" in shown
    assert "a &lt; b" in shown


# --- the logger -------------------------------------------------------------------------------------------------


def test_the_logger_gets_the_same_events(loader: KernelLoader, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rekernel")
    loader.load("step(x) = x", "heat")
    with pytest.raises(KernelSourceError):
        loader.load("step(x) = kk", "heat")
    assert tuple(record.rekernel for record in caplog.records) == loader.log  # type: ignore[attr-defined]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert [record.getMessage() for record in caplog.records] == [one.message for one in loader.log]


@needs_compiler
def test_a_jit_without_a_loader_tells_the_logger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rekernel")
    jit = CpuJit(objcache=tmp_path / "cache")
    for _ in range(2):
        jit.compile(AXPY)
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "axpy (cpp): compiling: not seen before"
    assert said[1].startswith("axpy (cpp): compiled in ")
    assert said[2:] == ["axpy (cpp): from cache"]


def test_a_build_without_a_loader_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), underway.compiling("f", "cpp", Reason("key", "not seen before")):
        raise ZeroDivisionError("no\nreally")
    assert caplog.records[-1].getMessage().startswith("f (cpp): failed in ")
    assert caplog.records[-1].getMessage().endswith(": no")
    assert caplog.records[-1].rekernel.error == "no\nreally"  # type: ignore[attr-defined]


def test_work_inside_of_work_ends_with_its_block() -> None:
    outer: Any = SimpleNamespace(kernel_id="a")
    inner: Any = SimpleNamespace(kernel_id="b")
    with underway.doing(outer):
        with pytest.raises(ZeroDivisionError), underway.doing(inner):
            raise ZeroDivisionError
        assert underway.current() is outer
    assert underway.current() is None


# --- the line while it takes long -------------------------------------------------------------------------------


class Screen(io.StringIO):
    """A terminal that tells when something is written to it."""

    def __init__(self, terminal: bool = True) -> None:
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self) -> bool:
        return super().isatty() or self.terminal  # a closed one raises

    def write(self, text: str) -> int:
        done = super().write(text)
        self.written.set()
        return done


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    monkeypatch.delenv("REKERNEL_PROGRESS", raising=False)
    # Not ``sys.stderr`` itself, which pytest exchanges between the fixtures and the test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made, modules={}))
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    return made


def left_on(text: str) -> str:
    """What a terminal shows after a text with carriage returns."""
    line = ""
    for part in text.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_what_takes_long_is_shown_and_removed(screen: Screen) -> None:
    before = threading.active_count()
    with progress.shown("heat v4 (cpp)"):
        assert screen.written.wait(30)
    shown = screen.getvalue()
    assert left_on(shown.rsplit("\r", 2)[0]).startswith("heat v4 (cpp): compiling, ")
    assert shown.split("\r")[1].endswith(" s ...")
    assert left_on(shown) == ""
    assert threading.active_count() == before


def test_what_is_quick_shows_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    before = threading.active_count()
    with progress.shown("heat v4 (cpp)"):
        pass
    assert (screen.getvalue(), threading.active_count()) == ("", before)


def test_an_error_removes_the_line_too(screen: Screen) -> None:
    def fail() -> None:
        with progress.shown("heat v4 (cpp)"):
            assert screen.written.wait(30)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert left_on(screen.getvalue()) == ""


def test_of_two_builds_one_is_shown(screen: Screen) -> None:
    with progress.shown("one"):
        assert screen.written.wait(30)
        with progress.shown("two"):
            pass
    assert "two" not in screen.getvalue()


@pytest.mark.parametrize("how", ["a pipe", "switched off", "closed", "none"])
def test_where_nobody_looks_no_thread_is_started(screen: Screen, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(threading, "Thread", lambda **options: pytest.fail("a thread was started"))
    if how == "a pipe":
        screen.terminal = False
    elif how == "switched off":
        monkeypatch.setenv("REKERNEL_PROGRESS", "0")
    elif how == "closed":
        screen.close()
    else:
        monkeypatch.setattr(progress.sys, "stderr", None)
    with progress.shown("heat"):
        pass


def test_a_notebook_is_a_place_where_people_look(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    screen.terminal = False
    published: list[tuple[str, str, bool]] = []
    seen = threading.Event()

    def publish(data: dict[str, str], *, transient: dict[str, str], update: bool) -> None:
        published.append((data["text/plain"], transient["display_id"], update))
        seen.set()

    shell = SimpleNamespace(kernel=object(), display_pub=SimpleNamespace(publish=publish))
    monkeypatch.setattr(progress.sys, "modules", {"IPython": SimpleNamespace(get_ipython=lambda: shell)})
    with progress.shown("heat v4 (cpp)"):
        assert seen.wait(30)
    assert screen.getvalue() == ""  # a red box would stay
    assert published[0][0].startswith("heat v4 (cpp): compiling, ")
    assert published[-1][0] == ""
    assert [update for _line, _id, update in published] == [False] + [True] * (len(published) - 1)
    assert len({identity for _line, identity, _update in published}) == 1


def test_a_terminal_that_goes_away_stops_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()

    def write(text: str) -> int:
        gone.set()
        raise OSError("the terminal is gone")

    monkeypatch.setattr(screen, "write", write)
    with progress.shown("heat"):
        assert gone.wait(30)


@needs_compiler
def test_on_a_real_terminal_a_slow_compiler_is_seen(tmp_path: Path) -> None:
    """A compiler that waits for a file; the file is written when the line was seen."""
    go = tmp_path / "go"
    compiler = tmp_path / "slow"
    real = CpuJit().compiler_info.command
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *-MD*) while [ ! -e {go} ]; do sleep 0.05; done;; esac\nexec {real} "$@"\n'
    )
    compiler.chmod(0o755)
    program = (
        "import rekernel\nloader = rekernel.KernelLoader()\n"
        f"loader.load({TEXT!r}, 'heat')\nprint(len(loader.log), flush=True)"
    )
    env = {**os.environ, "REKERNEL_CXX": str(compiler), "REKERNEL_CACHE_DIR": str(tmp_path / "cache")}
    env.pop("REKERNEL_PROGRESS", None)
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen([sys.executable, "-c", program], env=env, stderr=theirs, stdout=subprocess.PIPE)
        os.close(theirs)
        seen = b""
        while b"compiling, " not in seen:
            seen += os.read(ours, 1000)
        go.touch()
        out, _ = process.communicate(timeout=120)
    finally:
        go.touch()
        os.close(ours)
    assert seen.startswith(b"\rheat v1 (cpp): compiling, ")
    assert (process.returncode, out) == (0, b"3\n")


def test_a_frozen_load_shows_no_line(screen: Screen, loader: KernelLoader) -> None:
    import rekernel

    with rekernel.freeze(), pytest.raises(FrozenError), underway.compiling("f", "cpp", Reason("key", "new")):
        pytest.fail("nothing may be compiled")
    assert screen.getvalue() == ""


def test_events_are_made_with_the_time_of_now() -> None:
    before = time.time()
    assert before <= journal.made("swapped", "heat", 1, "cpp").time <= time.time()
