"""Row 8 for C++ texts: a broken edit takes nothing away, whatever is wrong with it, and the next good one works."""

from __future__ import annotations

import pytest

import rekernel
from cppkit import answer, hits, left_in, load_with, needs_cpp

pytestmark = needs_cpp

GOOD = "static int calls;\nint f() { return 3; }\nint count() { return ++calls; }\n"
BROKEN = {
    "undefined name": "int f() { return nonsense; }\nint count() { return 0; }\n",
    "syntax": "int f() { return 3 }\nint count() { return 0; }\n",
    "open brace": "int f() { return 3;\nint count() { return 0; }\n",
    "closing brace": "int f() { return 3; }}\nint count() { return 0; }\n",
    "type": "int f() { int *p = 3.5; return *p; }\n",
    "missing header": '#include "missing.h"\n' + GOOD,
    "missing header of the system": "#include <missing/missing>\n" + GOOD,
    "static assertion": "static_assert(sizeof(int) == 3, \"no\");\n" + GOOD,
    "error directive": "#error not today\n" + GOOD,
    "open condition": "#if 1\n" + GOOD,
    "open comment": GOOD + "/* for ever",
    "open string": 'const char *s = "abc;\n' + GOOD,
    "template": "template <class T> T g(T x) { return x.y; }\nint f() { return g(1); }\n",
    "no definition": "int elsewhere();\nint f() { return elsewhere(); }\n",
    "defined twice": GOOD + GOOD,
    "constant expression": "constexpr int n(int i) { return i ? n(i - 1) : throw 1; }\nstatic_assert(n(3), \"\");\n" + GOOD,
    "nothing public": "static int f() { return 3; }\n",
    "nothing at all": "// only words\n",
    "missing library": GOOD,
    "unknown flag": GOOD,
    "wrong constructor": "struct A { A() = delete; };\nint f() { A a; return 3; }\n",
}  # fmt: skip
OPTIONS = {"missing library": {"flags": ["-lno-such-library-here"]}, "unknown flag": {"flags": ["-fno-such-flag"]}}
ALLOWED = {"nothing public", "nothing at all"}
"""Texts without a kernel are no faults by themselves: what they do to a live id is told below."""


@pytest.fixture
def loader(tmp_path):
    with load_with(tmp_path / "cache") as made:
        yield made


@pytest.mark.parametrize("fault", [name for name in BROKEN if name not in ALLOWED])
def test_a_broken_edit_takes_nothing_away(loader, fault, tmp_path):
    module = loader.load(GOOD, "k", language="cpp", optlevel="0")
    f, count = module.f, module.count
    other = loader.load(answer(5), "other", optlevel="0")
    assert (f(), count()) == (3, 1)
    for attempt in range(2):  # a text that failed is tried again: the reason may have gone
        with pytest.raises((rekernel.KernelSourceError, rekernel.ToolchainError)) as caught:
            loader.load(BROKEN[fault], "k", **OPTIONS.get(fault, {}))
        if isinstance(caught.value, rekernel.KernelSourceError):
            assert (caught.value.kernel_id, caught.value.version, caught.value.keeps) == ("k", 2, 1)
        assert loader.info("k").error is caught.value
        assert (f(), other.f(), loader.info("k").version) == (3, 5, 1)
        assert count() == attempt + 2  # its static goes on: it is the same library
    loader.load(answer(6), "new", optlevel="0")
    loader.load(GOOD.replace("3", "4"), "k", flags=[])
    assert (f(), count(), other.f(), loader["new"].f()) == (4, 1, 5, 6)
    assert loader.info("k").error is None
    assert left_in(tmp_path / "cache") == []


def test_the_working_text_after_a_broken_one_compiles_nothing(loader):
    f = loader.load(answer(3), "k").f
    with pytest.raises(rekernel.KernelSourceError):
        loader.load("int f() { return nonsense; }\n", "k")
    before = hits(loader)
    loader.load(answer(3), "k")
    assert (f(), hits(loader), loader.info("k").version) == (3, before, 1)


@pytest.mark.parametrize("text", [BROKEN[name] for name in sorted(ALLOWED)])
def test_a_text_without_a_kernel_leaves_handles_that_say_so(loader, text):
    module = loader.load(answer(3), "k")
    f, pinned = module.f, module.f.pinned()
    loader.load(text, "k", language="cpp")
    with pytest.raises(rekernel.KernelRemovedError, match="version 2"):
        f()
    assert pinned() == 3
    loader.load(answer(4), "k")
    assert f() == 4


def test_a_broken_first_text_leaves_no_id(loader, tmp_path):
    with pytest.raises(rekernel.KernelSourceError):
        loader.load(BROKEN["undefined name"], "k")
    assert (len(loader), "k" in loader) == (0, False)
    assert loader.load(answer(1), "k").f() == 1
    assert left_in(tmp_path / "cache") == []


def test_a_first_call_that_throws_is_an_error_of_that_call_alone(loader):
    module = loader.load(
        '#include <stdexcept>\nint f(int n) { if (n) throw std::runtime_error("too hot"); return 3; }\n', "k"
    )
    for _ in range(3):
        with pytest.raises(RuntimeError, match="too hot"):
            module.f(1)
        assert module.f(0) == 3
