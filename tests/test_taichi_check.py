"""A broken edit never replaces a working kernel, and nobody has to ask for that."""

from __future__ import annotations

import numpy as np
import pytest

from kit import ti
from rekernel import KernelLoader, KernelSourceError, RekernelWarning

GOOD = """
@ti.kernel
def scale(x: ti.types.ndarray(), k: ti.f32):
    for i in x:
        x[i] = k * x[i]
"""
BROKEN = GOOD.replace("k * x[i]", "k * xx[i]")


def test_the_types_of_the_live_version_are_compiled_before_the_swap(loader):
    m = loader.load(GOOD)
    x = np.ones(3, np.float32)
    m.scale(x, 2.0)
    with pytest.raises(KernelSourceError) as caught:
        loader.load(BROKEN)
    assert (caught.value.line, caught.value.column, caught.value.kernel_id) == (5, 20, "scale")
    assert "did you mean 'x'?" in caught.value.message
    m.scale(x, 2.0)
    assert x.tolist() == [4, 4, 4]
    assert loader.info().error is caught.value


def test_a_version_that_was_never_called_is_not_checked_and_fails_at_the_call_every_time(loader):
    m = loader.load(GOOD)
    loader.load(BROKEN)
    x = np.ones(3, np.float32)
    for _ in range(3):
        with pytest.raises(KernelSourceError, match="line 5"):
            m.scale(x, 2.0)
    assert x.tolist() == [1, 1, 1]
    loader.rollback()
    m.scale(x, 2.0)
    assert x.tolist() == [2, 2, 2]


def test_the_real_call_uses_what_was_compiled(loader):
    m = loader.load(GOOD)
    x = np.ones(3, np.float32)
    m.scale(x, 2.0)
    loader.load(GOOD.replace("k * x[i]", "3 * k * x[i]"))
    compiled = loader.stats().languages["taichi"]["compiled"]
    m.scale(x, 1.0)
    assert x.tolist() == [6, 6, 6]
    assert loader.stats().languages["taichi"]["compiled"] == compiled


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: (ti.ndarray(ti.f32, shape=3), 2.0),
        lambda: (np.ones((2, 2), np.float64), 2.0),
        lambda: (ti.Vector.ndarray(2, ti.f32, shape=3), 2.0),
    ],
    ids=["ti.ndarray", "numpy f64 2d", "vector ndarray"],
)
def test_every_kind_of_array_is_remembered_by_type_only(loader, arguments):
    text = GOOD.replace("for i in x:", "for i in ti.grouped(x):")
    m = loader.load(text)
    m.scale(*arguments())
    with pytest.raises(KernelSourceError):
        loader.load(text.replace("k * x[i]", "k * xx[i]"))
    assert loader.info().version == 1


def test_template_values_are_checked_too(loader):
    text = """
f = ti.field(ti.f32, shape=3)
@ti.kernel
def put(target: ti.template(), n: ti.template()):
    for i in target:
        target[i] = n + 1
"""
    m = loader.load(text, "t")
    m.put(m.f, 3)
    with pytest.raises(KernelSourceError, match="line 6"):
        loader.load(text.replace("n + 1", "n + 'a'"), "t")
    m.put(m.f, 3)
    assert m.f.to_numpy().tolist() == [4, 4, 4]


def test_kernels_without_arguments_are_checked_at_once(loader):
    with pytest.raises(KernelSourceError, match="line 3"):
        loader.load("@ti.kernel\ndef f() -> ti.i32:\n    return missing\n")
    assert "f" not in loader


def test_a_kernel_that_waits_for_a_global_is_not_checked_at_once(loader):
    m = loader.load("""
x = None
def setup():
    global x
    x = ti.field(ti.f32, shape=2)
@ti.kernel
def f():
    for i in x:
        x[i] = 1.0
""")
    m.setup()
    m.f()
    assert m.x.to_numpy().tolist() == [1, 1]


def test_gradients_that_were_used_are_checked(loader):
    text = """
x = ti.field(ti.f32, shape=(), needs_grad=True)
y = ti.field(ti.f32, shape=(), needs_grad=True)
@ti.kernel
def f():
    y[None] += x[None] * x[None]
"""
    m = loader.load(text, "g")
    m.x[None] = 2.0
    with ti.ad.Tape(m.y):
        m.f()
    loader.load(text.replace("x[None] * x[None]", "3 * x[None]"), "g")
    with ti.ad.Tape(m.y):
        m.f()
    assert m.x.grad[None] == 3


