"""``rekernel.info(x)``: of a module, a handle, a compiled kernel; assembly when it is asked for; right diffs."""

from __future__ import annotations

import dataclasses
import difflib
import pickle
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rekernel
import toy as toys
from jitkernels import AXPY, needs_compiler
from rekernel import KernelInfo, KernelLoader, ToolchainError, disassembly
from rekernel.jit import CpuJit
from rekernel.values import MachineCode

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

needs_objdump = pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump (binutils) is not installed")
TEXT = "void fill(rekernel::Array<double, 1> x) {\n  for (long i = 0; i < x.shape(0); ++i)\n    x(i) = 1;\n}\n"


@pytest.fixture
def cpp(tmp_path: Path) -> Iterator[KernelLoader]:
    with KernelLoader(jit=CpuJit(objcache=tmp_path / "cache")) as made:
        yield made


# --- assembly ---------------------------------------------------------------------------------------------------


@needs_compiler
@needs_objdump
def test_the_assembly_is_that_of_the_loaded_bytes(cpp: KernelLoader) -> None:
    first = rekernel.info(cpp.load(TEXT, "heat"))
    assert first.assembly is not None
    assert "rk_fill_0" in first.assembly
    assert "tm_clones" not in first.assembly
    second = rekernel.info(cpp.load(TEXT, "heat", optlevel="0").fill)
    assert second.assembly != first.assembly
    (code,) = second.machine
    assert (code.kind, code.data[:4]) == ("elf", b"\x7fELF")


@needs_compiler
@needs_objdump
def test_what_comes_out_of_the_cache_has_assembly_too(cpp: KernelLoader) -> None:
    cpp.load(TEXT, "a")
    assert cpp.info("a").assembly == rekernel.info(cpp.load(TEXT, "b")).assembly
    assert cpp.info("b").from_cache


@needs_compiler
@needs_objdump
def test_built_for_a_debugger_it_has_the_lines_of_the_text(cpp: KernelLoader) -> None:
    found = rekernel.info(cpp.load(TEXT, "heat", debug=True)).assembly
    assert found is not None
    assert "x(i) = 1;" in found
    assert "heat.cpp:3" in found


