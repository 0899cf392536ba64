"""Texts of units: the same in every process, right for every compiler, and wrong tables do not compile."""

from __future__ import annotations

import hashlib
import inspect
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rekernel
from jitkernels import (
    AXPY,
    COUNT,
    ECHO_TYPES,
    ECHOES,
    JACOBI,
    KICK,
    PLAIN,
    THREADS,
    TOTAL,
    WAVE,
    array,
    constant,
    each_compiler,
    extent,
    needs_compiler,
    pointer,
    scalar,
    state,
    value,
)
from rekernel.jit import CpuJit, ExtensionModuleBuilderBase
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder, Unit, as_tuple, entry_symbol, kernel_title
from rekernel.pymodule import PythonModuleBuilder

BUILDERS = [LibraryBuilder(), PythonModuleBuilder()]
each_builder = pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: type(builder).__name__)

# ---- the same everywhere ----

PROGRAM = """
import hashlib
from jitkernels import *
from rekernel.modulebuilder import LibraryBuilder
from rekernel.pymodule import PythonModuleBuilder
from rekernel.jit.export import stub
kernels = (*PLAIN, THREADS)
texts = [LibraryBuilder().render_module(kernels, "unit"), PythonModuleBuilder().render_module(kernels, "unit"), stub(kernels)]
print(hashlib.blake2b("\\0".join(texts).encode()).hexdigest())
"""


def test_the_text_does_not_depend_on_the_process(tmp_path):
    said = set()
    for seed in ("0", "1", "4711"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(__file__).parent),
            "TMPDIR": str(tmp_path),
        }
        cwd = tmp_path / seed
        cwd.mkdir()
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said.add(done.stdout.strip())
    kernels = (*PLAIN, THREADS)
    from rekernel.jit.export import stub

    texts = [*(builder.render_module(kernels, "unit") for builder in BUILDERS), stub(kernels)]
    assert said == {hashlib.blake2b("\0".join(texts).encode()).hexdigest()}


@each_builder
def test_one_kernel_or_a_sequence(builder):
    assert builder.render_module(AXPY, "m") == builder.render_module([AXPY], "m") == builder.render_module((AXPY,), "m")
    assert as_tuple([AXPY, JACOBI]) == (AXPY, JACOBI)


@each_builder
def test_the_verbs_are_those_of_the_base_class(builder):
    assert isinstance(builder, ExtensionModuleBuilderBase)
    assert list(inspect.signature(builder.render_module).parameters) == ["kernel", "module_name"]
    assert list(inspect.signature(builder.get_wrapper).parameters) == ["kernel", "module"]
    assert type(builder).include_dirs() == []
    assert (LibraryBuilder.artefact, PythonModuleBuilder.artefact) == ("library", "module")


@each_builder
def test_the_kernels_texts_stand_unchanged_and_in_their_order(builder):
    text = builder.render_module([WAVE, AXPY, JACOBI], "m")
    places = [text.index(kernel.code) for kernel in (WAVE, AXPY, JACOBI)]
    assert places == sorted(places)
    assert text.index("#include <cmath>") < places[0]
    for kernel, label in ((WAVE, "wave"), (AXPY, "axpy"), (JACOBI, "heat_jacobi")):
        assert f'#line 1 "{label}"\n{kernel.code}' in text


def test_nothing_stands_before_the_text_of_a_library():
    assert LibraryBuilder().render_module(AXPY, "").startswith(f'#line 1 "axpy"\n{AXPY.code}')
    assert LibraryBuilder().render_module(WAVE, "").startswith('#include <cmath>\n\n#line 1 "wave"\n')


@needs_compiler
def test_a_text_that_kernels_share_comes_once():
    code = "int one() { return 1; }\nint two() { return 2; }\n"
    one = Kernel("one", (), "cpp", code=code, returns="int32")
    kernels = [one, constant(9), replace(one, name="two"), replace(one, name="uno", function="one")]
    for builder in BUILDERS:
        assert builder.render_module(kernels, "m").count(code) == 1
    assert [wrapper() for wrapper in CpuJit(objcache=None).compile_many(kernels)] == [1, 9, 2, 1]


def test_symbols_are_identifiers():
    names = ["step", "heat.step", "a b", "x-1", 'q"\\', "2d", "", "../../etc"]
    symbols = [entry_symbol(Kernel(name, (), "cpp"), 3) for name in names]
    assert symbols[:4] == ["rk_step_3", "rk_heat_step_3", "rk_a_b_3", "rk_x_1_3"]
    assert all(symbol.isidentifier() for symbol in symbols)


