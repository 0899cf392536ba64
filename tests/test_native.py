"""Cells, handles, swap and seal of the native extension."""

import gc
import sys
import threading
import weakref

import pytest

from rekernel import _native


class Sealed(_native.Handle):
    __slots__ = ("extra",)


_native.seal(Sealed)


def make(*table, hook=None, index=0):
    """Make a handle over a new cell that holds the table."""
    cell = _native.Cell()
    cell.hook = hook
    _native.swap([(cell, table or None, 1)])
    return _native.Handle(cell, index, "step")


# ---- cells ----


def test_a_new_cell_is_empty():
    cell = _native.Cell()
    assert (cell.table, cell.version, cell.hook, cell.override) == (None, None, None, False)


@pytest.mark.parametrize("name", ["table", "version"])
def test_only_swap_changes_a_cell(name):
    cell = _native.Cell()
    with pytest.raises(AttributeError):
        setattr(cell, name, None)


@pytest.mark.parametrize(("name", "bad"), [("hook", 3), ("override", 1), ("override", None)])
def test_a_cell_refuses_attributes_of_other_types(name, bad):
    cell = _native.Cell()
    with pytest.raises(TypeError):
        setattr(cell, name, bad)
    with pytest.raises(TypeError):
        delattr(cell, name)


def test_a_cell_takes_no_arguments_and_no_subclass():
    with pytest.raises(TypeError, match=r"Cell\(\) takes no arguments"):
        _native.Cell(1)
    with pytest.raises(TypeError):
        type("Sub", (_native.Cell,), {})


# ---- swap ----


def test_swap_returns_what_the_cells_held():
    a, b = _native.Cell(), _native.Cell()
    assert _native.swap([(a, (len,), "v1"), (b, None, None)]) == [(None, None), (None, None)]
    assert _native.swap(iter([(a, None, "v2"), (b, (max, None), 3)])) == [((len,), "v1"), (None, None)]
    assert (a.table, a.version, b.table, b.version) == (None, "v2", (max, None), 3)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        ("cell", None, 1),
        (_native.Cell(), None),
        [_native.Cell(), None, 1],
        (_native.Cell(), [len], 1),
        (_native.Cell(), (len, 5), 1),
    ],
)
def test_a_bad_change_changes_nothing(bad):
    cell = _native.Cell()
    _native.swap([(cell, (len,), 1)])
    with pytest.raises(TypeError, match=r"swap\(\) changes\[1\]"):
        _native.swap([(cell, (max,), 2), bad])
    assert (cell.table, cell.version) == ((len,), 1)


def test_swap_wants_a_sequence():
    with pytest.raises(TypeError):
        _native.swap(5)


def test_the_old_table_goes_when_the_result_of_swap_goes():
    def kernel():
        return 1

    gone = weakref.ref(kernel)
    cell = _native.Cell()
    _native.swap([(cell, (kernel,), 1)])
    del kernel
    held = _native.swap([(cell, None, 2)])
    assert gone() is not None
    del held
    assert gone() is None


# ---- handles ----


def test_a_handle_passes_all_arguments_on():
    handle = make(None, lambda *args, **kwargs: (args, kwargs), index=1)
    assert handle(1, 2, x=3) == ((1, 2), {"x": 3})
    assert handle(*[1] * 40, **{"k": 1}) == ((1,) * 40, {"k": 1})


def test_a_handle_follows_its_cell():
    handle = make(lambda: 1)
    assert handle() == 1
    _native.swap([(handle._cell, (lambda: 2,), 2)])
    assert handle() == 2


@pytest.mark.parametrize("table", [(), (None,)])
def test_the_hook_is_asked_when_the_table_has_no_entry(table):
    asked = []
    handle = make(*table, hook=lambda h: asked.append(h) or str)
    assert handle(5) == "5"
    assert asked == [handle]


def test_the_hook_is_asked_first_when_it_overrides():
    handle = make(lambda: "table", hook=lambda h: lambda: "hook")
    assert handle() == "table"
    handle._cell.override = True
    assert handle() == "hook"


def test_an_exception_of_the_hook_comes_through_and_is_no_call():
    def removed(handle):
        raise LookupError(handle._name)

    handle = make(hook=removed)
    with pytest.raises(LookupError, match="step"):
        handle()
    assert (handle.calls, handle.failures) == (0, 0)


def test_without_table_and_hook_a_call_is_an_error():
    with pytest.raises(RuntimeError, match="kernel 'step' has no code"):
        make()()


def test_a_hook_may_return_anything():
    with pytest.raises(TypeError, match="not callable"):
        make(hook=lambda h: 5)()


def test_calls_and_failures_are_counted():
    handle = make(int)
    handle("1")
    with pytest.raises(ValueError, match="invalid literal"):
        handle("x")
    assert (handle.calls, handle.failures) == (2, 1)
    with pytest.raises(AttributeError):
        handle.calls = 0


