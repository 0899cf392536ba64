"""Why something is built: the first field that differs from the nearest kernel in the cache, in words."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jitkernels import AXPY, needs_compiler
from rekernel import KernelLoader, freezing, why
from rekernel.commands.why import show
from rekernel.commands.why import why as why_of
from rekernel.compilers import CompilerInfo
from rekernel.jit import CpuJit
from rekernel.kin import LINES, MOST, Kin
from rekernel.objcache import ObjectCache

BASE: dict[str, Any] = {
    "unit": "int f();", "module": False, "launcher": (), "driver": ("/usr/bin/g++", "/usr/bin/g++-12"), "flags": (),
    "version": "gcc version 12.2.0 (Debian 12.2.0-14)", "triple": "x86_64-linux-gnu", "environment": (),
    "files": (("/usr/bin/g++", 10),), "linker": "/usr/bin/ld", "cxxflags": "-O2\0-g\0-march=native",
    "linker flags": (), "cpu": "ab12", "our headers": "12", "reader": "34", "architecture": "sm_80",
    "nvrtc": (12, 8), "options": ("-use_fast_math",), "headers": {"a.h": "1"},
}  # fmt: skip

CHANGES: dict[str, tuple[dict[str, Any], str, str]] = {
    "the text": ({"unit": "int g();"}, "unit", "text changed"),
    "an optimisation": ({"cxxflags": "-O3\0-g\0-march=native"}, "cxxflags", "flags changed: -O2 -> -O3"),
    "one flag more": (
        {"cxxflags": "-O2\0-g\0-march=native\0-ffast-math"}, "cxxflags", "flags changed: -ffast-math came",
    ),
    "one flag less": ({"cxxflags": "-O2\0-march=native"}, "cxxflags", "flags changed: -g went"),
    "the order of flags": ({"cxxflags": "-g\0-O2\0-march=native"}, "cxxflags", "flags changed: another order"),
    "the compiler's version": (
        {"version": "gcc version 13.1.0 (Debian)", "files": (("/usr/bin/g++", 11),)}, "version",
        "compiler version changed: g++ 12.2.0 -> g++ 13.1.0",
    ),
    "another build of it": (
        {"version": "gcc version 12.2.0 (Debian 12.2.0-15)"}, "version", "compiler version changed",
    ),
    "another compiler": (
        {"version": "clang version 14.0.6", "driver": ("/usr/bin/clang++", "/usr/lib/llvm/clang")}, "version",
        "compiler version changed: g++ 12.2.0 -> clang++ 14.0.6",
    ),
    "a launcher": ({"launcher": ("/usr/bin/ccache",)}, "launcher", "compiler launcher changed: /usr/bin/ccache came"),
    "a variable": (
        {"environment": (("CPATH", "/opt"),)}, "environment",
        "environment of the compiler changed: CPATH=/opt came",
    ),
    "the CPU": ({"cpu": "cd34"}, "cpu", "CPU changed"),
    "the target system": ({"triple": "arm"}, "triple", "target system changed: x86_64-linux-gnu -> arm"),
    "the linker": ({"linker": "/usr/bin/lld"}, "linker", "linker changed: /usr/bin/ld -> /usr/bin/lld"),
    "rekernel itself": ({"our headers": "13"}, "our headers", "rekernel changed"),
    "the architecture": ({"architecture": "sm_90"}, "architecture", "architecture changed: sm_80 -> sm_90"),
    "NVRTC": ({"nvrtc": (13, 0)}, "nvrtc", "NVRTC version changed: 12.8 -> 13.0"),
    "an option of NVRTC": ({"options": ()}, "options", "options changed: -use_fast_math went"),
    "a header that is a text": ({"headers": {"a.h": "2"}}, "headers", "headers given as texts changed"),
    "a field that came": ({"extra": 7}, "extra", "extra changed: 7 came"),
}  # fmt: skip


def worded(**changes: Any) -> dict[str, Any]:
    return why.words({**BASE, **changes}.items())


@pytest.mark.parametrize("what", CHANGES)
def test_each_field_has_its_sentence(what: str) -> None:
    changes, field, said = CHANGES[what]
    assert why.because("new", worded(**changes), [worded()]) == why.Reason(field, said)


def test_the_nearest_counts_and_of_equals_the_latest() -> None:
    far = worded(unit="int h();", cpu="00", triple="arm")
    near = worded(cxxflags="-O1\0-g\0-march=native")
    assert why.because("new", worded(), [far, near]).said == "flags changed: -O1 -> -O2"
    older = worded(cpu="77")
    assert why.because("new", worded(), [near, older]).field == "cxxflags"
    assert why.because("new", worded(), [older, near]).field == "cpu"


def test_what_the_cache_says_itself_comes_first() -> None:
    found = why.because("header changed: /a.h", worded(), [worded(unit="int g();")])
    assert (found.field, found.said) == ("header", "header changed: /a.h")
    assert why.because("damaged", worded(), []) == why.Reason("entry", "damaged")


def test_what_is_the_same_in_all_fields_was_taken_out() -> None:
    assert why.because("new", worded(), [worded()]).said == "taken out of the cache since"


def test_no_text_and_nothing_long_is_kept_in_words() -> None:
    secret = "int answer_to_everything();"
    kept = worded(unit=secret, linker="x" * 5000, headers={"a.h": secret})
    assert secret not in str(kept)
    assert all(str(kept[label]).startswith("#") for label in ("unit", "linker", "headers"))
    assert len(str(kept)) < 1500


# --- which entries are the same kernels ------------------------------------------------------------------------


@pytest.fixture(params=["on disk", "in memory"])
def kin(request: pytest.FixtureRequest, tmp_path: Path) -> Kin:
    return Kin(str(tmp_path / "kin"), str(tmp_path)) if request.param == "on disk" else Kin(None)


def digest(number: int) -> str:
    return f"{number:064x}"


def test_the_latest_keys_come_first(kin: Kin) -> None:
    assert kin.keys(("cpp", "heat")) == []
    for number in range(MOST + 3):
        kin.note(("cpp", "heat"), digest(number))
    kin.note(("cpp", "other"), digest(99))
    assert kin.keys(("cpp", "heat")) == [digest(number) for number in range(MOST + 2, 2, -1)]
    assert kin.keys(("cuda", "heat")) == []


def test_the_files_stay_small(tmp_path: Path) -> None:
    kin = Kin(str(tmp_path / "kin"), str(tmp_path))
    for number in range(5 * LINES):
        kin.note(("cpp", "heat"), digest(number))
    (file,) = (tmp_path / "kin").iterdir()
    assert file.stat().st_size <= (LINES + 1) * 82
    assert kin.keys(("cpp", "heat"))[0] == digest(5 * LINES - 1)


@pytest.mark.parametrize("content", [b"", b"\0\xff garbage\n\n", b"a b c d\n" * 50, "größe\n".encode()])
def test_a_damaged_file_is_as_if_nothing_were_known(tmp_path: Path, content: bytes) -> None:
    kin = Kin(str(tmp_path / "kin"), str(tmp_path))
    kin.note(("cpp", "heat"), digest(1))
    (file,) = (tmp_path / "kin").iterdir()
    file.write_bytes(content)
    assert kin.keys(("cpp", "heat")) == []
    kin.note(("cpp", "heat"), digest(2))
    assert kin.keys(("cpp", "heat")) == [digest(2)]


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "kin").write_text("a file")
    kin = Kin(str(tmp_path / "kin"), str(tmp_path))
    kin.note(("cpp", "heat"), digest(1))
    assert kin.keys(("cpp", "heat")) == []


# --- the compiler's own -----------------------------------------------------------------------------------------


TEXT = "void fill(rekernel::Array<double, 1> x) {\n  for (long i = 0; i < x.shape(0); ++i) x(i) = 1;\n}\n"


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


@needs_compiler
def test_an_edit_an_option_and_a_header_are_told_by_name(tmp_path: Path, cache: ObjectCache) -> None:
    header = tmp_path / "one.h"
    header.write_text("#define ONE 1\n")
    text = f'#include "{header}"\n' + TEXT.replace("= 1", "= ONE")
    with KernelLoader(jit=CpuJit(objcache=cache)) as loader:
        said = []
        for change in ({}, {"optlevel": "1"}):
            loader.load(text, "heat", **change)
            said.append(loader.info("heat").rebuilt_because)
        header.write_text("#define ONE 2\n")
        loader.load(text, "heat")
        said.append(loader.info("heat").rebuilt_because)
        loader.load(f"{text}\n", "heat")
        said.append(loader.info("heat").rebuilt_because)
    assert said == ["not seen before", "flags changed: -O3 -> -O1", f"header changed: {header}", "text changed"]


@needs_compiler
def test_another_process_names_the_change_too(cache: ObjectCache) -> None:
    CpuJit(objcache=cache).compile(AXPY)
    again = ObjectCache(cache.directory)
    changed = replace(AXPY, code=AXPY.code + "// other\n")
    assert CpuJit(objcache=again).compile(changed).rebuilt_because == "text changed"
    info = CompilerInfo.get_default(optlevel="2")
    assert CpuJit(info, again).compile(changed).rebuilt_because == "flags changed: -O3 -> -O2"


@needs_compiler
def test_what_was_pruned_with_all_its_kin_is_new(cache: ObjectCache) -> None:
    CpuJit(objcache=cache).compile(AXPY)
    cache.prune(0)
    assert CpuJit(objcache=cache).compile(AXPY).rebuilt_because == "not seen before"


@needs_compiler
def test_a_cache_that_keeps_nothing_says_so() -> None:
    assert CpuJit(objcache=None).compile(AXPY).rebuilt_because == "no cache"


@needs_compiler
def test_a_manifest_of_before_there_were_words_is_no_trap(cache: ObjectCache) -> None:
    wrapper = CpuJit(objcache=cache).compile(AXPY)
    assert wrapper.rebuilt_because == "not seen before"
    cache.publish("ab" * 32, {"kernels": []}, b"old", subject=("cpp", "axpy"))
    changed = replace(AXPY, code=AXPY.code + "// other\n")
    assert CpuJit(objcache=cache).compile(changed).rebuilt_because == "text changed"


# --- the command ------------------------------------------------------------------------------------------------


@needs_compiler
def test_why_looks_and_compiles_nothing(tmp_path: Path, cache: ObjectCache, capsys: pytest.CaptureFixture[str]) -> None:
    file, jit = tmp_path / "heat.cpp", CpuJit(objcache=cache)
    file.write_text(TEXT)
    (missed,) = why_of([file], jit=jit)
    assert (missed["hit"], missed["reason"], missed["field"]) == (False, "not seen before", "key")
    assert missed["command"] == f"python -m rekernel build {file}"
    assert cache.stats.published == 0
    with KernelLoader(jit=jit) as loader:
        loader.load_file(file)
    (hit,) = why_of([file], jit=jit)
    assert (hit["hit"], hit["reason"], hit["command"]) == (True, None, None)
    (other,) = why_of([file], options={"optlevel": "1"}, jit=jit)
    assert other["reason"] == "flags changed: -O3 -> -O1"
    assert other["command"] == f"python -m rekernel build {file} --option 'optlevel=\"1\"'"
    assert hit["key"] != other["key"]
    show([missed, hit, other])
    shown = capsys.readouterr().out
    assert "flags changed: -O3 -> -O1" in shown
    assert f"to fill the cache: {missed['command']}" in shown
    assert not freezing.refused()


@needs_compiler
def test_why_of_a_stencil_tells_of_each_kernel(tmp_path: Path, cache: ObjectCache) -> None:
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    file, jit = tmp_path / "two.py", CpuJit(objcache=cache)
    file.write_text(
        'import pystencils as ps\nu, v = ps.fields("u, v: double[2D]")\n'
        "one = ps.Assignment(v[0, 0], u[1, 0] + 1)\ntwo = ps.Assignment(v[0, 0], u[1, 0] + 2)\n"
    )
    import numpy as np

    assert [(row["name"], row["hit"]) for row in why_of([file], jit=jit)] == [("one", False), ("two", False)]
    with KernelLoader(jit=jit) as loader:
        loader.load_file(file).two(u=np.zeros((4, 4)), v=np.zeros((4, 4)))
    assert [(row["name"], row["hit"]) for row in why_of([file], jit=jit)] == [("one", False), ("two", True)]


def test_why_of_taichi_says_that_nobody_knows(tmp_path: Path) -> None:
    pytest.importorskip("taichi", reason="Taichi is not installed")
    file = tmp_path / "paint.py"
    file.write_text("@ti.kernel\ndef paint(x: ti.f32) -> ti.f32:\n    return x\n")
    (row,) = why_of([file])
    assert (row["hit"], row["language"], row["key"]) == (None, "taichi", None)


def test_files_that_cannot_be_read_do_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing, empty = tmp_path / "missing.cpp", tmp_path / "words.py"
    empty.write_text("hello there\n")
    rows = why_of([missing, empty])
    assert [row["hit"] for row in rows] == [None, None]
    assert all(row["error"] for row in rows)
    show(rows)
    assert os.fspath(missing) in capsys.readouterr().err
