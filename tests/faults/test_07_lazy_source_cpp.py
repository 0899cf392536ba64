"""Row 7 for C++ texts: a handle runs the live text, a pinned one its own, whichever is called first, and when."""

from __future__ import annotations

import numpy as np
import pytest

from cppkit import answer, load_with, needs_cpp

pytestmark = needs_cpp

OVERLOADS = """
int scale(int x) {{ return {0} * x; }}
double scale(double x) {{ return {0} * x; }}
double scale(const double *x, int i) {{ return {0} * x[i]; }}
"""


@pytest.fixture
def loader(tmp_path):
    with load_with(tmp_path / "cache") as made:
        yield made


def answers(scale):
    return scale(1), scale(1.0), scale(np.ones(2), 1)


def test_each_kind_of_argument_is_first_used_after_the_replacement_and_never_mixed(loader):
    module = loader.load(OVERLOADS.format(3), "k")
    old, pinned = module.scale, module.scale.pinned()
    loader.load("\n\n// longer, and on other lines\n" + OVERLOADS.format(7), "k")
    assert answers(old) == (7, 7.0, 7.0)
    assert answers(pinned) == (3, 3.0, 3.0)
    loader.load("double scale(double x) { return 9 * x; }", "k")  # shorter
    assert old(1) == 9.0
    assert answers(pinned) == (3, 3.0, 3.0)


def test_the_text_of_a_version_is_its_own(loader):
    module = loader.load(answer(3), "k")
    pinned = module.f.pinned()
    loader.load(answer(7), "k")
    assert (module.f.code, pinned.code) == (answer(7), answer(3))
    assert [v.source for v in loader.history("k")] == [answer(3), answer(7)]
    assert (pinned.version, module.f.version) == (1, 2)


def test_a_file_that_was_saved_but_not_loaded_changes_nothing(loader, tmp_path):
    path = tmp_path / "k.cpp"
    path.write_text(answer(3))
    f = loader.load_file(path).f
    path.write_text(answer(7))
    assert f() == 3
    path.unlink()
    assert f() == 3
    assert f.code == answer(3)
    with pytest.raises(FileNotFoundError):
        loader.load_file(path)
    assert f() == 3
