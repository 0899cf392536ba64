"""Row 1: a kernel uses a helper of another id, or of a local file; only the helper changes.

Never half and half: all kinds of arguments of the kernel use the same helper.
"""

from __future__ import annotations

import collections
import os
import sys
import types
from types import SimpleNamespace

import pytest

import rekernel
from support import START, lines_of, run_python

Named = collections.namedtuple("Named", "h")


class Box:
    def __init__(self, **names):
        self.__dict__.update(names)


def helper(factor, extra=""):
    return f"{extra}@ti.func\ndef h(x):\n    return x * {factor}\n"


def user(expression, before=""):
    return f"{before}@ti.kernel\ndef f(n: ti.template()) -> ti.f32:\n    return {expression}(1.0) * n\n"


def answers(f, *numbers):
    """Return the factor that each kind of argument is multiplied by."""
    return {f(n) / n for n in numbers}


REACHED = {
    "function": (lambda m: m.h, "q"),
    "module": (lambda m: m, "q.h"),
    "list": (lambda m: [0, m.h], "q[1]"),
    "tuple": (lambda m: (m.h,), "q[0]"),
    "dict": (lambda m: {"a": m.h}, "q['a']"),
    "nested": (lambda m: {"a": [(m.h,)]}, "q['a'][0][0]"),
    "module in a list": (lambda m: [m], "q[0].h"),
    "module in a dict in a list": (lambda m: [{"a": m}], "q[0]['a'].h"),
    "ordered dict": (lambda m: collections.OrderedDict(a=m.h), "q['a']"),
    "default dict": (lambda m: collections.defaultdict(list, a=m.h), "q['a']"),
    "mapping proxy": (lambda m: types.MappingProxyType({"a": m.h}), "q['a']"),
    "named tuple": (lambda m: Named(m.h), "q.h"),
    "namespace": (lambda m: SimpleNamespace(h=m.h), "q.h"),
    "module in a namespace": (lambda m: SimpleNamespace(m=m), "q.m.h"),
    "object": (lambda m: Box(h=m.h), "q.h"),
    "module in an object": (lambda m: Box(m=m), "q.m.h"),
    "class": (lambda m: type("C", (), {"h": staticmethod(m.h)}), "q.h"),
    "module in a user's module": (lambda m: _module(m=m), "q.m.h"),
}


def _module(**names):
    made = types.ModuleType("users_tools")
    vars(made).update(names)
    return made


@pytest.mark.parametrize("way", REACHED)
def test_a_new_helper_is_used_for_every_kind_of_argument(loader, way):
    reach, expression = REACHED[way]
    module = loader.load(helper(2), "helper")
    f = loader.load(user(expression), "user", namespace={"q": reach(module)}).f
    assert answers(f, 1, 2) == {2}
    loader.load(helper(3), "helper")
    assert answers(f, 1, 2, 4) == {3}
    assert loader.info("user").depends_on == ("helper",)


@pytest.mark.parametrize("alias", ["g = h\n", "class N:\n    g = staticmethod(h)\ng = N.g\n", "g = [h][0]\n"])
def test_an_alias_in_the_users_text_counts(loader, alias):
    module = loader.load(helper(2), "helper")
    f = loader.load(user("g", alias), "user", namespace={"h": module.h}).f
    assert answers(f, 1, 2) == {2}
    loader.load(helper(3), "helper")
    assert answers(f, 1, 2, 4) == {3}


def test_two_levels_deep(loader):
    lowest = loader.load(helper(2), "lowest")
    middle = loader.load("@ti.func\ndef k(x):\n    return h(x) + 1\n", "middle", namespace={"h": lowest.h})
    f = loader.load(user("ops[0]", "ops = [k]\n"), "top", namespace=vars(middle)).f
    assert answers(f, 1, 2) == {3}
    loader.load(helper(5), "lowest")
    assert answers(f, 1, 2, 4) == {6}
    assert [loader.info(i).version for i in ("lowest", "middle", "top")] == [2, 2, 2]


def test_a_helper_that_breaks_its_user_changes_nothing_anywhere(loader):
    lowest = loader.load(helper(2), "lowest")
    middle = loader.load("@ti.func\ndef k(x):\n    return h(x)\n", "middle", namespace={"h": lowest.h})
    f = loader.load(user("k"), "top", namespace={"k": middle.k}).f
    assert answers(f, 1) == {2}
    with pytest.raises(rekernel.KernelSourceError):
        loader.load("@ti.func\ndef h(x, y):\n    return x * y\n", "lowest")
    assert answers(f, 1, 2) == {2}
    assert [loader.info(i).version for i in ("lowest", "middle", "top")] == [1, 1, 1]


@pytest.mark.parametrize("again", ["rollback", "unload"])
def test_going_back_and_unloading_move_all_kinds_of_arguments_together(loader, again):
    module = loader.load(helper(2), "helper")
    f = loader.load(user("h"), "user", namespace={"h": module.h}).f
    loader.load(helper(3), "helper")
    assert answers(f, 1) == {3}
    if again == "rollback":
        loader.rollback("helper")
    else:
        loader.unload("helper")
        assert len(answers(f, 1, 2)) == 1
        loader.load(helper(2), "helper")
    assert answers(f, 1, 2, 4) == {2}


def test_a_pinned_user_keeps_the_helper_it_was_pinned_with(loader):
    module = loader.load(helper(2), "helper")
    pinned = loader.load(user("h"), "user", namespace={"h": module.h}).f.pinned()
    assert answers(pinned, 1) == {2}
    loader.load(helper(3), "helper")
    assert answers(pinned, 1, 2) == {2}


