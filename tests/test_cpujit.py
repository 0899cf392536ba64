"""CpuJit: kernels to callables through the cache, and what it says when that does not work."""

from __future__ import annotations

import copy
import itertools
import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import rekernel
import rekernel.jit
from jitkernels import (
    AXPY,
    COUNT,
    JACOBI,
    KICK,
    PARTICLE,
    ROTATE,
    THREADS,
    THROWS,
    TOTAL,
    WAVE,
    array,
    constant,
    each_compiler,
    jacobi,
    needs_compiler,
    needs_openmp,
    pointer,
    without_compilers,
)
from rekernel.jit import AUTO, ClangInfo, CompilerInfo, CpuJit, GccInfo, JitBase, JitError, KernelWrapper, NoJit, no_jit
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder
from rekernel.objcache import ObjectCache
from rekernel.pymodule import PythonModuleBuilder
from support import run_python


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "cache")


# ---- compiling and calling ----


@each_compiler
def test_kernels_compute_what_they_should(info):
    jit = CpuJit(info, None)
    rng = np.random.default_rng(0)
    x, y = rng.random(100), rng.random(100)
    wanted = y - 2 * x
    assert jit.compile(AXPY)(y, x, -2) is None
    np.testing.assert_allclose(y, wanted)

    src = rng.random((20, 30))
    step = jit.compile(JACOBI)
    for dst, view in (
        (np.zeros((20, 30)), src),
        (np.zeros((20, 30), order="F"), src),
        (np.zeros((20, 30)), src[::-1, ::-1]),
    ):
        step(dst, src=view)
        np.testing.assert_array_equal(dst[1:-1, 1:-1], jacobi(view))

    assert jit.compile(TOTAL)(np.full((2, 2), 0.5, "f4")) == 2.0
    z = np.array([1, 1j], "c8")
    assert jit.compile(ROTATE)(z, np.complex128(2j)) == -2 + 2j
    p = np.zeros(4, PARTICLE)
    p["charge"] = [1, -2, 3, -4]
    jit.compile(KICK)(p[1::2])
    assert p["mass"].tolist() == [0, -2, 0, -4]
    out = np.array(0)
    jit.compile(COUNT)(out, np.array([[True], [False]]))
    assert out == 1
    jit.compile(WAVE)(x, 0.5)
    assert np.isfinite(x).all()


@each_compiler
def test_openmp(info):
    needs_openmp(info)
    x = np.zeros(1000, "i4")
    assert CpuJit(info, None).compile(THREADS)(x) >= 1
    assert (x == 1).all()
    assert "-fopenmp" in CpuJit(info, None).obtain([THREADS], LibraryBuilder().render_module(THREADS, ""), []).command
    assert "-fopenmp" not in CpuJit(info, None).obtain([AXPY], LibraryBuilder().render_module(AXPY, ""), []).command


@each_compiler
def test_openmp_false_means_one_thread(info):
    info.openmp = False
    code = THREADS.code.replace("#include <omp.h>", "static int omp_get_num_threads() { return 1; }")
    artefact = CpuJit(info, None).obtain([THREADS], code, [])
    assert "-fopenmp" not in artefact.command


@each_compiler
def test_exceptions_of_the_kernel(info):
    throws = CpuJit(info, None).compile(THROWS)
    for how, words in ((0, "too hot: ü"), (1, "just text"), (2, "Odd")):
        with pytest.raises(RuntimeError) as caught:
            throws(how)
        assert str(caught.value) == f"throws(): {words}"
    assert throws(5) == 6
    assert throws.stats == {"calls": 4, "failures": 3}


@needs_compiler
def test_info_tells_of_a_compiled_kernel(cache):
    wrapper = CpuJit(objcache=cache).compile(AXPY)
    about = rekernel.info(wrapper)
    assert (about.kernel_id, about.source, about.code) == (AXPY.name, AXPY.code, wrapper.unit)
    assert (about.kernels, about.from_cache, about.rebuilt_because) == ((AXPY,), False, "not seen before")


@needs_compiler
def test_compile_many_is_one_unit(cache):
    jit = CpuJit(objcache=cache)
    kernels = [constant(n, f"k{n}") for n in range(20)]
    wrappers = jit.compile_many(kernels)
    assert [wrapper() for wrapper in wrappers] == list(range(20))
    assert cache.stats.misses == cache.stats.published == 1
    assert len({wrapper.unit for wrapper in wrappers}) == 1
    assert jit.compile_many([]) == ()
    assert cache.stats.misses == 1


