"""``debug=True`` of C++ texts: what goes wrong in a kernel raises at the user's line, and nothing else is touched."""

from __future__ import annotations

import contextlib
import re
import resource
import sys
import threading
import time

import numpy as np
import pytest

import rekernel
from jitkernels import each_compiler, needs_compiler
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache
from support import lines_of, run_python

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")
pytestmark = needs_compiler
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="written for Linux")

# In each kernel the wrong thing is on the line that says `here`.
INDICES = """
#include <atomic>
#include <memory>
#include <thread>
#include <vector>
using rekernel::Array;
void rank1(Array<double, 1> x, long i) { x(i) = 1; }             // here rank1
void square(Array<double, 1> x, long i) { x[i] = 1; }            // here square
double rank2(Array<const double, 2> x, long i, long j) {
    return 0 +
           x(i, j);                                              // here rank2
}
float rank3(Array<float, 3> x, int i, unsigned j, int8_t k) { return x(i, j, k); }     // here rank3
int rank4(const Array<int, 4> &x, long i, long j, long k, long l) { return x(i, j, k, l); } // here rank4
double rank0(Array<double, 0> x) { return x() += 1; }
void twice(Array<double, 1> x, Array<double, 1> y, long i) {
    x(0) = 7;
    x(1) = y(i);                                                 // here twice
    x(2) = 7;
}
void promised(rekernel::RestrictArray<double, 1> x, long i) { x(i) = 1; }    // here promised
void loop(Array<double, 1> x, long n) noexcept {
    for (long i = 0; i < n; ++i) x(i) = i + 1;                   // here loop
}
static void set(Array<double, 1> x, long i) {
    x(i) = 1;                                                    // here helper
}
void helper(Array<double, 1> x, long i) { set(x, i); set(x, 0); }
template <class T> void put(Array<T, 1> x, long i) {
    x(i) = 1;                                                    // here generic
}
void generic(Array<double, 1> x, long i) { put(x, i); }
void lambda(Array<double, 1> x, long i) {
    auto f = [&](auto k) { x(k) = 1; };                          // here lambda
    f(i);
    f(0);
}
void quiet(Array<double, 1> x, long i) noexcept {
    x(i) = 1;                                                    // here quiet
    x(0) = 1;
}
struct AtEnd {
    Array<double, 1> x;
    long i;
    ~AtEnd() { x(i) = 1; }                                       // here ending unwinding
};
void ending(Array<double, 1> x, long i) { AtEnd made{x, i}; }
void unwinding(Array<double, 1> x, long i) {
    try {
        AtEnd made{x, i};
        throw 1;
    } catch (...) {
        x(0) = 1;
    }
}
void caught(Array<double, 1> x, long i) {
    try {
        x(i) = 1;                                                // here caught
    } catch (...) {
        x(0) = 1;
    }
}
void handler(Array<double, 1> x, long i) {
    try {
        throw std::vector<int>(1000);
    } catch (...) {
        x(i) = 1;                                                // here handler
    }
}
int exceptions() { return std::uncaught_exceptions() + (std::current_exception() ? 10 : 0); }
void parallel(Array<double, 1> x, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; ++i)
        x(i) = i + 1;                                            // here parallel
}
void threads(Array<double, 1> x, long i) {
    std::thread other([&]() noexcept { x(i) = 1; });             // here threads
    other.join();
    x(4) = 3;
}
void wait(Array<int, 1> begun, Array<const int, 1> done) {
    __atomic_store_n(&begun(0), 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&done(0), __ATOMIC_SEQ_CST)) continue;
}
long deep(Array<const double, 1> x, long i) {
    return i < 1000 ? 1 + deep(x, i + 1) : x(i);                 // here deep
}
struct Sizes { static const int two = 2; unsigned three : 4; };
enum Axis { first, second };
struct Cursor { int at; operator int() const { return at; } };
double many(Array<const double, 1> x, Array<const double, 2> y) {
    std::atomic<int> zero{0};
    volatile short one = 1;
    const size_t four = 4;
    Sizes sizes{3};
    auto read = [&](auto... index) { return y(index...); };
    return x(zero) + x(one) + x[Sizes::two] + x(sizes.three) + x(four) + x(Cursor{0}) + x(true) + x('\1') + x(1.9) + y(first, second) +
           read(1u, int8_t(1)) + x(static_cast<unsigned long long>(2));
}
void odd(Array<double, 1> x, size_t i) {
    x(i - 10) = 1;                                               // here odd
}
"""