def test_check_adds_types(loader):
    with pytest.raises(KernelSourceError):
        loader.load(BROKEN, check=(np.ones(3, np.float32), 1.0))
    with pytest.raises(KernelSourceError):
        loader.load(BROKEN, check={"scale": (np.ones(3, np.float32), 1.0)})
    x = np.ones(3, np.float32)
    loader.load(GOOD, check=(x, 5.0))
    assert x.tolist() == [1, 1, 1]


def test_check_false_switches_it_off(loader):
    m = loader.load(GOOD)
    m.scale(np.ones(3, np.float32), 2.0)
    loader.load(BROKEN, check=False)
    assert m.scale.version == 2


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        ({"nope": (1,)}, ValueError, "names no kernel of the text: nope"),
        ((1,), TypeError, r"gives 1 arguments for scale\(\), which takes 2"),
        ("yes", TypeError, "check= takes True, False"),
    ],
)
def test_a_wrong_check_says_so(loader, check, error, words):
    with pytest.raises(error, match=words):
        loader.load(GOOD, check=check)
    assert len(loader) == 0


def test_renamed_and_new_parameters_are_matched_by_name(loader):
    m = loader.load(GOOD)
    x = np.ones(2, np.float32)
    m.scale(x, 2.0)
    with pytest.raises(KernelSourceError):
        loader.load(BROKEN.replace("k: ti.f32", "k: ti.f32, extra: ti.i32"))
    loader.load(GOOD.replace("(x: ti.types.ndarray(), k: ti.f32)", "(k: ti.f32, x: ti.types.ndarray())"))
    m.scale(3.0, x)
    assert x.tolist() == [6, 6]


def test_a_dead_instance_is_no_reason_to_fail(loader):
    text = """
@ti.data_oriented
class C:
    def __init__(self):
        self.f = ti.field(ti.f32, shape=1)
    @ti.kernel
    def go(self):
        self.f[0] += 1.0
"""
    m = loader.load(text, "c")
    m.C().go()
    loader.load(text.replace("+= 1.0", "+= 2.0"), "c")
    c = m.C()
    c.go()
    assert c.f[0] == 2


def test_auto_rollback_answers_with_the_version_before():
    with KernelLoader(auto_rollback=True) as loader:
        m = loader.load(GOOD)
        loader.load(BROKEN)
        x = np.ones(2, np.float32)
        with pytest.warns(RekernelWarning, match="line 5"):
            m.scale(x, 2.0)
        assert x.tolist() == [2, 2]
        assert (m.scale.version, loader.info().error.line) == (3, 5)
        m.scale(x, 2.0)
        assert x.tolist() == [4, 4]


def test_auto_rollback_without_a_version_before_raises():
    with KernelLoader(auto_rollback=True) as loader:
        m = loader.load(BROKEN)
        with pytest.raises(KernelSourceError):
            m.scale(np.ones(2, np.float32), 2.0)


def test_vectors_into_scalars_and_floats_into_bools_are_errors_not_aborts(loader):
    text = "@ti.kernel\ndef f(x: ti.types.ndarray()):\n    for i in x:\n        x[i] = VALUE\n"
    cases = [
        ("ti.Vector([1.0, 2.0])", np.float32, "cannot store a vector"),
        ("1.5 * i", np.bool_, "cannot store a value of type f32 into a place of type u1"),
        ("ti.Vector([1.0, 2.0]) > 1", np.float32, "cannot store a vector"),
        ("ti.select(i > 0, 1.5, 2.5)", np.bool_, "cannot store a value of type f32"),
    ]
    for value, dtype, words in cases:
        with pytest.raises(KernelSourceError, match=words):
            loader.load(text.replace("VALUE", value), "f", check=(np.ones(3, dtype),))
    assert len(loader) == 0


def test_a_helper_in_another_text_points_at_its_own_line(loader):
    helper = loader.load("@ti.func\ndef h(a):\n    return a + nothing\n", "helper")
    with pytest.raises(KernelSourceError) as caught:
        loader.load("@ti.kernel\ndef f() -> ti.f32:\n    return h.h(1.0)\n", "f", namespace={"h": helper})
    assert (caught.value.kernel_id, caught.value.line) == ("helper", 3)
