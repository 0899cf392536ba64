"""Row 11 for C++ texts: no level and no flag changes how the process computes; NaN and infinity are right by default."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from jitkernels import each_compiler
from support import run_python

pytestmark = needs_cpp

TEXT = """
#include <cmath>
{pragma}
void special(double *out, const double *x, int64_t n) {{
    for (int64_t i = 0; i < n; ++i) {{
        out[4 * i] = x[i] != x[i]; out[4 * i + 1] = std::isinf(x[i]); out[4 * i + 2] = x[i] * 0.0;
        out[4 * i + 3] = std::isnan(x[i]) ? -1.0 : x[i];
    }}
}}
double sum(const double *x, int64_t n) {{
    double s = 0;
{loop}
    for (int64_t i = 0; i < n; ++i) s += x[i];
    return s;
}}
"""
PLAIN = TEXT.format(pragma="", loop="")
CASES = {
    "optlevel fast": (PLAIN, {"optlevel": "fast"}),
    "-Ofast": (PLAIN, {"flags": "-Ofast -ffast-math"}),
    "-ffast-math for the linker, too": (PLAIN, {"flags": ["-ffast-math", "-Wl,-O1", "-lm"]}),
    "through the driver": (PLAIN, {"flags": ["-Ofast", "-Wl,--as-needed", "-fno-lto"]}),
    "-funsafe-math-optimizations": (PLAIN, {"flags": ["-funsafe-math-optimizations"]}),
    "with OpenMP": (TEXT.format(pragma="", loop="#pragma omp parallel for reduction(+ : s)"), {"optlevel": "fast"}),
    "an attribute": (TEXT.format(pragma='#pragma GCC optimize("fast-math")', loop=""), {}),
    "level 3": (PLAIN, {"optlevel": "3"}),
}  # fmt: skip


def state() -> list[object]:
    """Return how this process computes, here and in a new thread."""
    seen = []

    def look() -> None:
        tiny, three = float("5e-324"), 3.0
        seen.append((tiny * 1.0 != 0, 1 / three, -1 / three, np.float32(1e-45) * np.float32(1) != 0, 1e308 * 10))

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return seen


@each_compiler
@pytest.mark.parametrize("case", CASES)
def test_loading_and_calling_changes_nothing(tmp_path, info, case):
    text, options = CASES[case]
    if case == "an attribute" and type(info).__name__ != "GccInfo":
        text = PLAIN
    before = state()
    assert before[0] == (True, 1 / 3, -1 / 3, True, float("inf"))
    with load_with(None, info) as loader:
        module = loader.load(text, "k", **options)
        x = np.full(20_000, 5e-324)
        module.sum(x, x.size)
        assert state() == before
        assert module.sum(np.ones(20_000), 20_000) == 20_000
        assert state() == before


def test_a_kernel_that_changes_the_state_itself_leaves_it_as_it_was(tmp_path):
    text = "#include <cfenv>\nint round(int how) { std::fesetround(how ? FE_UPWARD : FE_DOWNWARD); if (how) throw 1; return 0; }"
    before = state()
    with load_with(None) as loader:
        module = loader.load(text, "k")
        module.round(0)
        assert state() == before
        with pytest.raises(RuntimeError):
            module.round(1)
        assert state() == before


@each_compiler
def test_by_default_special_numbers_are_right(info):
    x = np.array([1.5, np.nan, np.inf, -np.inf, 0.0, -0.0])
    with load_with(None, info) as loader:
        out = np.zeros((6, 4))
        loader.load(PLAIN, "k").special(out, x, 6)
    with np.errstate(invalid="ignore"):
        wanted = np.stack([x != x, np.isinf(x), x * 0.0, np.where(np.isnan(x), -1.0, x)], axis=1)
    np.testing.assert_array_equal(out, wanted)


def test_a_process_that_has_only_loaded_fast_texts_computes_as_before(tmp_path):
    program = """
import sys
from cppkit import load_with
tiny = float("5e-324")
loader = load_with(sys.argv[1])
for flags in ("-Ofast", "-ffast-math -lm", "-Ofast -Wl,-z,now"):
    loader.load("double f(double x) { return 2 * x; }", "k", flags=flags)
    print(tiny * 1.0 != 0)
"""
    for _ in range(2):  # built, then out of the cache
        assert run_python(program, str(tmp_path / "cache")).stdout.split() == ["True"] * 3
