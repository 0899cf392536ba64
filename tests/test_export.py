"""Exported modules: they work where rekernel cannot be imported, and their types are told."""

from __future__ import annotations

import importlib.machinery
import os
import stat
import subprocess
import sys
import sysconfig
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rekernel
from jitkernels import (
    AXPY,
    COUNT,
    ECHOES,
    JACOBI,
    KICK,
    PARTICLE,
    PLAIN,
    ROTATE,
    THROWS,
    constant,
    each_compiler,
    needs_compiler,
    scalar,
    value,
    without_compilers,
)
from rekernel.errors import ToolchainError
from rekernel.jit import CpuJit
from rekernel.jit.export import export, stub
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder
from rekernel.objcache import ObjectCache

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
ALONE = """
import sys

class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rekernel":
            raise ImportError("rekernel is not here")

sys.meta_path.insert(0, Nobody())
sys.path.insert(0, sys.argv[1])
import numpy as np
"""
"""The start of a program in a Python that has no rekernel."""


def alone(directory: Path, code: str) -> list[str]:
    """Run a program without rekernel, and return the lines that it printed."""
    numpy = Path(np.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", ALONE.replace("import numpy", f"sys.path.append({str(numpy)!r})\nimport numpy", 1) + code,
         str(directory)], capture_output=True, text=True, encoding="utf-8", timeout=60, cwd=directory,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def jit(tmp_path_factory):
    return CpuJit(objcache=tmp_path_factory.mktemp("cache"))


@each_compiler
def test_the_same_results_without_rekernel(info, tmp_path):
    jit = CpuJit(info, None)
    path = export(jit, PLAIN, tmp_path / "made" / "here", "kernels")
    assert path == tmp_path / "made" / "here" / f"kernels{SUFFIX}"
    rng = np.random.default_rng(3)
    given = {"y": rng.random(30), "x": rng.random(30), "dst": np.zeros((8, 5)), "src": rng.random((8, 5)),
             "z": rng.random(4).astype("c8"), "p": np.zeros(5, PARTICLE), "mask": rng.random(9) > 0.5}  # fmt: skip
    given["p"]["charge"] = range(5)
    np.savez(path.parent / "given.npz", **{k: v for k, v in given.items() if k != "p"}, charge=given["p"]["charge"])
    program = f"""
import kernels
given = dict(np.load("given.npz"))
given["p"] = np.zeros(5, {np.lib.format.dtype_to_descr(PARTICLE)!r})
given["p"]["charge"] = given["charge"]
kernels.axpy(given["y"], given["x"], a=2.5)
kernels.heat_jacobi(given["dst"], given["src"])
sums = [kernels.rotate(given["z"], 2 - 1j), kernels.total(np.arange(4, dtype="f4"))]
kernels.kick(given["p"])
out = np.zeros(1, int)
kernels.count(out, given["mask"])
print(given["y"].tolist(), given["dst"].tolist(), given["z"].tolist(), sums, given["p"]["mass"].tolist(), out)
try:
    kernels.throws(0)
except RuntimeError as error:
    print(error)
try:
    import rekernel
except ImportError:
    print("alone", "rekernel._native" in sys.modules)
"""
    axpy, jacobi, total, rotate, kick, count = jit.compile_many(PLAIN)[:6]
    axpy(given["y"], given["x"], a=2.5)
    jacobi(given["dst"], given["src"])
    sums = [rotate(given["z"], 2 - 1j), total(np.arange(4, dtype="f4"))]
    kick(given["p"])
    out = np.zeros(1, int)
    count(out, given["mask"])
    wanted = [given["y"].tolist(), given["dst"].tolist(), given["z"].tolist(), sums, given["p"]["mass"].tolist(), out]
    assert alone(path.parent, program) == [" ".join(map(str, wanted)), "throws(): too hot: ü", "alone False"]


@needs_compiler
def test_a_wrapper_exports_itself(jit, tmp_path):
    wrapper = jit.compile(JACOBI)
    path = wrapper.export(tmp_path)
    assert path == tmp_path / f"heat_jacobi{SUFFIX}"
    assert sorted(os.listdir(tmp_path)) == [path.name, "heat_jacobi.pyi"]
    said = alone(tmp_path, "import heat_jacobi\nprint(heat_jacobi.__file__, heat_jacobi.heat_jacobi.__name__)\n")
    assert said == [f"{path} heat_jacobi"]