CHECKS = r"""
#include <array>
#include <cassert>
#include <thread>
#include <vector>
using rekernel::Array;
int div32(int a, int b) { return a / b; }                        // here div32
int mod32(int a, int b) { return a % b; }                        // here mod32
unsigned divu(unsigned a, unsigned b) { return a / b; }          // here divu
long div64(long a, long b) { return a / b; }                     // here div64
long mod64(long a, long b) { return a % b; }                     // here mod64
uint64_t modu(uint64_t a, uint64_t b) { return a % b; }          // here modu
int8_t div8(int8_t a, int8_t b) { return a / b; }                // here div8
int16_t assign(int16_t a, int16_t b) {
    a /= b;                                                      // here assign
    return a;
}
long wide(long high, long low, long by) {
    __int128 whole = (static_cast<__int128>(high) << 64) + low;
    return static_cast<long>(whole / by);                        // here wide
}
int constant(int a) {
    const int none = 0;
    return a / none;                                             // here constant
}
double real(double a, double b) { return a / b; }
int sum(int a, int b) { return a + b * b - -a; }
long divided(Array<long, 1> x, long by) noexcept {
    auto f = [&] { return x(0) / by; };                          // here divided
    x(1) = f();
    return x(1);
}
void thread_div(Array<long, 1> x, long by) {
    std::thread other([&] { x(0) = 6 / by; });                   // here thread_div
    other.join();
}
void thread_assert(Array<long, 1> x, long i) {
    std::thread other([&] { assert(i < 3); x(0) = i; });         // here thread_assert
    other.join();
}
void claim(int i) { assert(i < 3 && "an \"ä\" \\ %s"); }         // here claim
static int check(int i) {
    assert(i != 3);                                              // here inside
    return i;
}
int inside(int i) noexcept { return check(i); }
int vector_at(int i) { return std::vector<int>(3)[i]; }
int array_at(int i) { std::array<int, 3> a{1, 2, 3}; return a[i]; }
"""


def line(text, name):
    """Return the number of the line on which something goes wrong."""
    return next(n for n, one in enumerate(text.split("\n"), 1) if name in one.partition("// here")[2].split())


@pytest.fixture(scope="session")
def debug(tmp_path_factory):
    """Load a text with checks, once for each compiler."""
    cache = ObjectCache(tmp_path_factory.mktemp("debug") / "cache")
    made = {}

    def load(info, text):
        if (info.command, text) not in made:
            loader = rekernel.KernelLoader(jit=CpuJit(info, cache))
            made[info.command, text] = loader.load(text, "t", debug=True)
        return made[info.command, text]

    yield load
    made.clear()


def raises(kernel, text, where, said, *args, error=IndexError):
    with pytest.raises(error) as caught:
        kernel(*args)
    assert str(caught.value) == f"t.{kernel.__name__}(), line {line(text, where)}: {said}"


def of(shape, index, axis):
    return f"index {index} is out of bounds for axis {axis} with size {shape[axis]} of an array of shape {shape}"


@each_compiler
def test_an_index_is_refused_below_and_above_on_each_axis(info, debug):
    m = debug(info, INDICES)
    for name, dtype, shape in (
        ("rank1", "f8", (5,)), ("square", "f8", (5,)), ("promised", "f8", (5,)), ("rank2", "f8", (3, 4)),
        ("rank3", "f4", (2, 3, 4)), ("rank4", "i4", (2, 1, 3, 2)),
    ):  # fmt: skip
        kernel, x = getattr(m, name), np.zeros(shape, dtype)
        kernel(x, *(0 for _ in shape))
        kernel(x, *(n - 1 for n in shape))
        for axis, extent in enumerate(shape):
            for wrong in (-1, extent, 100, -100):
                if wrong < 0 and (name, axis) == ("rank3", 1):
                    continue  # unsigned
                index = [wrong if a == axis else n - 1 for a, n in enumerate(shape)]
                raises(kernel, INDICES, name, of(shape, wrong, axis), x, *index)


