"""``rekernel.freeze()``: nothing is compiled any more, and all that is built goes on."""

from __future__ import annotations

import pickle
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rekernel
from jitkernels import AXPY, needs_compiler
from rekernel import FrozenError, KernelLoader, freezing
from rekernel.compilers import CompilerInfo
from rekernel.jit import CpuJit, LegacyCpuJit
from rekernel.objcache import ObjectCache
from rekernel.source import Source

TEXT = "void fill(rekernel::Array<double, 1> x) {\n  for (long i = 0; i < x.shape(0); ++i) x(i) = 1;\n}\n"
OTHER = TEXT.replace("= 1", "= 2")


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    rekernel.thaw()


@pytest.fixture
def jit(tmp_path: Path) -> CpuJit:
    return CpuJit(objcache=tmp_path / "cache")


@pytest.fixture
def cpp(jit: CpuJit) -> Iterator[KernelLoader]:
    with KernelLoader(jit=jit) as loader:
        yield loader


def filled(kernel: Any) -> float:
    x = np.zeros(3)
    kernel(x)
    return float(x[0])


# --- the switch -------------------------------------------------------------------------------------------------


def test_it_counts_until_thaw() -> None:
    rekernel.freeze()
    assert freezing.is_frozen()
    rekernel.freeze()
    rekernel.thaw()
    assert not freezing.is_frozen()
    rekernel.thaw()


def test_a_block_brings_back_what_was_before() -> None:
    with rekernel.freeze():
        with rekernel.freeze():
            assert freezing.is_frozen()
        assert freezing.is_frozen()
    assert not freezing.is_frozen()


def test_a_block_ends_with_an_error_too() -> None:
    with pytest.raises(ZeroDivisionError), rekernel.freeze():
        raise ZeroDivisionError
    assert not freezing.is_frozen()


def test_it_shows() -> None:
    frozen = rekernel.freeze()
    assert repr(frozen) == "<rekernel is frozen: nothing is compiled>"
    assert repr(KernelLoader()) == "<KernelLoader: 0 ids, frozen>"
    rekernel.thaw()
    assert repr(frozen) == "<rekernel is not frozen>"
    assert repr(KernelLoader()) == "<KernelLoader: 0 ids>"


def test_looking_is_for_one_thread_and_leaves_nothing() -> None:
    seen: list[bool] = []
    with freezing.looking(), freezing.looking():
        thread = threading.Thread(target=lambda: seen.append(freezing.refused()))
        thread.start()
        thread.join(30)
        assert freezing.refused()
    assert (seen, freezing.refused()) == ([False], False)


# --- C++ --------------------------------------------------------------------------------------------------------


@needs_compiler
def test_an_edit_is_refused_and_the_old_version_goes_on(cpp: KernelLoader) -> None:
    module = cpp.load(TEXT, "heat")
    rekernel.freeze()
    with pytest.raises(FrozenError, match=r"heat v2 \(cpp\) would have to be compiled.*: text changed; ") as caught:
        cpp.load(OTHER, "heat")
    error = caught.value
    assert (error.kernel_id, error.language, error.version, error.field) == ("heat", "cpp", 2, "unit")
    assert (error.reason, error.keeps, error.command) == ("text changed", 1, None)
    assert str(error).endswith("\nheat v1 keeps running.")
    assert filled(module.fill) == 1
    assert cpp.info("heat").error is error
    assert [(event.kind, event.version) for event in cpp.log][-1] == ("failed", 1)
    rekernel.thaw()
    assert filled(cpp.load(OTHER, "heat").fill) == 2


@needs_compiler
def test_an_option_is_named(cpp: KernelLoader) -> None:
    cpp.load(TEXT, "heat")
    rekernel.freeze()
    with pytest.raises(FrozenError) as caught:
        cpp.load(TEXT, "heat", optlevel="1")
    assert (caught.value.field, caught.value.reason) == ("cxxflags", "flags changed: -O3 -> -O1")