@needs_compiler
@pytest.mark.parametrize("name", ["heat.step", "a b", 'q"\\\n', "2d", "../x", "", "*/", "%s"])
def test_kernels_of_odd_names_compile_and_are_called_so(name):
    wrapper = CpuJit(objcache=None).compile(replace(constant(3), name=name, function="constant"))
    assert wrapper() == 3
    with pytest.raises(TypeError) as caught:
        wrapper(1)
    assert str(caught.value).startswith(f"{name}() takes 0")


def test_titles():
    assert kernel_title([AXPY]) == "axpy"
    assert kernel_title([JACOBI, AXPY, COUNT]) == "heat.jacobi and 2 more"


# ---- warnings ----


@each_compiler
@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
def test_our_own_text_gives_no_warning(info, standard):
    info.cxx_standard, info.optlevel = standard, "1"
    info.extra_cxxflags = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror"]
    clean = (AXPY, JACOBI, COUNT, TOTAL, WAVE, THREADS, *ECHOES, constant(3))
    wrappers = CpuJit(info, None).compile_many(clean)
    assert [wrapper.warnings for wrapper in wrappers] == [()] * len(clean)


# ---- texts that end badly ----

BODY = "int ends() { return 5; }"


@needs_compiler
@pytest.mark.parametrize(
    "end", ["", "\n", " // comment", " // comment \\", "\n#define X \\", "\n#define X \\\n", " /* */", "\r\n", "\n\t"]
)
def test_a_text_may_end_anyhow(end):
    for builder in BUILDERS:
        kernel = Kernel("ends", (), "cpp", code=BODY + end, returns="int32")
        assert builder.render_module(kernel, "m").count(BODY) == 1
    assert CpuJit(objcache=None).compile(kernel)() == 5


@each_compiler
@pytest.mark.parametrize(("end", "line"), [("\n/* open", 2), ("\n#if 1", 2), ("\nint f() {", None)])
def test_a_text_that_does_not_end_is_the_users_mistake(info, end, line):
    with pytest.raises(rekernel.KernelSourceError) as caught:
        CpuJit(info, None).compile(Kernel("ends", (), "cpp", code=BODY + end, returns="int32"))
    if line:
        assert caught.value.line == line


@needs_compiler
@pytest.mark.parametrize("macro", ["h 0.01", "T double", "N 10", "size 3", "value 1", "i 0", "call(x) x", "result", "int long", "type 7",
                                   "double float", "code", "index 1"])  # fmt: skip
def test_macros_of_the_user_do_not_reach_our_text(macro):
    code = f"double doubled(double x) {{ return 2 * x; }}\n#define {macro}\n"
    kernel = Kernel("doubled", (scalar("x"),), "cpp", code=code, returns="float64", slots=(value("x"),))
    assert CpuJit(objcache=None).compile(kernel)(4) == 8


# ---- the compiler confirms the table ----

C_TYPES = {name: kind for name, kind in ECHO_TYPES.items() if "complex" not in name and name != "float16"}


def refused(kernel: Kernel, info) -> str:
    with pytest.raises(rekernel.KernelSourceError) as caught:
        CpuJit(info, None).compile(kernel)
    assert isinstance(caught.value.__cause__, rekernel.RekernelError)
    return caught.value.output


def takes(kind: str, parameter, slot, returns: str = "void") -> Kernel:
    body = "{}" if returns == "void" else "{ return {}; }"
    return Kernel("f", (parameter,), "cpp", code=f"{returns} f({kind}) {body}\n", slots=(slot,))


