"""The key: a row for each thing that must change it, and one for each that must not."""

from __future__ import annotations

import enum
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekernel import key
from rekernel.kernel import Kernel, Parameter
from rekernel.key import digest

BASE = {
    "text": "int f(int n);",
    "flags": ("-O3", "-fopenmp"),
    "compiler": "/usr/bin/g++",
    "version": (12, 2, 0),
    "openmp": True,
    "level": 3,
    "tolerance": 0.5,
    "environment": {"CPATH": "/a", "LANG": "C"},
    "features": frozenset({"avx2", "fma"}),
    "extra": None,
}


class Level(enum.Enum):
    FAST = "fast"
    SAFE = "safe"


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclass(frozen=True)
class Place:
    x: int
    y: int


CHANGES = {
    "another text": {"text": "int f(int m);"},
    "a space more": {"text": "int f(int n); "},
    "another line end": {"text": "int f(int n);\r\n"},
    "text as bytes": {"text": b"int f(int n);"},
    "order of flags": {"flags": ("-fopenmp", "-O3")},
    "a flag less": {"flags": ("-O3",)},
    "flags in one string": {"flags": "-O3 -fopenmp"},
    "two flags run together": {"flags": ("-O3-fopenmp",)},
    "a border moved": {"flags": ("-O3-", "fopenmp")},
    "an empty flag": {"flags": ("-O3", "-fopenmp", "")},
    "another compiler": {"compiler": "/opt/bin/g++"},
    "the compiler as a path": {"compiler": Path("/usr/bin/g++")},
    "another version": {"version": (12, 3, 0)},
    "version as text": {"version": "12.2.0"},
    "version nested": {"version": ((12, 2), 0)},
    "True as 1": {"openmp": 1},
    "False": {"openmp": False},
    "3 as 3.0": {"level": 3.0},
    "3 as text": {"level": "3"},
    "3 as True": {"level": True},
    "the next float": {"tolerance": math.nextafter(0.5, 1)},
    "float as complex": {"tolerance": 0.5 + 0j},
    "another variable": {"environment": {"CPATH": "/b", "LANG": "C"}},
    "a variable less": {"environment": {"CPATH": "/a"}},
    "name and value exchanged": {"environment": {"/a": "CPATH", "LANG": "C"}},
    "variables as pairs": {"environment": (("CPATH", "/a"), ("LANG", "C"))},
    "another CPU": {"features": frozenset({"avx2"})},
    "a set as a list": {"features": ["avx2", "fma"]},
    "nothing as empty text": {"extra": ""},
    "nothing as an empty list": {"extra": ()},
    "nothing as 0": {"extra": 0},
    "one more field": {"more": None},
}

KEEPS = {
    "nothing": {},
    "a list for a tuple": {"flags": ["-O3", "-fopenmp"]},
    "order of a mapping": {"environment": {"LANG": "C", "CPATH": "/a"}},
    "order of a set": {"features": {"fma", "avx2"}},
    "another text object": {"text": "".join(["int f(", "int n);"])},
}


@pytest.mark.parametrize("row", CHANGES)
def test_it_changes_with(row):
    assert digest((BASE | CHANGES[row]).items()) != digest(BASE.items())


def test_all_rows_that_change_it_differ_from_each_other():
    assert len({digest((BASE | change).items()) for change in CHANGES.values()}) == len(CHANGES)


@pytest.mark.parametrize("row", KEEPS)
def test_it_stays_with(row):
    assert digest((BASE | KEEPS[row]).items()) == digest(BASE.items())


def test_the_order_of_the_fields_means_nothing():
    assert digest(reversed(BASE.items())) == digest(BASE.items())


def test_a_field_less_changes_it():
    for label in BASE:
        assert digest((name, value) for name, value in BASE.items() if name != label) != digest(BASE.items())


def test_a_label_counts():
    assert digest([("a", 1), ("b", 2)]) != digest([("a", 2), ("b", 1)])


def test_text_cannot_move_between_label_and_value():
    assert digest([("ab", "c")]) != digest([("a", "bc")])
    assert digest([("a", "x"), ("b", "y")]) != digest([("a", "xb"), ("", "y")])


def test_the_schema_number_counts(monkeypatch):
    before = digest(BASE.items())
    monkeypatch.setattr(key, "SCHEMA", key.SCHEMA + 1)
    assert digest(BASE.items()) != before


def test_enumerations_and_values_of_a_class_are_told_by_name():
    assert digest([("a", Level.FAST)]) != digest([("a", Level.SAFE)])
    assert digest([("a", Level.FAST)]) != digest([("a", "fast")])
    assert digest([("a", Point(1, 2))]) == digest([("a", Point(1, 2))])
    assert digest([("a", Point(1, 2))]) != digest([("a", Point(2, 1))])
    assert digest([("a", Point(1, 2))]) != digest([("a", Place(1, 2))])


def test_a_kernel_is_a_value():
    def kernel(dtype):
        parameter = Parameter("x", "array", dtype=dtype, ndim=2, written=True)
        return Kernel("f", (parameter,), "cpp", code="void f(double* x) {}")

    assert digest([("kernel", kernel("float64"))]) == digest([("kernel", kernel("float64"))])
    assert digest([("kernel", kernel("float64"))]) != digest([("kernel", kernel("float32"))])


def test_numbers_by_their_bits():
    assert digest([("a", 0.0)]) != digest([("a", -0.0)])
    assert digest([("a", math.nan)]) == digest([("a", math.nan)])
    assert digest([("a", 2**80)]) != digest([("a", 2**81)])


def test_names_of_files_need_not_be_good_text():
    assert digest([("a", "b\udcff")]) != digest([("a", "b?")])


@pytest.mark.parametrize("value", [object(), len, lambda: 0, Point, [1, object()], {"a": object()}])
def test_what_differs_between_processes_is_refused(value):
    with pytest.raises(TypeError, match="field 'bad'"):
        digest([("good", 1), ("bad", value)])


def test_a_label_must_not_come_twice():
    with pytest.raises(ValueError, match="'a'"):
        digest([("a", 1), ("a", 2)])


def test_it_has_64_digits():
    assert len(digest([])) == 64
    assert set(digest([])) <= set("0123456789abcdef")


def test_it_is_the_same_in_another_process_with_another_hash_seed():
    code = f"from rekernel.key import digest; print(digest({BASE!r}.items()))"
    seen = set()
    for seed in ("0", "1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        seen.add(done.stdout.strip())
    assert seen == {digest(BASE.items())}


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def shown(value):
    """The text of a value in which 0.0 and -0.0, 1 and True differ, and the order of a mapping does not count."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(repr(k) + ":" + shown(v) for k, v in value.items())) + "}"
    return "[" + ",".join(map(shown, value)) + "]" if isinstance(value, list) else repr(value)


@given(plain, plain)
def test_two_values_have_one_key_only_if_they_are_the_same(one, other):
    assert (digest([("a", one)]) == digest([("a", other)])) == (shown(one) == shown(other))
