"""Row 48 for C++ texts: an error names the user's place and line 7 of it, wherever the compiler found it."""

from __future__ import annotations

import pytest

import rekernel
from cppkit import load_with, needs_cpp
from jitkernels import each_compiler

pytestmark = needs_cpp

HEAD = "#include <cstdint>\n// two\n// three\n// four\n// five\nint f(int n) {\n"
WRONG = {
    "undefined": HEAD + "    return nonsense;\n}\n",
    "syntax": HEAD + "    return n +;\n}\n",
    "type": HEAD + "    int *p = 3.5; return *p + n;\n}\n",
    "a macro of the text": HEAD.replace("// two", "#define WRONG(x) (x).nothing") + "    return WRONG(n);\n}\n",
    "a macro of a header": HEAD.replace("// two", '#include "macros.h"') + "    return WRONG_ONE(n);\n}\n",
    "a template of a header": HEAD.replace("// two", '#include "macros.h"') + "    return member(n);\n}\n",
    "continued lines": HEAD.replace("// two\n// three", "// two \\\n three") + "    return nonsense;\n}\n",
    "form feeds and tabs": HEAD.replace("// two", "//\f\v\t two") + "\treturn nonsense;\n}\n",
    "other scripts": HEAD.replace("// two", "// 二 ü 𝄞") + "    /* ü𝄞 */ return nonsense;\n}\n",
    "carriage returns": (HEAD + "    return nonsense;\n}\n").replace("\n", "\r\n"),
    "after an error directive": "#if 0\n#error\n#endif\n// four\n// five\n// six\n#error today\nint f() { return 1; }\n",
    "a static assertion": "int f() { return 1; }\n// two\n// three\n// four\n// five\n// six\nstatic_assert(sizeof(int) == 3, \"no\");\n",
}  # fmt: skip
PLACES = {
    "nowhere": ({}, 7, None),
    "a file": ({"filename": "/home/me/heat.cpp"}, 7, "/home/me/heat.cpp"),
    "a cell": ({"filename": "<ipython-input-3>", "first_line": 2}, 8, "<ipython-input-3>"),
    "the middle of a program": ({"filename": "tool.py", "first_line": 100}, 106, "tool.py"),
}


@pytest.fixture
def headers(tmp_path):
    (tmp_path / "macros.h").write_text(
        "#define INNER(x) (x).nothing\n#define WRONG_ONE(x) INNER(x)\ntemplate <class T> int member(T x) { return x.y; }\n"
    )
    return tmp_path


@each_compiler
@pytest.mark.parametrize("fault", WRONG)
def test_line_seven_is_named_and_shown(info, headers, fault):
    text = WRONG[fault]
    places = PLACES if fault == "undefined" else ["a cell"]
    for more, line, filename in map(PLACES.__getitem__, places):
        with load_with(None, info) as loader, pytest.raises(rekernel.KernelSourceError) as caught:
            loader.load(text, "heat", language="cpp", include_dirs=[headers], optlevel="0", **more)
        error = caught.value
        assert (error.kernel_id, error.version, error.line, error.filename) == ("heat", 1, line, filename)
        shown = str(error).splitlines()
        assert [one for one in shown if one.lstrip().startswith(f"> {line} |")], shown
        assert (f"{filename}:{line}" if filename else f"line {line}") in shown[0]
        assert error.output
        assert "-c" in error.command
        assert "kernel.cpp:7" not in error.output or filename is None
        assert "rekernel entry points" not in str(error)


@each_compiler
def test_an_error_of_a_header_names_the_header_and_the_users_include(info, headers):
    (headers / "inner.h").write_text("// one\nint broken() { return nothing_here; }\n")
    (headers / "outer.h").write_text('#include "inner.h"\n')
    text = "// one\n// two\n#include <outer.h>\nint f() { return broken(); }\n"
    with load_with(None, info) as loader, pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(text, "k", include_dirs=[headers], filename="mine.cpp", first_line=11)
    assert (caught.value.line, caught.value.filename) == (13, "mine.cpp")
    assert "nothing_here" in str(caught.value)
    assert "inner.h:2" in str(caught.value)


@each_compiler
def test_every_error_has_its_own_line_and_the_first_is_shown(info):
    text = "int f() { return one; }\n\nint g() { return two; }\n\nint h() { return three; }\n"
    with load_with(None, info) as loader, pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(text, "k", first_line=21)
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert [d.line for d in errors] == [21, 23, 25]
    assert caught.value.line == 21
    assert "2 more errors" in str(caught.value)


@each_compiler
def test_warnings_have_the_users_lines_also_out_of_the_cache(info, tmp_path):
    text = "int f(int n) {\n    int unused = 3;\n    return n;\n}\n"
    for first_line in (1, 41, 7):
        loader = load_with(tmp_path / "cache", info)
        loader.load(text, "k", flags="-Wall", first_line=first_line)
        (warning,) = loader.info("k").warnings
        assert warning.startswith(f"line {first_line + 1}:")
        assert "unused" in warning
