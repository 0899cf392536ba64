"""C++ texts as people write them, good and bad: what each becomes. The texts are data, in `cpptexts`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import rekernel
from cpptexts import broken, functions, habits, lexical, preprocessor, types
from jitkernels import compilers, needs_compiler
from rekernel.jit import CpuJit
from rekernel.languages import detect
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


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row.name)
def test_a_good_text_becomes_what_it_says(row, jits, tmp_path):
    with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
        check_good(loader, row, tmp_path)


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
    place = "t.cpp" if row.headers else "t v1 (cpp)"
    assert first.startswith(place) or "t v1" in first, first
    if row.line is not None:
        assert error.line == row.line, str(error)
    if row.column is not None:
        assert error.column == row.column, str(error)
    if error.line is not None:
        assert 1 <= error.line <= row.code.count("\n") + 1


@pytest.mark.parametrize("row", broken.ROWS, ids=lambda row: row.name)
def test_a_bad_text_says_where_it_is_wrong(row, jits, tmp_path):
    with rekernel.KernelLoader(jit=next(iter(jits.values()))) as loader:
        check_bad(loader, row, tmp_path)
