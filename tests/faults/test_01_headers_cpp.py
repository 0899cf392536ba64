"""Row 1 for C++ texts: a header is the helper of every id that includes it; each id uses one text of it as a whole."""

from __future__ import annotations

import pytest

import rekernel
from cppkit import load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp

HEADER = "inline int factor() {{ return {0}; }}\ntemplate <class T> T scaled(T x) {{ return T({0}) * x; }}\n"
USER = '#include "{0}"\nint plain() {{ return {1} + factor(); }}\nint generic() {{ return {1} + scaled(1); }}\n'


@pytest.fixture
def loader(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(2))
    (tmp_path / "inc" / "helper.h").write_text('#include "deep.h"\n')
    with load_with(tmp_path / "cache") as made:
        yield made


def load(loader, tmp_path, name, header="helper.h"):
    return loader.load(USER.format(header, 0), name, language="cpp", include_dirs=[tmp_path / "inc"])


def answers(module):
    return {module.plain(), module.generic()}


@pytest.mark.parametrize("header", ["helper.h", "deep.h"])
def test_both_users_of_a_header_have_its_new_text_from_their_next_load_on(loader, tmp_path, header):
    a, b = load(loader, tmp_path, "a", header), load(loader, tmp_path, "b", header)
    assert (answers(a), answers(b)) == ({2}, {2})
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(3))
    assert (answers(a), answers(b)) == ({2}, {2})  # nothing moves by itself
    load(loader, tmp_path, "a", header)
    assert (answers(a), answers(b)) == ({3}, {2})
    load(loader, tmp_path, "b", header)
    assert (answers(a), answers(b)) == ({3}, {3})
    assert [loader.info(i).version for i in "ab"] == [2, 2]


def test_a_header_that_breaks_its_users_takes_nothing_away(loader, tmp_path):
    a = load(loader, tmp_path, "a")
    (tmp_path / "inc" / "deep.h").write_text("inline int factor() { return nonsense; }\n")
    for _ in range(2):
        with pytest.raises(rekernel.KernelSourceError, match="nonsense"):
            load(loader, tmp_path, "a")
        assert answers(a) == {2}
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(4))
    load(loader, tmp_path, "a")
    assert answers(a) == {4}


def test_a_pinned_kernel_keeps_the_header_it_was_built_with(loader, tmp_path):
    pinned = load(loader, tmp_path, "a").plain.pinned()
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(3))
    assert load(loader, tmp_path, "a").plain() == 3
    assert pinned() == 2


def test_a_version_is_not_restored_with_a_header_that_has_changed(loader, tmp_path):
    first = USER.format("deep.h", 0)
    a = loader.load(first, "a", language="cpp", include_dirs=[tmp_path / "inc"])
    loader.load(USER.format("deep.h", 100), "a")
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(3))
    loader.load(first, "a")  # A -> B -> A, and A's header is another one
    assert answers(a) == {3}
    (tmp_path / "inc" / "deep.h").write_text(HEADER.format(2))
    loader.load(first, "a")
    assert answers(a) == {2}


def test_the_next_process_uses_the_new_header(tmp_path):
    program = """
import rekernel, sys
from cppkit import load_with
m = load_with(sys.argv[1] + "/cache").load('#include "h.h"\\nint f() { return H; }\\nint g() { return H; }\\n', "k",
                                           language="cpp", include_dirs=[sys.argv[1]])
print(m.f(), m.g(), rekernel.info(m).from_cache)
"""
    said = []
    for number in (1, 1, 2, 1):
        (tmp_path / "h.h").write_text(f"#define H {number}\n")
        said.append(run_python(program, str(tmp_path)).stdout.split())
    assert said == [["1", "1", "False"], ["1", "1", "True"], ["2", "2", "False"], ["1", "1", "True"]]