@needs_compiler
def test_what_is_built_goes_on(cpp: KernelLoader, jit: CpuJit) -> None:
    cpp.load(TEXT, "heat")
    cpp.load(OTHER, "heat")
    with rekernel.freeze():
        assert filled(cpp.load(OTHER, "heat").fill) == 2  # no-op
        assert filled(cpp.rollback("heat").fill) == 1  # a version that is held
        assert filled(cpp.load(OTHER, "heat").fill) == 2  # restored
        cpp.unload("heat")
        assert filled(cpp.load(TEXT, "heat").fill) == 1  # out of the cache
        assert filled(KernelLoader(jit=jit).load(TEXT, "new").fill) == 1
        assert cpp.info("heat").from_cache


@needs_compiler
def test_what_is_built_for_a_debugger_is_never_in_the_cache(cpp: KernelLoader) -> None:
    cpp.load(TEXT, "heat", debug=True)
    rekernel.freeze()
    with pytest.raises(FrozenError, match="built for a debugger, which is not kept in the cache"):
        cpp.load(OTHER, "heat")


@needs_compiler
def test_the_command_fills_the_cache(cpp: KernelLoader, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    from rekernel.__main__ import main

    file = tmp_path / "my heat.cpp"
    file.write_text(TEXT)
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    with rekernel.freeze(), pytest.raises(FrozenError) as caught:
        cpp.load_file(file, optlevel="2", openmp=False)
    assert caught.value.command is not None
    words = shlex.split(caught.value.command)
    assert words[:4] == ["python", "-m", "rekernel", "build"]
    assert main(words[3:]) == 0
    capsys.readouterr()
    with rekernel.freeze():
        assert filled(cpp.load_file(file, optlevel="2", openmp=False).fill) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, []),
        ({"openmp": False, "n": 3}, ["--option", "openmp=false", "--option", "n=3"]),
        ({"flags": ("-O2", "-DX=a b")}, ["--option", 'flags=["-O2", "-DX=a b"]']),
        ({"optlevel": "2", "target": "x86-64-v3"}, ["--option", 'optlevel="2"', "--option", "target=x86-64-v3"]),
        ({"word": "true", "none": None}, ["--option", 'word="true"', "--option", "none=null"]),
    ],
)
def test_the_command_line_reads_what_the_error_writes(
    tmp_path: Path, options: dict[str, Any], words: list[str]
) -> None:
    from rekernel.commands.texts import option

    file = tmp_path / "a b.cpp"
    file.touch()
    command = freezing.command(Source("", "cpp", options, str(file)))
    assert command is not None
    assert shlex.split(command) == ["python", "-m", "rekernel", "build", str(file), *words]
    read = dict(option(word) for word in words[1::2])
    assert read == {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def test_a_text_without_a_file_has_no_command(tmp_path: Path) -> None:
    assert freezing.command(Source("", "cpp")) is None
    assert freezing.command(Source("", "cpp", {}, str(tmp_path / "gone.cpp"))) is None
    (tmp_path / "a.txt").touch()
    said = freezing.command(Source("", "cpp", {}, str(tmp_path / "a.txt")))
    assert said == f"python -m rekernel build {tmp_path / 'a.txt'} --language cpp"


@needs_compiler
def test_a_background_build_is_refused_and_waited_for(cpp: KernelLoader) -> None:
    module = cpp.load(TEXT, "heat")
    rekernel.freeze()
    cpp.load(OTHER, "heat", background=True)
    with pytest.raises(FrozenError, match="text changed"):
        cpp.wait("heat", timeout=60)
    assert filled(module.fill) == 1


def test_dependents_are_swapped_all_or_none(ti: ModuleType, loader: KernelLoader) -> None:
    helper = loader.load("@ti.func\ndef twice(x):\n    return 2 * x\n", "helper")
    text = "@ti.kernel\ndef top(x: ti.f32) -> ti.f32:\n    return h.twice(x)\n"
    top = loader.load(text, "top", namespace={"h": helper}).top
    assert top(2.0) == 4
    with rekernel.freeze(), pytest.raises(FrozenError, match="helper v2"):
        loader.load("@ti.func\ndef twice(x):\n    return 3 * x\n", "helper")
    assert (top(2.0), loader.info("helper").version, loader.info("top").version) == (4, 1, 1)


# --- just-in-time compilers -------------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize("made", [CpuJit, LegacyCpuJit])
def test_a_jit_is_refused_and_finds_what_it_has_built(made: Any, tmp_path: Path) -> None:
    jit = made(objcache=tmp_path / "cache") if made is CpuJit else made()
    if made is LegacyCpuJit:
        made.set_config({"cache": {"object_cache": str(tmp_path / "legacy")}})
    try:
        with rekernel.freeze(), pytest.raises(FrozenError, match="axpy") as caught:
            jit.compile(AXPY)
        assert (caught.value.kernel_id, caught.value.version, caught.value.keeps) == ("axpy", None, None)
        jit.compile(AXPY)
        with rekernel.freeze():
            assert jit.compile(AXPY).from_cache
    finally:
        if made is LegacyCpuJit:
            made.set_config(None)


@needs_compiler
def test_nothing_is_kept_where_there_is_no_cache_so_nothing_is_found() -> None:
    jit = CpuJit(objcache=None)
    jit.compile(AXPY)
    with rekernel.freeze(), pytest.raises(FrozenError, match="no cache"):
        jit.compile(AXPY)


@needs_compiler
def test_an_export_is_a_compile(tmp_path: Path, jit: CpuJit) -> None:
    wrapper = jit.compile(AXPY)
    with rekernel.freeze(), pytest.raises(FrozenError):
        wrapper.export(tmp_path / "out")


@needs_compiler
def test_precompiled_headers_are_not_made(tmp_path: Path) -> None:
    from rekernel.pch import PrecompiledHeaders
    from rekernel.probe import flags, probe

    info = CompilerInfo.get_default()
    toolchain, headers = probe(info), PrecompiledHeaders(tmp_path / "pch")
    with rekernel.freeze(), pytest.raises(FrozenError, match="precompiled headers"):
        headers.precompile(toolchain, flags(toolchain, info), "#include <cmath>\nint f();\n")


# --- stencils ---------------------------------------------------------------------------------------------------

STENCIL = """import pystencils as ps
u, v = ps.fields("u, v: double[2D]")
one = ps.Assignment(v[0, 0], u[1, 0] + 1)
two = ps.Assignment(v[0, 0], u[1, 0] + 2)
"""


@needs_compiler
def test_a_kernel_that_was_never_called_is_refused_at_its_first_call(cpp: KernelLoader) -> None:
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    module = cpp.load(STENCIL, "two")
    u, v = np.ones((4, 4)), np.zeros((4, 4))
    module.one(u=u, v=v)
    rekernel.freeze()
    module.one(u=u, v=v)
    with pytest.raises(FrozenError) as caught:
        module.two(u=u, v=v)
    assert (caught.value.kernel_id, caught.value.language, caught.value.version) == ("two", "stencil", 1)
    rekernel.thaw()
    module.two(u=u, v=v)
    assert v[1, 1] == 3
    assert [event.kind for event in cpp.log if event.kind == "compiled"] == ["compiled", "compiled"]


@needs_compiler
def test_a_stencil_comes_whole_out_of_the_cache_or_not_at_all(cpp: KernelLoader, jit: CpuJit) -> None:
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    cpp.load(STENCIL, "two", eager=True)
    u, v = np.ones((4, 4)), np.zeros((4, 4))
    with rekernel.freeze(), KernelLoader(jit=jit) as other:
        module = other.load(STENCIL, "two")
        module.two(u=u, v=v)
        with pytest.raises(FrozenError):
            other.load(STENCIL.replace("+ 2", "+ 5"), "two")
        module.two(u=u, v=v)
        assert (v[1, 1], module.two.version) == (3, 1)


# --- Taichi -----------------------------------------------------------------------------------------------------

SCALE = "@ti.kernel\ndef scale(x: ti.types.ndarray()):\n    for i in ti.grouped(x):\n        x[i] = {k} * x[i]\n"


def test_a_taichi_text_is_refused_and_the_old_one_goes_on(ti: ModuleType, loader: KernelLoader) -> None:
    module = loader.load(SCALE.format(k=2), "s")
    x = np.ones(3, np.float32)
    module.scale(x)
    rekernel.freeze()
    module.scale(x)
    loader.load(SCALE.format(k=2), "s")
    with pytest.raises(FrozenError, match="Taichi compiles each new version; load it, and call it") as caught:
        loader.load(SCALE.format(k=3), "s")
    assert (caught.value.field, caught.value.keeps, caught.value.key) == ("unit", 1, None)
    module.scale(x)
    assert x[0] == 8


def test_a_taichi_call_with_another_kind_of_argument_is_refused(ti: ModuleType, loader: KernelLoader) -> None:
    module = loader.load(SCALE.format(k=2), "s")
    module.scale(np.ones(3, np.float32))
    rekernel.freeze()
    with pytest.raises(FrozenError, match=r"not called with arguments of this kind") as caught:
        module.scale(np.ones((3, 3), np.float64))
    assert (caught.value.kernel_id, caught.value.version, caught.value.field) == ("s", 1, "arguments")
    module.scale(np.ones(3, np.float32))
    rekernel.thaw()
    x = np.ones((3, 3))
    module.scale(x)
    assert x[0, 0] == 2


def test_a_taichi_version_that_is_held_comes_back(ti: ModuleType, loader: KernelLoader) -> None:
    x = np.ones(3, np.float32)
    for k in (2, 3):
        loader.load(SCALE.format(k=k), "s").scale(x)
    with rekernel.freeze():
        loader.rollback("s").scale(x)
    assert x[0] == 12


# --- the error --------------------------------------------------------------------------------------------------


def test_the_error_pickles_with_all_it_knows() -> None:
    error = freezing.error("heat", "cpp", "unit", "text changed", version=2, key="ab")
    error.keeps = 1
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is FrozenError
    assert isinstance(again, RuntimeError)
    assert (str(again), vars(again)) == (str(error), vars(error))


# --- CUDA -------------------------------------------------------------------------------------------------------


def test_cuda_is_refused_before_nvrtc_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rekernel.cuda import cubins, nvrtc

    monkeypatch.setattr(cubins, "about", lambda cache: nvrtc.About((12, 8), (80, 90)))
    cache = ObjectCache(tmp_path / "cache")
    made = nvrtc.Compiled(b"cubin", {"&f": "_Z1f"}, (), ("nvrtc",), "", 0.0)

    def order(arch: str, text: str = "__global__ void f() {}") -> cubins.Order:
        return cubins.Order(text, arch, subject=("cuda", "f"))

    with rekernel.freeze(), pytest.raises(FrozenError, match=r"f \(cuda\).*not seen before"):
        cubins.obtain(cache, order("sm_80"), lambda compiled: pytest.fail("nothing may be compiled"))
    cubins.obtain(cache, order("sm_80"), lambda compiled: (made, {}))
    with rekernel.freeze():
        assert cubins.obtain(cache, order("sm_80")).from_cache
        with pytest.raises(FrozenError, match="architecture changed: sm_80 -> sm_90") as caught:
            cubins.obtain(cache, order("sm_90"))
    assert (caught.value.field, caught.value.language) == ("architecture", "cuda")
    assert cubins.obtain(cache, order("sm_90"), lambda compiled: (made, {})).rebuilt_because == (
        "architecture changed: sm_80 -> sm_90"
    )