@each_compiler
def test_the_first_wrong_axis_is_named_and_huge_numbers_are_shown_as_given(info, debug):
    m = debug(info, INDICES)
    raises(m.rank2, INDICES, "rank2", of((3, 4), 3, 0), np.zeros((3, 4)), 3, 4)
    raises(m.rank1, INDICES, "rank1", of((5,), 2**63 - 1, 0), np.zeros(5), 2**63 - 1)
    raises(m.rank1, INDICES, "rank1", of((5,), -(2**63), 0), np.zeros(5), -(2**63))
    raises(m.odd, INDICES, "odd", of((5,), -1, 0), np.zeros(5), 9)


@each_compiler
def test_every_index_of_an_empty_array_is_wrong_and_rank_0_has_none(info, debug):
    m = debug(info, INDICES)
    raises(m.rank1, INDICES, "rank1", of((0,), 0, 0), np.zeros(0), 0)
    raises(m.rank2, INDICES, "rank2", of((3, 0), 0, 1), np.zeros((3, 0)), 0, 0)
    assert m.rank0(np.array(2.5)) == 3.5


@each_compiler
def test_whatever_is_an_index_without_checks_is_one_with_them(info, debug):
    x, y = np.array([1.0, 2, 4, 8, 16]), np.array([[0.0, 32], [0, 64]])
    release = rekernel.KernelLoader(jit=CpuJit(info, None)).load(INDICES, "t")
    assert debug(info, INDICES).many(x, y) == release.many(x, y) == 1 + 2 + 4 + 8 + 16 + 1 + 2 + 2 + 2 + 32 + 64 + 4


@each_compiler
def test_strided_reversed_and_broadcast_arrays_are_checked_by_their_own_shape(info, debug):
    m, x = debug(info, INDICES), np.arange(12.0)
    m.rank1(x[::-2], 5)
    assert x[1] == 1
    raises(m.rank1, INDICES, "rank1", of((6,), 6, 0), x[::-2], 6)
    wide = np.broadcast_to(np.array([2.0, 3.0]), (4, 2))
    assert m.rank2(wide, 3, 1) == 3
    raises(m.rank2, INDICES, "rank2", of((4, 2), 2, 1), wide, 3, 2)


@each_compiler
@pytest.mark.parametrize(
    "name",
    ["helper", "generic", "lambda", "quiet", "ending", "unwinding", "caught", "handler"],
)
def test_nothing_on_the_way_out_stops_a_failed_check_and_nothing_after_it_runs(info, debug, name):
    m, x = debug(info, INDICES), np.zeros(5)
    kernel = getattr(m, name)
    for wrong in (5, -1):
        raises(kernel, INDICES, name, of((5,), wrong, 0), x, wrong)
    assert not x.any()
    assert m.exceptions() == 0, "an exception that was under way is done with"
    if name != "unwinding":
        kernel(x, 4)
        assert x[4] == 1, "the next call works"


@each_compiler
def test_what_came_before_a_failed_check_stays_and_what_comes_after_does_not_happen(info, debug):
    m, x = debug(info, INDICES), np.zeros(5)
    raises(m.twice, INDICES, "twice", of((2,), 2, 0), x, np.ones(2), 2)
    assert x.tolist() == [7, 0, 0, 0, 0]
    raises(m.loop, INDICES, "loop", of((5,), 5, 0), x, 9)
    assert x.tolist() == [1, 2, 3, 4, 5]


@each_compiler
def test_parallel_loops_are_serial_and_checked(info, debug):
    m, x = debug(info, INDICES), np.zeros(5)
    raises(m.parallel, INDICES, "parallel", of((5,), 5, 0), x, 1000)
    assert x.tolist() == [1, 2, 3, 4, 5]
    m.parallel(x, 5)


