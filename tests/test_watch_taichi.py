"""``loader.watch()`` and Taichi texts: loaded at the next use, on their thread, once; helper modules are followed."""

from __future__ import annotations

import sys
import threading

import pytest

from watchkit import Watching, until


def text(number, more=""):
    return f"{more}\n@ti.kernel\ndef f(n: ti.i32) -> ti.i32:\n    return n + {number}\n"


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "paint.py"
    made.write_text(text(1))
    return made


def waits(watching):
    """Wait until a changed text has settled and waits for a call."""
    until(lambda: watching.loader._waiting)
    until(lambda: all(one.settling.left(watching.clock()) == 0 for one in watching.watch._all_texts()))


def elsewhere(call):
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


def test_a_saved_text_is_loaded_by_the_next_call_on_its_own_thread_once(loader, path):
    f = loader.load_file(path).f
    assert f(0) == 1
    with Watching(loader) as watching:
        path.write_text(text(2))
        waits(watching)
        assert elsewhere(lambda: f(0)) == 1
        assert watching.kinds() == []
        assert f(0) == 2
        assert (watching.kinds(), loader._waiting.__bool__(), f._cell.override) == (["loaded"], False, False)
        assert elsewhere(lambda: f(0)) == 2


def test_a_thread_that_has_ended_hands_its_texts_to_the_others(loader, path):
    loader.load("@ti.kernel\ndef first():\n    pass\n").first()  # on the thread of ti.init, as Taichi wants it
    f = elsewhere(lambda: loader.load_file(path)).f
    with Watching(loader) as watching:
        path.write_text(text(2))
        waits(watching)
        assert f(0) == 2


def test_nothing_is_loaded_inside_a_hold_and_all_at_its_end(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        with loader.hold():
            path.write_text(text(2))
            waits(watching)
            assert (f(0), watching.kinds()) == (1, [])
        assert (watching.kinds(), f(0)) == (["loaded"], 2)


@pytest.mark.parametrize("use", ["module", "lookup", "by hand"])
def test_reading_the_module_loads_too(loader, path, use):
    module = loader.load_file(path)
    with Watching(loader) as watching:
        path.write_text(text(2, "c = 5"))
        waits(watching)
        if use == "module":
            assert module.c == 5
        elif use == "lookup":
            assert loader["paint"].c == 5
        else:
            watching.watch.catch_up()
        assert watching.kinds() == ["loaded"]


def test_a_text_that_fails_is_told_once_and_its_call_is_answered_by_the_old_version(loader, path):
    f = loader.load_file(path).f
    assert f(0) == 1
    with Watching(loader) as watching:
        path.write_text(text("unknown"))
        waits(watching)
        assert f(0) == 1
        error = watching.last("paint", "failed").error
        assert (error.filename, error.line, "unknown" in str(error)) == (str(path), 4, True)
        assert [f(0), f(0)] == [1, 1]
        assert (watching.kinds(), f._cell.override) == (["failed"], False)


def test_a_syntax_error_is_told_without_a_call(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.write_text("@ti.kernel\ndef f(n: ti.i32) -> ti.i32:\n    return (n\n")
        assert watching.last("paint", "failed").error.line == 3
        assert f(0) == 1


def test_iterating_on_its_thread_loads_a_text_that_nobody_calls(loader, path):
    loader.load_file(path)
    with Watching(loader) as watching:
        path.write_text(text(2))
        assert next(iter(watching.watch)).version == 2


def test_state_goes_on_over_a_watched_reload(loader, path):
    state = "x = ti.field(ti.f32, 3)\n@ti.kernel\ndef add():\n    for i in x:\n        x[i] += {}\n"
    path.write_text(state.format(1))
    module = loader.load_file(path)
    module.add()
    with Watching(loader) as watching:
        path.write_text(state.format(10))
        waits(watching)
        module.add()
        assert module.x.to_numpy().tolist() == [11, 11, 11]
        assert watching.events[0].anew == ()


def test_a_changed_local_module_reloads_every_text_that_imports_it(loader, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "watched_physics.py"
    helper.write_text("c = 100\n")
    kernels = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(text("watched_physics.c", "import watched_physics"))
        kernels.append(loader.load_file(tmp_path / f"{name}.py").f)
    try:
        with Watching(loader) as watching:
            assert helper in watching.watch.paths
            helper.write_text("c = 200\n")
            until(lambda: [f(0) for f in kernels] == [200, 200])
            assert sorted(event.kernel_id for event in watching.events) == ["one", "two"]
            helper.write_text("c = (\n")
            until(lambda: [f(0) for f in kernels] == [200, 200] and watching.kinds().count("failed") == 2)
            assert {event.error.filename for event in watching.events[2:]} == {str(helper)}
            helper.write_text("c = 300\n")
            until(lambda: [f(0) for f in kernels] == [300, 300])
    finally:
        sys.modules.pop("watched_physics", None)


def test_a_new_file_in_a_directory_is_loaded_when_somebody_asks_for_it(loader, tmp_path):
    with Watching(loader, tmp_path) as watching:
        (tmp_path / "late.py").write_text(text(4))
        (tmp_path / "tool.py").write_text("import os\nname = os.sep\n")
        waits(watching)
        assert loader["late"].f(0) == 4
        watching.quiet()
        assert watching.kinds() == ["loaded"]


def test_what_waits_is_forgotten_when_the_file_goes_back_or_the_watch_ends(loader, path):
    f = loader.load_file(path).f
    with Watching(loader) as watching:
        path.write_text(text(2))
        waits(watching)
        path.write_text(text(1))
        until(lambda: not loader._waiting)
        assert (f(0), f._cell.override) == (1, False)
        path.write_text(text(3))
        waits(watching)
    assert (f(0), f._cell.override, watching.kinds()) == (1, False, [])


def test_a_text_of_another_language_that_taichi_depends_on_waits_for_the_thread_of_taichi(loader, tmp_path):
    base, user = tmp_path / "base.py", "@ti.kernel\ndef g(n: ti.i32) -> ti.i32:\n    return base.twice(n)\n"
    base.write_text("@ti.func\ndef twice(n):\n    return 2 * n\n")
    module = loader.load_file(base)
    g = loader.load(user, "user", namespace={"base": module}).g
    with Watching(loader) as watching:
        base.write_text("@ti.func\ndef twice(n):\n    return 20 * n\n")
        waits(watching)
        assert g(1) == 20
        assert sorted(event.kernel_id for event in watching.events) == ["base", "user"]
