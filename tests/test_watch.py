"""``loader.watch()``: which files are followed, what a save leads to, events, errors, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import threading
import weakref

import pytest

import rekernel
from cppkit import answer, hits, load_with, needs_cpp
from support import held, run_python
from watchkit import Watching, renamed, until

pytestmark = needs_cpp


@pytest.fixture
def loader(tmp_path):
    with load_with(tmp_path / "cache") as made:
        yield made


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "k.cpp"
    made.write_text(answer(1))
    return made


# --- what a save leads to ----------------------------------------------------------------------------------------


def test_a_saved_file_runs_in_the_handle_that_is_held(loader, path):
    f = loader.load_file(path).f
    with loader.watch() as watch:
        path.write_text(answer(2))
        until(lambda: f() == 2)
        assert [path.name] == [one.name for one in watch.paths]
    assert loader.info("k").version == 2
    path.write_text(answer(3))
    assert f() == 2


def test_options_stay_and_the_last_load_is_not_moved(loader, path):
    f = loader.load_file(path, "mine", flags="-DN=7").f
    loader.load(answer(0, "g"), "other")
    with Watching(loader) as watching:
        path.write_text(answer("N"))
        watching.last("mine", "loaded")
        assert f() == 7
        assert loader[None] is loader["other"]
        assert loader.info("mine").filename == str(path)
        assert "k" not in loader


def test_a_save_that_changes_nothing_does_nothing(loader, path):
    loader.load_file(path)
    with Watching(loader) as watching:
        before = hits(loader)
        path.write_text(answer(1))
        renamed(path, [answer(1)])
        os.utime(path, (1, 1))
        watching.quiet()
        assert (watching.events, hits(loader), loader.stats().loads) == ([], before, 1)


def test_what_was_saved_between_load_and_watch_is_loaded(loader, path):
    f = loader.load_file(path).f
    path.write_text(answer(2))
    with loader.watch():
        until(lambda: f() == 2)


def test_a_file_that_is_loaded_later_is_watched_too(loader, path):
    with Watching(loader) as watching:
        assert "nothing yet" in repr(watching.watch)
        f = loader.load_file(path).f
        watching.quiet()
        path.write_text(answer(2))
        until(lambda: f() == 2)
        watching.quiet()  # it serves before it is told
        assert watching.kinds() == ["loaded", "loaded"]


def test_a_text_that_only_names_a_file_is_not_watched(loader, path):
    loader.load(answer(5), "k", filename=str(path))
    with Watching(loader) as watching:
        path.write_text(answer(2))
        watching.quiet()
        assert watching.events == []
        assert loader["k"].f() == 5


def test_what_was_rolled_back_stays_until_the_next_change(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.write_text(answer(2))
        watching.last("k", "loaded")
        loader.rollback("k")
        watching.quiet()
        assert f() == 1
        path.write_text(answer(3))
        until(lambda: f() == 3)


def test_an_id_that_was_unloaded_is_left_alone(loader, path, tmp_path):
    for places in ((), (path,), (tmp_path,)):
        loader.load_file(path)
        with Watching(loader, *places) as watching:
            loader.unload("k")
            path.write_text(answer(len(str(places))))
            watching.quiet()
            assert "k" not in loader
            module = loader.load_file(path)  # and watched again
            watching.quiet()
            path.write_text(answer(77))
            until(lambda module=module: module.f() == 77)


# --- what is wrong -----------------------------------------------------------------------------------------------


def test_a_broken_save_is_told_once_and_the_old_version_goes_on(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.write_text("int f() { retur 2; }\n")
        error = watching.last("k", "failed").error
        assert (error.filename, error.line, error.keeps, f()) == (str(path), 1, 1, 1)
        assert str(loader.info("k").error) == str(error)
        for _ in range(3):  # the same broken text again
            renamed(path, ["int f() { retur 2; }\n"])
            watching.quiet()
        assert watching.kinds() == ["failed"]
        assert [str(one) for one in watching.watch.errors.values()] == [str(error)]
        assert "1 broken" in repr(watching.watch)
        path.write_text(answer(3))
        until(lambda: f() == 3)
        watching.quiet()
        assert watching.kinds() == ["failed", "loaded"]
        assert (watching.watch.errors, loader.info("k").error) == ({}, None)


def test_going_back_to_what_serves_takes_the_error_back(loader, path):
    loader.load_file(path)
    with Watching(loader) as watching:
        path.write_text("int f() { retur 2; }\n")
        watching.last("k", "failed")
        path.write_text(answer(1))
        assert watching.last("k", "recovered").version == 1
        assert (watching.watch.errors, loader.info("k").error) == ({}, None)
        assert loader.stats().loads == 1


def test_an_error_that_is_mended_before_it_is_quiet_is_not_told(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        watching.clock.stop()
        path.write_text("int f() { retur 2; }\n")
        until(lambda: any(text.failure for text in watching.watch._all_texts()))
        path.write_text(answer(2))
        watching.clock.go()
        until(lambda: f() == 2)
        watching.quiet()
        assert watching.kinds() == ["loaded"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe int f() { return 1; }", "not UTF-8"),
        (b"int f() { return '\xe4'; }\n", "not UTF-8"),
        (None, "is gone"),
        (b"", "is empty; k v1 keeps running"),
        (b" \n\n", "is empty; k v1 keeps running"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_once(loader, path, content, said):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert said in str(watching.last("k", "failed").error)
        watching.quiet()
        assert (watching.kinds(), f()) == (["failed"], 1)
        path.write_text(answer(4))
        until(lambda: f() == 4)


def test_a_directory_or_a_pipe_in_the_place_of_a_file_is_an_error(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.unlink()
        path.mkdir()
        assert "no file" in str(watching.last("k", "failed").error)
        path.rmdir()
        os.mkfifo(path)
        watching.quiet()
        assert f() == 1
        path.unlink()
        path.write_text(answer(4))
        until(lambda: f() == 4)


def test_a_file_that_an_editor_empties_first_is_loaded_when_it_is_filled(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        watching.clock.stop()
        path.write_text("")
        wanted = watching.watch.turns + 3
        until(lambda: watching.watch.turns >= wanted or watching.watch.poke())
        path.write_text(answer(2))
        watching.clock.go()
        until(lambda: f() == 2)
        watching.quiet()
        assert watching.kinds() == ["loaded"]


def test_a_directory_that_vanishes_and_comes_back(loader, tmp_path):
    place = tmp_path / "kernels"
    place.mkdir()
    path = place / "k.cpp"
    path.write_text(answer(1))
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        shutil.rmtree(place)
        watching.last("k", "failed")
        place.mkdir()
        path.write_text(answer(2))
        until(lambda: f() == 2)
        path.write_text(answer(3))
        until(lambda: f() == 3)


# --- headers -----------------------------------------------------------------------------------------------------


def test_a_changed_header_reloads_every_id_that_includes_it(loader, tmp_path):
    (tmp_path / "inc").mkdir()
    header = tmp_path / "inc" / "n.hpp"
    header.write_text("#define N 1\n")
    for name in ("a", "b"):
        (tmp_path / f"{name}.cpp").write_text(f'#include "n.hpp"\nint {name}() {{ return N; }}\n')
    (tmp_path / "c.cpp").write_text(answer(1, "c"))
    a, b, _ = (loader.load_file(tmp_path / f"{n}.cpp", include_dirs=[tmp_path / "inc"]) for n in "abc")
    with Watching(loader) as watching:
        assert header in watching.watch.paths
        header.write_text("#define N 2\n")
        until(lambda: (a.a(), b.b()) == (2, 2))
        watching.quiet()
        assert sorted(event.kernel_id for event in watching.events) == ["a", "b"]
        header.write_text("#error broken\n")
        error = watching.last("a", "failed").error
        assert "n.hpp" in str(error)
        watching.last("b", "failed")
        header.write_text("#define N 3\n")
        until(lambda: (a.a(), b.b()) == (3, 3))


def test_a_header_that_was_missing_mends_the_text_when_it_appears(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.write_text('#include "new.hpp"\nint f() { return N; }\n')
        watching.last("k", "failed")
        path.with_name("new.hpp").write_text("#define N 6\n")
        until(lambda: f() == 6)


def test_a_header_of_a_new_version_is_followed(loader, path):
    f = loader.load_file(path).f
    header = path.with_name("new.hpp")
    header.write_text("#define N 6\n")
    with Watching(loader) as watching:
        path.write_text('#include "new.hpp"\nint f() { return N; }\n')
        until(lambda: f() == 6)
        header.write_text("#define N 7\n")
        until(lambda: f() == 7)
        watching.quiet()
        assert watching.kinds() == ["loaded", "loaded"]


# --- files, directories, patterns --------------------------------------------------------------------------------


def test_a_named_file_is_loaded_at_once_and_shown_as_it_was_named(loader, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    with Watching(loader, "k.cpp") as watching:
        assert (loader["k"].f(), loader.info("k").filename) == (1, "k.cpp")
        assert loader.load_file("k.cpp") is loader["k"]
        assert loader.info("k").version == 1
        path.write_text(answer(2))
        until(lambda: loader["k"].f() == 2)
        watching.quiet()
        assert watching.kinds() == ["loaded", "loaded"]


def test_a_named_file_that_is_broken_at_first_is_told_and_waited_for(loader, path):
    path.write_text("int f( {\n")
    with Watching(loader, path) as watching:
        assert watching.kinds() == ["failed"]
        assert "k" not in loader
        path.write_text(answer(2))
        watching.last("k", "loaded")
        assert loader["k"].f() == 2


def test_a_directory_loads_what_has_kernels_and_what_comes_later(loader, tmp_path):
    place = tmp_path / "kernels"
    place.mkdir()
    (place / "a.cpp").write_text(answer(1, "a"))
    for name, text in {
        "data.txt": "x",
        "tool.py": "import os\n",
        ".b.cpp": answer(1),
        "only.hpp": "#define N 1\n",
    }.items():
        (place / name).write_text(text)
    with Watching(loader, place) as watching:
        assert list(loader) == ["a"]
        (place / "b.cpp").write_text(answer(2, "b"))
        (place / "notes.cpp").write_text("// nothing yet\n")
        watching.last("b", "loaded")
        watching.quiet()
        assert watching.kinds("notes") == []
        (place / "notes.cpp").write_text(answer(3, "notes"))
        watching.last("notes", "loaded")
        (place / "b.cpp").write_text(answer(4, "b"))
        until(lambda: loader["b"].b() == 4)
        (place / "a.cpp").unlink()
        watching.last("a", "failed")
        assert loader["a"].a() == 1


def test_a_pattern_finds_files_in_new_directories(loader, tmp_path):
    with Watching(loader, tmp_path / "**" / "*.cpp") as watching:
        deep = tmp_path / "one" / "two"
        deep.mkdir(parents=True)
        (deep / "d.cpp").write_text(answer(8, "d"))
        watching.last("d", "loaded")
        assert loader["d"].d() == 8


def test_an_id_that_is_taken_is_told_and_not_replaced(loader, path):
    loader.load(answer(9), "k")
    with Watching(loader, path) as watching:
        assert "is taken" in str(watching.last("k", "failed").error)
        assert (loader["k"].f(), loader.info("k").error) == (9, None)


def test_paths_that_are_not_there_are_refused(loader, tmp_path):
    for path in (tmp_path / "nix.cpp", tmp_path / "nix" / "*.cpp"):
        with pytest.raises(FileNotFoundError, match="nix"):
            loader.watch(path)
    with pytest.raises(TypeError):
        loader.watch(b"k.cpp")
    with pytest.raises(TypeError):
        loader.watch(3)
    assert loader._watches == []


def test_without_notices_files_are_looked_at_again_and_again(loader, path):
    f = loader.load_file(path).f
    with loader.watch(polling=True):
        path.write_text(answer(2))
        until(lambda: f() == 2)


# --- events ------------------------------------------------------------------------------------------------------


def test_iterating_gives_what_the_watch_has_done_and_ends_with_it(loader, path):
    f = loader.load_file(path).f
    watch = loader.watch()
    loader.load(answer(4, "by_hand"))  # not the watch's
    path.write_text(answer(2))
    until(lambda: f() == 2)
    until(lambda: watch._events)
    found = []

    def stop_after_two() -> None:
        for event in watch:
            found.append((event.kernel_id, event.kind, event.version))
            path.write_text(answer(3))
            if len(found) == 2:
                watch.stop()

    stop_after_two()
    assert found == [("k", "loaded", 2), ("k", "loaded", 3)]
    assert [event.version for event in watch] == [2, 3]


def test_async_iteration_leaves_the_loop_running(loader, path):
    loader.load_file(path)

    async def main() -> tuple[list[int | None], int]:
        ticks, found = 0, []

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        with loader.watch() as watch:
            path.write_text(answer(2))
            async for event in watch:
                found.append(event.version)
                if event.version == 3:
                    watch.stop()
                else:
                    path.write_text(answer(3))
        ticking.cancel()
        return found, ticks

    found, ticks = asyncio.run(asyncio.wait_for(main(), 60))
    assert found == [2, 3]
    assert ticks > 3


def test_what_a_callback_raises_stops_nothing(loader, path):
    f = loader.load_file(path).f

    def bad(event):
        raise RuntimeError("mine")

    loader.on_reload(bad)
    with loader.watch():
        for number in (2, 3):
            path.write_text(answer(number))
            until(lambda number=number: f() == number)


# --- the end -----------------------------------------------------------------------------------------------------


def test_stop_leaves_no_thread_and_no_descriptor(loader, path):
    f = loader.load_file(path).f
    with loader.watch():  # what is made once
        path.write_text(answer(2))
        until(lambda: f() == 2)
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("rekernel")])
    before = held()
    for number in range(3, 6):
        watch = loader.watch()
        path.write_text(answer(number))
        until(lambda number=number: f() == number)
        watch.stop()
        watch.stop()
    until(lambda: (held()["fds"], held()["tasks"]) == (before["fds"], before["tasks"]))
    assert "stopped" in repr(watch)
    assert loader._callbacks == {}


def test_a_watch_may_be_stopped_by_its_own_callback(loader, path):
    for broken in (False, True):
        path.write_text(answer(1))
        loader.load_file(path)
        watch = loader.watch()
        stopped = threading.Event()
        remove = loader.on_reload(lambda event, watch=watch, stopped=stopped: (watch.stop(), stopped.set()))
        path.write_text("int f( {" if broken else answer(2))
        assert stopped.wait(60)
        watch._thread.join(60)
        assert not watch._thread.is_alive()
        remove()


def test_leaving_the_loader_stops_its_watches(tmp_path, path):
    with load_with(tmp_path / "cache") as loader:
        loader.load_file(path)
        watch = loader.watch()
    assert not watch._thread.is_alive()


def test_a_loader_that_nobody_holds_is_not_kept_by_its_watch(tmp_path, path):
    loader = load_with(tmp_path / "cache")
    f = loader.load_file(path).f
    watch = loader.watch()
    path.write_text(answer(2))
    until(lambda: watch._events)
    assert f() == 2
    path.write_text("int f( {")
    until(lambda: watch.errors)
    reference = weakref.ref(loader)
    del loader, f
    until(lambda: gc.collect() is None or reference() is None)
    watch._thread.join(60)
    assert not watch._thread.is_alive()


PROGRAM = """
import os, sys, threading, time
from pathlib import Path
from cppkit import *
from watchkit import until
path = Path(sys.argv[1]) / "k.cpp"
path.write_text(answer(1))
loader = load_with(sys.argv[1] + "/cache")
f = loader.load_file(path).f
watch = loader.watch()
"""


def test_the_interpreter_ends_while_it_watches(tmp_path):
    assert run_python(PROGRAM + "print(f())", str(tmp_path)).stdout == "1\n"


def test_a_forked_child_is_left_alone(tmp_path):
    done = run_python(
        PROGRAM
        + """