@each_compiler
def test_a_recursion_is_left_at_once(info, debug):
    m = debug(info, INDICES)
    raises(m.deep, INDICES, "deep", of((1000,), 1000, 0), np.zeros(1000), 0)
    assert m.deep(np.zeros(1001), 0) == 1000


@each_compiler
def test_on_a_thread_of_the_kernels_own_the_call_raises_when_it_ends(info, debug):
    m, x = debug(info, INDICES), np.zeros(5)
    raises(m.threads, INDICES, "threads", of((5,), 7, 0), x, 7)
    assert x.tolist() == [0, 0, 0, 0, 3], "nothing was written, and the kernel went on"
    m.threads(x, 0)
    c, n = debug(info, CHECKS), np.zeros(3, np.int64)
    raises(c.thread_div, CHECKS, "thread_div", "integer division or modulo by zero", n, 0, error=ZeroDivisionError)
    raises(c.thread_assert, CHECKS, "thread_assert", "assert(i < 3) failed", n, 3, error=AssertionError)
    assert not n.any()
    c.thread_div(n, 2)
    assert n[0] == 3


@each_compiler
def test_a_thread_that_nobody_owns_fails_every_call_that_is_under_way_and_no_other(info):
    m = rekernel.KernelLoader(jit=CpuJit(info, None)).load(INDICES, "t", debug=True, nogil=True)
    begun, done, x, said = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(5), []

    def wait():
        try:
            m.wait(begun, done)
        except IndexError as error:
            said.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not begun[0]:
        time.sleep(0)
    raises(m.threads, INDICES, "threads", of((5,), 7, 0), x, 7)
    done[0] = 1
    waiting.join()
    where = line(INDICES, "threads")
    assert said == [f"t.wait(), line {where}: {of((5,), 7, 0)}"]
    m.threads(x, 0)
    m.wait(begun, done)


