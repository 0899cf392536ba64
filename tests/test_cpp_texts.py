"""C++ texts as people write them, good and bad: what each becomes. The texts are data, in `cpptexts`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rekernel
from cpptexts import broken, functions, habits, lexical, preprocessor, types
from jitkernels import compilers, needs_compiler
from rekernel.jit import CpuJit
from rekernel.languages import detect, plain
from rekernel.languages.cpp import CPP
from rekernel.objcache import ObjectCache

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")
pytestmark = needs_compiler

GOOD = [*types.ROWS, *functions.ROWS, *preprocessor.ROWS, *lexical.ROWS, *habits.ROWS]


@pytest.fixture(scope="session")
def jits(tmp_path_factory):
    """One JIT for each compiler, with a cache of their own."""
    cache = ObjectCache(tmp_path_factory.mktemp("cpptexts") / "cache")
    return {info.command: CpuJit(info, cache) for info in compilers()}


def written(kernel, *args):
    """Call a kernel and return what its first argument is after that."""
    assert kernel(*args) is None
    return args[0]


def load(loader, row, directory):
    """Load a row: from a file where it has headers beside it."""
    if not row.headers:
        return loader.load(row.code, "t", language="cpp", **row.options)
    for name, content in row.headers.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(content, encoding="utf-8")
    path = directory / "t.cpp"
    path.write_text(row.code, encoding="utf-8")
    return loader.load_file(path, **row.options)


def call(expression, module):
    names = {name: getattr(module, name) for name in dir(module) if not name.startswith("__")}
    return eval(expression, {**names, "m": module, "np": np, "written": written})


def check_call(expression, wanted, module):
    if isinstance(wanted, BaseException):
        with pytest.raises(type(wanted), match=re.escape(str(wanted))):
            call(expression, module)
        return
    got = call(expression, module)
    assert np.array_equal(got, wanted), f"{expression} gave {got!r}, not {wanted!r}"
    if not isinstance(wanted, list):
        assert isinstance(got, np.ndarray) or type(got) in (type(wanted), complex, float), f"{expression}: {type(got)}"


def check_good(loader, row, directory):
    module = load(loader, row, directory)
    info = rekernel.info(module)
    assert [str(kernel) for kernel in info.kernels] == list(row.kernels)
    for name, reason in row.skipped.items():
        assert reason in info.skipped[name]
    assert info.skipped.keys() == row.skipped.keys()
    for expression, wanted in row.calls:
        check_call(expression, wanted, module)


def check_bad(loader, row, directory):
    with pytest.raises(rekernel.KernelSourceError) as caught:
        load(loader, row, directory)
    error = caught.value
    first = str(error).splitlines()[0]
    assert re.search(row.says, first), str(error)
    assert first.startswith("t v1 (cpp)"), first
    if row.line is not None:
        assert error.line == row.line, str(error)
    if row.column is not None:
        assert error.column == row.column, str(error)
    if error.line is not None:
        assert 1 <= error.line <= row.code.count("\n") + 1


def by_compiler(rows, themes):
    """Each row with the first compiler; those of some themes with the others, too."""
    return [
        pytest.param(row, info.command, id=f"{info.command}: {row.name}")
        for index, info in enumerate(compilers())
        for row in rows
        if index == 0 or any(row in theme for theme in themes)
    ]


@pytest.mark.parametrize(("row", "command"), by_compiler(GOOD, (types.ROWS, functions.ROWS, habits.ROWS)))
def test_a_good_text_becomes_what_it_says(row, command, jits, tmp_path):
    with rekernel.KernelLoader(jit=jits[command]) as loader:
        check_good(loader, row, tmp_path)


@pytest.mark.parametrize(("row", "command"), by_compiler(broken.ROWS, (broken.ROWS,)))
def test_a_bad_text_says_where_it_is_wrong(row, command, jits, tmp_path):
    with rekernel.KernelLoader(jit=jits[command]) as loader:
        check_bad(loader, row, tmp_path)


def test_a_text_with_kernels_shows_that_it_is_cpp():
    unseen = [row.name for row in GOOD if row.kernels and CPP.recognise(plain(row.code)) is None]
    assert not unseen
    taken = [row.name for row in GOOD if row.kernels and detect(row.code).name != "cpp"]
    assert not taken


def test_an_id_is_the_first_kernel_that_the_text_has(jits):
    with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
        loader.load("static int help() { return 1; }\nint first() { return help(); }\nint second() { return 2; }")
        assert list(loader) == ["first"]


def test_a_text_comes_back_from_the_cache_with_all_that_was_known_of_it(jits):
    rows = [row for row in (*functions.ROWS, *preprocessor.ROWS) if not row.headers]
    for row in rows[:12]:
        seen = []
        for _ in range(2):
            with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
                info = rekernel.info(loader.load(row.code, "again", language="cpp", **row.options))
                seen.append((info.kernels, info.skipped, info.warnings))
        assert info.from_cache
        assert seen[0] == seen[1]


def test_each_version_has_its_own_statics(jits):
    text = "static int total = 0;\nint add(int n) { static int calls; return total += n + 100 * ++calls; }"
    with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
        add = loader.load(text, "t").add
        assert [add(1), add(1)] == [101, 302]
        before = add.pinned()
        loader.load(text + "\n", "t")
        assert add(1) == 101
        assert before(1) == 603


def test_lines_are_those_of_the_notebook_cell_or_the_file(jits, tmp_path):
    text = "int f(int x) {\n  return nowhere;\n}\n"
    with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
        with pytest.raises(rekernel.KernelSourceError) as cell:
            loader.load(text, "t", first_line=41)
        assert "t v1 (cpp), line 42, column 10:" in str(cell.value)
        path = tmp_path / "heat.cpp"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(rekernel.KernelSourceError) as file:
            loader.load_file(path)
        assert re.match(r"heat v1 \(cpp\), \S*heat\.cpp:2:10: ", str(file.value))


count, table = 8, [1.0, 2.0]  # of the caller's: a C++ text does not see them


@pytest.mark.parametrize(
    ("name", "given", "advice"),
    [
        ("k", {"k": 0.25}, "pass k as an argument, or write it into the text: constexpr double k = 0.25;"),
        ("count", None, "pass count as an argument, or write it into the text: constexpr int64_t count = 8;"),
        ("table", None, "pass table as an argument"),
        ("k", {"k": float("inf")}, "pass k as an argument"),
        ("np", None, None),
        ("written", None, None),
        ("nowhere", {"k": 1}, None),
    ],
)
@pytest.mark.parametrize("info", compilers(), ids=lambda info: info.command)
def test_a_name_that_only_python_has_is_an_error_with_the_ways_to_give_it(info, jits, name, given, advice):
    loader = rekernel.KernelLoader(jit=jits[info.command])
    with pytest.raises(rekernel.KernelSourceError) as caught:
        loader.load(f"double f(double x) {{ return x * {name}; }}", "t", namespace=given)
    _, found, said = caught.value.message.partition("; the text takes no names from Python: ")
    assert said == (advice or ""), caught.value.message
    assert bool(found) == (advice is not None)
    if advice and "constexpr" in advice:
        again = loader.load(advice.partition("text: ")[2] + f"double f(double x) {{ return x * {name}; }}", "t")
        assert again.f(4.0) == 4.0 * (given or globals())[name]
