"""Row 8: after a failed edit everything goes on: the old version, other kernels, new fields, a corrected version."""

from __future__ import annotations

import gc
import logging
import sys

import pytest

import rekernel
from support import times

HEAD = "@ti.kernel\ndef f(n: ti.template()) -> ti.f32:\n"
FUNC = "@ti.func\ndef h(x):\n"
BROKEN = {
    "undefined name": HEAD + "    return nonsense * n\n",
    "undefined name at the top": times(7) + "nonsense\n",
    "syntax error": HEAD + "    return 7 *\n",
    "indentation": HEAD + "return 7 * n\n",
    "unclosed string": HEAD + "    return '7\n",
    "type error": HEAD + "    return ti.Vector([1, 2]) + ti.Vector([1, 2, 3])\n",
    "static loop": HEAD + "    for i in ti.static(range(3)):\n        a = [1][i + 5]\n    return 7\n",
    "static assertion": HEAD + "    ti.static_assert(n > 10, 'no')\n    return 7\n",
    "function": FUNC + "    return nonsense\n\n" + HEAD + "    return h(n)\n",
    "annotation": "@ti.kernel\ndef f(n: nonsense) -> ti.f32:\n    return 7\n",
    "no annotation": "@ti.kernel\ndef f(n) -> ti.f32:\n    return 7\n",
    "exception at the top": times(7) + "raise ValueError('the text itself')\n",
    "system exit": times(7) + "raise SystemExit(3)\n",
    "exit": times(7) + "import sys\nsys.exit('bye')\n",
    "assertion at the top": times(7) + "assert 1 == 2\n",
    "unsupported statement": HEAD + "    with open('x'):\n        pass\n    return 7\n",
    "recursion": FUNC + "    return h(x)\n\n" + HEAD + "    return h(n)\n",
    "missing module": "import no_such_module_anywhere\n" + times(7),
    "wrong return": HEAD + "    pass\n",
    "field error": "x = ti.field(ti.f32, shape=-1)\n" + times(7),
    "field without a place": "x = ti.field(ti.f32)\n" + times(7) + "nonsense\n",
    "field with a gradient and no place": "x = ti.field(ti.f32, needs_grad=True)\n" + times(7) + "nonsense\n",
    "vector field without a place": "x = ti.Vector.field(2, ti.f32)\n" + times(7) + "nonsense\n",
    "layout without a field": "b = ti.root.dense(ti.i, 4)\n" + times(7) + "nonsense\n",
    "builder without an end": "b = ti.FieldsBuilder()\nx = ti.field(ti.f32)\nb.dense(ti.i, 4).place(x)\nnonsense\n",
    "field placed twice": "x = ti.field(ti.f32, 4)\nti.root.place(x)\n" + times(7),
    "null byte": times(7) + "\0",
    "lone surrogate": times(7) + "s = '\ud800'\n",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_edit_takes_nothing_away(ti, loader, fault):
    module = loader.load(times(3), "k")
    other = loader.load(times(5), "other")
    assert module.f(1) == 3

    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(BROKEN[fault], "k")
    assert caught.value.kernel_id == "k"
    assert caught.value.version == 2
    assert caught.value.keeps == 1
    assert loader.info("k").error is caught.value

    field = ti.field(ti.i32, shape=4)
    field.fill(9)
    assert field.to_numpy().tolist() == [9] * 4
    assert other.f(2) == 10
    assert module.f(1) == 3
    assert module.f(4) == 12  # a new kind of argument
    loader.load(times(11), "k")
    assert [module.f(n) for n in (1, 2)] == [11, 22]
    assert loader.info("k").error is None
    assert loader.info("k").version == 2


@pytest.mark.parametrize("fault", ["undefined name", "static loop", "function", "type error"])
def test_a_kernel_that_fails_at_its_first_call_can_be_called_again_and_corrected(ti, loader, fault):
    module = loader.load(BROKEN[fault], "k", check=False)
    for _ in range(3):
        with pytest.raises(rekernel.KernelSourceError):
            module.f(1)
    assert loader.load(times(5), "other").f(1) == 5
    field = ti.field(ti.i32, shape=2)
    field.fill(1)
    assert field.to_numpy().sum() == 2
    loader.load(times(3), "k")
    assert module.f(1) == 3


def test_a_call_that_fails_for_one_kind_of_argument_leaves_the_others(loader):
    text = HEAD + "    ti.static_assert(n < 3)\n    return 3 * n\n"
    f = loader.load(text, "k").f
    assert f(1) == 3
    with pytest.raises(rekernel.KernelSourceError):
        f(5)
    assert [f(1), f(2)] == [3, 6]


def test_an_identical_failed_text_is_tried_again(loader):
    text = "@ti.kernel\ndef f() -> ti.i32:\n    return late\n"
    with pytest.raises(rekernel.KernelSourceError, match="late"):
        loader.load(text, "k")
    assert "k" not in loader
    assert loader.load(text, "k", namespace={"late": 4}).f() == 4


def test_a_hundred_failures_leave_nothing_behind(ti, loader, caplog):
    caplog.set_level(logging.CRITICAL, logger="rekernel")  # a record of the log would hold each error
    module = loader.load(times(3), "k")
    module.f(1)

    def counts():
        gc.collect()
        kernels = ti.lang.impl.get_runtime().kernels
        living = sum(getattr(k, "reference", lambda k=k: k)() is not None for k in list(kernels))
        return len([m for m in sys.modules if m.startswith("_rekernel_live.")]), living

    loader_counts = []
    for number in range(100):
        text = BROKEN["undefined name"] if number % 2 else BROKEN["exception at the top"]
        with pytest.raises(rekernel.KernelSourceError):
            loader.load(text + f"# {number}\n", "k")
        if number in (9, 99):
            loader_counts.append(counts())
    assert loader_counts[0] == loader_counts[1]
    assert module.f(1) == 3
    assert loader.stats().failures == 100


def test_state_survives_a_failed_edit(loader):
    text = "x = ti.field(ti.i32, ())\n@ti.kernel\ndef f():\n    x[None] += {}\n"
    module = loader.load(text.format(1), "k")
    module.f()
    x = module.x
    for broken in ("nonsense", "1 +"):
        with pytest.raises(rekernel.KernelSourceError):
            loader.load(text.format(broken), "k")
    module.f()
    assert module.x is x
    assert x[None] == 2
    loader.load(text.format(10), "k")
    module.f()
    assert x[None] == 12