def test_a_text_cannot_depend_on_itself(loader):
    a = loader.load(helper(2), "a")
    b = loader.load("@ti.func\ndef k(x):\n    return h(x)\n", "b", namespace={"h": a.h})
    with pytest.raises(ValueError, match="depends on it"):
        loader.load("@ti.func\ndef h(x):\n    return k(x)\n", "a", namespace={"k": b.k})
    with pytest.raises(ValueError, match="is itself"):
        loader.load("@ti.func\ndef h(x):\n    return a.h(x)\n", "a", namespace={"a": a})


# ---- local files ----


@pytest.fixture
def tools(tmp_path, monkeypatch, request):
    """The path of a local module ``tools_<test>`` that a text may import, and its name."""
    name = "tools_" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / f"{name}.py", name
    sys.modules.pop(name, None)


def file_text(factor, before=""):
    return f"{before}import taichi as ti\n\n@ti.func\ndef h(x):\n    return x * {factor}\n"


def test_a_file_that_was_saved_but_not_loaded_changes_no_kind_of_argument(loader, tools):
    path, name = tools
    path.write_text(file_text(2))
    f = loader.load(user(f"{name}.h", f"import {name}\n"), "user").f
    assert answers(f, 1) == {2}
    path.write_text(file_text(7, "# one\n# more\n# line\n"))
    assert answers(f, 1, 2) == {2}


@pytest.mark.parametrize("how", ["import {0} as t", "from {0} import h", "import {0}"])
def test_a_saved_file_counts_when_the_text_is_loaded_again(loader, tools, how):
    path, name = tools
    path.write_text(file_text(2))
    expression = {"import {0} as t": "t.h", "from {0} import h": "h", "import {0}": f"{name}.h"}[how]
    text = user(expression, how.format(name) + "\n")
    f = loader.load(text, "user").f
    assert answers(f, 1, 2) == {2}
    path.write_text(file_text(3))
    loader.load(text, "user")
    assert answers(f, 1, 2, 4) == {3}


@pytest.mark.parametrize("nanoseconds", [0, 1000])
def test_the_content_of_the_file_decides_not_its_time(loader, tools, nanoseconds):
    # Python itself takes its own cached bytecode for valid: same second, same size.
    path, name = tools
    path.write_text(file_text(2))
    before = path.stat()
    text = user(f"{name}.h", f"import {name}\n")
    f = loader.load(text, "user").f
    assert answers(f, 1) == {2}
    path.write_text(file_text(3))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + nanoseconds))
    loader.load(text, "user")
    assert answers(f, 1, 2) == {3}


def test_a_file_with_a_new_time_and_the_old_content_is_no_reload(loader, tools):
    path, name = tools
    path.write_text(file_text(2))
    text = user(f"{name}.h", f"import {name}\n")
    loader.load(text, "user")
    os.utime(path, ns=(1, 10**9))
    loader.load(text, "user")
    assert loader.info("user").version == 1


def test_a_broken_file_leaves_the_module_as_it_was(loader, tools):
    path, name = tools
    path.write_text(file_text(2))
    text = user(f"{name}.h", f"import {name}\n")
    f = loader.load(text, "user").f
    path.write_text("K = 5\n" + file_text(3) + "nonsense_name\n")
    with pytest.raises(rekernel.KernelSourceError, match="nonsense_name"):
        loader.load(text, "user")
    assert not hasattr(sys.modules[name], "K")
    assert answers(f, 1, 2) == {2}
    path.write_text(file_text(3))
    loader.load(text, "user")
    assert answers(f, 1, 2) == {3}


def test_a_file_that_the_imported_file_imports(loader, tools, tmp_path):
    path, name = tools
    inner = tmp_path / f"{name}_inner.py"
    inner.write_text(file_text(2))
    path.write_text(f"import taichi as ti\nfrom {inner.stem} import h\n\n@ti.func\ndef k(x):\n    return h(x)\n")
    text = user(f"{name}.k", f"import {name}\n")
    try:
        f = loader.load(text, "user").f
        assert answers(f, 1) == {2}
        inner.write_text(file_text(3))
        assert answers(f, 1, 2) == {2}
        loader.load(text, "user")
        assert answers(f, 1, 2, 4) == {3}
    finally:
        sys.modules.pop(inner.stem, None)


def test_what_was_made_of_the_old_file_is_never_compiled_from_the_new_one(loader, tools):
    path, name = tools
    path.write_text(file_text(2))
    first = loader.load(user(f"{name}.h", f"import {name}\n"), "first").f
    other = loader.load(user("h", f"from {name} import h\n"), "other").f
    pinned = first.pinned()
    for f in (first, other, pinned):
        assert answers(f, 1) == {2}
    path.write_text(file_text(3, "# moved down\n\n"))
    loader.load(user(f"{name}.h", f"import {name}\n"), "first")
    assert answers(first, 1, 2) == {3}
    for f in (other, pinned):  # right: the old function, or an error that says what to do
        assert answers(f, 1) == {2}
        try:
            found = answers(f, 2)
        except RuntimeError as error:
            found = {"imported anew"} & {str(error).partition(" was ")[2][:13]}
        assert found in ({2}, {"imported anew"})


def test_the_offline_cache_of_taichi_does_not_hide_a_new_helper(tmp_path):
    program = (
        START.replace("offline_cache=False", "offline_cache=True")
        + """
import sys
module = loader.load("@ti.func\\ndef h(x):\\n    return x * %s\\n" % sys.argv[1], "helper")
f = loader.load("@ti.kernel\\ndef f(n: ti.f32) -> ti.f32:\\n    return h(n)\\n", "user", namespace={"h": module.h}).f
print(f(1.0))
"""
    )
    cache = {"TI_OFFLINE_CACHE_FILE_PATH": str(tmp_path / "cache")}
    assert [lines_of(run_python(program, factor, **cache))[-1] for factor in "223"] == ["2.0", "2.0", "3.0"]