def test_a_running_call_ends_on_the_version_it_began_with():
    class Kernel:
        def __call__(self):
            _native.swap([(handle._cell, (lambda: "new",), 2)])
            assert gone() is not None
            return "old"

    handle = make(Kernel())
    gone = weakref.ref(handle._cell.table[0])
    assert (handle(), handle()) == ("old", "new")
    assert gone() is None


@pytest.mark.parametrize("args", [(), (None, 0, "n"), (_native.Cell(), -1, "n"), (_native.Cell(), 0, 5)])
def test_a_handle_refuses_bad_arguments(args):
    with pytest.raises((TypeError, ValueError)):
        _native.Handle(*args)


def test_a_handle_that_leads_to_itself_raises():
    handle = make()
    _native.swap([(handle._cell, (handle,), 1)])
    with pytest.raises(RecursionError):
        handle()


def test_a_long_chain_of_handles_is_freed():
    handle = None
    for _ in range(100_000):
        cell = _native.Cell()
        _native.swap([(cell, None, handle)])
        handle = _native.Handle(cell, 0, "n")
    gone = weakref.ref(handle)
    del handle, cell
    assert gone() is None


def test_a_cycle_of_handle_and_cell_is_collected():
    handle = make()
    _native.swap([(handle._cell, (handle,), handle)])
    handle._cell.hook = handle
    gone, cell_gone = weakref.ref(handle), weakref.ref(handle._cell)
    del handle
    gc.collect()
    assert gone() is None
    assert cell_gone() is None


# ---- seal ----


def test_a_sealed_subclass_calls_and_has_its_slots():
    cell = _native.Cell()
    _native.swap([(cell, (divmod,), 1)])
    handle = Sealed(cell, 0, "step")
    handle.extra = 5
    assert handle(7, 2) == (3, 1)
    assert (handle.extra, handle.calls) == (5, 1)
    assert not hasattr(handle, "__dict__")


def test_a_sealed_subclass_cannot_change():
    with pytest.raises(TypeError, match="immutable"):
        Sealed.__call__ = len
    with pytest.raises(TypeError, match="immutable"):
        Sealed.other = 1


def test_a_subclass_of_a_sealed_class_may_define_call():
    class Loud(Sealed):
        __slots__ = ()

        def __call__(self, *args):
            return "loud", super().__call__(*args)

    cell = _native.Cell()
    _native.swap([(cell, (abs,), 1)])
    assert Loud(cell, 0, "step")(-1) == ("loud", 1)


def test_seal_refuses_everything_else():
    class Own(_native.Handle):
        def __call__(self):
            return 1

    class Open(_native.Handle):
        pass

    class Below(Open):
        pass

    for bad, words in [
        (5, "expected a class"),
        (int, "expected a subclass"),
        (_native.Handle, "expected a subclass"),
        (Own, "defines __call__"),
        (Below, "can still change"),
    ]:
        with pytest.raises(TypeError, match=words):
            _native.seal(bad)


# ---- threads and references ----


def test_threads_see_one_version_while_another_swaps():
    """Each version is a pair of kernels that return its number; no reader may see a number go backwards."""
    cells = [_native.Cell(), _native.Cell()]
    handles = [Sealed(cell, 0, "step") for cell in cells]
    _native.swap([(cell, (lambda: 0,), 0) for cell in cells])
    start, done, wrong = threading.Barrier(5), threading.Event(), []

    def read():
        start.wait()
        while not done.is_set():
            first, second = handles[0](), handles[1]()
            if second < first:
                wrong.append((first, second))

    threads = [threading.Thread(target=read) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        start.wait()
        for number in range(1, 3000):
            _native.swap([(cell, (lambda number=number: number,), number) for cell in cells])
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert wrong == []
    assert handles[0]() == handles[1]() == 2999
    assert handles[0].failures == 0


def test_calls_and_swaps_leak_nothing():
    handle, argument = make(abs), -12345678901

    def work():
        handle(argument)
        with pytest.raises(TypeError):
            handle("x", argument)
        with pytest.raises(TypeError):
            handle(argument, k=argument)
        _native.swap([(handle._cell, (abs,), argument)])

    work()
    gc.collect()
    before = sys.getrefcount(argument), sys.getrefcount(handle), sys.getrefcount(abs), len(gc.get_objects())
    for _ in range(3000):
        work()
    gc.collect()
    after = sys.getrefcount(argument), sys.getrefcount(handle), sys.getrefcount(abs), len(gc.get_objects())
    assert all(abs(new - old) < 20 for new, old in zip(after, before, strict=True))


def test_importing_again_gives_the_same_types():
    module = sys.modules.pop(_native.__name__)
    try:
        import importlib

        again = importlib.import_module(_native.__name__)
        assert again.Cell is _native.Cell
        assert again.Guard is _native.Guard
    finally:
        sys.modules[_native.__name__] = module
