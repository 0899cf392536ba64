"""Calls of compiled kernels: names, policies, errors from inside, the GIL, threads, forks, what is left as it was."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

from ckernels import array, compiled, make, scalar
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import Function, Library
from support import run_python

SIZE = 20_000
"""Elements with which a call releases the GIL."""


@pytest.fixture(autouse=True)
def _errors():
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


@pytest.fixture(scope="module")
def difference():
    return make("result->d = a - 10 * b;", scalar("a"), scalar("b"), returns="float64")


# ---- names and policies ----


def test_arguments_by_place_and_by_name(difference):
    assert difference(1, 2) == difference(1, b=2) == difference(b=2, a=1) == -19


def step(a, b):
    """Stand for the kernel where Python's own words are wanted."""


def words_of(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((1,), {}),
        ((1, 2, 3), {}),
        ((1, 2), {"a": 1}),
        ((1,), {"c": 2}),
        ((1, 2, 3), {"b": 1}),
        ((), {"b": 1}),
    ],
)
def test_wrong_counts_are_told_in_pythons_words(difference, args, kwargs):
    assert words_of(lambda: difference(*args, **kwargs)) == words_of(lambda: step(*args, **kwargs))


@pytest.mark.parametrize("count", [0, 1, 16, 17, 64, 65, 130])
def test_any_number_of_arguments(count):
    names = [f"a{i}" for i in range(count)]
    body = f"result->d = 0{''.join(f' + {i} * {name}' for i, name in enumerate(names))};"
    function = make(body, *map(scalar, names), returns="float64")
    values = [float(i % 7) for i in range(count)]
    wanted = sum(i * v for i, v in enumerate(values))
    assert function(*values) == wanted
    assert function(**dict(zip(names, values, strict=True))) == wanted


@pytest.fixture(scope="module")
def stencil_like():
    return make("result->d = a - 10 * b;", scalar("a"), scalar("b"), returns="float64", policy="pystencils")


def test_pystencils_policy_takes_keywords_and_ignores_unknown_ones(stencil_like):
    assert stencil_like(a=1, b=2) == -19
    assert stencil_like(b=2, other=object(), a=1) == -19
    assert make("", policy="pystencils")(other=1) is None


def test_pystencils_policy_misses_with_a_key_error(stencil_like):
    with pytest.raises(KeyError, match=r"step\(\) misses the keyword argument 'b'"):
        stencil_like(a=1)


def test_pystencils_policy_shows_the_call_by_keyword(stencil_like):
    with pytest.raises(
        TypeError, match=r"^step\(\) takes keyword arguments only .* call it as step\(a=\.\.\., b=\.\.\.\)$"
    ):
        stencil_like(1, 2)
    with pytest.raises(TypeError, match=r"1 positional argument was given"):
        stencil_like(1, b=2)
    with pytest.raises(TypeError):
        make("", policy="pystencils")(1)


def test_pystencils_policy_has_the_types_of_errors_that_pystencils_has():
    function = make("", array("x", shape=(4,)), policy="pystencils")
    with pytest.raises(TypeError):
        function(x=np.zeros(4, "f4"))
    with pytest.raises(ValueError, match="axis 0 must have extent 4"):
        function(x=np.zeros(5))


# ---- making one ----


def test_a_function_tells_what_it_is():
    function = make("", kernel_id="heat")
    assert (function.name, function.__name__, function.kernel_id) == ("step", "step", "heat")
    assert repr(function) == "<compiled kernel 'step'>"
    assert isinstance(function.library, Library)
    assert callable(function)
    with pytest.raises(TypeError):
        type("Sub", (Function,), {})
    with pytest.raises(AttributeError):
        function.name = "x"


def test_calls_and_failures_are_counted(difference):
    before = difference.calls, difference.failures
    difference(1, 2)
    for bad in ((1,), (1, None)):
        with pytest.raises(TypeError):
            difference(*bad)
    assert (difference.calls, difference.failures) == (before[0] + 3, before[1] + 2)


SCALAR = ("k", "scalar", "float64", "float64")
ARRAY = ("x", "array", "float64[:]", "float64", 8, 1, (), (), 0, False, True, False, (), 0, ())


def changed(index, value):
    return (*ARRAY[:index], value, *ARRAY[index + 1 :])