def test_create_is_pystencils_way():
    jit = CpuJit.create()
    assert isinstance(jit, CpuJit)
    assert isinstance(jit, JitBase)
    info = GccInfo(optlevel="1")
    assert CpuJit.create(compiler_info=info, objcache=None).compiler_info == info
    assert CpuJit.create(info, AUTO).compiler_info.optlevel == "1"


# ---- the wrapper ----


@needs_compiler
def test_what_a_wrapper_knows(cache):
    jit = CpuJit(CompilerInfo.get_default(target="generic"), cache)
    wrapper = jit.compile(JACOBI)
    assert isinstance(wrapper, KernelWrapper)
    assert wrapper.kernel is JACOBI
    assert wrapper.ast is JACOBI
    assert wrapper.parameters == JACOBI.parameters
    assert wrapper.code == JACOBI.code
    assert wrapper.unit == LibraryBuilder().render_module(JACOBI, "")
    assert wrapper.target == "generic"
    assert wrapper.stats == {"calls": 0, "failures": 0}
    assert (wrapper.from_cache, wrapper.rebuilt_because) == (False, "not seen before")
    assert wrapper.warnings == ()
    assert repr(wrapper) == f"<kernel {JACOBI}>"
    dst, src = np.zeros((4, 4)), np.ones((4, 4))
    wrapper(dst, src)
    with pytest.raises(rekernel.ArgumentTypeError):
        wrapper(dst, None)
    assert wrapper.stats == {"calls": 2, "failures": 1}


@needs_compiler
def test_warnings_are_kept_and_shown_on_request(cache):
    info = CompilerInfo.get_default(extra_cxxflags=["-Wall"])
    kernel = Kernel("warns", (), "cpp", code="int warns() {\n    int unused;\n    return 1;\n}\n", returns="int32")
    (said,) = CpuJit(info, cache).compile(kernel).warnings
    assert said.startswith("line 2: unused variable")
    for _ in range(2):  # built, and from the cache
        with pytest.warns(rekernel.RekernelWarning, match="warns: line 2: unused"):
            assert CpuJit(info, cache, emit_warnings=True).compile(kernel).from_cache


@needs_compiler
def test_a_jit_keeps_no_kernel_alive():
    import gc
    import weakref

    jit = CpuJit(objcache=None)
    wrapper = jit.compile(constant(1))
    alive = weakref.ref(wrapper.kernel)
    del wrapper
    gc.collect()
    assert alive() is None


# ---- the cache ----


@needs_compiler
def test_the_second_compile_is_a_hit(cache):
    jit = CpuJit(objcache=cache)
    first, second = jit.compile(AXPY), jit.compile(AXPY)
    assert (first.from_cache, first.rebuilt_because) == (False, "not seen before")
    assert (second.from_cache, second.rebuilt_because) == (True, None)
    assert (cache.stats.hits, cache.stats.misses, cache.stats.published) == (1, 1, 1)
    y = np.ones(3)
    second(y, np.ones(3), 1)
    assert y.tolist() == [2, 2, 2]


@needs_compiler
def test_a_new_process_needs_no_compiler_run(tmp_path):
    program = """
import json, sys
from jitkernels import AXPY, WAVE
from rekernel.jit import CpuJit
import rekernel.toolchain as toolchain
jit = CpuJit()
if sys.argv[1] == "second":
    def build(*args, **kwargs): raise AssertionError("built again")
    toolchain.build = build
    from rekernel import process
    process.run = build
wrappers = [jit.compile(AXPY), *jit.compile_many([AXPY, WAVE])]
import numpy as np
y = np.ones(2)
wrappers[0](y, y.copy(), 1)
print(json.dumps([[w.from_cache for w in wrappers], y.tolist()]))
"""
    said = [
        json.loads(run_python(program, turn, REKERNEL_CACHE_DIR=str(tmp_path / "cache")).stdout)
        for turn in ("first", "second")
    ]
    assert said == [[[False] * 3, [2, 2]], [[True] * 3, [2, 2]]]


@needs_compiler
def test_without_a_cache_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    jit = CpuJit(objcache=None)
    wrappers = [jit.compile(AXPY) for _ in range(2)]
    assert [(w.from_cache, w.rebuilt_because) for w in wrappers] == [(False, "no cache")] * 2
    assert list(tmp_path.rglob("*")) == []