@needs_compiler
def test_a_second_export_comes_from_the_cache(tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    first = export(CpuJit(objcache=cache), [AXPY], tmp_path / "a").read_bytes()
    again = ObjectCache(tmp_path / "cache")
    assert export(CpuJit(objcache=again), [AXPY], tmp_path / "b").read_bytes() == first
    assert (again.stats.hits, again.stats.misses) == (1, 0)
    export(CpuJit(objcache=again), [AXPY], tmp_path / "b", "other")
    assert again.stats.misses == 1


@needs_compiler
def test_replacing_a_module_that_is_in_use(jit, tmp_path):
    export(jit, [constant(1)], tmp_path, "numbers_made")
    program = """
import os, subprocess
import numbers_made
before = os.stat(numbers_made.__file__).st_ino
print("go", flush=True)
input()
print(numbers_made.constant(), os.stat(numbers_made.__file__).st_ino != before)
"""
    numpy = Path(np.__file__).parents[1]
    code = ALONE + f"sys.path.append({str(numpy)!r})\n" + program
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)  # fmt: skip
    assert child.stdout.readline() == "go\n"
    export(jit, [constant(2)], tmp_path, "numbers_made")
    assert child.communicate("\n", timeout=60)[0] == "1 True\n"
    assert alone(tmp_path, "import numbers_made\nprint(numbers_made.constant())\n") == ["2"]
    assert len(os.listdir(tmp_path)) == 2


@needs_compiler
def test_the_files_have_the_rights_of_the_users_files(jit, tmp_path):
    before = os.umask(0o027)
    try:
        path = export(jit, [AXPY], tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "new" / "axpy.pyi").stat().st_mode) == 0o640


@needs_compiler
def test_a_module_works_in_every_thread(jit, tmp_path):
    export(jit, [AXPY, JACOBI], tmp_path, "shared_kernels")
    program = """
import threading
import shared_kernels
results = []
def work(n):
    y, x = np.zeros(20000), np.full(20000, n, float)
    for _ in range(20):
        shared_kernels.axpy(y, x, 1)
    results.append((y == 20 * n).all())
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(all(results), len(results))
"""
    assert alone(tmp_path, program) == ["True 8"]


# ---- refusals ----


@pytest.mark.parametrize(
    "name", ["", "a b", "1x", "a.b", "../x", "class", "None", "math", "json", "sys", "numpy", "_ast"]
)
def test_names_that_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"hide|identifier"):
        export(CpuJit(objcache=None), [AXPY], tmp_path / "no", name)
    assert not (tmp_path / "no").exists()


@needs_compiler
def test_a_kernel_called_as_a_module_of_pythons(jit, tmp_path):
    assert export(jit, [constant(4, "select")], tmp_path).name == f"select_kernel{SUFFIX}"
    assert alone(tmp_path, "import select_kernel, select\nprint(select_kernel.select())\n") == ["4"]


def test_no_python_headers(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name, *rest: str(tmp_path / name))
    with pytest.raises(ToolchainError, match=r"Python\.h.*python3-dev") as caught:
        export(CpuJit(objcache=None), [AXPY], tmp_path / "no")
    assert str(tmp_path / "include") in str(caught.value)
    assert "python -m rekernel doctor" in str(caught.value)
    assert not (tmp_path / "no").exists()


def test_no_compiler(tmp_path, monkeypatch):
    for name, text in without_compilers(tmp_path).items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr("rekernel.jit.export.python_include_dirs", list)
    with pytest.raises(ToolchainError, match="no C\\+\\+ compiler was found"):
        export(CpuJit(objcache=None), [AXPY], tmp_path / "no")
    assert not (tmp_path / "no").exists()


