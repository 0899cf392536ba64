"""``ti.init``: inside a text, again, not at all."""

from __future__ import annotations

import numpy as np
import pytest

from kit import start, ti
from rekernel import KernelLoader, KernelSourceError, info

PLAIN = "@ti.kernel\ndef one(x: ti.types.ndarray()):\n    for i in x:\n        x[i] = 1\n"
OWNS = """
x = ti.field(ti.f32, shape=3)
data = np.zeros(2)
@ti.kernel
def up():
    for i in x:
        x[i] += 1.0
"""
WITH_INIT = "import taichi as ti\nti.init({})\n@ti.kernel\ndef one() -> ti.i32:\n    return {}\n"


@pytest.fixture(autouse=True)
def _program():
    start()
    yield
    start()


def test_the_first_init_of_a_text_takes_effect():
    ti.reset()
    with KernelLoader() as loader:
        m = loader.load(WITH_INIT.format("arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR", 1))
        assert m.one() == 1
        assert ti.lang.impl.get_runtime().default_fp == ti.f64
        assert info(m).notes == ()


def test_the_same_init_again_is_skipped_and_noted(loader):
    ti.reset()
    text = WITH_INIT.format("arch=ti.cpu, log_level=ti.ERROR", 1)
    m = loader.load(text)
    program = ti.lang.impl.get_runtime().prog
    loader.load(text.replace("return 1", "return 2"))
    assert (m.one(), ti.lang.impl.get_runtime().prog is program) == (2, True)
    assert info(m).notes == ("taichi.init(arch=x64, log_level=error) skipped: the program runs already",)


@pytest.mark.parametrize("arguments", ["arch=ti.cpu, default_fp=ti.f64", "ti.cpu, ti.f32, ti.i64", "debug=True"])
def test_another_init_raises_before_anything_is_lost(loader, arguments):
    kept = loader.load(OWNS, "kept")
    kept.up()
    with pytest.raises(KernelSourceError, match=r"cleanup_all\(reset_taichi=True\)") as caught:
        loader.load(WITH_INIT.format(arguments, 1))
    assert caught.value.line == 2
    kept.up()
    assert kept.x.to_numpy().tolist() == [2, 2, 2]


def test_an_init_for_a_gpu_that_is_not_here_is_the_same_program(loader):
    if ti.lang.misc.is_arch_supported(ti.cuda):
        pytest.skip("this machine has a GPU")
    m = loader.load(WITH_INIT.format("arch=ti.gpu", 3))
    assert (m.one(), info(m).notes[0].startswith("taichi.init(arch=[cuda, ")) == (3, True)


def test_cleanup_with_reset_allows_another_program():
    loader = KernelLoader()
    loader.load(OWNS, "kept")
    loader.cleanup_all(reset_taichi=True)
    m = loader.load(WITH_INIT.format("arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR", 4))
    assert m.one() == 4


def test_the_host_finds_its_own_init_again(loader):
    before = (ti.init, ti.lang.init, ti.lang.misc.init)
    loader.load(WITH_INIT.format("", 1))
    assert (ti.init, ti.lang.init, ti.lang.misc.init) == before


def test_kernels_go_on_after_another_init_and_fields_begin_anew(loader):
    plain, owner = loader.load(PLAIN).one, loader.load(OWNS, "own")
    up, old = owner.up, owner.x
    x = np.zeros(2, np.float32)
    plain(x)
    up()
    owner.data[0] = 9
    start(default_fp=ti.f64)
    plain(x)
    up()
    assert owner.x is not old
    assert (owner.x.to_numpy().tolist(), owner.data.tolist()) == ([1, 1, 1], [9, 0])
    assert (up.version, info(owner).version) == (1, 1)


def test_reading_a_field_after_another_init_gives_the_new_one(loader):
    m = loader.load(OWNS, "own")
    m.up()
    start()
    assert m.x.to_numpy().tolist() == [0, 0, 0]


def test_pinned_handles_and_held_classes_survive_another_init(loader):
    m = loader.load(OWNS, "own")
    pinned = m.up.pinned()
    loader.load(OWNS.replace("+= 1.0", "+= 5.0"), "own")
    start()
    pinned()
    m.up()
    assert m.x.to_numpy().tolist() == [5, 5, 5]
    assert (pinned.version, m.up.version) == (1, 2)


def test_an_object_made_before_says_that_its_fields_are_gone(loader):
    m = loader.load("""
@ti.data_oriented
class C:
    def __init__(self):
        self.f = ti.field(ti.f32, shape=1)
    @ti.kernel
    def go(self):
        self.f[0] += 1.0
""")
    old = m.C()
    old.go()
    start()
    with pytest.raises(RuntimeError, match=r"C: the object was made before ti\.init ended its program"):
        old.go()
    new = m.C()
    new.go()
    assert new.f[0] == 1
    with pytest.raises(RuntimeError, match=r"made before ti\.init"):
        old.go()


def test_an_object_made_in_the_running_program_by_a_text_that_is_older_than_it_works():
    ti.reset()
    with KernelLoader() as loader:
        m = loader.load("""
@ti.data_oriented
class C:
    def __init__(self):
        self.f = ti.field(ti.f32, shape=1)
        self.go()
    @ti.kernel
    def go(self):
        self.f[0] += 1.0

def main():
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    c = C()
    c.go()
    return c
""")
        main = m.main
        first = main()
        assert first.f[0] == 2
        second = main()
        assert second.f[0] == 2
        with pytest.raises(RuntimeError, match=r"made before ti\.init"):
            first.go()
        second.go()
        assert second.f[0] == 3


def test_a_dead_field_of_the_namespace_is_named(loader):
    space = {"x": ti.field(ti.f32, shape=2)}
    m = loader.load("@ti.kernel\ndef up():\n    for i in x:\n        x[i] += 1.0\n", namespace=space)
    up = m.up
    up()
    start()
    with pytest.raises(RuntimeError, match="of the namespace, x was made in a program"):
        up()
    space["x"] = ti.field(ti.f32, shape=2)
    up()
    assert space["x"].to_numpy().tolist() == [1, 1]


def test_without_a_program_a_call_says_what_to_do():
    ti.reset()
    with KernelLoader() as loader:
        m = loader.load(PLAIN)
        with pytest.raises(RuntimeError, match=r"no taichi program is running; call ti.init"):
            m.one(np.zeros(2, np.float32))
        start()
        x = np.zeros(2, np.float32)
        m.one(x)
        assert x.tolist() == [1, 1]


def test_after_a_bare_reset_a_call_says_what_to_do(loader):
    m = loader.load(OWNS, "own")
    up = m.up
    up()
    ti.reset()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"call ti.init"):
            up()
    start()
    up()
    assert m.x.to_numpy().tolist() == [1, 1, 1]


def test_a_dependent_and_its_helper_both_survive_another_init(loader):
    helper = loader.load("k = ti.field(ti.f32, shape=())\n@ti.func\ndef h():\n    return k[None] + 1.0\n", "helper")
    m = loader.load("@ti.kernel\ndef f() -> ti.f32:\n    return helper.h()\n", namespace={"helper": helper})
    f = m.f
    helper.k[None] = 2.0
    assert f() == 3
    start()
    assert f() == 1
    helper.k[None] = 5.0
    assert f() == 6


def test_an_unchanged_load_after_another_init_stays_the_same_version(loader):
    m = loader.load(OWNS, "own")
    start()
    assert loader.load(OWNS, "own") is m
    assert info(m).version == 1
    m.up()
    assert m.x.to_numpy().tolist() == [1, 1, 1]
