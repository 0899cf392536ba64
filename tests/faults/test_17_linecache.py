"""Row 17: others clear ``linecache``; kernels still compile, and their source is still found."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback

import pytest

import rekernel
from support import times

CLASS = """
@ti.data_oriented
class C:
    @ti.kernel
    def f(self, n: ti.template()) -> ti.f32:
        return 3 * n
"""


def check():
    linecache.checkcache()


def clear():
    linecache.clearcache()


def both():
    linecache.checkcache()
    linecache.clearcache()
    traceback.format_exception(ValueError("somebody prints a traceback"))
    linecache.checkcache()


CLEARERS = [check, clear, both, linecache.cache.clear]


@pytest.mark.parametrize("clearer", CLEARERS)
@pytest.mark.parametrize("before_first_call", [True, False])
def test_calls_work_after_it(loader, clearer, before_first_call):
    f = loader.load(times(3), "k").f
    if not before_first_call:
        assert f(1) == 3
    clearer()
    assert [f(n) for n in (1, 2)] == [3, 6]
    clearer()
    assert f(4) == 12
    assert inspect.getsource(f) == times(3)


@pytest.mark.parametrize("clearer", CLEARERS)
def test_old_versions_and_classes_keep_their_text(loader, clearer):
    module = loader.load(CLASS + times(3), "k")
    old_function, pinned, item = module.f._primal.func, module.f.pinned(), module.C()
    loader.load("# moved\n\n" + CLASS + times(7), "k")
    clearer()
    assert inspect.getsource(old_function) == times(3)
    assert inspect.getsource(module.f) == times(7)
    assert [pinned(1), pinned(2)] == [3, 6]
    assert [item.f(1), item.f(2)] == [3, 6]
    assert "3 * n" in inspect.getsource(module.C)


@pytest.mark.parametrize("clearer", CLEARERS)
def test_lines_stay_right_where_others_split_lines_differently(loader, clearer):
    text = "# a\u2028b\x0b c\x0c d\x1c e\x85 f\u2029 g\n" + times(3) + "# \u2028\x0c\n" + times(5, "g")
    module = loader.load(text, "k")
    clearer()
    assert [module.f(1), module.g(1)] == [3, 5]
    assert inspect.getsource(module.g) == times(5, "g")


@pytest.mark.parametrize("clearer", CLEARERS)
def test_an_error_after_it_still_shows_the_line(loader, clearer):
    f = loader.load("# first\n" + times("nonsense"), "k", check=False).f
    clearer()
    with pytest.raises(rekernel.KernelSourceError) as caught:
        f(1)
    assert caught.value.line == 4
    assert "> 4 |     return nonsense * n" in str(caught.value)
    assert "return nonsense * n" in "".join(traceback.format_exception(caught.value))


def test_tracebacks_of_python_functions_in_a_text_show_its_lines(loader):
    module = loader.load("def fail():\n    raise ValueError('from the text')\n\n" + times(3), "k")
    linecache.clearcache()
    try:
        module.fail()
    except ValueError:
        shown = traceback.format_exc()
    assert "raise ValueError('from the text')" in shown
    assert ", line 2, in fail" in shown


def test_file_names_are_private_and_not_of_the_form_others_use(loader):
    for kernel_id in ("<string>", "<stdin>", "k", "<ipython-input-1>", "../../etc/passwd"):
        f = loader.load(times(3), kernel_id).f
        name = f._primal.func.__code__.co_filename
        assert not name.startswith("<")
        assert name in linecache.cache
        assert f(1) == 3
    names = [loader[i].f._primal.func.__code__.co_filename for i in loader]
    assert len(set(names)) == len(names)


def test_the_entries_of_others_stay(loader):
    linecache.cache["<somebody else>"] = (3, None, ["x\n"], "<somebody else>")
    try:
        before = {k: v for k, v in linecache.cache.items() if "rekernel" not in k}
        loader.load(times(3), "k").f(1)
        loader.load(times(4), "k").f(1)
        loader.unload("k")
        assert {k: v for k, v in linecache.cache.items() if k in before} == before
    finally:
        del linecache.cache["<somebody else>"]


def test_a_kernel_whose_module_somebody_removed_from_sys_modules_still_compiles(loader):
    f = loader.load(times(3), "k").f
    for name in [n for n in sys.modules if n.startswith("_rekernel_live.")]:
        del sys.modules[name]
    linecache.clearcache()
    assert f(1) == 3
