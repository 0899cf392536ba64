"""Row 30 for C++ texts: sizes, indices and strides are 64 bits wide, without the memory to show it: stride 0."""

from __future__ import annotations

import numpy as np
import pytest

from cppkit import load_with, needs_cpp

pytestmark = needs_cpp

MANY = 3_000_000_000
TEXT = """
using rekernel::Array;
int64_t size(Array<const float, 1> x) { return x.size(); }
int64_t shape(Array<const float, 2> x, int d) { return x.shape(d); }
int64_t stride(Array<const float, 2> x, int d) { return x.stride(d); }
float last(Array<const float, 1> x) { return x[x.size() - 1]; }
float corner(Array<const float, 2> x) { return x(x.shape(0) - 1, x.shape(1) - 1); }
int64_t sum_ends(Array<const float, 1> x) {
    int64_t n = 0;
    for (int64_t i = x.size() - 5; i < x.size(); ++i) n += int64_t(x(i)) + i;
    return n;
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["release", "debug"])
def module(tmp_path_factory, request):
    with load_with(tmp_path_factory.mktemp("large") / "cache") as loader:
        yield loader.load(TEXT, "k", debug=request.param)


def test_three_thousand_million_elements(module):
    x = np.broadcast_to(np.float32(7), MANY)
    assert (module.size(x), module.last(x)) == (MANY, 7)
    assert module.sum_ends(x) == 5 * 7 + sum(range(MANY - 5, MANY))


def test_more_elements_than_bytes_of_memory(module):
    x = np.broadcast_to(np.float32(7), (2**31 + 1, 2**29))
    assert [module.shape(x, d) for d in (0, 1)] == [2**31 + 1, 2**29]
    assert module.corner(x) == 7


def test_offsets_beyond_32_bits(module):
    memory = np.zeros(10, "f4")
    memory[9] = 5
    # Two million rows of 2,000 elements, all in one place, and the last element of each.
    x = np.lib.stride_tricks.as_strided(memory[9:], (2_000_000, 2_000), (0, 0))
    assert module.corner(x) == 5
    far = np.lib.stride_tricks.as_strided(memory, (1, 10), (2**40, 4))
    assert (module.stride(far, 0), module.corner(far)) == (2**38, 5)


def test_real_memory_of_more_than_two_to_the_32_bytes_that_is_never_touched(module):
    try:
        x = np.zeros(2**30 + 10, "f4")  # pages come when they are read
    except MemoryError:
        pytest.skip("this machine does not give 4 GiB of address space")
    x[-1] = 3
    assert module.last(x) == 3
