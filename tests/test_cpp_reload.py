"""Hot reload of C++ texts: versions, handles and modules behave as everywhere, and no version meets another."""

from __future__ import annotations

import numpy as np
import pytest

import rekernel
from cppkit import answer, hits, load_with, needs_cpp

pytestmark = needs_cpp


@pytest.fixture
def loader(tmp_path):
    with load_with(tmp_path / "cache") as made:
        yield made


# ---- versions never meet ----


def test_the_layout_of_a_struct_may_change_between_versions(loader):
    """Same names, same members, other places: whoever shared a symbol would read the wrong bytes."""
    text = """
    #include <vector>
    struct Particle {{ {members} double total() const {{ return x + 10 * y; }} }};
    inline std::vector<Particle> &all() {{ static std::vector<Particle> kept; return kept; }}
    int64_t add(double x, double y) {{ Particle p{{}}; p.x = x; p.y = y; all().push_back(p); return int64_t(all().size()); }}
    double total() {{ double s = 0; for (const auto &p : all()) s += p.total(); return s; }}
    int64_t size() {{ return sizeof(Particle); }}
    """
    layouts = ["double x, y;", "double y; float pad[7]; double x;", "char c[1000]; double x; long double z; double y;"]
    m = loader.load(text.format(members=layouts[0]), "k", optlevel="1")
    pinned, sizes = [], set()
    for turn, members in enumerate(layouts * 2):
        loader.load(text.format(members=members) + "//" * turn, "k")
        assert [m.add(1, 2), m.add(3, 4)] == [1, 2]  # its statics begin anew
        assert m.total() == 64
        sizes.add(m.size())
        pinned.append((m.add.pinned(), m.total.pinned()))
    assert len(sizes) == 3
    for turn, (add, total) in enumerate(pinned):
        assert add(turn, 0) == 3
        assert total() == 64 + turn


