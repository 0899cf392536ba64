"""``rekernel stubs``: types that a strict type checker accepts and that say what a kernel takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commandkit import STENCIL, TAICHI, cache, call, call_json, command, here, needs_nvrtc  # noqa: F401
from jitkernels import needs_compiler

pytestmark = needs_compiler

KINDS = """/// Doubles, with "quotes" and a \\\\ in it.
double twice(double x) { return 2 * x; }
int twice(int x) { return 2 * x; }
bool twice(bool x) { return x; }
void lambda(rekernel::Array<float, 2> x, bool in) { x(0, 0) = in; }
void raw(const uint8_t *x, int64_t n) { }
std::complex<double> conjugate(std::complex<double> z) { return std::conj(z); }
"""
KINDS = "#include <complex>\n" + KINDS


def mypy(*files: object) -> str:
    pytest.importorskip("mypy", reason="mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull, *map(str, files)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    return done.stdout


def test_cpp(here, cache, call):
    Path("kinds.cpp").write_text(KINDS)
    assert call("stubs", "kinds.cpp")[:2] == (0, "kinds.pyi: twice, lambda, raw, conjugate\n")
    text = Path("kinds.pyi").read_text()
    assert text.count("@overload") == 3
    assert 'Doubles, with "quotes"' in text
    Path("program.py").write_text(
        "import kinds\nimport numpy as np\n"
        "reveal_type(kinds.twice(1))\nreveal_type(kinds.twice(1.5))\nreveal_type(kinds.twice(np.int64(3)))\n"
        "kinds.raw(np.zeros(3, np.uint8), 3)\nkinds.twice('x')\nkinds.conjugate(1)\nkinds.conjugate(2j)\n"
    )
    said = mypy("program.py", "kinds.pyi").splitlines()
    types = [line.split('"')[1] for line in said if "Revealed type" in line]
    assert [name.removeprefix("builtins.") for name in types] == ["int", "float", "int"]
    errors = [line for line in said if ": error:" in line]
    assert len(errors) == 1
    assert "program.py:7: " in errors[0]


def test_cuda(here, cache, call):
    needs_nvrtc()
    Path("k.cu").write_text(
        "// Fills.\n__global__ void fill(rekernel::Array<float, 1> x, float k) { x(0) = k; }\n"
        "__global__ void fill(rekernel::Array<double, 1> x, double k) { x(0) = k; }\n__global__ void other(int n) { }\n"
    )
    assert call("stubs", "k.cu", "-O", "arch=sm_80")[0] == 0
    Path("program.py").write_text("import k\nk.fill[4, 64](object(), 0.5)\nk.fill(object(), 1)\nk.other[1, 1]('n')\n")
    errors = [line for line in mypy("program.py", "k.pyi").splitlines() if ": error:" in line]
    assert [line.partition(": error:")[0] for line in errors] == ["program.py:4"]


def test_python_texts_keep_their_other_names(here, cache):
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("lattice.py").write_text(STENCIL)
    Path("paint.py").write_text("import taichi.math as tm\n" + TAICHI + (
        "@ti.kernel\ndef mix(a: tm.vec3, t: ti.template(), n: ti.i32) -> tm.vec3:\n    '''Mixes.'''\n    return a * n\n"
    ))  # fmt: skip
    for name in ("lattice", "paint"):
        done = command("stubs", f"{name}.py", cwd=here)
        assert done.returncode == 0, done.stderr
    Path("program.py").write_text(
        "import lattice, paint\nimport numpy as np\nx = np.ones((4, 4))\nlattice.mean(f=x, g=x)\nlattice.mean(x, x)\n"
        "paint.scale(np.ones(3, np.float32), 2)\npaint.mix(1, 2, 'n')\npaint.whatever\n"
    )
    errors = [line for line in mypy("program.py", "lattice.pyi", "paint.pyi").splitlines() if ": error:" in line]
    assert sorted({line.partition(": error:")[0] for line in errors}) == ["program.py:5", "program.py:7"]


def test_standard_output_has_the_types_alone(here, cache):
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("paint.py").write_text("import taichi as ti\nti.init(arch=ti.cpu)\n" + TAICHI)
    done = command("stubs", "paint.py", "-o", "-", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('"""Compiled kernels, made by rekernel."""\n')
    assert not Path("paint.pyi").exists()
    compile(done.stdout, "paint.pyi", "exec")


def test_a_place_of_its_own(here, cache, call_json):
    status, document = call_json("stubs", "heat.cpp", "--output", "types.pyi")
    assert status == 0
    assert (document["output"], document["kernels"]) == ("types.pyi", ["step"])
    assert Path("types.pyi").read_text() == document["text"]


def test_a_file_of_somebody_else_stays(here, cache, call):
    Path("heat.pyi").write_text("def mine() -> None: ...\n")
    status, _out, errors = call("stubs", "heat.cpp")
    assert status == 1
    assert "heat.pyi is not one of ours and stays as it is" in errors
    assert Path("heat.pyi").read_text() == "def mine() -> None: ...\n"
    Path("heat.pyi").unlink()
    assert call("stubs", "heat.cpp")[0] == call("stubs", "heat.cpp")[0] == 0


def test_a_place_that_cannot_be_written(here, cache, call):
    status, _out, errors = call("stubs", "heat.cpp", "-o", "nowhere/heat.pyi")
    assert status == 1
    assert "nowhere/heat.pyi" in errors


def test_a_text_without_kernels(here, cache, call):
    Path("none.cpp").write_text("template <class T> T g(T x) { return x; }\n")
    status, _out, errors = call("stubs", "none.cpp")
    assert status == 1
    assert "none.cpp has no kernels" in errors
    assert "g is no kernel: " in errors


def test_a_text_of_no_known_language_is_named(here, cache, call):
    Path("notes.txt").write_text("hello")
    for words in (["stubs", "notes.txt"], ["cache", "why", "notes.txt"]):
        status, out, errors = call(*words)
        assert (status, out) == (1, "")
        assert "error: notes.txt: cannot tell the language" in errors
