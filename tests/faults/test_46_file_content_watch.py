"""Row 46 with `watch`: however a file is saved, exactly its final content is loaded, once, in every language.

Clocks stand while a file is written, so that the slowest machine cannot take half of a save for the whole.
"""

from __future__ import annotations

import importlib.util

import pytest

from cppkit import answer, has_gcc, load_with, needs_cpp
from watchkit import WAYS, Watching, linked, renamed, until


def cpp(number):
    return answer(number)


def taichi(number):
    return f"@ti.kernel\ndef f() -> ti.i32:\n    return {number}\n"


def stencil(number):
    return (
        "import pystencils as ps\nx, y = ps.fields('x, y: double[1D]')\n"
        f"f = [ps.Assignment(y.center, {number} * x.center)]\n"
    )


def number_of(f, language):
    if language == "stencil":
        import numpy as np

        x, y = np.ones(4), np.zeros(4)
        f(x=x, y=y)
        return int(y[1])
    return f()


CASES = [
    pytest.param(("cpp", cpp, ".cpp"), marks=needs_cpp, id="cpp"),
    pytest.param(("taichi", taichi, ".py"), id="taichi"),
    pytest.param(
        ("stencil", stencil, ".py"), id="stencil",
        marks=pytest.mark.skipif(
            not has_gcc() or importlib.util.find_spec("pystencils") is None, reason="needs pystencils and g++"
        ),
    ),
]  # fmt: skip


@pytest.fixture
def compiled(tmp_path):
    """A loader with a cache of its own; Taichi only where a test asks for it."""
    with load_with(tmp_path / "cache") as made:
        yield made


@pytest.fixture
def made(request, compiled, tmp_path):
    """A loaded file: its loader, language, text maker, path, and the kernel that gives the number of its text."""
    language, text, suffix = request.param
    loader = request.getfixturevalue("loader") if language == "taichi" else compiled
    place = tmp_path / "texts"
    place.mkdir()
    path = place / f"k{suffix}"
    path.write_text(text(1))
    module = loader.load_file(path)
    return loader, language, text, path, module.f


def settled(watching, f, language, number):
    """Wait until the kernel gives this number, calling it as a program would: texts of Taichi are loaded by a call."""
    watching.clock.go()
    until(lambda: number_of(f, language) == number, f"{number}, not {number_of(f, language)}")
    watching.quiet()


@pytest.mark.parametrize("made", CASES, indirect=True)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_saving_ends_in_one_reload_of_the_final_content(made, way):
    loader, language, text, path, f = made
    assert number_of(f, language) == 1
    with Watching(loader) as watching:
        watching.clock.stop()
        WAYS[way](path, [text(n) for n in (3, 4, 5)])
        settled(watching, f, language, 5)
        assert watching.kinds("k") == ["loaded"]
        assert loader.info("k").version == 2


@pytest.mark.parametrize("made", CASES, indirect=True)
def test_saves_that_end_where_they_began_load_nothing(made):
    loader, language, text, path, f = made
    with Watching(loader) as watching:
        watching.clock.stop()
        for number in (2, 3, 1):
            renamed(path, [text(number)])
        watching.clock.go()
        watching.quiet()
        assert (watching.kinds(), loader.info("k").version, number_of(f, language)) == ([], 1, 1)


@pytest.mark.parametrize("made", CASES, indirect=True)
def test_a_broken_save_is_told_once_and_the_next_good_one_serves(made):
    loader, language, text, path, f = made
    assert number_of(f, language) == 1
    with Watching(loader) as watching:
        broken = text(2).replace("return 2", "return unknown_name").replace("2 *", "unknown_name *")
        for _ in range(2):
            renamed(path, [broken])
            until(lambda: (number_of(f, language), "failed" in watching.kinds())[1])
            watching.quiet()
            assert (watching.kinds(), number_of(f, language)) == (["failed"], 1)
        assert "unknown_name" in str(watching.events[0].error)
        path.write_text(text(3))
        until(lambda: number_of(f, language) == 3)
        watching.quiet()
        assert watching.kinds() == ["failed", "loaded"]


@pytest.mark.parametrize("made", CASES, indirect=True)
def test_a_deleted_file_is_told_once_and_the_old_version_serves(made):
    loader, language, text, path, f = made
    with Watching(loader) as watching:
        path.unlink()
        until(lambda: (number_of(f, language), "failed" in watching.kinds())[1])
        watching.quiet()
        assert (watching.kinds(), number_of(f, language)) == (["failed"], 1)
        path.write_text(text(6))
        until(lambda: number_of(f, language) == 6)


@needs_cpp
def test_a_link_to_a_directory_that_is_swapped(compiled, tmp_path):
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "k.cpp").write_text(answer(number))
    (tmp_path / "now").symlink_to("v1")
    f = compiled.load_file(tmp_path / "now" / "k.cpp").f
    with Watching(compiled) as watching:
        (tmp_path / "new").symlink_to("v2")
        (tmp_path / "new").rename(tmp_path / "now")
        until(lambda: f() == 2)
        (tmp_path / "v2" / "k.cpp").write_text(answer(3))  # and the target is followed, too
        until(lambda: f() == 3)
        watching.quiet()
        assert watching.kinds() == ["loaded", "loaded"]


@needs_cpp
def test_a_link_that_leads_nowhere_or_in_a_circle_is_an_error_and_recovers(compiled, tmp_path):
    path = tmp_path / "texts" / "k.cpp"
    path.parent.mkdir()
    path.write_text(answer(1))
    f = compiled.load_file(path).f
    with Watching(compiled) as watching:
        for target in ("nowhere", "k.cpp"):
            path.unlink()
            path.symlink_to(target)
            watching.quiet()
            assert (watching.kinds()[-1], f()) == ("failed", 1)
        linked(path, [answer(4)])
        until(lambda: f() == 4)
