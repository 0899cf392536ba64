"""Row 14 for C++ texts: what is compiled for this CPU serves only CPUs with the same features."""

from __future__ import annotations

import os

import pytest

from cppkit import answer, load_with, needs_cpp
from rekernel import probe

pytestmark = [needs_cpp, pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags are those of x86-64")]


def builds(monkeypatch, directory, options, cpus):
    """Return for each CPU whether the text was compiled."""
    said = []
    for cpu in cpus:
        monkeypatch.setattr(probe, "cpu_features", lambda cpu=cpu: cpu)
        monkeypatch.setattr(probe, "_known", {})
        loader = load_with(directory)
        assert loader.load(answer(1), "k", **options).f() == 1
        said.append(not loader.info("k").from_cache)
    return said


@pytest.mark.parametrize(
    "options", [{}, {"target": "native"}, {"target": "generic", "flags": "-march=native"}], ids=str
)
def test_native_is_this_cpu(monkeypatch, tmp_path, options):
    assert builds(monkeypatch, tmp_path, options, ["a", "b", "a", "b"]) == [True, True, False, False]


@pytest.mark.parametrize("target", ["generic", "x86-64-v2"])
def test_a_portable_target_is_for_all(monkeypatch, tmp_path, target):
    assert builds(monkeypatch, tmp_path, {"target": target}, ["a", "b", "c"]) == [True, False, False]