SHARED = {
    "functions": "int value() { return NUMBER; }\nint get() { return value(); }\n",
    "C functions": 'extern "C" int value() { return NUMBER; }\nint get() { return value(); }\n',
    "inline functions": "inline int value() { return NUMBER; }\nint get() { return value(); }\n",
    "inline variables": "inline int value = NUMBER;\nint get() { return value; }\n",
    "variables": "int value = NUMBER;\nint get() { return value; }\n",
    "templates": "template <class T> struct V { static T value; };\ntemplate <class T> T V<T>::value = NUMBER;\n"
                 "int get() { return V<int>::value; }\n",
    "members": "struct S { int value() const { return NUMBER; } virtual int twice() const { return 2 * NUMBER; } };\n"
               "int get() { S s; const S *p = &s; return p->twice() - s.value(); }\n",
    "visible ones": '#define SEEN __attribute__((visibility("default"), noinline))\n'
                    "SEEN int value() { return NUMBER; }\nSEEN int get() { return value(); }\n",
    "names of the C library": "extern \"C\" double cbrt(double) { return NUMBER; }\nint get() { volatile double x = 8; return int(cbrt(x)); }\n",
    "exceptions": "struct Odd { int n; };\nstatic void value() { throw Odd{NUMBER}; }\n"
                  "int get() { try { value(); } catch (const Odd &odd) { return odd.n; } return 0; }\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SHARED)
def test_ids_with_the_same_names_never_meet(loader, kind):
    options = {"flags": "-fno-builtin"} if "library" in kind else {}
    modules = [
        loader.load(SHARED[kind].replace("NUMBER", str(n)), f"id{n}", language="cpp", optlevel="0", **options)
        for n in (1, 2, 3)
    ]
    assert [m.get() for m in modules] == [1, 2, 3]
    loader.load(SHARED[kind].replace("NUMBER", "7"), "id2")
    assert [m.get() for m in modules] == [1, 7, 3]
    loader.unload("id1")
    assert [m.get() for m in modules[1:]] == [7, 3]


# ---- what a handle is, over versions ----


def test_the_overloads_of_a_name_may_change(loader):
    one = "int f(int x) { return x + 1; }\n"
    two = one + "double f(double x) { return x + 2; }\n"
    three = "double f(const rekernel::Array<const double, 1> &x) { return x[0] + 3; }\n"
    f = loader.load(one, "k", optlevel="0").f
    with pytest.raises(TypeError):
        f(1.5)
    loader.load(two, "k")
    assert (f(1), f(1.5)) == (2, 3.5)
    loader.load(three, "k")
    assert f(np.ones(1)) == 4
    with pytest.raises(TypeError):
        f(1)
    loader.load(one, "k")
    assert f(1) == 2
    with pytest.raises(TypeError):
        f(1.5)


def test_parameters_may_be_renamed_added_and_retyped(loader):
    f = loader.load("double f(double x) { return x; }", "k", optlevel="0").f
    assert f(x=1) == 1
    loader.load("double f(double y, int n) { return y * n; }", "k")
    assert f(n=3, y=2) == 6
    with pytest.raises(TypeError, match=r"'n'|unexpected"):
        f(x=1)
    assert [p.name for p in f.parameters] == ["y", "n"]


def test_a_kernel_that_is_removed_says_so_and_revives(loader):
    m = loader.load(answer(1) + answer(2, "g"), "k", optlevel="0")
    g = m.g
    loader.load(answer(3), "k")
    for _ in range(2):
        with pytest.raises(rekernel.KernelRemovedError, match=r"k\.g.*version 2"):
            g()
        with pytest.raises(AttributeError, match="kernels: f"):
            _ = m.g
    assert m.f() == 3
    loader.load(answer(4) + answer(5, "g"), "k")
    assert (g(), m.g is g) == (5, True)


SKIPPED = {
    "static": "static int g() { return 2; }\nint f() { return g(); }\n",
    "a type that no call can pass": "struct S { int n; };\nint g(S s) { return s.n; }\nint f() { return 2; }\n",
    "a template": "template <class T> T g(T x) { return x; }\nint f() { return g(2); }\n",
    "a macro": "#define g() 2\nint f() { return g(); }\n",
}


@pytest.mark.parametrize("way", SKIPPED)
def test_a_kernel_that_becomes_something_else(loader, way):
    m = loader.load(answer(1) + answer(2, "g"), "k", optlevel="0")
    g = m.g
    loader.load(SKIPPED[way], "k")
    assert m.f() == 2
    with pytest.raises(rekernel.KernelRemovedError):
        g()
    if way == "a type that no call can pass":
        assert "S s" in loader.info("k").skipped["g"]
        with pytest.raises(AttributeError, match="S s"):
            _ = m.g
    loader.load(answer(1) + answer(2, "g"), "k")
    assert g() == 2


def test_pinned_handles_keep_their_version_each(loader):
    f = loader.load("static int n;\nint f() { return 0 * 100 + ++n; }", "k", optlevel="0").f
    pinned = [f.pinned()]
    for number in range(1, 6):
        loader.load(f"static int n;\nint f() {{ return {number} * 100 + ++n; }}", "k")
        pinned.append(f.pinned())
    assert [p() for p in pinned] == [100 * n + 1 for n in range(6)]
    loader.unload("k")
    assert [p() for p in reversed(pinned)] == [100 * n + 2 for n in reversed(range(6))]
    assert [p.version for p in pinned] == [1, 2, 3, 4, 5, 6]


def test_a_held_step_sees_one_version_of_each_id(loader):
    import threading

    a = loader.load(answer(1), "a", optlevel="0").f
    b = loader.load(answer(1), "b", optlevel="0").f

    def edit():
        loader.load(answer(2), "a")
        loader.load(answer(2), "b")

    with loader.hold():
        said = [a()]
        thread = threading.Thread(target=edit)
        thread.start()
        thread.join()
        said += [a(), b()]
    assert said == [1, 1, 1]
    assert (a(), b()) == (2, 2)


# ---- going back ----


def test_a_to_b_to_a_compiles_nothing_the_third_time(loader):
    a, b = answer(1), answer(2)
    f = loader.load(a, "k", optlevel="0").f
    loader.load(b, "k")
    before = hits(loader)
    for text, number in ((a, 1), (b, 2), (a, 1)):
        loader.load(text, "k")
        assert f() == number
    assert hits(loader) == before  # not even the cache was asked
    assert loader.stats().reused == 3
    loader.load(answer(3), "k")
    loader.load(answer(4), "k")
    loader.load(b, "k")  # no longer kept: out of the cache
    assert f() == 2
    assert hits(loader) == (before[0] + 1, before[1] + 2)


def test_rollback_and_history(loader):
    f = loader.load(answer(1), "k", optlevel="0").f
    loader.load(answer(2), "k")
    loader.load(answer(3), "k", optlevel="1")
    misses = hits(loader)[1]
    loader.rollback("k")
    assert f() == 2
    loader.rollback("k", 1)
    assert f() == 1
    assert [(v.number, v.restores) for v in loader.history("k")] == [(1, None), (2, None), (3, None), (4, 2), (5, 1)]
    assert loader.info("k").options["optlevel"] == "0"
    assert hits(loader)[1] == misses
    with pytest.raises((KeyError, ValueError), match="99"):
        loader.rollback("k", 99)


def test_a_rollback_brings_back_what_ran_and_the_next_load_sees_the_header(loader, tmp_path):
    (tmp_path / "h.h").write_text("#define H 1\n")
    text = "#include <h.h>\nint f() { return H; }\n"
    f = loader.load(text, "k", include_dirs=[tmp_path], optlevel="0").f
    loader.load(answer(5), "k")
    (tmp_path / "h.h").write_text("#define H 2\n")
    loader.rollback("k")
    assert f() == 1
    loader.load(text, "k")
    assert f() == 2
    (tmp_path / "h.h").write_text("#define H nonsense\n")
    for number in (5, 6, 7):
        loader.load(answer(number), "k")
    with pytest.raises(rekernel.KernelSourceError):
        loader.rollback("k", 1)  # long gone: it is built again, and cannot be
    assert f() == 7


def test_options_stay_with_their_id_and_are_part_of_a_version(loader):
    text = "#ifndef N\n#define N 0\n#endif\nint f() { return N; }\n"
    f = loader.load(text, "k", flags="-DN=3", optlevel="0").f
    assert f() == 3
    loader.load(text + "//", "k")
    assert f() == 3
    loader.load(text, "k", flags=[])
    assert f() == 0
    loader.rollback("k")
    assert f() == 3
    assert loader.load(text, "other").f() == 0


def test_unloading_and_loading_again_revives_the_same_objects(loader):
    m = loader.load(answer(1), "k", optlevel="0")
    f = m.f
    loader.unload("k")
    with pytest.raises(rekernel.KernelRemovedError, match="unloaded"):
        f()
    assert loader.load(answer(2), "k", optlevel="0") is m
    assert (f(), m.f is f) == (2, True)


def test_another_language_may_take_an_id_and_give_it_back(loader):
    f = loader.load(answer(1), "k", optlevel="0").f
    with pytest.raises(rekernel.KernelSourceError):
        loader.load("@ti.kernel\ndef f(:\n", "k", language="taichi")
    assert f() == 1
    loader.load(answer(2), "k", language="cpp")
    assert f() == 2


def test_a_saved_loader_comes_back_out_of_the_cache(loader, tmp_path):
    loader.load(answer(1), "k", optlevel="0")
    loader.load(answer(2), "k")
    loader.save(tmp_path / "saved.json")
    again = rekernel.KernelLoader.load_saved(tmp_path / "saved.json")
    assert again["k"].f() == 2
    assert again.info("k").version >= 2