@needs_compiler
def test_a_wrong_text_writes_nothing(jit, tmp_path):
    export(jit, [constant(1, "number")], tmp_path)
    with pytest.raises(rekernel.KernelSourceError) as caught:
        export(jit, [replace(constant(1, "number"), code="\nint number() { return missing; }\n")], tmp_path)
    assert (caught.value.line, caught.value.kernel_id) == (2, "number")
    assert alone(tmp_path, "import number\nprint(number.number())\n") == ["1"]


@needs_compiler
def test_a_directory_that_cannot_be_written(jit, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        export(jit, [AXPY], tmp_path / "file")


@needs_compiler
def test_headers_of_the_jits_own_builder_are_found(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "seven.h").write_text("static int seven() { return 7; }\n")

    class Builder(LibraryBuilder):
        @staticmethod
        def include_dirs():
            return [str(tmp_path / "include")]

    kernel = Kernel("uses", (), "cpp", code="int uses() { return seven(); }\n", headers=('"seven.h"',), returns="int32")
    wrapper = CpuJit(objcache=None, module_builder=Builder()).compile(kernel)
    assert wrapper() == 7
    assert wrapper.export(tmp_path).name == f"uses{SUFFIX}"
    assert alone(tmp_path, "import uses\nprint(uses.uses())\n") == ["7"]


# ---- the stub ----


def checked(directory: Path, program: str) -> str:
    """Return what mypy says of a program beside the module."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (directory / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, "program.py"],
        cwd=directory, capture_output=True, text=True, timeout=120, env={**os.environ, "MYPYPATH": ""},
    )  # fmt: skip
    return done.stdout


@pytest.mark.slow
def test_mypy_reads_the_stub(tmp_path):
    keywords = replace(AXPY, name="by_name", policy="pystencils", doc='Quotes """ and \\ and\n\n    lines"')
    odd = Kernel("odd", (scalar("lambda", "int32"),), "cpp", slots=(value("lambda"),))
    (tmp_path / "kernels.pyi").write_text(stub([*PLAIN, keywords, odd, constant(1)]))
    program = """
import numpy as np
import kernels

y = np.ones(3)
kernels.axpy(y, y, 2)
kernels.axpy(y, x=y, a=np.float32(2))
kernels.by_name(y=y, x=y, a=1.5, other=3)
number: int = kernels.constant()
real: float = kernels.echo_float16(np.float16(1))
imaginary: complex = kernels.rotate(np.ones(2, np.complex64), 1j)
truth: bool = kernels.echo_bool(np.True_)
kernels.kick(np.zeros(3, [("mass", "f8")]))
kernels.odd(3)
"""
    assert checked(tmp_path, program) == "Success: no issues found in 1 source file\n"
    said = checked(
        tmp_path, program + 'kernels.axpy(y, y)\nkernels.axpy("y", y, 1)\nkernels.echo_int8(1.5)\nkernels.none\n'
    )
    assert said.count("error:") == 4
    assert all(word in said for word in ("call-arg", "arg-type", "attr-defined"))


def test_stubs_are_python_and_carry_the_docstrings():
    import ast

    kernels = [
        *PLAIN,
        replace(AXPY, name="two.words", doc='a """ b \\'),
        replace(AXPY, name="end", doc='x"""'),
        COUNT,
        ROTATE,
    ]
    tree = ast.parse(stub(kernels))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(functions["axpy"]) == AXPY.doc
    assert ast.get_docstring(functions["two_words"]) == 'a """ b \\'
    assert ast.get_docstring(functions["end"]) == 'x"""'
    assert ast.get_docstring(functions["kick"]) == str(KICK)
    assert [a.arg for a in functions["heat_jacobi"].args.args] == ["dst", "src"]
    assert {ast.unparse(functions[e.name].returns) for e in ECHOES} == {"bool", "int", "float", "complex"}
    assert ast.unparse(functions["throws"].returns) == THROWS.returns.rstrip("32")


@needs_compiler
def test_two_exports_at_once(jit, tmp_path):
    made = []
    threads = [threading.Thread(target=lambda: made.append(export(jit, [AXPY], tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [tmp_path / f"axpy{SUFFIX}"] * 4
    assert sorted(os.listdir(tmp_path)) == [f"axpy{SUFFIX}", "axpy.pyi"]