@pytest.mark.parametrize(
    ("parameters", "slots", "options"),
    [
        ((1,), (), {}),
        (((),), (), {}),
        ((("k", "scalar", "float64"),), (), {}),
        ((("k", "scalar", "float64", "float80"),), (), {}),
        ((("k", "other", "float64", "float64"),), (), {}),
        (((1, "scalar", "float64", "float64"),), (), {}),
        (((*SCALAR, 1),), (), {}),
        ((SCALAR, SCALAR), (), {}),
        *(((changed(i, value),), (), {}) for i, value in [
            (1, "scalar"), (3, "float80"), (3, ""), (4, 4), (4, 0), (4, "8"), (4, 2**80), (5, 65), (5, -2), (5, None),
            (6, (1, 2)), (6, (1.0,)), (6, (-1,)), (6, [1]), (7, (1.5,)), (7, (2**62,)), (8, 2), (8, -1), (9, 1),
            (10, 0), (11, None), (12, None), (12, (("f", "float64", 0),)), (12, (("f", "int8"),)),
            (13, -1), (13, None), (14, (1, 2)), (14, (-1,)), (14, 0),
        ]),
        ((SCALAR,), (1,), {}),
        ((SCALAR,), (("scalar", 1, 0, 0, ""),), {}),
        ((SCALAR,), (("scalar", -1, 0, 0, ""),), {}),
        ((SCALAR,), (("scalar", 0, 0, 0),), {}),
        ((SCALAR,), (("pointer", 0, 0, 0, ""),), {}),
        ((SCALAR,), (("number", 0, 0, 0, ""),), {}),
        ((ARRAY,), (("scalar", 0, 0, 0, ""),), {}),
        ((ARRAY,), (("pointer", 0, 0, 9, ""),), {}),
        ((ARRAY,), (("shape", 0, 1, 0, "int64"),), {}),
        ((ARRAY,), (("shape", 0, -1, 0, "int64"),), {}),
        ((ARRAY,), (("stride", 0, 0, 0, "float64"),), {}),
        ((ARRAY,), (("stride", 0, 0, 0, "bool"),), {}),
        ((), (), {"returns": "float80"}),
        ((), (), {"returns": 3}),
        ((), (), {"policy": "other"}),
        ((), (), {"nogil": 1}),
        ((), (), {"kernel_id": 1}),
        ((), (), {"filename": 1}),
        ((), (), {"first_line": "1"}),
        ([], (), {}),
        ((), [], {}),
    ],
)  # fmt: skip
def test_malformed_tables_are_refused(difference, parameters, slots, options):
    with pytest.raises((ValueError, TypeError)):
        Function(difference.library, "rk_step_0", "step", parameters, slots, **options)


def test_a_symbol_must_exist(difference):
    with pytest.raises(OSError, match="rk_none"):
        Function(difference.library, "rk_none", "step", (), ())
    with pytest.raises(TypeError):
        Function(None, "rk_step_0", "step", (), ())


# ---- errors from inside ----


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('throw std::runtime_error("no heat today");', "step(): no heat today"),
        ('error->line = 7; throw std::out_of_range("é");', "step(), line 7: é"),
        ("std::vector<int>().at(3);", "step(): vector::_M_range_check: __n (which is 3) >= this->size() (which is 0)"),
        ('throw "text";', "step(): text"),
        ("throw 3;", "step(): int"),
        ("throw Mine();", "step(): Mine"),
        ('throw std::runtime_error("");', "step(): a C++ exception"),
        ('throw std::runtime_error(std::string(5000, "x"[0]));', "step(): " + "x" * 1023),
        ('throw std::runtime_error("\\xff");', "step(): \ufffd"),
        ("return 5;", "step(): the kernel failed with status 5"),
    ],
)
def test_a_c_plus_plus_exception_is_a_runtime_error(body, words):
    before = "#include <stdexcept>\n#include <string>\n#include <vector>\nstruct Mine {};"
    with pytest.raises(RuntimeError) as caught:
        make(body, before=before)()
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ("error->kind = 2; error->index = -3; error->extent = 10; error->axis = 1; error->line = 4; return 1;",
         IndexError, "heat.step(), line 4: index -3 is out of bounds for axis 1 with size 10"),
        ("error->kind = 2; error->text[0] = 'x'; error->text[1] = 0; return 1;",
         IndexError, "heat.step(): index 0 is out of bounds for axis 0 with size 0 of x"),
        ("error->kind = 3; error->line = 2; return 1;", ZeroDivisionError, "heat.step(), line 2: division by zero"),
        ("error->kind = 4; return 1;", AssertionError, "heat.step(): an assertion failed"),
        ("error->kind = 4; error->text[0] = 'n'; error->text[1] = 0; return 1;", AssertionError, "heat.step(): n"),
    ],
)  # fmt: skip
def test_what_the_code_reports_becomes_pythons_error(body, error, words):
    with pytest.raises(error) as caught:
        make(body, kernel_id="heat")()
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "step(), line 2: division by zero"),
        ({"first_line": 41}, "step(), line 42: division by zero"),
        ({"filename": "é.cpp"}, "step(), é.cpp:2: division by zero"),
        ({"filename": "<a\r\nb\n>", "first_line": 41, "kernel_id": "k"}, "k.step(), <a b >:42: division by zero"),
    ],
)
def test_lines_are_shown_as_the_users_file_counts_them(options, words):
    with pytest.raises(ZeroDivisionError) as caught:
        make("error->kind = 3; error->line = 2; return 1;", **options)()
    assert str(caught.value) == words
    with pytest.raises(ZeroDivisionError, match=r"step\(\), other\.h:2: "):
        make('error->kind = 3; error->line = 2; error->file = "other.h"; return 1;', **options)()
    with pytest.raises(ZeroDivisionError, match=r"step\(\): "):
        make('error->kind = 3; error->file = "other.h"; return 1;', **options)()


