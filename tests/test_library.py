"""Compiled code in memory: loading, unloading, and what is left of it."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from ckernels import INCLUDE, compiled, make
from rekernel._native import Function, Library
from support import run_python

ANSWER = "ENTRY rk_answer_0(rk_call *call) { call->result->i = 1000000007; return 0; }"
NUMBER = (1000000007).to_bytes(4, "little")


def answering(number):
    """Return the object of a kernel that returns the number: another constant in one compiled object."""
    data = compiled(ANSWER)
    assert data.count(NUMBER) == 1
    return data.replace(NUMBER, number.to_bytes(4, "little"))


def load(number, **options):
    library = Library(answering(number), name="answer", **options)
    return Function(library, "rk_answer_0", "answer", (), (), returns="int32")


def state():
    """Return what unloading has to give back: descriptors, mappings, threads, temporary files."""
    places = {os.environ.get("TMPDIR", "/tmp"), "/tmp", "/dev/shm"}
    left = sorted(str(p) for place in places for p in Path(place).glob("rekernel-??????"))
    maps = sum("rekernel" in line for line in Path("/proc/self/maps").read_text().splitlines())
    return len(os.listdir("/proc/self/fd")), maps, threading.active_count(), left


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_each_load_is_a_copy_of_its_own():
    functions = [load(n) for n in (2, 5, 2, 7)]
    assert [f() for f in functions] == [2, 5, 2, 7]
    for n in range(50):
        assert load(n)() == n
    assert [f() for f in functions] == [2, 5, 2, 7]


@pytest.mark.parametrize("flags", [(), ("-fopenmp",)])
def test_reloads_of_code_with_statics_give_the_new_answer(flags):
    before = """
    struct Counter {{ int n = {n}; ~Counter() {{ n = 0; }} int next() {{ return n; }} }};
    inline Counter &shared() {{ static Counter counter; return counter; }}
    template <class T> struct Holder {{ static T value; }};
    template <class T> T Holder<T>::value = {n};
    static thread_local int local = {n};
    """
    body = "local += 0; result->i = shared().next() + Holder<int>::value + local;"
    for _ in range(10):
        for n in (2, 5):
            assert make(body, before=before.format(n=n), flags=flags, returns="int64")() == 3 * n


def test_bytes_like_objects_are_taken():
    for data in (bytearray(answering(3)), memoryview(answering(3))):
        assert Function(Library(data, name="a"), "rk_answer_0", "a", (), (), returns="int32")() == 3


def test_a_library_knows_its_name_and_its_symbols():
    library = Library(answering(1), name="answer")
    assert (library.name, library.path, repr(library)) == ("answer", None, "<compiled library 'answer'>")
    assert library.symbol("rk_answer_0") > 0
    with pytest.raises(OSError, match="rk_other_0"):
        library.symbol("rk_other_0")
    with pytest.raises(TypeError):
        library.symbol(3)


def test_a_library_may_come_from_a_file(tmp_path):
    path = tmp_path / "ä b.so"
    path.write_bytes(answering(9))
    library = Library(None, name="answer", path=path)
    assert library.path == path
    assert Function(library, "rk_answer_0", "answer", (), (), returns="int32")() == 9
    with pytest.raises(OSError, match="cannot be loaded"):
        Library(None, name="answer", path=tmp_path / "missing.so")


@pytest.mark.parametrize("data", [b"", b"not a library", answering(1)[:100] if sys.platform == "linux" else b""])
def test_what_is_no_library_raises_with_the_loaders_words(data):
    with pytest.raises(OSError, match=r"the library of kernel 'answer' cannot be loaded: .+"):
        Library(data, name="answer")


def test_the_constructor_wants_bytes_and_a_name():
    with pytest.raises(TypeError, match="missing required keyword-only argument: 'name'"):
        Library(b"")
    with pytest.raises(TypeError):
        Library("text", name="answer")
    with pytest.raises(TypeError):
        Library(None, name="answer")


def test_the_code_lives_as_long_as_a_function_of_it():
    function = load(4)
    library = weakref.ref(function.library)
    gc.collect()
    assert library() is not None
    assert function() == 4
    del function
    assert library() is None


@linux
def test_unloading_runs_destructors_and_unmaps(tmp_path):
    note = tmp_path / "gone"
    before = f"""
    #include <cstdio>
    struct Note {{ ~Note() {{ std::fclose(std::fopen("{note}", "w")); }} }};
    static Note note;
    """
    function = make("", before=before)
    assert "rekernel:step" in Path("/proc/self/maps").read_text()
    assert not note.exists()
    del function
    assert note.exists()


@linux
def test_ten_thousand_loads_leave_nothing_behind():
    for n in range(1, 500):  # the allocator has what it needs
        assert load(n)() == n
    gc.collect()
    before, size = state(), resident()
    for n in range(1, 10_001):
        assert load(n)() == n
    gc.collect()
    assert state() == before
    assert resident() - size <= 5 * 2**20


@linux
def test_fifty_libraries_at_once():
    before = state()
    functions = [load(n) for n in range(1, 51)]
    assert [f() for f in functions] == list(range(1, 51))
    assert state()[0] == before[0]
    del functions
    assert state() == before


@linux
@pytest.mark.parametrize("places", [{"TMPDIR": "/nonexistent"}, {"TMPDIR": "relative"}, {"TMPDIR": ""}])
def test_any_temporary_directory_will_do(places, monkeypatch):
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    assert load(6)() == 6


PROGRAM = """
import os, sys
from rekernel._native import Function, Library
data = sys.stdin.buffer.read()
def load():
    return Function(Library(data, name="answer"), "rk_answer_0", "answer", (), (), returns="int32")
"""


def run_with(data, program):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program], input=data, capture_output=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(INCLUDE.parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split()


@linux
def test_a_forked_child_loads_and_unloads_its_own():
    out = run_with(answering(8), """
first = load()
for _ in range(3):
    if os.fork() == 0:
        ok = first() == 8
        del first
        ok = ok and all(load()() == 8 for _ in range(20))
        os._exit(0 if ok else 1)
    assert os.wait()[1] == 0
    assert first() == 8
print("fine", flush=True)
""")  # fmt: skip
    assert out == ["fine"]


@linux
def test_loads_from_many_threads():
    failures = []

    def work(start):
        for n in range(start, start + 200):
            if load(n)() != n:
                failures.append(n)

    threads = [threading.Thread(target=work, args=(1000 * i + 1,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@linux
def test_loading_keeps_the_floating_point_environment():
    before = """
    static int spoil() { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); return 1; }
    static int spoilt = spoil();
    """
    if os.uname().machine != "x86_64":
        pytest.skip("sets a register of x86-64")
    make("", before=before)
    assert 5e-324 * 1.0 != 0
    assert 2.2250738585072014e-308 / 2 != 0


def test_held_libraries_stay():
    assert Library.hold_open(()) is None
    if sys.platform == "linux":
        Library.hold_open(["libc.so.6"])
    with pytest.raises(OSError, match=r"libnothing\.so\.77"):
        Library.hold_open(["libnothing.so.77"])
    with pytest.raises(TypeError):
        Library.hold_open(3)
    with pytest.raises(TypeError):
        Library.hold_open([3])


def test_a_clean_exit_with_live_libraries():
    run_python(
        """
        from ckernels import make
        held = make("throw 3;", before="struct S { ~S() {} }; inline S &s() { static S one; return one; }")
        try:
            held()
        except RuntimeError as error:
            assert "int" in str(error), error
        else:
            raise SystemExit("no error")
        """
    )