path.write_text(answer(2))
until(lambda: f() == 2)
child = os.fork()
if not child:
    path.write_text(answer(3))
    watch.stop()
    loader.cleanup_all()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
until(lambda: f() == 3)
child = os.fork()
if not child:
    sys.exit(8)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
path.write_text(answer(4))
until(lambda: f() == 4)
print("fine")
""",
        str(tmp_path), PYTHONWARNINGS="ignore",
    )  # fmt: skip
    assert done.stdout == "fine\n"


@pytest.mark.parametrize("setup", ["", "import logging; logging.basicConfig(stream=sys.stdout)"])
def test_an_error_that_nobody_handles_is_printed_once(tmp_path, setup):
    done = run_python(
        PROGRAM
        + setup
        + """
path.write_text("int f() { retur 2; }\\n")
until(lambda: watch.errors)
watch.stop()
""",
        str(tmp_path),
    )
    block = f"k v2 (cpp), {tmp_path}/k.cpp:1:11: 'retur' was not declared in this scope"
    assert done.stderr.count(block) == (0 if setup else 1)
    assert done.stdout.count(block) == (1 if setup else 0)
    if not setup:
        assert done.stderr.startswith("rekernel.KernelSourceError: ")
        assert "k v1 keeps running." in done.stderr


def test_without_watchfiles_the_error_says_what_to_install(loader, monkeypatch):
    for name in ("watchfiles", "watchfiles._rust_notify"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(rekernel.ToolchainError, match=r'pip install "rekernel\[watch\]"'):
        loader.watch()
    assert loader._callbacks == {}


# --- holding, and users of other threads -------------------------------------------------------------------------


def test_a_swap_is_not_seen_inside_a_hold(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        with loader.hold():
            path.write_text(answer(2))
            watching.last("k", "loaded")
            assert f() == 1
        assert f() == 2


def test_a_load_by_hand_is_not_lost_to_a_watch(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        watching.clock.stop()
        path.write_text(answer(2))
        until(lambda: any(text.attempt for text in watching.watch._all_texts()))
        loader.load(answer(5), "k")
        watching.clock.go()
        watching.quiet()
        assert f() == 5