@needs_compiler
def test_a_cache_by_path_or_object_or_environment(tmp_path, monkeypatch):
    for given in (tmp_path / "a", str(tmp_path / "b"), ObjectCache(tmp_path / "c")):
        assert CpuJit(objcache=given).compile(AXPY).rebuilt_because == "not seen before"
        assert CpuJit(objcache=given).compile(AXPY).from_cache
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "d"))
    assert not CpuJit().compile(AXPY).from_cache
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "c", "d"]


CHANGES = {
    "text": {"code": AXPY.code.replace("+=", "-=")},
    "openmp": {"openmp": True},
    "headers": {"headers": ("<stdint.h>",)},
    "name": {"name": "other", "function": "axpy"},
}


@needs_compiler
@pytest.mark.parametrize("what", CHANGES)
def test_another_kernel_is_another_entry(cache, what):
    jit = CpuJit(objcache=cache)
    jit.compile(AXPY)
    other = jit.compile(replace(AXPY, **CHANGES[what]))
    reasons = {"text": "text changed", "openmp": "flags changed: -fopenmp came", "headers": "text changed"}
    assert (other.from_cache, other.rebuilt_because) == (False, reasons.get(what, "not seen before"))


@needs_compiler
def test_what_the_compiler_does_not_see_is_no_part_of_the_entry(cache):
    jit = CpuJit(objcache=cache)
    jit.compile(AXPY)
    x, y, a = AXPY.parameters
    for other in (replace(AXPY, doc="other"), replace(AXPY, policy="pystencils"), replace(AXPY, parameters=(y, a, x))):
        assert jit.compile(other).from_cache


@needs_compiler
@pytest.mark.parametrize("change", [{"optlevel": "1"}, {"target": "generic"}, {"cxx_standard": "c++20"}, {"extra_cxxflags": ["-DX"]}],
                         ids=lambda change: next(iter(change)))  # fmt: skip
def test_another_flag_is_another_entry(cache, change):
    CpuJit(objcache=cache).compile(AXPY)
    assert CpuJit(CompilerInfo.get_default(**change), cache).compile(AXPY).rebuilt_because.startswith("flags changed: ")


@needs_compiler
@pytest.mark.parametrize("word", ["__DATE__", "__TIME__", "__TIMESTAMP__"])
def test_a_text_that_asks_for_the_time_is_built_each_time(cache, word):
    kernel = Kernel("now", (), "cpp", code=f"int now() {{ return sizeof({word}); }}\n", returns="int32")
    wrappers = [CpuJit(objcache=cache).compile(kernel) for _ in range(2)]
    assert [w.from_cache for w in wrappers] == [False, False]
    assert cache.stats.published == 0


@needs_compiler
def test_a_header_that_changes_while_the_compiler_runs(cache, tmp_path, monkeypatch):
    from rekernel import toolchain

    header = tmp_path / "a.h"
    header.write_text("#define A 1\n")
    build = toolchain.build

    def changing(*args, **kwargs):
        product = build(*args, **kwargs)
        header.write_text("#define A 2\n")
        return product

    monkeypatch.setattr(toolchain, "build", changing)
    kernel = Kernel("a", (), "cpp", code="int a() { return A; }\n", headers=(f'"{header}"',), returns="int32")
    assert CpuJit(objcache=cache).compile(kernel)() == 1
    assert cache.stats.published == 0
    assert CpuJit(objcache=cache).compile(kernel)() == 2


@needs_compiler
def test_many_threads_want_one_kernel(cache):
    from concurrent.futures import ThreadPoolExecutor

    jit = CpuJit(objcache=cache)
    with ThreadPoolExecutor(8) as pool:
        wrappers = list(pool.map(lambda n: jit.compile(constant(6)), range(16)))
    assert [w() for w in wrappers] == [6] * 16
    assert cache.stats.published == 1


# ---- errors ----


@each_compiler
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "with others"])
def test_a_wrong_text_tells_its_line(info, shared):
    code = "int good() { return 1; }\n\nint bad() {\n    return  göod() + 1;\n}\n"
    wrong = Kernel("the.bad", (), "cpp", code=code, function="bad", returns="int32")
    kernels = [constant(1, "a"), replace(AXPY, headers=("<cmath>",)), wrong, constant(2, "b")] if shared else [wrong]
    with pytest.raises(rekernel.KernelSourceError) as caught:
        CpuJit(info, None).compile_many(kernels)
    error = caught.value
    assert (error.kernel_id, error.line, error.column, error.text) == ("the.bad", 4, 13, "    return  göod() + 1;")
    assert "göod" in error.message
    assert error.language == "cpp"
    assert error.source == code
    assert "-c" in error.command
    assert "the_bad:4:13: error:" in error.output
    assert f"the.bad v1 (cpp), line 4, column 13: {error.message}" == str(error).split("\n")[0]
    assert "> 4 |     return  göod() + 1;" in str(error)


