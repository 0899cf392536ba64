"""Guards: how they are made, stale programs, locks, failures, lifetime. Checks: test_native_accept.py."""

import gc
import sys
import threading
import types
import weakref

import numpy as np
import pytest

from native_rows import (
    WrongTypeError,
    WrongValueError,
    array,
    echo,
    float32,
    guard,
    int32,
    one,
    row,
)
from rekernel import ArgumentTypeError, ArgumentValueError, _native
from rekernel._native import ARRAY, CHECK, FLOAT, INT, Guard


@pytest.fixture(autouse=True)
def _own_exceptions():
    _native.configure(argument_type_error=WrongTypeError, argument_value_error=WrongValueError)
    yield
    _native.configure(argument_type_error=ArgumentTypeError, argument_value_error=ArgumentValueError)


# ---- construction and exceptions ----


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (5, TypeError),
        ((), ValueError),
        (row(5), TypeError),
        (row(kind=4), ValueError),
        (row(kind=-1), ValueError),
        (row(kind=10**30), ValueError),
        (row(kind="INT"), TypeError),
        (row(kind=INT), TypeError),
        (row(kind=INT, low=1.0, high=2), TypeError),
        (row(kind=INT, low=2, high=1), ValueError),
        (row(kind=INT, low=-(2**63) - 1, high=1), ValueError),
        (row(kind=INT, low=0, high=2**64), ValueError),
        (row(kind=FLOAT, high="x"), TypeError),
        (row(kind=FLOAT, high=float("nan")), ValueError),
        (row(kind=FLOAT, high=0.0), ValueError),
        (row(kind=ARRAY, typenum=None), TypeError),
        (row(kind=ARRAY, typenum=4711), ValueError),
        (row(kind=ARRAY, ndim=65), ValueError),
        (row(written=1), TypeError),
        (row(expected=None), TypeError),
        (row(kind=CHECK), TypeError),
        (row(check=len), TypeError),
    ],
)
def test_a_malformed_row_is_refused(bad, error):
    with pytest.raises(error, match=r"parameters\[1\]: "):
        guard(row("first"), bad)


def test_a_guard_refuses_bad_arguments():
    for bad in [(), (5, "n", ()), (len, 5, ()), (len, "n", []), (len, "n")]:
        with pytest.raises(TypeError):
            Guard(*bad)
    for bad in [{"stale": 5}, {"failed": 5}, {"runtime": 5}, {"runtime": (1, 2, "x")}, {"other": 1}]:
        with pytest.raises(TypeError):
            Guard(len, "n", (), **bad)
    with pytest.raises(AttributeError, match="acquire"):
        Guard(len, "n", (), lock=5)
    with pytest.raises(ValueError, match="'x' is there twice"):
        guard(row("x"), row("x"))


def test_without_configure_the_built_in_exceptions_are_raised():
    _native.configure()
    with pytest.raises(TypeError) as caught:
        one(int32(), "x")
    assert type(caught.value) is TypeError
    with pytest.raises(ValueError, match="does not fit") as caught:
        one(int32(), 2**31)
    assert type(caught.value) is ValueError


def test_configure_takes_exception_classes_only():
    with pytest.raises(TypeError, match="argument_value_error must be an exception class"):
        _native.configure(argument_value_error=int)
    with pytest.raises(WrongTypeError):
        one(int32(), "x")


def test_a_class_that_cannot_be_made_raises_its_own_error():
    class BadError(Exception):
        def __init__(self):
            pass

    class WorseError(Exception):
        def __new__(cls, *args, **kwargs):
            return 5

    for cls in (BadError, WorseError):
        _native.configure(argument_type_error=cls)
        with pytest.raises(TypeError):
            one(int32(), "x")


# ---- stale programs ----


def make_runtime(program):
    return types.SimpleNamespace(pytaichi=types.SimpleNamespace(prog=program))


