"""Row 14: code for "this CPU" is only for CPUs with the same features."""

from __future__ import annotations

import os
import shutil

import pytest

from jitkernels import constant, each_compiler
from rekernel import probe
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache

x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags are those of x86-64")


class Machine:
    """A computer that shares a cache: another CPU is another answer of the system."""

    def __init__(self, monkeypatch, directory, features):
        monkeypatch.setattr(probe, "cpu_features", lambda: features)
        monkeypatch.setattr(probe, "_known", {})
        self.cache = ObjectCache(directory)

    def reason(self, info):
        return CpuJit(info, self.cache).compile(constant(1)).rebuilt_because


@each_compiler
def test_another_cpu_is_another_entry_and_the_same_is_a_hit(info, tmp_path, monkeypatch):
    said = [
        Machine(monkeypatch, tmp_path, cpu).reason(info.copy()) for cpu in ("avx2", "avx512", "avx2", "avx512", "sse2")
    ]
    assert said == ["not seen before", "CPU changed", None, None, "CPU changed"]


@each_compiler
@pytest.mark.parametrize("target", ["generic", pytest.param("x86-64-v2", marks=x86)])
def test_a_portable_target_is_for_all(info, tmp_path, monkeypatch, target):
    info.target = target
    said = [Machine(monkeypatch, tmp_path, cpu).reason(info.copy()) for cpu in ("avx2", "avx512", "sse2")]
    assert said == ["not seen before", None, None]


@each_compiler
@pytest.mark.parametrize("flags", [["-march=native"], ["-O2", "-mtune=native"]], ids=lambda flags: flags[-1])
def test_native_among_the_users_own_flags_counts_too(info, tmp_path, monkeypatch, flags):
    if os.uname().machine != "x86_64":
        pytest.skip("the flags are those of x86-64")
    info.target, info.extra_cxxflags = "generic", flags
    said = [Machine(monkeypatch, tmp_path, cpu).reason(info.copy()) for cpu in ("avx2", "avx512", "avx2")]
    assert said == ["not seen before", "CPU changed", None]


@x86
@each_compiler
def test_the_compiler_gets_concrete_flags_never_native(info):
    artefact = CpuJit(info, None).obtain([constant(1)], constant(1).code, [])
    assert not [word for word in artefact.command if "native" in word]
    assert [word for word in artefact.command if word.startswith("-march=")]


@x86
@each_compiler
def test_what_the_compiler_resolves_is_part_of_the_key(info, tmp_path, monkeypatch):
    # The same features by the system's account, but a compiler that makes other flags of them.
    said = []
    for flags in (("-march=x86-64-v2",), ("-march=x86-64",), ("-march=x86-64-v2",)):
        shutil.rmtree(tmp_path / "probes", ignore_errors=True)
        monkeypatch.setattr(probe, "native_flags", lambda command, flags=flags: flags)
        said.append(Machine(monkeypatch, tmp_path, "the same").reason(info))
    assert said == ["not seen before", "flags changed: -march=x86-64-v2 -> -march=x86-64", None]