@each_compiler
def test_a_mistake_in_a_header_or_at_linking_is_told_too(info, tmp_path):
    (tmp_path / "broken.h").write_text("int x = ;\n")
    kernel = Kernel("k", (), "cpp", code=f'#include "{tmp_path}/broken.h"\nint k() {{ return 1; }}\n', returns="int32")
    with pytest.raises(rekernel.KernelSourceError) as caught:
        CpuJit(info, None).compile(kernel)
    assert "broken.h:1" in caught.value.output
    assert "expected" in caught.value.message
    kernel = Kernel("k", (), "cpp", code="int other();\nint k() { return other(); }\n", returns="int32")
    with pytest.raises(rekernel.KernelSourceError, match=r"undefined .*other"):
        CpuJit(info, None).compile(kernel)


@needs_compiler
def test_a_failed_compile_leaves_nothing_and_is_tried_again(cache, tmp_path):
    jit = CpuJit(objcache=cache)
    kernel = Kernel("k", (), "cpp", code='#include "late.h"\nint k() { return LATE; }\n', returns="int32")

    class Builder(LibraryBuilder):
        @staticmethod
        def include_dirs():
            return [str(tmp_path / "include")]

    jit.module_builder = Builder()
    (tmp_path / "include").mkdir()
    for _ in range(2):
        with pytest.raises(rekernel.KernelSourceError, match=r"late\.h"):
            jit.compile(kernel)
    assert cache.stats.published == 0
    (tmp_path / "include" / "late.h").write_text("#define LATE 5\n")
    assert jit.compile(kernel)() == 5


@needs_compiler
def test_a_table_that_contradicts_itself(cache):
    with pytest.raises(ValueError, match="axpy: slot of the unknown parameter 'q'"):
        CpuJit(objcache=cache).compile(replace(AXPY, slots=(*AXPY.slots[:3], pointer("q"))))


@pytest.mark.parametrize("given", ["void f() {}", 7, None, object(), Kernel("taichi", (array("x"),), "taichi")])
def test_what_is_no_kernel_is_refused(given):
    with pytest.raises(JitError) as caught:
        CpuJit(objcache=None).compile(given)
    assert "own language compiles" in str(caught.value) or "CpuJit compiles Kernel values" in str(caught.value)


def test_a_builder_of_modules_is_for_export():
    with pytest.raises(JitError, match="PythonModuleBuilder"):
        CpuJit(objcache=None, module_builder=PythonModuleBuilder()).compile(AXPY)


def test_no_compiler_is_no_trouble_until_one_is_needed(tmp_path, monkeypatch):
    for name, text in without_compilers(tmp_path).items():
        monkeypatch.setenv(name, text)
    jit = CpuJit(objcache=None)
    assert repr(jit)
    assert CompilerInfo.get_available_compilers() == []
    for info in (None, GccInfo(), ClangInfo(), CompilerInfo(command=str(tmp_path / "no such"))):
        with pytest.raises(rekernel.ToolchainError, match="rekernel doctor"):
            CpuJit(info, None).compile(AXPY)


def test_importing_needs_no_compiler(tmp_path):
    program = """
import rekernel.jit
from rekernel.jit import *
from jitkernels import AXPY
jit = CpuJit()
try:
    jit.compile(AXPY)
except rekernel.ToolchainError as error:
    print("no C++ compiler was found" in str(error))
"""
    assert run_python(program, **without_compilers(tmp_path)).stdout == "True\n"


# ---- compiler infos ----


@needs_compiler
def test_a_jit_takes_a_copy_of_its_compiler_info():
    info = CompilerInfo.get_default(extra_cxxflags=["-DA=1"])
    jit = CpuJit(info, None)
    kernel = Kernel("a", (), "cpp", code="int a() { return A; }\n", returns="int32")
    info.extra_cxxflags[0] = "-DA=2"
    info.extra_cxxflags.append("-nonsense")
    info.optlevel = "nonsense"
    assert jit.compile(kernel)() == 1
    jit.compiler_info.extra_cxxflags = ["-DA=3"]
    assert jit.compile(kernel)() == 3
    assert info.extra_cxxflags == ["-DA=2", "-nonsense"]


