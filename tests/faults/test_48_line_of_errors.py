"""Row 48: every error names id, version and the user's own line, and shows it. Here: Taichi texts."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rekernel

HEAD = "@ti.kernel\ndef f(x: ti.f32) -> ti.f32:\n"
#: What is wrong -> (text, line, part of the message). Line numbers count from 1.
WRONG = {
    "syntax": (HEAD + "    y = x\n    return y +\n", 4, "invalid syntax"),
    "unclosed bracket": (HEAD + "    return (x\n", 3, "never closed"),
    "indent": (HEAD + "    y = x\n  return y\n", 4, "unindent"),
    "name in a kernel": (HEAD + "    y = 1.0\n    return x + nonsense\n", 4, "nonsense"),
    "name in a function": ("@ti.func\ndef h(v):\n    return nonsense\n" + HEAD + "    return h(x)\n", 3, "nonsense"),
    "name two functions deep": (
        "@ti.func\ndef a(v):\n    k = 1\n    return v + nonsense\n@ti.func\ndef b(v):\n    return a(v)\n"
        + HEAD + "    return b(x)\n", 4, "nonsense"),
    "type in a kernel": (HEAD + "    y = ti.Vector([1, 2])\n    return x + y @ y @ y\n", 4, ""),
    "wrong number of arguments": ("@ti.func\ndef h(v):\n    return v\n" + HEAD + "    return h(x, x)\n", 6, ""),
    "at the top": ("a = 1\n" + HEAD + "    return x\n\nb = nonsense\n", 6, "nonsense"),
    "division at the top": ("a = 1\nb = a / 0\n" + HEAD + "    return x\n", 2, "ZeroDivisionError"),
    "in a called Python function": ("def g():\n    return 1 / 0\nv = g()\n" + HEAD + "    return x\n", 2, "Zero"),
    "static assertion": (HEAD + "    ti.static_assert(1 > 2, 'too small')\n    return x\n", 3, "too small"),
    "unknown attribute": (HEAD + "    return ti.sine(x)\n", 3, "sine"),
    "missing import": ("import no_such_module\n" + HEAD + "    return x\n", 1, "no_such_module"),
    "decorator": ("@ti.kernal\ndef f():\n    pass\n# @ti.kernel\n", 1, "kernal"),
    "several lines": (HEAD + "    return (x +\n        x +\n        nonsense)\n", 5, "nonsense"),
    "after a long string": ('"""one\ntwo\nthree"""\n' + HEAD + "    return nonsense\n", 6, "nonsense"),
    "after a continued line": ("a = 1 + \\\n    2\n" + HEAD + "    return nonsense\n", 5, "nonsense"),
    "in a class's constructor": ("class C:\n    def __init__(self):\n        self.x = nonsense\nc = C()\n" + HEAD
                                 + "    return x\n", 3, "nonsense"),
}  # fmt: skip


def error_of(loader, text, **options):
    check = (1.0,) if "class C" not in text else True
    options.setdefault("language", "taichi")
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(text, "k", check=check, **options)
    return caught.value


@pytest.mark.parametrize("what", WRONG)
def test_line_and_text(loader, what):
    text, line, said = WRONG[what]
    error = error_of(loader, text)
    assert error.line == line
    assert said in str(error).split("\n")[0]
    assert str(error).startswith(f"k v1 (taichi), line {line}")
    assert error.text == text.split("\n")[line - 1]
    assert f"> {line} | {error.text}" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


CHANGED = {
    "indented": lambda t: re.sub("^(?=.)", "    ", t, flags=re.M),
    "indented by tabs": lambda t: re.sub("^(?=.)", "\t\t", t, flags=re.M),
    "CRLF": lambda t: t.replace("\n", "\r\n"),
    "CR": lambda t: t.replace("\n", "\r"),
    "byte-order mark": lambda t: "\ufeff" + t,
    "no last newline": lambda t: t.rstrip("\n"),
    "blanks at the end of lines": lambda t: t.replace("\n", "   \n"),
    "mixed line ends": lambda t: t.replace("\n", "\r\n", 2),
}
ODD_LINES = ["# a\u2028b", "# form\x0cfeed", "# \x0b", "# \x1c\x1d\x1e\x85", "# \u2029", "\x0c", "# ü 内核 🚀", "# \t"]


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("what", ["syntax", "name in a kernel", "name in a function", "at the top", "several lines"])
def test_the_same_line_in_a_text_that_looks_different(loader, change, what):
    text, line, _ = WRONG[what]
    if change == "blanks at the end of lines" and what == "several lines":
        text = text.replace("\\\n", "")
    error = error_of(loader, CHANGED[change](text))
    assert error.line == line
    assert error.text.strip() == text.split("\n")[line - 1].strip()


@pytest.mark.parametrize("odd", ODD_LINES)
@pytest.mark.parametrize("what", ["syntax", "name in a kernel", "name in a function", "at the top"])
def test_lines_that_others_would_split(loader, odd, what):
    text, line, _ = WRONG[what]
    assert error_of(loader, f"{odd}\n{odd}\n{text}{odd}\n").line == line + 2


@pytest.mark.parametrize("odd", ODD_LINES)
def test_odd_lines_inside_a_kernel(loader, odd):
    assert error_of(loader, HEAD + f"    {odd}\n    y = x\n    {odd}\n    return nonsense\n").line == 6


@pytest.mark.parametrize("what", WRONG)
def test_first_line_and_file_name_are_the_users(loader, what):
    text, line, _ = WRONG[what]
    error = error_of(loader, text, filename="some/where.py", first_line=100)
    assert (error.line, error.filename) == (line + 99, "some/where.py")
    assert f"some/where.py:{line + 99}" in str(error).split("\n")[0]
    assert error.text == text.split("\n")[line - 1]
    assert f"> {line + 99} | " in str(error)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (HEAD + "    return x + nonsense\n", "nonsense"),
        (re.sub("^(?=.)", "    ", HEAD + "    return x + nonsense\n", flags=re.M), "nonsense"),
        (re.sub("^(?=.)", "\t", HEAD + "    return x + nonsense\n", flags=re.M), "nonsense"),
        (HEAD + "\treturn x +\tnonsense\n", "nonsense"),
        (HEAD + "    ti.static_assert('ü🚀' != ''); return nonsense\n", "nonsense"),
        (HEAD + "\tti.static_assert('ü🚀\t内' != '');\treturn x + nonsense  # ü\n", "nonsense"),
    ],
)
def test_the_marked_part_is_the_wrong_part(loader, text, marked):
    error = error_of(loader, text)
    assert error.text[error.column - 1 : error.end_column - 1] == marked
    rows = str(error).split("\n")
    shown = next(i for i, row in enumerate(rows) if row.startswith(">"))
    assert rows[shown + 1].index("^") == rows[shown].index(marked)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(st.sampled_from(["", "# comment", "a = 1", "b = '''x\ny'''", "\x0c", "# \u2028", "class Z: pass"])),
    inside=st.lists(
        st.sampled_from(["", "    # comment", "    a = x", "    # \u2028 \x0c", "        # deeper"]), max_size=5
    ),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    indent=st.sampled_from(["", "  ", "\t"]),
    first_line=st.integers(1, 1000),
)
def test_any_surroundings(loader, before, inside, end, indent, first_line):
    lines = [part for row in before for part in row.split("\n")]
    if indent:
        lines = [row for row in lines if not row.startswith(("b = ", "y'''"))]
    lines += ["@ti.kernel", "def f(x: ti.f32) -> ti.f32:", *inside, "    return x + nonsense", "c = 3"]
    expected = first_line + lines.index("    return x + nonsense")
    error = error_of(loader, end.join(indent + row if row.strip() else row for row in lines), first_line=first_line)
    assert error.line == expected
    assert error.text[error.column - 1 :] == "nonsense"


def test_errors_at_a_call_are_the_same_errors(loader):
    f = loader.load(HEAD + "    return nonsense\n", "k", check=False, filename="a.py", first_line=11).f
    with pytest.raises(rekernel.KernelSourceError) as caught:
        f(1.0)
    assert str(caught.value).startswith("k v1 (taichi), a.py:13:12: name 'nonsense' is not defined")


def test_an_error_in_a_helper_names_the_helper(loader):
    helper = loader.load("# one\n@ti.func\ndef h(v):\n    return v\n", "helper")
    assert loader.load(HEAD + "    return h(x)\n", "user", namespace={"h": helper.h}).f(1.0) == 1
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load("# one\n# two\n@ti.func\ndef h(v):\n    return v + nonsense\n", "helper")
    error = caught.value
    assert (error.kernel_id, error.line, error.text) == ("helper", 5, "    return v + nonsense")
    assert loader["user"].f(2.0) == 2


def test_the_cause_has_the_original_error_and_only_the_users_frames(loader):
    error = error_of(loader, "def g():\n    return 1 / 0\nv = g()\n" + HEAD + "    return x\n")
    assert isinstance(error.__cause__, ZeroDivisionError)
    names, traceback = [], error.__cause__.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert names == ["<module>", "g"]


def test_the_whole_text_of_taichi_stays_available(loader):
    error = error_of(loader, HEAD + "    return x + nonsense\n")
    assert "nonsense" in error.output
    assert "\x1b" not in error.output
    assert "\x1b" not in str(error)


def test_a_missing_name_that_the_caller_has_says_so(loader):
    with pytest.raises(rekernel.KernelSourceError, match=r"namespace=globals\(\)"):
        loader.load(HEAD + "    return x + HEAD\n", "k", check=(1.0,))
    with pytest.raises(rekernel.KernelSourceError, match="did you mean 'factor'"):
        loader.load("factor = 3\n" + HEAD + "    return x * facto\n", "k", check=(1.0,))
