"""C++ exceptions that leave a kernel: Python exceptions with their what(), in release and debug builds."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import rekernel
from jitkernels import each_compiler, needs_compiler
from rekernel.jit import CpuJit
from rekernel.objcache import ObjectCache

pytest.importorskip("tree_sitter_cpp", reason="the reader of C++ texts is not installed")
pytestmark = needs_compiler

TEXT = r"""
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct Counted {
    Counted() { ++living; }
    Counted(const Counted &) { ++living; }
    ~Counted() { --living; }
    static int living;
    double data[100];
};
int Counted::living = 0;
struct Own : std::exception {
    const char *what() const noexcept override { return "own words: ä"; }
};
namespace deep { struct Plain : Counted { std::vector<double> more = std::vector<double>(1000); }; }
static void refuse(int i) { if (i >= 0) throw std::out_of_range("no " + std::to_string(i)); }

int living() { return Counted::living; }
void standard() { throw std::runtime_error("it broke"); }
void helper(int i) { Counted made; refuse(i); }
void empty() { throw std::runtime_error(""); }
void own() { throw Own(); }
void long_words() { throw std::runtime_error(std::string(5000, 'x')); }
void latin() { throw std::runtime_error("caf\xe9"); }
void words() { throw "plain words"; }
void no_words() { throw static_cast<const char *>(nullptr); }
void number() { throw 7; }
void text() { throw std::string("a string"); }
void plain() { Counted made; throw deep::Plain(); }
void memory() { throw std::bad_alloc(); }
void again() {
    try { refuse(1); } catch (std::exception &) { Counted made; throw; }
}
void nested() {
    try { refuse(1); } catch (...) { std::throw_with_nested(std::logic_error("outer")); }
}
int inside(int i) {
    try { refuse(i); } catch (const std::out_of_range &) { return -1; }
    return i;
}
int result(int i) { Counted made; refuse(i); return i; }
void half(rekernel::Array<double, 1> x) { x(0) = 1; refuse(0); x(1) = 1; }
int pending() { return std::uncaught_exceptions() + (std::current_exception() ? 10 : 0); }
"""

SAID = {
    "standard": "it broke", "empty": "a C++ exception", "own": "own words: ä", "latin": "caf\N{REPLACEMENT CHARACTER}",
    "words": "plain words", "no_words": "a C++ exception", "number": "int", "plain": "deep::Plain", "again": "no 1",
    "nested": "outer", "memory": "std::bad_alloc", "long_words": "x" * 1023,
}  # fmt: skip


@pytest.fixture(scope="session")
def modules(tmp_path_factory):
    """Load the text once for each compiler and kind of build."""
    cache = ObjectCache(tmp_path_factory.mktemp("exceptions") / "cache")
    made = {}

    def load(info, debug):
        if (info.command, debug) not in made:
            made[info.command, debug] = rekernel.KernelLoader(jit=CpuJit(info, cache)).load(TEXT, "t", debug=debug)
        return made[info.command, debug]

    yield load
    made.clear()


builds = pytest.mark.parametrize("debug", [False, True], ids=["release", "debug"])


@each_compiler
@builds
def test_what_was_thrown_is_what_python_raises(info, debug, modules):
    m = modules(info, debug)
    for name, said in SAID.items():
        with pytest.raises(RuntimeError) as caught:
            getattr(m, name)()
        assert str(caught.value) == f"t.{name}(): {said}"
    with pytest.raises(RuntimeError, match=r"^t\.text\(\): std::.*string"):
        m.text()
    assert m.pending() == 0


@each_compiler
@builds
def test_what_was_built_before_a_throw_is_destroyed_and_the_next_call_works(info, debug, modules):
    m, x = modules(info, debug), np.zeros(3)
    for _ in range(3):
        for kernel, args in ((m.helper, (3,)), (m.result, (3,)), (m.plain, ()), (m.again, ()), (m.half, (x,))):
            with pytest.raises(RuntimeError):
                kernel(*args)
    assert m.living() == 0
    assert x.tolist() == [1, 0, 0]
    assert (m.result(-1), m.inside(5), m.inside(-2)) == (-1, -1, -2)
    assert m.helper(-1) is None


@each_compiler
@builds
def test_ten_thousand_exceptions_leave_nothing_behind(info, debug, modules):
    resource = pytest.importorskip("resource", reason="needs a count of the memory in use")
    m = modules(info, debug)

    def fail(times):
        for _ in range(times):
            with contextlib.suppress(RuntimeError):
                m.plain()  # 9 KB
                pytest.fail("nothing raised")

    fail(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fail(10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16_000, "KB on Linux"
    assert (m.living(), m.pending()) == (0, 0)


@each_compiler
@builds
def test_exceptions_of_several_threads_do_not_meet(info, debug, modules):
    m, wrong = modules(info, debug), []

    def work(number):
        for turn in range(500):
            value = 1000 * number + turn
            try:
                m.helper(value)
            except RuntimeError as error:
                if str(error) != f"t.helper(): no {value}":
                    wrong.append(str(error))
            else:
                wrong.append("nothing")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