class Own(CompilerInfo):
    """As a program might have it that was written for pystencils: no dataclass, all verbs its own."""

    def __init__(self, command):
        super().__init__()
        self.mine = command

    def cxx(self):
        return self.mine

    def cxxflags(self):
        return ["-O1", "-DOWN=5", "-fPIC"]

    def linker_flags(self):
        return ["-shared", "-lm"]

    def include_flags(self, include_dirs):
        return [f"-I{directory}" for directory in include_dirs] + ["-DMORE=6"]

    def restrict_qualifier(self):
        return "__restrict__"


@dataclass
class Fielded(GccInfo):
    """A dataclass with a field of its own."""

    number: int = 0

    def cxxflags(self):
        return [*super().cxxflags(), f"-DOWN={self.number}", "-DMORE=6"]


@each_compiler
def test_a_users_own_subclass(info, cache):
    kernel = Kernel("own", (), "cpp", code="int own() { return OWN * 10 + MORE; }\n", returns="int32")
    jit = CpuJit(Own(info.command), cache)
    assert jit.compile(kernel)() == 56
    assert CpuJit(Own(info.command), cache).compile(kernel).from_cache
    copied = copy.copy(jit.compiler_info)
    assert (type(copied), copied.mine) == (Own, info.command)


@needs_compiler
def test_a_subclass_with_a_field(cache):
    kernel = Kernel("own", (), "cpp", code="int own() { return OWN * 10 + MORE; }\n", returns="int32")
    command = CompilerInfo.get_default().command
    assert [CpuJit(Fielded(number=n, command=command), cache).compile(kernel)() for n in (1, 2, 1)] == [16, 26, 16]
    assert cache.stats.hits == 1


@needs_compiler
def test_a_builder_of_the_users_own(tmp_path):
    (tmp_path / "eight.h").write_text("#define EIGHT 8\n")

    class Builder(LibraryBuilder):
        @staticmethod
        def include_dirs():
            return [str(tmp_path)]

        def render_module(self, kernel, module_name):
            return "#include <eight.h>\n" + super().render_module(kernel, module_name)

    kernel = Kernel("k", (), "cpp", code="int k() { return EIGHT; }\n", returns="int32")
    wrapper = CpuJit(objcache=None, module_builder=Builder()).compile(kernel)
    assert wrapper() == 8
    assert wrapper.unit.startswith("#include <eight.h>")


@each_compiler
@pytest.mark.parametrize("level", ["0", "1", "2", "3", "fast", None])
def test_every_optimisation_level(info, level):
    info.optlevel = level
    dst, src = np.zeros((6, 7)), np.random.default_rng(2).random((6, 7))
    CpuJit(info, None).compile(JACOBI)(dst, src)
    np.testing.assert_allclose(dst[1:-1, 1:-1], jacobi(src))


# ---- not compiling ----


def test_no_jit_compiles_nothing_and_says_so():
    assert isinstance(no_jit, NoJit)
    assert isinstance(no_jit, JitBase)
    for kernel, name in ((AXPY, "axpy"), (JACOBI, "heat.jacobi"), (object(), "the kernel")):
        with pytest.raises(JitError, match=f"{name} cannot be compiled.*no_jit"):
            no_jit.compile(kernel)


def test_the_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        JitBase()


def test_a_wrapper_without_export_says_so():
    wrapper = KernelWrapper.over(AXPY, lambda *args: 5)
    assert wrapper(1, 2, 3) == 5
    with pytest.raises(JitError, match="axpy: this just-in-time compiler has no export"):
        wrapper.export(Path("nowhere"))
    assert (wrapper.target, wrapper.from_cache, wrapper.rebuilt_because, wrapper.unit) == ("", False, None, AXPY.code)


PYSTENCILS = ["CpuJit", "JitBase", "KernelWrapper", "NoJit", "no_jit", "CompilerInfo", "GccInfo", "ClangInfo", "cpu", "cpujit", "error",
              "JitError"]  # fmt: skip


def test_the_names_of_pystencils():
    assert [name for name in PYSTENCILS if not hasattr(rekernel.jit, name)] == []
    from rekernel.jit.cpujit import ExtensionModuleBuilderBase

    assert rekernel.jit.error.JitError is JitError
    assert ExtensionModuleBuilderBase is rekernel.ExtensionModuleBuilderBase
    assert rekernel.jit.cpu.CpuJit is CpuJit


@needs_compiler
def test_no_warning_of_ours_in_ordinary_use(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit = CpuJit(objcache=tmp_path)
        for kernel, turn in itertools.product((AXPY, WAVE), range(2)):
            assert jit.compile(kernel).from_cache == bool(turn)
