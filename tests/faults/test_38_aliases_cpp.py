"""Row 38 for C++ texts: overlap is refused where the text promises that there is none, however it is spelled."""

from __future__ import annotations

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from jitkernels import each_compiler
from rekernel import ArgumentValueError

pytestmark = needs_cpp

BODY = "{ for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1; }"
PROMISES = {
    "restrict": f"void shift(double *restrict y, const double *restrict x, int64_t n) {BODY}",
    "__restrict": f"void shift(double *__restrict y, const double *__restrict x, int64_t n) {BODY}",
    "__restrict__": f"void shift(double *__restrict__ y, const double *__restrict__ x, int64_t n) {BODY}",
    "const restrict": f"void shift(double *const restrict y, const double *x, int64_t n) {BODY}",
    "only the output": f"void shift(double *__restrict__ y, const double *x, int64_t n) {BODY}",
    "a typedef": f"typedef double *__restrict__ out;\nvoid shift(out y, const double *x, int64_t n) {BODY}",
    "a macro": f"#define RESTRICT __restrict__\nvoid shift(double *RESTRICT y, const double *x, int64_t n) {BODY}",
    "RestrictArray": "void shift(rekernel::RestrictArray<double, 1> y, rekernel::RestrictArray<const double, 1> x, "
                     f"int64_t n) {BODY}",
    "one RestrictArray": f"void shift(rekernel::RestrictArray<double, 1> y, rekernel::Array<const double, 1> x, int64_t n) {BODY}",
    "a reference": f"void shift(const rekernel::RestrictArray<double, 1> &y, const double *x, int64_t n) {BODY}",
}  # fmt: skip
NONE = {
    "pointers": f"void shift(double *y, const double *x, int64_t n) {BODY}",
    "arrays": f"void shift(rekernel::Array<double, 1> y, rekernel::Array<const double, 1> x, int64_t n) {BODY}",
    "a function of that name": "static int restrict(int n) { return n; }\n"
                               f"void shift(double *y, const double *x, int64_t n) {BODY}",
}  # fmt: skip
PAIRS = {
    "one array": lambda b: (b[:8], b[:8]),
    "shifted up": lambda b: (b[1:9], b[:8]),
    "shifted down": lambda b: (b[:8], b[1:9]),
    "one element": lambda b: (b[:8], b[7:15]),
}
APART = {
    "halves": lambda b: (b[:8], b[8:16]),
    "others": lambda b: (b[:8], np.arange(8.0)),
    "empty": lambda b: (b[:0], b[:0]),
}


def shifted(y, x, kernel):
    kernel(y, x, len(y))
    return y.tolist()


def expected(pair):
    y, x = pair
    for i in range(len(y)):
        y[i] = x[i] + 1
    return y.tolist()


@each_compiler
@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_is_checked_and_allow_alias_takes_it_back(info, name):
    text = PROMISES[name]
    with load_with(None, info) as loader:
        kernel = loader.load(text, "k", language="cpp", optlevel="3").shift
        for pair in PAIRS.values():
            base = np.arange(20.0)
            with pytest.raises(ArgumentValueError, match="overlap") as caught:
                kernel(*pair(base), 8)
            assert "allow_alias=True" in str(caught.value)
            assert base.tolist() == list(range(20))
        for pair in APART.values():
            assert shifted(*pair(np.arange(20.0)), kernel) == expected(pair(np.arange(20.0)))
        loader.load(text, "k", allow_alias=True)
        for pair in PAIRS.values():
            assert shifted(*pair(np.arange(20.0)), kernel) == expected(pair(np.arange(20.0)))
        loader.load(text, "k", allow_alias=False)
        with pytest.raises(ArgumentValueError):
            kernel(*PAIRS["one array"](np.arange(20.0)), 8)


@each_compiler
@pytest.mark.parametrize("name", NONE)
def test_without_a_promise_the_loop_means_what_it_says(info, name):
    with load_with(None, info) as loader:
        kernel = loader.load(NONE[name], "k", language="cpp").shift
        for pair in [*PAIRS.values(), *APART.values()]:
            assert shifted(*pair(np.arange(20.0)), kernel) == expected(pair(np.arange(20.0)))


def test_inputs_may_share_memory_and_strided_ones_may_interleave(tmp_path):
    text = """
    using rekernel::RestrictArray;
    void add(RestrictArray<double, 1> z, RestrictArray<const double, 1> x, RestrictArray<const double, 1> y) {
        for (int64_t i = 0; i < z.size(); ++i) z[i] = x[i] + y[i];
    }
    """
    with load_with(None) as loader:
        add = loader.load(text, "k").add
        x, z = np.arange(8.0), np.zeros(8)
        add(z, x, x)
        assert z.tolist() == (2 * x).tolist()
        base = np.arange(24.0)
        add(base[::3], base[1::3], base[2::3])  # their ranges overlap, no element does
        assert base[::3].tolist() == [6 * i + 3 for i in range(8)]
        with pytest.raises(ArgumentValueError, match="overlap"):
            add(base[::3], base[::3][::-1], x)