@each_compiler
def test_a_scalar_of_another_type(info):
    info.optlevel = "0"
    wrong = [(a, b) for a in ("int32", "uint32", "float32", "float64", "int8") for b in C_TYPES if a != b]
    for dtype, other in wrong[:: len(wrong) // 12]:
        said = refused(takes(C_TYPES[other], scalar("x", dtype), value("x")), info)
        assert "disagree about a" in said, (dtype, other)


@each_compiler
@pytest.mark.parametrize(("kind", "parameter", "slot", "words"), [
    ("double", array("x"), pointer("x"), "pointer"),
    ("double *", scalar("x"), value("x"), "pointer"),
    ("float *", array("x"), pointer("x"), "size"),
    ("const float *", array("x", "int32"), pointer("x"), "type"),
    ("int *", array("x", "uint32"), pointer("x"), "type"),
    ("long long *", array("x", "float64"), pointer("x"), "type"),
    ("double **", array("x", "int64"), pointer("x"), ""),
    ("double *", array("x", "complex128"), pointer("x"), "size"),
    ("int", array("x"), extent("x"), "size"),
    ("unsigned long long", array("x"), extent("x"), "type"),
    ("double", array("x"), extent("x"), "type"),
    ("float *", KICK.parameters[0], pointer("p", "mass"), "size"),
    ("unsigned char *", KICK.parameters[0], pointer("p", "charge"), "type"),
    ("short *", KICK.parameters[0], pointer("p"), "size"),
])  # fmt: skip
def test_a_table_that_the_function_contradicts(info, kind, parameter, slot, words):
    info.optlevel = "0"
    assert ("disagree about a " + words if words else "error") in refused(takes(kind, parameter, slot), info)


@each_compiler
@pytest.mark.parametrize(("kind", "returns", "words"), [
    ("double", "float32", "size"), ("float", "float64", "size"), ("double", "int64", "type"), ("long long", "float64", "type"),
    ("int", "uint32", "type"), ("int", "int64", "size"), ("double *", "float64", "a pointer"), ("unsigned char", "int8", "type"),
    ("void", "int32", ""),
])  # fmt: skip
def test_a_result_that_the_function_contradicts(info, kind, returns, words):
    kernel = replace(takes("", scalar("x"), value("x"), kind), parameters=(), slots=(), returns=returns)
    said = refused(kernel, info)
    assert "disagree" in said or not words
    assert words in said


@each_compiler
def test_a_function_that_takes_more_or_less_or_is_not_there(info):
    more = replace(AXPY, slots=(*AXPY.slots, extent("y")))
    less = replace(AXPY, slots=AXPY.slots[:-1])
    missing = replace(AXPY, function="axpi")
    declared = Kernel("gone", (), "cpp", code="int gone();\n", returns="int32")
    for kernel in (more, less, missing, declared):
        refused(kernel, info)


@each_compiler
def test_types_that_are_the_same_by_another_name(info):
    info.optlevel = "0"
    code = "#include <stdint.h>\n#include <complex>\nusing real = double; struct Three { double x, y, z; };\n"
    pairs = [("real", scalar("x"), value("x")), ("const real &", scalar("x"), value("x")),
             ("int64_t", array("x"), extent("x")), ("long", scalar("x", "int64"), value("x")),
             ("const std::complex<double> *__restrict__", array("x", "complex128"), pointer("x")),
             ("std::complex<float>", scalar("x", "complex64"), value("x")), ("char", scalar("x", "int8"), value("x")),
             ("const Three *", array("x", None, itemsize=24, fields=(("x", "float64", 0),)), pointer("x")),
             ("bool", scalar("x", "bool"), value("x"))]  # fmt: skip
    kernels = [replace(takes(kind, p, s), name=f"f{i}", code=f"{code if i == 0 else ''}void f{i}({kind}) {{}}\n")
               for i, (kind, p, s) in enumerate(pairs)]  # fmt: skip
    assert len(CpuJit(info, None).compile_many(kernels)) == len(pairs)


# ---- wrappers ----


@needs_compiler
def test_a_wrapper_finds_its_kernel_in_a_unit():
    from rekernel import _native

    jit, kernels = CpuJit(objcache=None), (constant(1, "one"), constant(2, "two"))
    builder = LibraryBuilder()
    data = jit.obtain(kernels, builder.render_module(kernels, ""), []).data
    unit = Unit(_native.Library(data, name="unit"), kernels)
    assert [builder.get_wrapper(kernel, unit)() for kernel in reversed(kernels)] == [2, 1]
    with pytest.raises(ValueError, match="not in"):
        builder.get_wrapper(constant(3), unit)


def test_the_base_class_decides_nothing():
    base = ExtensionModuleBuilderBase()
    assert base.include_dirs() == []
    with pytest.raises(NotImplementedError):
        base.render_module(AXPY, "m")
    with pytest.raises(NotImplementedError):
        base.get_wrapper(AXPY, None)


@needs_compiler
def test_units_keep_their_state_apart():
    first, second = CpuJit(objcache=None).compile(state(1)), CpuJit(objcache=None).compile(state(2))
    assert [first(), first(), second(), first()] == [1001001, 2002002, 2001001, 3003003]
    assert np.int64(second()) == 3002002
