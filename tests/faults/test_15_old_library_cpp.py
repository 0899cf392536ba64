"""Row 15 for C++ texts: x2, x5, x2, ...: every version runs its own code with its own state, and old ones go."""

from __future__ import annotations

import json

import pytest

from cppkit import START, linux, load_with, needs_cpp
from jitkernels import GccInfo, needs_openmp
from support import run_python

pytestmark = [linux, needs_cpp]

STATES = {
    "nothing": ("", "1"),
    "static": ("static int64_t n;", "++n"),
    "guarded static": ("struct N { int64_t n = 0; }; static int64_t &n() { static N one; return one.n; }", "++n()"),
    "static of an inline function": ("inline int64_t &n() { static int64_t n = start(); return n; }", "++n()"),
    "inline variable": ("inline int64_t n = start();", "++n"),
    "template static": ("template <class T> struct S { static inline int64_t n = start(); };", "++S<int>::n"),
    "static with a destructor": (
        "struct Bye { int64_t *p = new int64_t(0); ~Bye() { delete p; } }; static Bye bye;", "++*bye.p"),
    "std::vector": ("#include <vector>\nstatic std::vector<int> all;", "(all.push_back(1), (int64_t)all.size())"),
    "thread_local": ("static thread_local int64_t n;", "++n"),
    "extern": ("int64_t n;", "++n"),
    "a C name": ('extern "C" { int64_t shared_name; int64_t bump() { return ++shared_name; } }', "bump()"),
    "a weak name": ("__attribute__((weak, visibility(\"default\"))) int64_t n;", "++n"),
    "unique": ("template <class T> struct __attribute__((visibility(\"default\"))) S { static int64_t n; };\n"
               "template <class T> int64_t S<T>::n = start();", "++S<long>::n"),
    "OpenMP": ("static int64_t n;", "++n + 0 * parallel()"),
}  # fmt: skip
TEXT = """
static int64_t start() { return 0; }
static int64_t parallel() {
    int64_t sum = 0;
OPENMP
    for (int i = 0; i < 1000; ++i) sum += 1;
    return sum;
}
DECLARED
int64_t calls() { return parallel() == 1000 ? CALLS : -1; }
double scale(double x) { calls(); return FACTOR * x; }
"""
SWAPS = 50

PROGRAM = (
    START
    + """
import json
from support import held
names, swaps = json.loads(sys.argv[2]), int(sys.argv[3])
def swap(name, text):
    texts = [text.replace("FACTOR", factor) + ending for factor, ending in (("2", ""), ("5", ""), ("2", "//"))]
    for one in texts: loader.load(one, "k", optlevel="0")
    scale, calls, before = loader["k"].scale, loader["k"].calls, None
    for n in range(swaps):
        loader.load(texts[n % 3], "k")
        assert scale(1.0) == (2, 5, 2)[n % 3], (name, n, scale(1.0))
        first = calls()
        assert calls() == first + (name != "nothing"), (name, n)
        if n == 9: before = held()
    assert held() == before, (name, before, held())
for name, text in names.items():
    swap(name, text)
print(loader.jit.objcache.stats.published)
"""
)


@pytest.mark.parametrize("openmp", [False, True])
def test_fifty_swaps_each_give_their_own_answer_and_nothing_stays_mapped(tmp_path, openmp):
    if openmp:
        needs_openmp(GccInfo())
    pragma = "#pragma omp parallel for reduction(+ : sum) num_threads(2)" if openmp else ""
    texts = {
        name: TEXT.replace("OPENMP", pragma).replace("DECLARED", declared).replace("CALLS", calls)
        for name, (declared, calls) in STATES.items()
        if (name == "OpenMP") == openmp
    }
    said = run_python(PROGRAM, str(tmp_path / "cache"), json.dumps(texts), str(SWAPS)).stdout
    assert said == f"{3 * len(texts)}\n"


def test_statics_begin_anew_with_a_version_and_go_on_where_a_kept_version_returns(tmp_path):
    one, two = (f"static int n;\nint next() {{ return {start} + ++n; }}\n" for start in (100, 200))
    with load_with(tmp_path / "cache") as loader:
        following = loader.load(one, "k").next
        said = [following(), following()]
        loader.load(two, "k")
        said += [following(), following()]
        loader.load(one, "k")  # the version before is still loaded: it comes back as it was
        said += [following()]
        loader.load(two, "k")
        loader.load(two + "//", "k")
        loader.load(two + "// more", "k")
        loader.load(one, "k")  # long gone: out of the cache, anew
        said += [following()]
    assert said == [101, 102, 201, 202, 103, 101]