def test_a_changed_program_asks_stale_until_it_is_set():
    asked = []
    runtime = make_runtime("p1")
    g = guard(
        row(),
        runtime=(runtime, "pytaichi", "prog"),
        program=runtime.pytaichi.prog,
        stale=lambda g: asked.append(g) or (lambda x: "other") if len(asked) < 2 else setattr(g, "program", p2),
    )
    assert g(1) == (1,)
    p2 = runtime.pytaichi.prog = object()
    assert [g(1), g(1), g(1), g(1)] == ["other", "other", (1,), (1,)]
    assert asked == [g, g]
    assert g.program is p2


def test_a_program_of_none_is_a_program():
    runtime = make_runtime(None)
    g = guard(runtime=(runtime, "pytaichi", "prog"), stale=lambda g: lambda: "stale")
    assert g() == ()
    runtime.pytaichi.prog = object()
    assert g() == "stale"
    del g.program
    assert g.program is None


def test_errors_of_stale_and_of_the_runtime_come_through_and_release_the_lock():
    lock = threading.Lock()
    failed = []
    g = guard(
        runtime=(make_runtime(1), "pytaichi", "prog"),
        program=2,
        stale=lambda g: 1 / 0,
        lock=lock,
        failed=failed.append,
    )
    with pytest.raises(ZeroDivisionError):
        g()
    g = guard(runtime=(object(), "pytaichi", "prog"), stale=echo, lock=lock, failed=failed.append)
    with pytest.raises(AttributeError, match="pytaichi"):
        g()
    g = guard(runtime=(make_runtime(1), "pytaichi", "prog"), stale=lambda g: 5, lock=lock, failed=failed.append)
    with pytest.raises(TypeError, match="stale"):
        g()
    assert not lock.locked()
    assert failed == []


def test_a_fork_asks_stale():
    g = guard(stale=lambda g: lambda: "child")
    generation = _native.fork_generation()
    assert g() == ()
    _native.note_fork()
    assert _native.fork_generation() == generation + 1
    assert g() == "child"
    assert guard(stale=lambda g: 1 / 0)() == ()


# ---- locks and failures ----


class Log:
    def __init__(self, bad=None):
        self.seen, self.bad = [], bad

    def acquire(self):
        self.note("acquire")

    def release(self):
        self.note("release")

    def note(self, what):
        self.seen.append(what)
        if what == self.bad:
            raise OSError(what)


def test_the_lock_is_held_during_the_call_only():
    log = Log()
    g = guard(row("x", CHECK, check=lambda x: log.note("check")), call=lambda x: log.note("call"), lock=log)
    g(1)
    assert log.seen == ["check", "acquire", "call", "release"]


def test_a_failure_is_handed_on_after_the_lock_is_released():
    log = Log("call")
    g = guard(
        row("x"),
        call=lambda x: log.note("call"),
        lock=log,
        failed=lambda *args: log.seen.append(args) or "saved",
    )
    argument = object()
    assert g(argument) == "saved"
    *before, (who, exception, args) = log.seen
    assert before == ["acquire", "call", "release"]
    assert (who, type(exception), args) == (g, OSError, (argument,))
    assert exception.__traceback__ is not None


def test_failed_may_raise_another_exception():
    def failed(guard, exception, args):
        raise LookupError("better") from exception

    with pytest.raises(LookupError, match="better") as caught:
        guard(call=lambda: 1 / 0, failed=failed)()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_request_to_stop_is_no_failure(stop):
    def call():
        raise stop

    asked = []
    lock = threading.Lock()
    with pytest.raises(stop):
        guard(call=call, failed=lambda *args: asked.append(args), lock=lock)()
    assert asked == []
    assert not lock.locked()


def test_bad_arguments_are_no_failure_and_take_no_lock():
    log, asked = Log(), []
    with pytest.raises(WrongTypeError):
        guard(int32(), lock=log, failed=lambda *args: asked.append(args))("x")
    assert log.seen == asked == []


