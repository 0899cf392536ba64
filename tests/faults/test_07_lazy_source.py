"""Row 7: Taichi reads a kernel's source at each new kind of argument; an old kernel never gets the new text.

The rule here: handles follow their id, pinned handles and originals stay. Neither ever mixes.
"""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from support import times

PADDED = "# one\n# two\n\n\n" + times(7) + "\n# three\n" * 5
SHORTER = "@ti.kernel\ndef f(n: ti.template()) -> ti.f32: return 7 * n\n"
SAME_PLACE = times(7)
OTHERS_FIRST = "@ti.kernel\ndef g(n: ti.template()) -> ti.f32:\n    return 100 * n\n\n" + times(7)


@pytest.mark.parametrize("new", [PADDED, SHORTER, SAME_PLACE, OTHERS_FIRST])
@pytest.mark.parametrize("called_before", [False, True])
def test_old_means_old_and_following_means_new(loader, new, called_before):
    module = loader.load(times(3), "k")
    follows, pinned = module.f, module.f.pinned()
    if called_before:
        assert (follows(1), pinned(1)) == (3, 3)
    loader.load(new, "k")
    for n in (1, 2, 5):
        assert follows(n) == 7 * n
        assert pinned(n) == 3 * n


def test_every_version_keeps_its_own_text_over_many_reloads(loader):
    pins = []
    for factor in range(1, 8):
        pins.append((factor, loader.load("# line\n" * factor + times(factor), "k").f.pinned()))
    linecache.checkcache()
    for factor, pinned in pins:
        assert [pinned(n) for n in (1, 2)] == [factor, 2 * factor]


def test_new_dtypes_and_ranks_of_an_old_kernel(loader):
    text = "@ti.kernel\ndef f(x: ti.types.ndarray()):\n    for i in ti.grouped(x):\n        x[i] = {}\n"
    module = loader.load(text.format(3), "k")
    pinned = module.f.pinned()
    loader.load("\n\n" + text.format(7), "k")
    for dtype in (np.float32, np.float64, np.int32):
        for shape in ((2,), (2, 2)):
            old, new = np.zeros(shape, dtype), np.zeros(shape, dtype)
            pinned(old)
            module.f(new)
            assert (old == 3).all()
            assert (new == 7).all()


def test_methods_of_old_objects_go_on_whole(loader):
    text = """
@ti.data_oriented
class C:
    def __init__(self):
        self.k = {}
    @ti.kernel
    def f(self, n: ti.template()) -> ti.f32:
        return self.k * n + {}
"""
    module = loader.load(text.format(1, 10), "k")
    old = module.C()
    assert old.f(1) == 11
    loader.load("\n\n\n" + text.format(2, 20), "k")
    # The object has its own data and the new version's methods.
    assert [old.f(n) for n in (1, 2, 3)] == [21, 22, 23]
    assert [module.C().f(n) for n in (1, 2)] == [22, 24]


def test_a_file_that_changes_on_disk_changes_nothing_until_it_is_loaded(loader, tmp_path):
    path = tmp_path / "k.py"
    path.write_text(times(3))
    module = loader.load_file(path)
    assert module.f(1) == 3
    path.write_text(PADDED)
    linecache.checkcache()
    assert module.f(2) == 6
    path.unlink()
    linecache.checkcache()
    assert module.f(4) == 12
    path.write_text(PADDED)
    loader.load_file(path)
    assert [module.f(n) for n in (1, 2, 3)] == [7, 14, 21]


def test_functions_are_inlined_from_their_own_version(loader):
    text = "{pad}@ti.func\ndef h(x):\n    return x * {k}\n\n" + times("h(1)")
    module = loader.load(text.format(pad="", k=3), "k")
    pinned = module.f.pinned()
    assert pinned(1) == 3
    loader.load(text.format(pad="#\n\n", k=7), "k")
    assert [pinned(n) for n in (1, 2)] == [3, 6]
    assert [module.f(n) for n in (1, 2)] == [7, 14]


def test_two_ids_with_one_kernel_name_do_not_meet(loader):
    a, b = loader.load(times(3), "a"), loader.load("\n" + times(7), "b")
    assert [a.f(1), b.f(1), a.f(2), b.f(2)] == [3, 7, 6, 14]