def test_errors_come_out_of_released_calls_too():
    function = make('throw "late";', array("x"), nogil=True)
    for _ in range(100):
        with pytest.raises(RuntimeError, match="late"):
            function(np.zeros(3))


# ---- nothing is kept ----


class Held(np.ndarray):
    pass


@pytest.mark.parametrize("nogil", [True, False])
def test_no_argument_outlives_its_call(nogil):
    function = make("", array("x"), scalar("k"), nogil=nogil)
    seen = []
    for _ in range(100):
        x = np.zeros(8).view(Held)
        seen.append(weakref.ref(x))
        function(x, 1.0)
        with pytest.raises(TypeError):
            function(x, None)
        del x
    gc.collect()
    assert all(ref() is None for ref in seen)


def bad_calls(function, x, k):
    for call in (
        lambda: function(x, k),
        lambda: function(x=x, k=k),
        lambda: function(x, None),
        lambda: function(x),
        lambda: function(x, k, 3),
        lambda: function(x, k, z=1),
        lambda: function(k, k),
        lambda: function(x[0], k),
        lambda: function(x.astype("f4"), k),
        lambda: function(memoryview(x), k),
        lambda: function(memoryview(x.astype("f4")), k),
    ):
        with contextlib.suppress(TypeError, ValueError):
            call()


def test_reference_counts_stay_flat():
    function = make("", array("x", ndim=2), scalar("k"), nogil=True)
    x, k = np.zeros((2, 2)), 1.5
    names = [function, x, k, x.dtype, None, "x", function.library]
    bad_calls(function, x, k)
    gc.collect()
    before = [sys.getrefcount(name) for name in names]
    for _ in range(1000):  # eleven calls each
        bad_calls(function, x, k)
    gc.collect()
    after = [sys.getrefcount(name) for name in names]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True)), (before, after)


def test_the_same_array_is_looked_at_anew_in_every_call():
    function = make("result->i = x_n0 * 100 + x_s0;", array("x"), returns="int64")
    x = np.zeros(6)
    assert function(x) == 601
    for size in (3, 4):
        assert function(np.zeros(size)[::2]) == 202
    x.resize((2, 3), refcheck=False)  # in place
    with pytest.raises(ValueError, match="2 dimensions"):
        function(x)


# ---- threads, the GIL, signals ----

SPIN = "volatile long long *flag = (volatile long long *)x; while (!flag[0]) {} "
"""Waits, without the GIL, for another thread to write into the array."""


def test_other_threads_run_during_a_long_call():
    function = make(SPIN, array("x", "int64", written=True))
    flag = np.zeros(SIZE, "int64")
    ticks = []

    def tick():
        while len(ticks) < 1000:
            ticks.append(1)
        flag[0] = 1

    thread = threading.Thread(target=tick)
    thread.start()
    function(flag)  # returns only because the other thread goes on
    thread.join()
    assert len(ticks) == 1000


def test_nogil_decides_for_small_arrays():
    function = make(SPIN, array("x", "int64", written=True), nogil=True)
    flag = np.zeros(1, "int64")
    thread = threading.Timer(0.05, lambda: flag.__setitem__(0, 1))
    thread.start()
    function(flag)
    thread.join()