def test_a_lock_that_raises():
    log = Log("acquire")
    with pytest.raises(OSError, match="acquire"):
        guard(call=lambda: log.note("call"), lock=log)()
    assert log.seen == ["acquire"]
    with pytest.raises(OSError, match="release"):
        guard(lock=Log("release"))()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_exception_of_the_call_wins_over_that_of_release():
    with pytest.raises(ZeroDivisionError):
        guard(call=lambda: 1 / 0, lock=Log("release"))()


def test_one_call_at_a_time_under_a_lock():
    inside, most = [], []

    def call():
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    g = guard(call=call, lock=threading.Lock())
    threads = [threading.Thread(target=lambda: [g() for _ in range(300)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (1200, 1)


# ---- lifetime ----


def test_attributes():
    owner = object()
    g = guard(owner=owner, program=1, stale=print, failed=len)
    assert (g.owner, g.name, g.program, g.call, g.stale, g.failed) == (owner, "step", 1, echo, print, len)
    for name in ("owner", "name", "call", "stale", "failed"):
        with pytest.raises(AttributeError):
            setattr(g, name, None)


def test_a_guard_in_a_cycle_is_collected():
    class Owner:
        def act(self, *args):
            pass

    owner = Owner()
    owner.guard = guard(
        row("x", CHECK, check=owner.act),
        owner=owner,
        runtime=(owner, "a", "b"),
        program=owner,
        lock=types.SimpleNamespace(acquire=owner.act, release=owner.act),
        stale=owner.act,
        failed=owner.act,
        call=owner.act,
    )
    gone, guard_gone = weakref.ref(owner), weakref.ref(owner.guard)
    del owner
    gc.collect()
    assert gone() is None
    assert guard_gone() is None


def test_a_guard_that_leads_to_itself_raises_and_a_long_chain_is_freed():
    cell = _native.Cell()
    handle = _native.Handle(cell, 0, "step")
    _native.swap([(cell, (guard(call=handle),), 1)])
    with pytest.raises(RecursionError):
        handle()
    chain = echo
    for _ in range(100_000):
        chain = guard(call=chain)
    gone = weakref.ref(chain)
    del chain
    assert gone() is None


def test_arguments_are_not_kept_alive():
    g, x = guard(array(), failed=lambda *args: None, call=lambda x: 1 / 0), np.zeros(4, "f4")
    gone = weakref.ref(x)
    g(x)
    del x
    gc.collect()
    assert gone() is None


def test_good_and_bad_calls_leak_nothing():
    x, n, k, scalar = np.zeros(4, "f4"), 1234567, 1.25, np.array(7)
    runtime = make_runtime(object())
    g = guard(
        *(array(), int32(), float32(), row("c", CHECK, check=lambda c: c)),
        call=lambda x, n, k, c: c(),
        runtime=(runtime, "pytaichi", "prog"),
        program=runtime.pytaichi.prog,
        lock=threading.RLock(),
        stale=lambda g: 1 / 0,
        failed=lambda g, exception, args: None,
    )

    def attempt(*args, **kwargs):
        try:
            g(*args, **kwargs)
        except (TypeError, ValueError):
            return
        assert len(args) + len(kwargs) == 4

    def work():
        attempt(x, n, k, dict)
        attempt(x, scalar, scalar, c=dict)
        attempt(x, n, k, lambda: 1 / 0)
        for bad in [
            (x, n, k),
            (x, n, k, dict, 5),
            (scalar, n, k, dict),
            (x, k, k, dict),
            (x, 2**70, k, dict),
        ]:
            attempt(*bad)
        attempt(x, n, 10**400, dict)
        attempt(x, n, x, k=k)
        attempt(x, n, k=k, zz=n)

    def count():
        gc.collect()
        return *(sys.getrefcount(o) for o in (x, n, k, scalar, g, runtime.pytaichi.prog)), len(gc.get_objects())

    work()
    before = count()
    for _ in range(1000):
        work()
    assert all(abs(new - old) < 20 for new, old in zip(count(), before, strict=True))