@needs_compiler
def test_asking_for_info_runs_no_tool(cpp: KernelLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    module = cpp.load(TEXT, "heat")
    monkeypatch.setattr(disassembly, "disassemble", lambda code: pytest.fail("nobody asked"))
    assert "x7fELF" not in repr(rekernel.info(module))


@needs_compiler
@needs_objdump
def test_it_is_made_once(cpp: KernelLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    info = rekernel.info(cpp.load(TEXT, "heat"))
    first = info.assembly
    monkeypatch.setattr(disassembly, "disassemble", lambda code: pytest.fail("made before"))
    assert info.assembly == first


@needs_compiler
def test_without_the_tool_the_error_says_what_to_install(cpp: KernelLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    info = rekernel.info(cpp.load(TEXT, "heat"))
    monkeypatch.setattr(shutil, "which", lambda *given, **named: None)
    with pytest.raises(ToolchainError, match=r"objdump, which is not installed .*apt install binutils(?s:.*)doctor"):
        _ = info.assembly


@needs_objdump
def test_a_tool_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(ToolchainError, match=r"objdump fails with code 1: .*file format not recogni"):
        _ = MachineCode("elf", b"not at all").text


def test_ptx_is_text_already() -> None:
    assert MachineCode("ptx", b".version 8.4\n\0").text == ".version 8.4\n"


def test_a_cubin_needs_a_tool_of_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shutil, "which", lambda *given, **named: None)
    with pytest.raises(ToolchainError, match="nvdisasm or cuobjdump of the CUDA toolkit"):
        _ = MachineCode("cubin", b"").text


@pytest.mark.parametrize("tool", ["nvdisasm", "cuobjdump"])
def test_either_tool_of_cuda_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / tool
    path.write_text('#!/bin/sh\nfor last; do :; done\necho "MOV R1; $(cat $last)"\n')
    path.chmod(0o755)
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None if path is None else found(name, path=path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    if shutil.which("nvdisasm", path="/usr/local/cuda/bin") and tool == "cuobjdump":
        pytest.skip("this machine has nvdisasm")
    assert MachineCode("cubin", b"code").text == "MOV R1; code\n"


@needs_compiler
@needs_objdump
def test_a_compiled_kernel_without_a_loader_has_it(tmp_path: Path) -> None:
    info = rekernel.info(CpuJit(objcache=tmp_path).compile(AXPY))
    assert info.assembly is not None
    assert "axpy" in info.assembly


@needs_compiler
@needs_objdump
def test_a_stencil_has_that_of_the_kernels_which_are_built(cpp: KernelLoader) -> None:
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    text = ('import pystencils as ps\nu, v = ps.fields("u, v: double[2D]")\n'
            "one = ps.Assignment(v[0, 0], u[1, 0] + 1)\ntwo = ps.Assignment(v[0, 0], u[1, 0] + 2)\n")  # fmt: skip
    module = cpp.load(text, "st")
    assert rekernel.info(module).assembly is None
    module.two(u=np.zeros((3, 3)), v=np.zeros((3, 3)))
    info = rekernel.info(module)
    assert [code.title for code in info.machine] == ["two"]
    assert str(info.assembly).startswith("two:\n")


def test_taichi_keeps_its_machine_code_for_itself(ti: ModuleType) -> None:
    with KernelLoader() as made:
        module = made.load("@ti.kernel\ndef f(x: ti.f32) -> ti.f32:\n    return x\n", "f")
        assert rekernel.info(module).assembly is None


# --- a value ----------------------------------------------------------------------------------------------------


def infos(loader: KernelLoader, cpp: KernelLoader) -> Iterator[KernelInfo]:
    module = loader.load("step(x) = x", "heat", scale=2)
    yield rekernel.info(module)
    yield rekernel.info(module.step)
    yield rekernel.info(module.step.pinned())
    with pytest.raises(rekernel.KernelSourceError):
        loader.load("step(x) = kk", "heat")
    yield loader.info("heat")
    yield rekernel.info(cpp.load(TEXT, "heat", language="cpp").fill)
    yield rekernel.info(cpp.jit.compile(AXPY))


@needs_compiler
def test_every_info_pickles_and_cannot_change(loader: KernelLoader, cpp: KernelLoader) -> None:
    for info in infos(loader, cpp):
        again = pickle.loads(pickle.dumps(info))
        assert [getattr(again, f.name) for f in dataclasses.fields(info) if f.name != "error"] == [
            getattr(info, f.name) for f in dataclasses.fields(info) if f.name != "error"
        ]
        assert str(again.error) == str(info.error)
        for value in (info, again):
            with pytest.raises(dataclasses.FrozenInstanceError):
                value.version = 7  # type: ignore[misc]
            with pytest.raises(TypeError):
                value.options["scale"] = 3  # type: ignore[index]


@needs_compiler
def test_a_pickled_info_still_makes_assembly_and_diffs(cpp: KernelLoader) -> None:
    cpp.load(TEXT, "heat")
    info = pickle.loads(pickle.dumps(rekernel.info(cpp.load(TEXT.replace("= 1", "= 2"), "heat"))))
    assert "+    x(i) = 2;" in info.diff(1)
    if shutil.which("objdump"):
        assert "rk_fill_0" in info.assembly


@pytest.mark.parametrize("other", [1, "heat", None, len, np.zeros(3)], ids=repr)
def test_what_no_loader_gave_out_is_refused(other: Any) -> None:
    with pytest.raises(TypeError, match="info takes a module or a kernel that a loader gave out, or a compiled kernel"):
        rekernel.info(other)


# --- diffs ------------------------------------------------------------------------------------------------------


def info_between(old: str, new: str) -> KernelInfo:
    made: dict[str, Any] = {f.name: None for f in dataclasses.fields(KernelInfo)}
    version = rekernel.Version("heat", 1, old, {}, (), 0.0)
    made |= {"kernel_id": "heat", "version": 2, "source": new, "history": (version,), "machine": ()}
    return KernelInfo(**made)


TEXTS = {
    "a changed line": ("a\nb\nc\n", "a\nB\nc\n"),
    "no last newline": ("a\nb", "a\nc"),
    "the last newline goes": ("a\nb\n", "a\nb"),
    "the last newline comes": ("a\nb", "a\nb\n"),
    "CRLF": ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
    "CRLF becomes LF": ("a\r\nb\r\n", "a\nb\n"),
    "a form feed in a line": ("a\x0cb\nc\n", "a\x0cb\nC\n"),
    "a line separator in a line": ("a\u2028b\nc\n", "a\u2028b\nC\n"),
    "nothing before": ("", "a\n"),
    "nothing after": ("a\n", ""),
    "empty lines": ("\n\n\n", "\n\n"),
}  # fmt: skip


def test_a_diff_of_crlf_shows_the_changed_line_alone() -> None:
    assert info_between(*TEXTS["CRLF"]).diff(1).split("\n")[3:] == [" a\r", "-b\r", "+B\r", " c\r"]


def test_a_change_of_the_endings_is_a_change_of_every_line() -> None:
    rows = info_between(*TEXTS["CRLF becomes LF"]).diff(1).split("\n")[3:]
    assert rows == ["-a\r", "-b\r", "+a", "+b"]


def test_characters_that_only_python_takes_for_ends_do_not_end_a_line() -> None:
    rows = info_between(*TEXTS["a form feed in a line"]).diff(1).split("\n")[3:]
    assert rows == [" a\x0cb", "-c", "+C"]


def test_where_only_one_text_ends_its_last_line_it_is_told() -> None:
    assert info_between("a\n", "a").diff(1).split("\n")[3:] == ["-a", "+a", "\\ No newline at end of file"]
    assert "No newline" not in info_between("a", "b").diff(1)


def test_the_same_text_has_an_empty_diff() -> None:
    assert info_between("a\r\nb", "a\r\nb").diff(1) == ""


@pytest.mark.skipif(shutil.which("patch") is None, reason="the program patch is not installed")
@pytest.mark.parametrize(
    "what", [what for what, (old, new) in TEXTS.items() if old.endswith("\n") or new.endswith("\n")]
)
def test_patch_makes_the_new_text_from_the_old_one(tmp_path: Path, what: str) -> None:
    old, new = TEXTS[what]
    file = tmp_path / "text"
    file.write_bytes(old.encode())
    diff = info_between(old, new).diff(1) + "\n"
    done = subprocess.run(["patch", "--binary", "-s", str(file)], input=diff.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr, diff)
    assert (file.read_bytes() if file.exists() else b"") == new.encode()


def test_a_diff_says_what_difflib_says_of_plain_texts() -> None:
    old, new = TEXTS["a changed line"]
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), "heat v1", "heat v2", lineterm="")
    assert info_between(old, new).diff(1) == "\n".join(rows)
