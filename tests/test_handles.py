"""Handles and modules: always the same object, following their id everywhere, or pinned."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pydoc
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rekernel
import toy as toys
from rekernel import KernelHandle, KernelLoader, KernelRemovedError
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

ONE = "step(x, k: int32) = k * x   ## Multiplies."
TWO = "step(x) = 100 * x   ## Multiplies by a hundred."


@pytest.fixture
def module(loader: KernelLoader) -> types.ModuleType:
    return loader.load(ONE, "heat")


@pytest.fixture
def step(module: types.ModuleType) -> Any:
    return module.step


# --- the same object for ever ----------------------------------------------------------------------------------


def test_a_kernel_is_always_the_same_object(loader: KernelLoader, module: types.ModuleType) -> None:
    step = module.step
    loader.load(TWO, "heat")
    assert module.step is step is loader["heat"].step


def test_a_module_is_always_the_same_object(loader: KernelLoader, module: types.ModuleType) -> None:
    assert loader.load(TWO, "heat") is module is loader["heat"] is loader.rollback("heat")


def test_a_handle_is_equal_to_itself_alone(loader: KernelLoader, step: Any) -> None:
    other = loader.load(ONE, "other").step
    assert step == step
    assert step != other
    assert len({step, other, loader["heat"].step}) == 2


# --- following everywhere --------------------------------------------------------------------------------------


def _default(step: Any) -> Callable[[int], Any]:
    def call(x: int, step: Any = step) -> Any:
        return step(x)

    return call


def _decorated(step: Any) -> Callable[[int], Any]:
    @functools.wraps(step)
    def call(*arguments: Any) -> Any:
        return step(*arguments)

    return call


KEPT: dict[str, Callable[[Any], Callable[[int], Any]]] = {
    "a name": lambda step: step,
    "a dict": lambda step: {"step": step}["step"],
    "a partial": lambda step: functools.partial(step),
    "a partial with an argument": lambda step: lambda x: functools.partial(step, x)(),
    "a default argument": _default,
    "a decorated function": _decorated,
    "a lambda": lambda step: lambda x: step(x),
    "a copy": copy.copy,
    "a deep copy": copy.deepcopy,
    "a deep copy of a dict": lambda step: copy.deepcopy({"step": [step]})["step"][0],
    "an attribute of an instance": lambda step: types.SimpleNamespace(step=step).step,
    "an attribute of a class": lambda step: type("Model", (), {"step": step})().step,
    "a weak reference": lambda step: weakref.proxy(step),
    "a cached function": lambda step: functools.cache(step),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT.keys())
def test_a_kernel_follows_wherever_it_is_kept(
    loader: KernelLoader, step: Any, keep: Callable[[Any], Callable[[int], Any]]
) -> None:
    kept = keep(step)
    loader.load(TWO, "heat")
    assert kept(1) == 100


def test_map_follows_in_the_middle(loader: KernelLoader) -> None:
    results = map(loader.load("step(x) = x", "heat").step, [1, 1])
    first = next(results)
    loader.load(TWO, "heat")
    assert (first, next(results)) == (1, 100)


def test_a_call_ends_on_the_version_it_began_with(loader: KernelLoader) -> None:
    def reload() -> int:
        loader.load(TWO, "heat")
        return 1

    step = loader.load("step(x) = x + reload() + x", "heat", namespace={"reload": reload}).step
    assert step(3) == 7
    assert step(3) == 300


# --- pinned ----------------------------------------------------------------------------------------------------


def test_a_pinned_kernel_never_changes(loader: KernelLoader, step: Any) -> None:
    pinned = step.pinned()
    loader.load(TWO, "heat")
    assert (pinned(2, 3), pinned.version) == (6, 1)


def test_a_pinned_kernel_outlives_its_id(loader: KernelLoader, step: Any) -> None:
    pinned = step.pinned()
    loader.cleanup_all()
    assert pinned(2, 3) == 6


def test_a_pinned_kernel_outlives_its_loader(toy: Toy) -> None:
    pinned = KernelLoader().load(ONE).step.pinned()
    gc.collect()
    assert pinned(2, 3) == 6


def test_pinning_a_pinned_kernel_gives_it_back(step: Any) -> None:
    pinned = step.pinned()
    assert pinned.pinned() is pinned


def test_a_pinned_kernel_keeps_its_own_signature_and_docstring(loader: KernelLoader, step: Any) -> None:
    pinned = step.pinned()
    loader.load(TWO, "heat")
    assert (list(inspect.signature(pinned).parameters), pinned.__doc__) == (["x", "k"], "Multiplies.")


def test_a_kernel_that_is_gone_cannot_be_pinned(loader: KernelLoader, step: Any) -> None:
    loader.load("other(x) = x", "heat")
    with pytest.raises(KernelRemovedError, match="has no kernel 'step'"):
        step.pinned()


# --- what a kernel says of itself ------------------------------------------------------------------------------


def test_a_kernel_has_a_name(step: Any) -> None:
    assert (step.__name__, step.__qualname__) == ("step", "step")


def test_the_docstring_is_the_live_one(loader: KernelLoader, step: Any) -> None:
    assert step.__doc__ == "Multiplies."
    loader.load(TWO, "heat")
    assert step.__doc__ == "Multiplies by a hundred."


def test_the_signature_is_the_live_one(loader: KernelLoader, step: Any) -> None:
    assert str(inspect.signature(step)) == "(x: 'float64', k: 'int32')"
    loader.load(TWO, "heat")
    assert str(inspect.signature(step)) == "(x: 'float64')"


def test_help_shows_the_kernel(step: Any) -> None:
    text = pydoc.render_doc(step, renderer=pydoc.plaintext)
    assert "Multiplies." in text


def test_help_of_the_class_shows_the_class() -> None:
    assert "follows every reload" in inspect.getdoc(KernelHandle)  # type: ignore[operator]
    assert KernelHandle.__name__ == "KernelHandle"


def test_wraps_takes_name_docstring_and_signature(step: Any) -> None:
    wrapped: Any = _decorated(step)
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("step", "Multiplies.", step)
    assert list(inspect.signature(wrapped).parameters) == ["x", "k"]


def test_a_kernel_tells_id_version_language_parameters_and_code(step: Any) -> None:
    assert (step.kernel_id, step.version, step.language, step.code) == ("heat", 1, "toy", ONE)
    assert [str(parameter) for parameter in step.parameters] == ["x: float64", "k: int32"]


def test_what_a_kernel_tells_moves_with_it(loader: KernelLoader, step: Any) -> None:
    loader.load(TWO, "heat")
    assert (step.version, step.code, len(step.parameters)) == (2, TWO, 1)


def test_calls_and_failures_are_counted(step: Any) -> None:
    step(1, 2)
    with pytest.raises(TypeError):
        step()
    assert step.stats == {"calls": 2, "failures": 1}


def test_every_keyword_belongs_to_the_kernel(loader: KernelLoader) -> None:
    text = "step(self, handle, args, kwargs, name) = self + handle + args + kwargs + name"
    step = loader.load(text).step
    assert step(self=1, handle=2, args=3, kwargs=4, name=5) == 15


def test_only_gpu_kernels_take_a_launch_grid(step: Any) -> None:
    with pytest.raises(TypeError, match=r"heat\.step is a toy kernel and takes no launch grid; call it: step\(x"):
        step[1, 2]


def test_an_attribute_of_the_languages_own_object_is_reached(step: Any) -> None:
    assert step.made_by == "toy"
    with pytest.raises(AttributeError, match="made_bye"):
        _ = step.made_bye


def test_handles_take_no_attributes(step: Any) -> None:
    with pytest.raises(AttributeError):
        step.mine = 1


# --- unloading and coming back ---------------------------------------------------------------------------------


def test_an_unloaded_kernel_says_id_version_and_how(loader: KernelLoader, step: Any) -> None:
    loader.load(TWO, "heat")
    loader.unload("heat")
    with pytest.raises(KernelRemovedError, match=r"heat\.step is gone: it was unloaded \(it was v2\)") as caught:
        step(1)
    assert (caught.value.kernel_id, caught.value.version, caught.value.how) == ("heat", 2, "it was unloaded")


WAYS: dict[str, tuple[Callable[[KernelLoader], Any], str]] = {
    "unload": (lambda loader: loader.unload("heat"), "it was unloaded"),
    "del": (lambda loader: loader.__delitem__("heat"), "it was deleted from its loader"),
    "cleanup_all": (lambda loader: loader.cleanup_all(), r"cleanup_all\(\) was called"),
}


@pytest.mark.parametrize(("remove", "words"), WAYS.values(), ids=WAYS.keys())
def test_every_way_of_removal_is_told(
    loader: KernelLoader, step: Any, remove: Callable[[KernelLoader], Any], words: str
) -> None:
    remove(loader)
    with pytest.raises(KernelRemovedError, match=words):
        step(1)


def test_an_unloaded_module_raises_at_every_read(loader: KernelLoader, module: types.ModuleType) -> None:
    loader.unload("heat")
    for read in (lambda: module.step, lambda: vars(module), lambda: dir(module), lambda: rekernel.info(module)):
        with pytest.raises(KernelRemovedError, match="heat is gone"):
            read()


def test_loading_the_id_again_revives_the_same_objects(
    loader: KernelLoader, module: types.ModuleType, step: Any
) -> None:
    loader.unload("heat")
    assert loader.load(TWO, "heat") is module
    assert module.step is step
    assert step(1) == 100


def test_a_revived_id_goes_on_counting(loader: KernelLoader, step: Any) -> None:
    loader.unload("heat")
    loader.load(TWO, "heat")
    assert step.version == 2


def test_a_kernel_that_left_the_text_says_so(loader: KernelLoader, step: Any) -> None:
    loader.load("other(x) = x", "heat")
    with pytest.raises(KernelRemovedError, match="version 2 of 'heat' has no kernel 'step'") as caught:
        step(1)
    assert caught.value.version == 2


def test_a_kernel_that_comes_back_into_the_text_revives(loader: KernelLoader, step: Any) -> None:
    loader.load("other(x) = x", "heat")
    loader.load(TWO, "heat")
    assert step(1) == 100


def test_kernels_in_another_order_are_not_mixed_up(loader: KernelLoader) -> None:
    module = loader.load("a() = 1\nb() = 2\nc() = 3", "heat")
    a, b, c = module.a, module.b, module.c
    loader.load("c() = 30\nnew() = 0\na() = 10", "heat")
    assert (a(), c(), module.new()) == (10, 30, 0)
    loader.load("b() = 200\na() = 100", "heat")
    assert (a(), b()) == (100, 200)


def test_an_unloaded_id_lets_go_of_its_values_though_its_module_and_kernels_are_held(loader: KernelLoader) -> None:
    big = Big()
    alive = weakref.ref(big)
    module = loader.load("step(x) = big[x]", "heat", namespace={"big": big})
    step = module.step
    del big
    loader.unload("heat")
    gc.collect()
    assert alive() is None
    assert "removed" in repr(module)
    assert "gone" in repr(step)


class Big(list):  # type: ignore[type-arg]
    """A list that can be weakly referenced."""


# --- modules ---------------------------------------------------------------------------------------------------


@pytest.fixture
def rich(loader: KernelLoader) -> types.ModuleType:
    return loader.load("shift := 3\nsource(x) = x\nerror(x) = -x\nwait(x) = 0\nskip big: it takes a struct", "heat")


def test_a_module_is_a_module(module: types.ModuleType) -> None:
    assert isinstance(module, types.ModuleType)
    assert inspect.ismodule(module)
    assert module.__name__ == "heat"


def test_kernels_may_have_the_names_of_the_tools_own_words(rich: types.ModuleType) -> None:
    assert (rich.source(2), rich.error(2), rich.wait(2)) == (2, -2, 0)


def test_kernels_called_like_methods_of_the_loader_or_the_handle_are_kernels(loader: KernelLoader) -> None:
    names = ("load", "info", "pinned", "version", "code", "kernel_id", "history", "stats", "hold", "returning")
    module = loader.load("\n".join(f"{name}(x) = x" for name in names), "heat")
    assert all(getattr(module, name)(3) == 3 for name in names)


def test_a_module_carries_only_the_users_names_and_dunders(rich: types.ModuleType) -> None:
    names = {name for name in dir(rich) if not name.startswith("__")}
    assert names == {"shift", "source", "error", "wait"}
    assert {name for name in vars(rich) if not name.startswith("__")} == names


def test_constants_are_the_live_versions_own(loader: KernelLoader, rich: types.ModuleType) -> None:
    assert rich.shift == 3
    loader.load("shift := 4\nsource(x) = x", "heat")
    assert rich.shift == 4


def test_hasattr_tells_what_the_live_version_has(loader: KernelLoader, rich: types.ModuleType) -> None:
    assert hasattr(rich, "error")
    loader.load("source(x) = x", "heat")
    assert not hasattr(rich, "error")


def test_a_missing_name_lists_the_kernels(rich: types.ModuleType) -> None:
    with pytest.raises(
        AttributeError, match=r"'heat' \(v1\) has no 'sourc'; its kernels: source, error, wait; did you mean 'source'"
    ):
        _ = rich.sourc


def test_a_skipped_function_says_why_it_is_missing(rich: types.ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no 'big': it takes a struct"):
        _ = rich.big


def test_the_tools_own_attributes_are_not_on_the_module(module: types.ModuleType) -> None:
    for name in ("pinned", "version", "info", "_live", "unload", "history"):
        assert not hasattr(module, name)


def test_a_module_is_read_only(rich: types.ModuleType) -> None:
    with pytest.raises(AttributeError, match="read-only"):
        rich.shift = 5
    with pytest.raises(AttributeError, match=r"to remove it: loader.unload"):
        del rich.shift
    assert rich.shift == 3


def test_writing_into_vars_of_a_module_changes_nothing(rich: types.ModuleType) -> None:
    vars(rich)["shift"] = 5
    assert rich.shift == 3


def test_a_module_copies_to_itself(module: types.ModuleType) -> None:
    assert copy.copy(module) is module
    assert copy.deepcopy({"m": module})["m"] is module


def test_a_module_copies_to_itself_whatever_its_namespace_holds(loader: KernelLoader) -> None:
    module = loader.load("step(x) = x + other", "heat", namespace={"other": object()})
    assert copy.deepcopy(module) is module


def test_a_module_can_be_weakly_referenced(module: types.ModuleType) -> None:
    assert weakref.ref(module)() is module


def test_a_name_of_the_module_can_be_imported_from_it(module: types.ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "heat_for_this_test", module)
    from heat_for_this_test import step  # type: ignore[import-not-found]

    assert step is module.step


def test_the_handles_of_a_loader_that_nobody_holds_go_on(toy: Toy) -> None:
    step = KernelLoader().load(ONE).step
    gc.collect()
    assert step(2, 3) == 6


def test_a_loader_that_nobody_holds_is_freed_with_its_versions(toy: Toy) -> None:
    loader = KernelLoader()
    kernel = weakref.ref(loader.load(ONE).step)
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert kernel() is None
