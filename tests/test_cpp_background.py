"""``background=True`` for C++ texts: `load` returns at once, the old version serves, the last started build wins."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rekernel
from cppkit import START, Shim, answer, left_in, load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp


@pytest.fixture
def shim(tmp_path):
    made = Shim(tmp_path / "bin")
    yield made
    made.gate.unlink(missing_ok=True)


@pytest.fixture
def loader(tmp_path, shim):
    with load_with(tmp_path / "cache", shim.info) as made:
        yield made
        shim.gate.unlink(missing_ok=True)
        made.wait()


def test_the_old_version_serves_until_the_compiler_is_done(loader, shim):
    m = loader.load(answer(1), "k", optlevel="0")
    shim.close()
    assert loader.load(answer(2), "k", background=True) is m
    shim.wait_for(2)
    assert [m.f() for _ in range(3)] == [1] * 3
    assert loader.info("k").version == 1
    shim.open()
    loader.wait("k")
    assert (m.f(), loader.info("k").version) == (2, 2)


def test_a_first_build_says_that_it_is_not_ready(loader, shim):
    shim.close()
    m = loader.load(answer(1), "k", background=True)
    shim.wait_for(1)
    with pytest.raises(rekernel.KernelRemovedError, match=r"still being built .*loader\.wait\(\)"):
        _ = m.f
    assert "k" not in loader
    shim.open()
    loader.wait()
    assert (m.f(), "k" in loader) == (1, True)


def test_a_first_build_without_an_id_is_named_by_its_text(loader):
    loader.load("// words\nint heat() { return 7; }\n", background=True)
    loader.wait()
    assert loader["heat"].heat() == 7


def test_the_last_started_wins_whatever_is_ready_first(loader, shim):
    m = loader.load(answer(0), "k", optlevel="0")
    loader.load(answer(3), "other", optlevel="0")  # in the cache: ready at once
    shim.close()
    loader.load(answer(1), "k", background=True)
    shim.wait_for(3)
    loader.load(answer(2), "k", background=True)
    loader.load(answer(3), "k", background=True)
    shim.open()
    loader.wait()
    assert m.f() == 3
    assert [v.source for v in loader.history("k")] == [answer(0), answer(3)]


OVERTAKING = {
    "a load": (lambda loader: loader.load(answer(5), "k"), 5),
    "a load of the live text": (lambda loader: loader.load(answer(1), "k"), 1),
    "a rollback": (lambda loader: loader.rollback("k"), 0),
}


@pytest.mark.parametrize("what", OVERTAKING)
def test_what_is_done_in_the_foreground_overtakes(loader, shim, what):
    act, wanted = OVERTAKING[what]
    m = loader.load(answer(0), "k", optlevel="0")
    loader.load(answer(1), "k")
    loader.load(answer(5), "cached", optlevel="0")
    shim.close()
    loader.load(answer(2), "k", background=True)
    shim.wait_for(4)
    thread = threading.Thread(target=act, args=(loader,))
    thread.start()
    if what == "a load of the live text":
        thread.join()  # it waits for nothing
    else:
        told = threading.Event()
        overtake = loader._background.overtake
        while loader._background.tickets["k"] < 2:
            assert overtake is not told
    shim.open()
    thread.join()
    loader.wait()
    assert m.f() == wanted


def test_an_unload_during_a_build_is_not_undone_by_it(loader, shim):
    m = loader.load(answer(1), "k", optlevel="0")
    shim.close()
    loader.load(answer(2), "k", background=True)
    shim.wait_for(2)
    thread = threading.Thread(target=loader.unload, args=("k",))
    thread.start()
    while loader._background.tickets["k"] < 2:
        pass
    shim.open()
    thread.join()
    loader.wait()
    assert "k" not in loader
    with pytest.raises(rekernel.KernelRemovedError):
        _ = m.f


def test_a_build_that_fails_leaves_the_old_version_and_wait_tells_at_the_line(loader):
    m = loader.load(answer(1), "k", optlevel="0")
    events = []
    loader.on_reload(events.append)
    loader.load("\nint f() { return nonsense; }\n", "k", background=True)
    with pytest.raises(rekernel.KernelSourceError, match="nonsense") as caught:
        loader.wait()
    assert (caught.value.line, caught.value.kernel_id, caught.value.keeps) == (2, "k", 1)
    assert m.f() == 1
    assert loader.info("k").error is not None
    assert [event.kind for event in events] == ["failed"]
    loader.wait()  # told once
    loader.load(answer(2), "k", background=True)
    loader.wait()
    assert m.f() == 2
    assert loader.info("k").error is None


def test_a_first_build_that_fails_says_so(loader):
    m = loader.load("int f() { return nonsense; }\n", "k", background=True)
    with pytest.raises(rekernel.KernelSourceError):
        loader.wait("k")
    with pytest.raises(rekernel.KernelRemovedError, match=r"its build failed: .*nonsense"):
        _ = m.f


def test_several_ids_build_at_once_and_share_what_is_the_same(loader, shim):
    shim.close()
    for n in range(3):
        loader.load(answer(n), f"id{n}", background=True)
    loader.load(answer(0), "again", background=True)
    shim.wait_for(3)  # all three stand in their compilers at once
    shim.open()
    loader.wait()
    assert [loader[name].f() for name in ("id0", "id1", "id2", "again")] == [0, 1, 2, 0]
    assert len(shim.calls()) == 3


def test_wait_may_give_up_and_try_again(loader, shim):
    shim.close()
    loader.load(answer(1), "k", background=True)
    for _ in range(2):
        with pytest.raises(TimeoutError, match="k is still being built"):
            loader.wait("k", timeout=0.01)
    shim.open()
    loader.wait("k", timeout=60)
    assert loader["k"].f() == 1


def test_a_held_step_does_not_see_a_build_that_gets_ready(loader):
    f = loader.load(answer(1), "k", optlevel="0").f
    with loader.hold():
        before = f()
        loader.load(answer(2), "k", background=True)
        loader.wait()
        assert (before, f()) == (1, 1)
    assert f() == 2


def test_an_edit_of_a_header_is_built_in_the_background(loader, tmp_path):
    (tmp_path / "h.h").write_text("#define H 1\n")
    text = "#include <h.h>\nint f() { return H; }\n"
    f = loader.load(text, "k", include_dirs=[tmp_path], optlevel="0").f
    for _ in range(2):
        loader.load(text, "k", background=True)
        loader.wait()
        assert (f(), loader.info("k").version) == (1, 1)
    (tmp_path / "h.h").write_text("#define H 2\n")
    loader.load(text, "k", background=True)
    loader.wait()
    assert (f(), loader.info("k").version) == (2, 2)


ENDS = {
    "falls off its end": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise KeyError('by itself')", 1),
    "os._exit": ("os._exit(4)", 4),
    "while it waits": ("threading.Timer(0.1, lambda: os.kill(os.getpid(), 2)).start(); loader.wait()", 130),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_during_a_build_leaves_nothing(tmp_path, end):
    action, code = ENDS[end]
    shim = Shim(tmp_path / "bin")
    program = f"""
