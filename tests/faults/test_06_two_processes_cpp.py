"""Row 6 for C++ texts: many processes that start on one text share one build; clearing the cache hurts nobody."""

from __future__ import annotations

import pytest

from cachekit import posix, together
from cppkit import Shim, answer, left_in, load_with, needs_cpp
from rekernel.objcache import ObjectCache

pytestmark = [posix, needs_cpp]


def test_sixteen_processes_and_one_new_text_run_one_compiler(tmp_path):
    shim = Shim(tmp_path / "bin")
    (tmp_path / "h.h").write_text("#define H 40\n")

    def work(number: int) -> tuple[int, int]:
        loader = load_with(tmp_path / "cache", shim.info)
        m = loader.load(f"#include <h.h>\n{answer('H + 2')}", "k", include_dirs=[tmp_path], optlevel="0")
        return m.f(), loader.info("k").version

    assert together(16, work) == [(42, 1)] * 16
    assert len(shim.calls()) == 1
    assert ObjectCache(tmp_path / "cache").verify().damaged == ()
    assert left_in(tmp_path / "cache") == []


@pytest.mark.parametrize("clears", [False, True])
def test_processes_that_edit_one_text_all_have_their_own_answers(tmp_path, clears):
    def work(number: int) -> bool:
        loader = load_with(tmp_path / "cache")
        f = None
        for turn in range(12):
            if clears and number == 0:
                loader.jit.objcache.prune(size=0)
            f = loader.load(answer(turn % 3), "k", optlevel="0").f
            assert f() == turn % 3
        return loader.jit.objcache.stats.damaged == 0

    assert together(4, work) == [True] * 4
    assert ObjectCache(tmp_path / "cache").verify().damaged == ()
