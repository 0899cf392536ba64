"""Row 20 for C++ texts: another compiler, another version of it, another reader of texts: built anew."""

from __future__ import annotations

import os
import shutil

import pytest

from cachekit import posix
from cppkit import CpuJit, KernelLoader, ObjectCache, Shim, answer, needs_cpp
from rekernel import probe
from rekernel.compilers import CompilerInfo
from rekernel.languages.cpp import building, unit

pytestmark = [posix, needs_cpp]


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Whether a text is compiled; what a process remembers of compilers is forgotten each time."""

    def ask(info=None, **options):
        monkeypatch.setattr(probe, "_known", {})
        loader = KernelLoader(jit=CpuJit(info, ObjectCache(tmp_path / "cache")))
        assert loader.load(answer(4), "k", language="cpp", **options).f() == 4
        return not loader.info("k").from_cache

    return ask


def test_a_wrapper_of_the_same_name_first_on_path_is_another_compiler(tmp_path, monkeypatch, built):
    info = CompilerInfo(command="g++")
    assert [built(info), built(info)] == [True, False]
    shim = Shim(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(shim.path.parent), prepend=os.pathsep)
    assert [built(info), built(info)] == [True, False]
    assert len(shim.calls()) == 1
    shim.path.unlink()
    assert built(info) is False


def test_the_variable_cxx_is_asked_each_time(tmp_path, monkeypatch, built):
    monkeypatch.delenv("REKERNEL_CXX", raising=False)
    monkeypatch.setenv("CXX", "g++")
    assert [built(), built()] == [True, False]
    monkeypatch.setenv("CXX", str(Shim(tmp_path / "bin").path))
    assert [built(), built()] == [True, False]


def test_a_new_version_in_the_same_place(tmp_path, built):
    path, real = tmp_path / "g++", shutil.which("g++")
    said = []
    for version in ("98.1.0", "99.1.0", "98.1.0"):
        path.write_text(
            f'#!/bin/sh\ncase "$*" in *-###*|*--version*) {real} "$@" 2>&1 | sed "s/version [0-9.]*/version {version}/" >&2;;\n'
            f'*) exec {real} "$@";; esac\n'
        )
        path.chmod(0o755)
        said += [built(CompilerInfo(command=str(path))) for _ in range(2)]
    assert said == [True, False, True, False, False, False]


@pytest.mark.parametrize("what", ["headers", "reader", "schema"])
def test_another_version_of_ours_is_another_entry(monkeypatch, built, what):
    assert [built(), built()] == [True, False]
    with monkeypatch.context() as patch:
        if what == "headers":
            patch.setattr(unit, "header_digest", lambda: "another")
        elif what == "reader":
            patch.setattr(building, "_reader_version", lambda: "another")
        else:
            patch.setattr(building, "SCHEMA", -1)
        assert [built(), built()] == [True, False]
    assert built() is False


OPTIONS = [{"optlevel": "1"}, {"optlevel": "fast"}, {"flags": "-DA"}, {"flags": ["-DA=2"]}, {"openmp": True},
           {"target": "generic"}, {"allow_alias": True}, {"include_dirs": ["/usr/include"]}, {"flags": "-lm"}]  # fmt: skip


def test_every_option_that_changes_the_code_is_in_the_key(built):
    assert built()
    for options in OPTIONS:
        assert built(**options), options
    for options in [{}, *OPTIONS]:
        assert not built(**options), options


@pytest.mark.parametrize(
    "options", [{"nogil": True}, {"nogil": False}, {"debug": False}, {"openmp": False}, {"flags": ""}]
)
def test_an_option_that_does_not_is_not(built, options):
    assert built()
    assert not built(**options)