@each_compiler
@linux
def test_ten_thousand_failing_calls_leave_nothing_behind(info, debug):
    m, x = debug(info, INDICES), np.zeros(5)

    def fail(kernel, times):
        for _ in range(times):
            with contextlib.suppress(IndexError):
                kernel(x, 5)
                pytest.fail("nothing raised")

    for kernel in (m.rank1, m.handler, m.quiet):  # what handler has caught holds 4 KB
        fail(kernel, 1000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fail(kernel, 10_000)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8000, "KB"
        assert m.exceptions() == 0
    assert not x.any()


@each_compiler
def test_calls_that_fail_on_several_threads_raise_each_their_own_error(info, debug):
    m, wrong = debug(info, INDICES), []
    big = np.zeros((200, 200))  # big enough to run without the GIL

    def work(number):
        for turn in range(300):
            index = 200 + 1000 * number + turn
            try:
                m.rank2(big, 5, index)
            except IndexError as error:
                if f"index {index} is out of bounds for axis 1" not in str(error):
                    wrong.append(str(error))
            else:
                wrong.append("nothing")
            if m.rank2(big, 5, 199) != 0:
                wrong.append("a good call")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@each_compiler
def test_integer_division_by_zero_raises_for_every_type(info, debug):
    m = debug(info, CHECKS)
    for name in ("div32", "mod32", "divu", "div64", "mod64", "modu", "div8", "assign"):
        kernel = getattr(m, name)
        assert kernel(7, 2) == (1 if name.startswith("mod") else 3)
        raises(kernel, CHECKS, name, "integer division or modulo by zero", 7, 0, error=ZeroDivisionError)
    raises(m.constant, CHECKS, "constant", "integer division or modulo by zero", 7, error=ZeroDivisionError)
    raises(m.wide, CHECKS, "wide", "integer division or modulo by zero", 1, 0, 0, error=ZeroDivisionError)
    x = np.array([6, 1, 1])
    raises(m.divided, CHECKS, "divided", "integer division or modulo by zero", x, 0, error=ZeroDivisionError)
    assert x.tolist() == [6, 1, 1]
    assert m.divided(x, 3) == 2


@each_compiler
def test_the_smallest_integer_by_minus_one_raises_where_the_quotient_does_not_fit(info, debug):
    m, said = debug(info, CHECKS), "the quotient of the smallest integer and -1 does not fit"
    for name, bits in (("div32", 32), ("mod32", 32), ("div64", 64), ("mod64", 64)):
        raises(getattr(m, name), CHECKS, name, said, -(2 ** (bits - 1)), -1, error=ZeroDivisionError)
    raises(m.wide, CHECKS, "wide", said, -(2**63), 0, -1, error=ZeroDivisionError)
    assert m.wide(0, -(2**63), -1) == -(2**63), "it fits into 128 bits, and what is returned wraps around"
    assert m.div8(-128, -1) == -128, "C++ divides an int, in which it fits"
    assert m.modu(5, 2**64 - 1) == 5


@each_compiler
def test_other_arithmetic_is_that_of_release_builds(info, debug):
    m = debug(info, CHECKS)
    assert m.real(1.0, 0.0) == np.inf
    assert m.sum(2**31 - 1, 0) == -2, "overflow wraps around"
    assert m.sum(0, 2**16) == 0


@each_compiler
def test_an_assertion_raises_with_its_text_and_line(info, debug):
    m = debug(info, CHECKS)
    m.claim(2)
    raises(m.claim, CHECKS, "claim", r'assert(i < 3 && "an \"ä\" \\ %s") failed', 3, error=AssertionError)
    raises(m.inside, CHECKS, "inside", "assert(i != 3) failed", 3, error=AssertionError)
    assert m.inside(2) == 2


@each_compiler
@pytest.mark.parametrize("name", ["vector_at", "array_at"])
def test_an_index_into_a_container_of_the_standard_library_is_checked(info, debug, name):
    kernel = getattr(debug(info, CHECKS), name)
    kernel(2)
    for wrong in (3, -1):
        with pytest.raises(
            AssertionError, match=rf"^t\.{name}\(\): .*< this->size\(\).* does not hold in .*operator\[\]"
        ):
            kernel(wrong)


GUARDED = """
import ctypes, mmap, sys
import numpy as np, rekernel
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
page = mmap.PAGESIZE
start = libc.mmap(None, 3 * page, 3, 0x22, -1, 0)  # private and anonymous
for guard in (start, start + 2 * page):
    assert libc.mprotect(guard, page, 0) == 0
whole = np.frombuffer((ctypes.c_char * page).from_address(start + page), "f8")
low, high = whole[:4], whole[-4:]  # a step below or above is a page that nobody may touch
m = rekernel.KernelLoader().load(sys.argv[1], "t", debug=True)
for name in sys.argv[2].split():
    kernel = getattr(m, name)
    for x, index in ((low, -1), (high, 4), (low, -100), (high, 10**9), (low, -2**62), (high, 2**62)):
        try:
            kernel(x, index)
        except IndexError:
            continue
        sys.exit(f"{name} took {index}")
    kernel(low, 0), kernel(high, 3)
print(set(whole.nonzero()[0]) == {0, len(whole) - 4, len(whole) - 1})  # what good calls have written
"""


@each_compiler
@linux
def test_no_byte_outside_of_an_array_is_touched(info):
    names = "rank1 square promised helper generic quiet ending caught"
    process = run_python(GUARDED, INDICES, names, REKERNEL_CXX=info.command)
    assert lines_of(process) == ["True"]


@each_compiler
def test_lines_are_counted_as_the_users_file_does(info, tmp_path):
    loader = rekernel.KernelLoader(jit=CpuJit(info, None))
    text = "// nothing\nvoid f(rekernel::Array<double, 1> x, int i) {\n    x(i) = 1 / i;\n}\n"
    wrong = r"index 9 is out of bounds"
    m = loader.load(text, "cell", debug=True, first_line=41)
    with pytest.raises(IndexError, match=rf"^cell\.f\(\), line 43: {wrong}"):
        m.f(np.zeros(3), 9)
    with pytest.raises(ZeroDivisionError, match=r"^cell\.f\(\), line 43: integer division"):
        m.f(np.zeros(3), 0)
    m = loader.load(text, "named", debug=True, first_line=41, filename="<cell\n7>")
    with pytest.raises(IndexError, match=rf"^named\.f\(\), <cell 7>:43: {wrong}"):
        m.f(np.zeros(3), 9)
    for name in ("dos.cpp", "of us.hpp", "ünder.cc"):
        path = tmp_path / name
        path.write_bytes(text.replace("\n", "\r\n").encode())
        m = loader.load_file(path, "file", debug=True)
        with pytest.raises(IndexError, match=rf"^file\.f\(\), {re.escape(str(path))}:3: {wrong}"):
            m.f(np.zeros(3), 9)


@each_compiler
def test_a_line_in_a_header_is_named_with_its_file(info, tmp_path):
    (tmp_path / "inner.h").write_text(
        "#include <cassert>\n\ninline void set(rekernel::Array<double, 1> x, int i) {\n"
        "    x(i) = 12 / i;\n    assert(i != 1);\n}\n"
    )
    path = tmp_path / "outer.cpp"
    path.write_text('#include "inner.h"\nvoid f(rekernel::Array<double, 1> x, int i) { set(x, i); }\n')
    m = rekernel.KernelLoader(jit=CpuJit(info, None)).load_file(path, debug=True, first_line=1000)
    place = rf"^outer\.f\(\), {re.escape(str(tmp_path))}/inner\.h"
    for error, index, at in ((IndexError, 9, 4), (ZeroDivisionError, 0, 4), (AssertionError, 1, 5)):
        with pytest.raises(error, match=rf"{place}:{at}: "):
            m.f(np.zeros(3), index)


@each_compiler
def test_line_directives_of_generated_texts_are_followed(info):
    text = '#line 7 "model.y"\nvoid f(rekernel::Array<double, 1> x, int i) { x(i) = 1; }\n'
    m = rekernel.KernelLoader(jit=CpuJit(info, None)).load(text, "t", debug=True)
    with pytest.raises(IndexError, match=r"^t\.f\(\), model\.y:7: index 3 "):
        m.f(np.zeros(3), 3)


@each_compiler
def test_flags_for_release_builds_do_not_take_the_checks_away(info):
    text = "#include <cassert>\nvoid f(rekernel::Array<double, 1> x, int i) {\n    assert(i != 1);\n    x(i) = 1;\n}\n"
    info.extra_cxxflags = ["-DNDEBUG", "-O3"]
    loader = rekernel.KernelLoader(jit=CpuJit(info, None))
    m = loader.load(text, "t", debug=True, flags="-DNDEBUG=1 -O3", optlevel="fast", openmp=True, allow_alias=True)
    with pytest.raises(AssertionError, match="line 3: assert"):
        m.f(np.zeros(3), 1)
    with pytest.raises(IndexError, match="line 4: index 3 "):
        m.f(np.zeros(3), 3)


@each_compiler
def test_debug_is_an_option_of_its_id_and_leaves_release_builds_alone(info, tmp_path):
    cache = ObjectCache(tmp_path / "cache")
    loader = rekernel.KernelLoader(jit=CpuJit(info, cache))
    text = "int f(int a, int b) { return a / b; }\n#ifdef REKERNEL_DEBUG\nint checked() { return 1; }\n#endif\n"
    m = loader.load(text, "t")
    assert (m.f(6, 3), hasattr(m, "checked"), cache.stats.published) == (2, False, 1)
    loader.load(text, "t", debug=True)
    with pytest.raises(ZeroDivisionError):
        m.f(6, 0)
    assert m.checked() == 1
    loader.load(text + "// more\n", "t")
    with pytest.raises(ZeroDivisionError):
        m.f(6, 0)
    assert cache.stats.published == 1, "debug builds are not kept"
    loader.load(text, "t", debug=False)
    assert (m.f(6, 3), hasattr(m, "checked")) == (2, False)
    assert rekernel.info(m).from_cache