loader = load_with(sys.argv[1] + "/cache", GccInfo(command=sys.argv[1] + "/bin/g++"))
loader.load(answer(1), "k", optlevel="0")
open(sys.argv[1] + "/bin/gate", "w").close()
loader.load(answer(2), "k", background=True)
loader.load(answer(3), "other", background=True)
while len(open(sys.argv[1] + "/bin/log").readlines()) < 3: time.sleep(0.01)
print(loader["k"].f(), flush=True)
{action}
"""
    done = subprocess.run(
        [sys.executable, "-c", START.replace("load_with(sys.argv[1])", "None") + program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "1\n"
    assert done.returncode in (code, -2 if code == 130 else code), done.stderr
    assert "Fatal Python error" not in done.stderr
    if end != "os._exit":  # nobody can do anything then
        waiting = [pid for pid in shim.calls() if os.path.exists(f"/proc/{pid}")]
        assert waiting == []
    shim.open()
    assert load_with(tmp_path / "cache", shim.info).load(answer(2), "k", optlevel="0").f() == 2
    if end != "os._exit":
        assert left_in(tmp_path / "cache") == []


def test_a_forked_child_does_not_wait_for_a_build_of_its_parent(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    program = """
from pathlib import Path
shim = Shim(Path(sys.argv[1]) / "bin")
loader = load_with(sys.argv[1] + "/cache", shim.info)
loader.load(answer(1), "k", optlevel="0")
shim.close()
loader.load(answer(2), "k", background=True)
shim.wait_for(2)
pid = os.fork()
if pid == 0:
    loader.wait()
    print(loader["k"].f(), loader.load(answer(1), "k").f(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
shim.open()
loader.wait()
print(loader["k"].f())
"""
    assert run_python(START + program, str(tmp_path), timeout=60).stdout == "1 1\n2\n"
