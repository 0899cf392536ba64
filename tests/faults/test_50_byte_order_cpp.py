"""Row 50 for C++ texts: foreign byte order and unaligned addresses are refused, for inputs and outputs."""

from __future__ import annotations

import numpy as np
import pytest

from cppkit import load_with, needs_cpp
from rekernel import ArgumentTypeError, ArgumentValueError

pytestmark = needs_cpp

TYPES = {"f8": "double", "f4": "float", "i4": "int", "i8": "int64_t", "u2": "uint16_t", "c16": "std::complex<double>"}
TEXT = "#include <complex>\n" + "".join(
    f"void a_{code}(rekernel::Array<{cpp}, 1> y, rekernel::Array<const {cpp}, 1> x) {{ y(0) = x(0); }}\n"
    f"void p_{code}({cpp} *y, const {cpp} *x) {{ y[0] = x[0]; }}\n"
    for code, cpp in TYPES.items()
)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    with load_with(tmp_path_factory.mktemp("order") / "cache") as loader:
        yield loader.load(TEXT, "order", optlevel="0")


def unaligned(code: str, offset: int = 1) -> np.ndarray:
    size = np.dtype(code).itemsize
    return np.frombuffer(bytearray(size * 4), "i1")[offset : offset + 2 * size].view(code)


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("kind", "ap")
def test_each_place_refuses_both(module, code, kind):
    kernel, good = getattr(module, f"{kind}_{code}"), np.ones(2, code)
    out = np.zeros(2, code)
    kernel(out, good)
    assert out[0] == 1
    foreign = good.astype(np.dtype(code).newbyteorder())
    for place in range(2):
        for bad, error in ((foreign, ArgumentTypeError), (unaligned(code), ArgumentValueError)):
            given = [out.copy(), good]
            given[place] = bad
            before = [x.tobytes() for x in given]
            with pytest.raises(error, match="yx"[place]):
                kernel(*given)
            assert [x.tobytes() for x in given] == before


def test_native_order_by_its_own_mark_is_native(module):
    mark = "<" if np.little_endian else ">"
    out = np.zeros(2, f"{mark}f8")
    module.a_f8(out, np.ones(2, f"{mark}f8"))
    assert out[0] == 1