@pytest.mark.parametrize(
    ("sizes", "nogil", "held"),
    [((1,), None, True), ((16383,), None, True), ((16384,), None, False), ((8192, 8192), None, False),
     ((8192, 8191), None, True), ((0, 99999), None, False), ((1,), True, False), ((99999,), False, True)],
)  # fmt: skip
def test_the_gil_is_released_by_size(sizes, nogil, held):
    # The kernel gets the address of PyGILState_Check as a number.
    address = ctypes.cast(ctypes.pythonapi.PyGILState_Check, ctypes.c_void_p).value
    parameters = [array(f"x{i}") for i in range(len(sizes))]
    function = make("result->i = ((int (*)())check)();", scalar("check", "uint64"), *parameters, returns="bool",
                    nogil=nogil)  # fmt: skip
    assert function(address, *map(np.zeros, sizes)) is held


def test_arguments_are_held_while_the_gil_is_free():
    function = make(SPIN + "x[1] = 5;", array("x", "int64", written=True))
    memory = np.zeros(SIZE, "int64")
    arguments = [memory[:].view(Held)]
    alive = weakref.ref(arguments[0])
    seen = []

    def drop():
        arguments.clear()  # the list that the call was made from
        seen.append(alive() is not None)
        memory[0] = 1

    thread = threading.Timer(0.05, drop)
    thread.start()
    function(*arguments)
    thread.join()
    assert (seen, memory[1]) == ([True], 5)
    assert alive() is None


def test_many_threads_each_get_their_own_answer():
    function = make("double sum = 0; for (long long i = 0; i < x_n0; ++i) sum += x[i * x_s0] * k; result->d = sum;",
                    array("x"), scalar("k"), returns="float64", nogil=True)  # fmt: skip
    failures = []

    def work(k):
        x = np.arange(100.0)
        for _ in range(2000):
            if function(x, k=k) != 4950 * k:
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_a_keyboard_interrupt_during_a_call_comes_out_after_it():
    function = make(SPIN + "flag[1] = 7;", array("x", "int64", written=True))
    flag = np.zeros(SIZE, "int64")

    def press():
        os.kill(os.getpid(), signal.SIGINT)
        flag[0] = 1

    thread = threading.Timer(0.05, press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        function(flag)
    thread.join()
    assert flag[1] == 7


# ---- the process stays as it was ----


@pytest.mark.skipif(not hasattr(os, "uname") or os.uname().machine != "x86_64", reason="reads registers of x86-64")
@pytest.mark.parametrize("nogil", [True, False])
def test_the_floating_point_environment_is_the_same_after_a_call(nogil):
    before = """
    #include <fenv.h>
    static unsigned state() { unsigned short x87; __asm__ volatile("fnstcw %0" : "=m"(x87));
                              return __builtin_ia32_stmxcsr() << 16 | x87; }
    """
    spoil = (
        "fesetround(FE_UPWARD); __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);"
        "volatile double z = 0; z = 1 / z;"
    )
    read = make("result->u = state();", before=before, returns="uint64", nogil=nogil)
    for body in (spoil, spoil + "throw 1;"):
        function = make(body, before=before, nogil=nogil)
        wanted = read()
        with contextlib.suppress(RuntimeError):
            function()
        assert read() == wanted
    assert 1.0 + 2**-60 == 1.0
    assert 5e-324 * 1.0 != 0


OMP = """
double sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
for (long long i = 0; i < 1000; ++i) sum += 1;
result->d = sum;
"""


@pytest.fixture(scope="module")
def openmp():
    try:
        compiled("#include <omp.h>\nENTRY rk_probe_0(rk_call *) { return omp_get_max_threads() < 0; }", "-fopenmp")
    except AssertionError:
        pytest.skip("the compiler has no OpenMP")
    return True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_openmp_in_a_forked_child_raises_instead_of_hanging(openmp):
    run_python(
        f"""
        import os, signal
        from ckernels import make
        body = {OMP!r}
        parallel = make(body, flags=("-fopenmp",), returns="float64", openmp=True)
        serial = make("result->d = 1;", returns="float64")

        def child(expect_error):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                try:
                    ok = serial() == 1.0
                    try:
                        ok = ok and parallel() == 1000.0 and not expect_error
                    except RuntimeError as error:
                        ok = ok and expect_error and "OpenMP" in str(error) and "spawn" in str(error)
                    os._exit(0 if ok else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(pid, 0)[1] == 0

        child(expect_error=False)  # the parent has no threads yet
        assert parallel() == 1000.0
        child(expect_error=True)
        assert parallel() == 1000.0
        """,
        timeout=120,
    )
