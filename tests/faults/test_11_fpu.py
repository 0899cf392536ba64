"""Row 11: no kernel changes how this process computes: denormals, rounding, exceptions; NaN and infinity are right."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from jitkernels import AXPY, THREADS, array, each_compiler, extent, needs_openmp, pointer, scalar, value
from rekernel.jit import CpuJit
from rekernel.kernel import Kernel
from support import run_python

LEVELS = ["0", "1", "2", "3", "fast"]
PROBE = Kernel(
    "probe", (), "cpp", returns="uint64",
    code="unsigned long long probe() {\n#if defined(__x86_64__)\n    unsigned short x87;\n"
         '    __asm__ volatile("fnstcw %0" : "=m"(x87));\n'
         "    return (unsigned long long)(__builtin_ia32_stmxcsr() & 0xffc0u) << 16 | x87;\n#else\n    return 0;\n#endif\n}\n",
)  # fmt: skip
"""Control words of SSE and x87, without what Python's own computing leaves in them."""
MEDDLE = Kernel(
    "meddle", (scalar("how", "int32"),), "cpp", slots=(value("how"),),
    code="#include <cfenv>\n#include <stdexcept>\nvoid meddle(int how) {\n    std::fesetround(FE_UPWARD);\n"
         "#if defined(__x86_64__)\n    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);\n#endif\n"
         '    if (how) throw std::runtime_error("left early");\n}\n',
)  # fmt: skip
"""Sets rounding upward and, on x86, flushing of denormals, and leaves it so."""
SPECIAL = Kernel(
    "special", (array("out", written=True), array("x")), "cpp", slots=(pointer("out"), pointer("x"), extent("x")),
    code="#include <cmath>\nvoid special(double *out, const double *x, long long n) {\n"
         "    for (long long i = 0; i < n; ++i) {\n"
         "        out[i * 4] = x[i] != x[i]; out[i * 4 + 1] = std::isinf(x[i]); out[i * 4 + 2] = x[i] * 0.0;\n"
         "        out[i * 4 + 3] = std::isnan(x[i]) ? -1.0 : x[i] - x[i] + x[i];\n    }\n}\n",
)  # fmt: skip


def state(probe):
    """How this process computes, here and in another thread."""
    seen = []

    def look():
        tiny, three = float("5e-324"), 3.0
        seen.append(
            (probe(), tiny * 1.0 != 0, 1 / three, (-1 / three), np.float32(1e-45) * np.float32(1) != 0, 1e308 * 10)
        )

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return seen


@each_compiler
@pytest.mark.parametrize("level", LEVELS)
def test_loading_and_calling_changes_nothing(info, level):
    probe = CpuJit(info.copy(), None).compile(PROBE)
    before = state(probe)
    assert before[0][1:] == (True, 1 / 3, -1 / 3, True, float("inf"))
    info.optlevel = level
    jit = CpuJit(info, None)
    wrappers = jit.compile_many([AXPY, PROBE])
    y = np.full(4, 5e-324)
    wrappers[0](y, np.zeros(4), 1.0)
    assert y.tolist() == [5e-324] * 4
    assert state(probe) == before
    assert state(wrappers[1]) == before


@each_compiler
@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-funsafe-math-optimizations"])
def test_flags_of_the_user_change_nothing_either(info, flag):
    probe = CpuJit(info.copy(), None).compile(PROBE)
    before = state(probe)

    class Own(type(info)):
        def linker_flags(self):
            return [*super().linker_flags(), flag]

    own = Own(**{**info.__dict__, "extra_cxxflags": [flag]})
    assert state(CpuJit(own, None).compile(PROBE)) == before
    assert state(probe) == before


@each_compiler
def test_openmp_threads_change_nothing(info):
    needs_openmp(info)
    info.optlevel = "fast"
    probe = CpuJit(info.copy(), None).compile(PROBE)
    before = state(probe)
    CpuJit(info, None).compile(THREADS)(np.zeros(1000, "i4"))
    assert state(probe) == before


@each_compiler
@pytest.mark.parametrize("size", [1, 20_000], ids=["GIL kept", "GIL released"])
def test_what_a_kernel_itself_sets_ends_with_it(info, size):
    kernel = replace(MEDDLE, parameters=(*MEDDLE.parameters, array("x")))
    probe, meddle = CpuJit(info, None).compile_many([PROBE, kernel])
    before = state(probe)
    meddle(0, np.zeros(size))
    assert state(probe) == before
    with pytest.raises(RuntimeError, match="left early"):
        meddle(1, np.zeros(size))
    assert state(probe) == before


@each_compiler
@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_nan_and_infinity_are_right_unless_fast_is_asked_for(info, level):
    info.optlevel = level
    x = np.array([1.5, np.nan, np.inf, -np.inf, 5e-324])
    out = np.zeros((5, 4))
    CpuJit(info, None).compile(SPECIAL)(out.reshape(-1), x)
    nan = np.nan
    np.testing.assert_array_equal(
        out, [[0, 0, 0, 1.5], [1, 0, nan, -1], [0, 1, nan, nan], [0, 1, nan, nan], [0, 0, 0, 5e-324]]
    )


@each_compiler
def test_the_default_level_is_not_fast(info):
    assert type(info)().optlevel == "3"
    assert not {"-ffast-math", "-Ofast"} & set(type(info)().cxxflags())
    info.optlevel = "fast"
    assert "-ffast-math" in info.cxxflags()


@each_compiler
def test_all_levels_agree_on_a_sum_of_products(info):
    # Without a common rule for fused multiply-add they would not.
    code = "double fma_or_not(double a, double b, double c) { return a * b + c; }\n"
    names = ("a", "b", "c")
    kernel = Kernel(
        "fma_or_not", tuple(map(scalar, names)), "cpp", code=code, returns="float64", slots=tuple(map(value, names))
    )
    results = set()
    for level in LEVELS[:4]:
        info.optlevel = level
        results.add(CpuJit(info, None).compile(kernel)(1 + 2**-30, 1 - 2**-30, -1.0))
    assert results == {0.0}


@each_compiler
def test_a_process_that_only_loads_a_fast_kernel(info, tmp_path):
    program = f"""
import numpy as np
from jitkernels import constant
from rekernel.compilers import {type(info).__name__}
from rekernel.jit import CpuJit
tiny = float("5e-324")
print(tiny * 1.0)
print(CpuJit({type(info).__name__}(optlevel="fast"), None).compile(constant(3))(), tiny * 1.0, (np.full(100, tiny) * 1.0).max())
"""
    assert run_python(program).stdout.split() == ["5e-324", "3", "5e-324", "5e-324"]
