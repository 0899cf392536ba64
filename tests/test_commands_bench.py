"""``rekernel bench``: arguments from a signature, never a guess that could be wrong, and numbers that add up."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from commandkit import STENCIL, TAICHI, cache, call, call_json, command, here, needs_nvrtc  # noqa: F401
from jitkernels import needs_compiler
from rekernel.commands import timing
from rekernel.commands.bench import seconds_said
from rekernel.commands.example import CannotGuessError, example, rank
from rekernel.kernel import Parameter

QUICK = ("--seconds", "0.01")
RAW = (
    "void scale(double *dst, const double *src, int n, double k) { for (int i = 0; i < n; ++i) dst[i] = k * src[i]; }\n"
)


@needs_compiler
def test_rows_have_times_bytes_and_a_copy(here, cache, call_json):
    status, document = call_json("bench", "heat.cpp:step", "--sizes", "16,32", *QUICK)
    assert status == 0
    assert document["kernel"] == "heat.cpp:step"
    assert document["signature"].startswith("step(next: float64[:, :]")
    assert [row["n"] for row in document["rows"]] == [16, 32]
    for row in document["rows"]:
        assert row["shapes"] == {"next": [row["n"]] * 2, "now": [row["n"]] * 2}
        assert row["bytes"] == 2 * 8 * row["n"] ** 2
        assert 0 < row["min_seconds"] <= row["median_seconds"]
        assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["min_seconds"])
        assert row["copy_bytes_per_second"] == pytest.approx(row["bytes"] / row["copy_seconds"])
    assert document["overhead_seconds"] > 0


@needs_compiler
def test_the_table_is_for_people(here, cache, call):
    status, out, errors = call("bench", "heat.cpp", "--sizes", "1e2", *QUICK)
    assert (status, errors) == (0, "")
    assert "copy GB/s" in out
    assert "\n100 " in out
    assert "160,000" in out
    assert "a call with arrays of 8 elements along each axis takes" in out


@needs_compiler
def test_sizes_that_are_not_given_fit_the_rank(here, cache, call_json):
    Path("one.cpp").write_text("void one(rekernel::Array<float, 1> x) { x(0) = 1; }\n")
    sizes = [row["n"] for row in call_json("bench", "one.cpp", *QUICK)[1]["rows"]]
    assert sizes == [1_000, 10_000, 100_000, 1_000_000, 10_000_000]


@needs_compiler
def test_raw_pointers_and_integers_are_never_guessed(here, cache, call, call_json):
    Path("raw.cpp").write_text(RAW)
    status, _out, errors = call("bench", "raw.cpp")
    assert status == 1
    for name in ("dst: float64*: a raw pointer has no size", "src: const", "n: int32"):
        assert name in errors
    assert "k: " not in errors
    assert "--arg dst='np.ones(n, \"float64\")'" in errors
    given = ("--arg", "dst=np.zeros(n)", "--arg", "src=np.ones(n)", "--arg", "n=n")
    status, document = call_json("bench", "raw.cpp", *given, "--sizes", "64", *QUICK)
    assert status == 0
    assert document["rows"][0]["bytes"] == 1024


@needs_compiler
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["heat.cpp", "--arg", "q=1"], 2, "step has no parameter 'q'; it has next, now, k"),
        (["heat.cpp", "--arg", "k"], 2, "--arg takes NAME=EXPR"),
        (["heat.cpp", "--arg", "k=1 +"], 2, "is no Python expression"),
        (["heat.cpp", "--arg", "k=1/0"], 1, "--arg k=1/0 fails for n = 4: ZeroDivisionError"),
        (["heat.cpp", "--arg", "k=np.ones(n)"], 1, "refuses the arguments for n = 4"),
        (["heat.cpp", "--arg", "now=np.ones((n, n), 'f4')"], 1, "expected const float64[:, :], got a float32 array"),
        (["heat.cpp", "--launch", "(1, 1)"], 1, "takes no launch grid"),
        (["heat.cpp", "--launch", "q"], 1, "--launch fails for n = 4: NameError"),
        (["heat.cpp", "--launch", "(1"], 2, "--launch '(1' is no Python expression"),
        (["heat.cpp:flux"], 2, "heat.cpp has no kernel 'flux'; it has heat.cpp:step"),
        (["two.cpp"], 2, "which kernel? two.cpp:f, two.cpp:g"),
        (["broken.cpp"], 1, "broken.cpp:2:12"),
        (["heat.cpp", "-O", "openmp=5"], 1, "openmp= takes True, False or None, not 5"),
    ],
)
def test_what_is_wrong_is_said(words, status, said, here, cache, call):
    Path("two.cpp").write_text("int f(int x) { return x; }\nint g(int x) { return x; }\n")
    got, out, errors = call("bench", *words, "--sizes", "4", *QUICK)
    assert (got, out) == (status, "")
    assert said in errors


@pytest.mark.parametrize("sizes", ["a", "", "0", "1,,x", "-3", "inf", "nan"])
def test_sizes_that_are_none(sizes, here, cache, call):
    status, _out, errors = call("bench", "heat.cpp", f"--sizes={sizes}")
    assert status == 2
    assert "--sizes takes numbers such as 256,1024" in errors


@needs_compiler
def test_arrays_that_do_not_fit_are_refused_before_they_are_touched(here, cache, call):
    Path("one.cpp").write_text("void one(rekernel::Array<float, 1> x) { x(0) = 1; }\n")
    status, _out, errors = call("bench", "one.cpp", "--sizes", "1e14")
    assert status == 1
    assert "there is not enough memory for n = 100000000000000: 400,000,000,000,000 bytes are needed" in errors
    assert "smaller --sizes" in errors
    too_many = int(1.2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) // 4
    assert call("bench", "one.cpp", "--sizes", too_many)[0] == 1


@needs_compiler
def test_threads_are_those_of_openmp(here, cache):
    Path("count.cpp").write_text(
        "int count(rekernel::Array<double, 1> x) {\n    int n = 0;\n    #pragma omp parallel reduction(+ : n)\n    n += 1;\n"
        "    if (n != 3) throw n;\n    return n;\n}\n"
    )
    done = command("bench", "count.cpp", "--threads", "3", "--sizes", "8", *QUICK)
    assert done.returncode == 0, done.stderr
    assert command("bench", "count.cpp", "--threads", "2", "--sizes", "8", *QUICK).returncode == 1


@needs_compiler
def test_overloads_are_chosen_by_the_parameters_that_are_named(here, cache, call_json):
    Path("over.cpp").write_text(
        "void f(rekernel::Array<float, 1> x) { x(0) = 1; }\nvoid f(rekernel::Array<float, 1> x, int by) { x(0) = by; }\n"
    )
    assert call_json("bench", "over.cpp", "--sizes", "8", *QUICK)[1]["signature"] == "f(x: float32[:])"
    assert "by: int32" in call_json("bench", "over.cpp", "--arg", "by=2", "--sizes", "8", *QUICK)[1]["signature"]


def test_stencils_and_taichi(here, cache):
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("lattice.py").write_text(STENCIL)
    Path("paint.py").write_text(TAICHI)
    done = command("bench", "lattice.py:mean", "--sizes", "8,16", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "mean(f: const float64[:, :], g: float64[:, :])" in done.stdout
    done = command("bench", "paint.py:scale", "--sizes", "8", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    assert '"x": [\n          8\n' in done.stdout


def test_cuda_needs_a_launch_and_a_device(here, cache, call, monkeypatch):
    needs_nvrtc()
    from rekernel.cuda import devices, missing

    def none():
        raise missing.driver(OSError("no driver here"))

    monkeypatch.setattr(devices, "devices", none)
    Path("k.cu").write_text("__global__ void fill(rekernel::Array<float, 1> x) { x(0) = 1; }\n")
    status, _out, errors = call("bench", "k.cu", "-O", "arch=sm_80")
    assert status == 2
    assert "--launch, such as 'LaunchGrid.cover(n)'" in errors
    status, _out, errors = call("bench", "k.cu", "-O", "arch=sm_80", "--launch", "LaunchGrid.cover(n)")
    assert status == 1
    assert "there is no CUDA device to use (no driver here)" in errors


# --- arguments -------------------------------------------------------------------------------------------------


def test_arrays_have_the_dtype_and_the_fixed_extents():
    made = example(Parameter("x", "array", dtype="float32", ndim=3, shape=(None, "m", 3)), 5)
    assert (made.dtype, made.shape) == (np.float32, (5, 5, 3))
    assert 0 <= made.min() < made.max() <= 1
    assert not example(Parameter("i", "array", dtype="int64", ndim=1), 5).any()  # an index stays inside
    record = Parameter("p", "array", ndim=1, fields=(("a", "float64", 0), ("b", "int32", 8)), itemsize=16)
    made = example(record, 4)
    assert (made.dtype.itemsize, made.dtype.names) == (16, ("a", "b"))


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter("p", "array", dtype="float64", order="C"), Parameter("p", "pointer", dtype="float64"),
        Parameter("n", "scalar", dtype="int32"), Parameter("n", "scalar", dtype="uint8"), Parameter("t", "template"),
        Parameter("m", "other", "matrix(3, 3, float32)"), Parameter("a", "array", "any[:]"), Parameter("u", "scalar", "?"),
    ],
    ids=str,
)  # fmt: skip
def test_what_could_touch_other_memory_is_not_guessed(parameter):
    with pytest.raises(CannotGuessError, match=parameter.name):
        example(parameter, 8)


def test_floating_point_numbers_and_truth_values_are_safe():
    kinds = ("float32", "float64", "complex128", "bool")
    assert [example(Parameter("k", "scalar", dtype=dtype), 8) for dtype in kinds] == [0.5, 0.5, 0.5, True]


def test_the_rank_is_also_read_from_a_shown_type():
    rows = {"float32[:, :]": 2, "const float64[:, 3, :]": 3, "float64*": None, "vector(3, float32)[:]": 1}
    assert {shown: rank(Parameter("x", "array", shown)) for shown in rows} == rows


def test_all_that_is_missing_is_named_at_once():
    parameters = (
        Parameter("a", "template"),
        Parameter("n", "scalar", dtype="int32"),
        Parameter("k", "scalar", dtype="float32"),
    )
    with pytest.raises(CannotGuessError) as caught:
        timing.arguments_for(parameters, 4, [], {}, np)
    assert [line.split(":")[0].strip() for line in str(caught.value).splitlines()] == ["a", "n"]


def test_samples_are_long_enough_to_be_timed():
    calls = []
    measured = timing.measure(lambda: calls.append(1), 1, {}, np, lambda: None, 0.001)
    assert measured.calls <= len(calls)
    assert measured.bandwidth is None
    assert measured.copy_seconds is None


def test_times_for_people():
    times = [seconds_said(t) for t in (1e-9, 9.994e-7, 9.999e-7, 0.5, 1, 75)]
    assert times == ["1 ns", "999 ns", "1 us", "500 ms", "1.00 s", "75.00 s"]
