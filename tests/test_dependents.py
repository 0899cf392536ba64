"""Texts that use other ids: rebuilt with their helper, all or none, never in a circle."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rekernel
import toy as toys
from rekernel import KernelLoader, KernelNotFoundError, KernelRemovedError, KernelSourceError
from rekernel.namespace import View
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def base(factor: int) -> str:
    return f"unit := {factor}\nbase(x) = {factor} * x\nfunc shifted(x) = x + {factor}"


def depends(loader: KernelLoader, kernel_id: str) -> tuple[str, ...]:
    return loader.info(kernel_id).depends_on


# --- what counts as a helper -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("top(x) = h.base(x)", lambda m: {"h": m}, id="the module"),
        pytest.param("top(x) = h.unit * x", lambda m: {"h": m}, id="a constant of the module"),
        pytest.param("top(x) = base(x)", lambda m: {"base": m.base}, id="a kernel"),
        pytest.param("top(x) = other(x)", lambda m: {"other": m.base}, id="a kernel under an alias"),
        pytest.param("top(x) = shifted(x) * unit(1)", lambda m: {"shifted": m.shifted, "unit": m.base}, id="two"),
        pytest.param("top(x) = hs[0].base(x)", lambda m: {"hs": [m]}, id="in a list"),
        pytest.param("top(x) = hs[0][0](x)", lambda m: {"hs": ((m.base,),)}, id="in a tuple of tuples"),
        pytest.param("top(x) = hs['b'](x)", lambda m: {"hs": {"b": m.base, "k": 3}}, id="in a dict"),
    ],
)
def test_a_helper_is_found_and_followed(loader: KernelLoader, text: str, names: Any) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load(text, namespace=names(helper)).top
    before = top(1)
    loader.load(base(50), "helper")
    assert top(1) > 20 * before
    assert depends(loader, "top") == ("helper",)


def test_a_function_of_a_helper_is_followed(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = shifted(x)", namespace={"shifted": helper.shifted}).top
    loader.load(base(50), "helper")
    assert top(1) == 51


def test_a_pinned_kernel_is_not_followed(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = base(x)", namespace={"base": helper.base.pinned()}).top
    loader.load(base(50), "helper")
    assert top(1) == 2
    assert depends(loader, "top") == ()


def test_helpers_in_the_users_containers_are_not_replaced_there(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    kernels = [helper.base]
    loader.load("top(x) = kernels[0](x)", namespace={"kernels": kernels})
    assert kernels == [helper.base]


def test_names_that_a_text_does_not_use_are_no_helpers(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.load("top(x) = x", namespace={"h": helper})
    assert depends(loader, "top") == ()


def test_an_old_module_object_gives_the_live_version(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.load(base(3), "helper")
    assert loader.load("top(x) = h.base(x)", namespace={"h": helper}).top(1) == 3


# --- reloading a helper ----------------------------------------------------------------------------------------


def test_a_dependent_gets_a_new_version_of_its_own(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.load("top(x) = h.base(x)", namespace={"h": helper})
    loader.load(base(3), "helper")
    assert [v.number for v in loader.history("top")] == [1, 2]


def test_dependents_are_rebuilt_transitively(loader: KernelLoader) -> None:
    a = loader.load(base(2), "a")
    b = loader.load("mid(x) = a.base(x) + 1", "b", namespace={"a": a})
    c = loader.load("top(x) = b.mid(x) + 1", "c", namespace={"b": b})
    loader.load(base(50), "a")
    assert c.top(1) == 52


def test_a_diamond_is_built_once_and_in_order(toy: Toy, loader: KernelLoader) -> None:
    a = loader.load(base(2), "a")
    left = loader.load("left(x) = a.base(x)", "z_left", namespace={"a": a})
    right = loader.load("right(x) = a.base(x)", "right", namespace={"a": a})
    names = {"l": left, "r": right, "a": a}
    top = loader.load("top(x) = l.left(x) + r.right(x) + a.base(x)", "b_top", namespace=names).top
    toy.log.clear()
    loader.load(base(10), "a")
    assert top(1) == 30
    assert [kernel_id for kernel_id, _ in toy.done("build")] == ["a", "right", "z_left", "b_top"]


def test_an_unchanged_helper_rebuilds_nobody(toy: Toy, loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.load("top(x) = h.base(x)", namespace={"h": helper})
    toy.log.clear()
    loader.load(base(2), "helper")
    assert toy.log == []


def test_a_rollback_of_a_helper_rebuilds_its_dependents(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
    loader.load(base(3), "helper")
    loader.rollback("helper")
    assert top(1) == 2


def test_a_dependent_that_no_longer_uses_the_helper_is_left_alone(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.load("top(x) = h.base(x)", namespace={"h": helper})
    loader.load("top(x) = x")
    loader.load(base(3), "helper")
    assert loader.info("top").version == 2


def test_a_rolled_back_dependent_uses_the_helper_of_now(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
    loader.load("top(x) = x")
    loader.load(base(3), "helper")
    loader.rollback("top")
    assert top(1) == 3
    loader.load(base(4), "helper")
    assert top(1) == 4


def test_a_helper_of_another_loader_is_followed(loader: KernelLoader) -> None:
    with KernelLoader() as other:
        helper = other.load(base(2), "helper")
        top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
        other.load(base(3), "helper")
        assert top(1) == 3


# --- all or none -----------------------------------------------------------------------------------------------


@pytest.fixture
def chain(loader: KernelLoader) -> KernelLoader:
    """``a`` is used by ``b``, and its constant by ``c``, which does not build without it."""
    a = loader.load(base(2), "a")
    loader.load("mid(x) = a.base(x)", "b", namespace={"a": a})
    loader.load("twice := 2 * a.unit\ntop(x) = twice * x", "c", namespace={"a": a})
    return loader


def test_when_a_dependent_does_not_build_nothing_is_swapped(chain: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        chain.load("base(x) = 50 * x", "a")
    assert [chain.info(kernel_id).version for kernel_id in "abc"] == [1, 1, 1]
    assert (chain["a"].base(1), chain["b"].mid(1), chain["c"].top(1)) == (2, 2, 4)


def test_the_error_of_a_dependent_names_the_dependent_and_is_parked_at_the_loaded_id(chain: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        chain.load("base(x) = 50 * x", "a")
    error = caught.value
    assert (error.kernel_id, error.version, error.text) == ("c", 2, "twice := 2 * a.unit")
    assert chain.info("a").error is error


def test_the_error_of_a_dependent_says_what_keeps_running(chain: KernelLoader) -> None:
    with pytest.raises(KernelSourceError, match=r"\nc v1 keeps running\.$"):
        chain.load("base(x) = 50 * x", "a")


def test_what_a_helper_does_not_have_is_said_with_what_it_has() -> None:
    helper = View(scale=2.0, shifted=abs)
    assert helper.scale == 2.0
    assert not hasattr(helper, "shift")
    with pytest.raises(AttributeError, match=r"^the helper has no 'shift'; its names: scale, shifted$"):
        helper.shift  # noqa: B018 - to look is to ask


def test_nobody_ever_sees_a_new_helper_beside_an_old_dependent(chain: KernelLoader) -> None:
    seen = []
    chain.on_reload(lambda event: seen.append((chain["a"].base(1), chain["b"].mid(1), chain["c"].top(1))))
    chain.load(base(3), "a")
    assert seen == [(3, 3, 6)] * 3


# --- circles ---------------------------------------------------------------------------------------------------


def test_a_text_cannot_use_its_own_id(loader: KernelLoader) -> None:
    module = loader.load(base(2), "a")
    with pytest.raises(ValueError, match="'a' would use 'a', which is itself"):
        loader.load("base(x) = a.base(x)", "a", namespace={"a": module})
    assert module.base(1) == 2


def test_a_circle_is_refused(loader: KernelLoader) -> None:
    a = loader.load(base(2), "a")
    b = loader.load("mid(x) = a.base(x)", "b", namespace={"a": a})
    c = loader.load("top(x) = b.mid(x)", "c", namespace={"b": b})
    with pytest.raises(ValueError, match="'a' would use 'c', which depends on it"):
        loader.load("base(x) = c.top(x)", "a", namespace={"c": c})
    assert c.top(1) == 2


def test_a_circle_that_a_rollback_would_close_is_refused(loader: KernelLoader) -> None:
    a = loader.load(base(2), "a")
    b = loader.load("mid(x) = a.base(x)", "b", namespace={"a": a})
    loader.load("mid(x) = x", "b")
    loader.load("base(x) = b.mid(x)", "a", namespace={"b": b})
    with pytest.raises(ValueError, match="'b' would use 'a', which depends on it"):
        loader.rollback("b")
    assert (a.base(3), loader.info("b").version) == (3, 2)


# --- helpers that go away --------------------------------------------------------------------------------------


def test_a_dependent_goes_on_when_its_helper_is_unloaded(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
    loader.unload("helper")
    assert top(1) == 2


def test_a_dependent_follows_its_helper_when_it_comes_back(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
    loader.unload("helper")
    loader.load(base(7), "helper")
    assert top(1) == 7


def test_a_text_cannot_use_an_unloaded_helper(loader: KernelLoader) -> None:
    helper = loader.load(base(2), "helper")
    loader.unload("helper")
    with pytest.raises(KernelRemovedError):
        loader.load("top(x) = h.base(x)", namespace={"h": helper})
    with pytest.raises(KernelNotFoundError):
        loader["top"]


# --- many threads ----------------------------------------------------------------------------------------------


def test_a_helper_that_is_replaced_while_a_new_text_is_built_over_it_is_followed(
    toy: Toy, loader: KernelLoader
) -> None:
    helper = loader.load(base(2), "helper")
    text = "top(x) = h.base(x)"
    gate = toy.gate(text)
    thread = threading.Thread(target=loader.load, args=(text, "top"), kwargs={"namespace": {"h": helper}})
    thread.start()
    gate.wait_until_entered()
    loader.load(base(3), "helper")
    gate.opened.set()
    thread.join()
    assert loader["top"].top(1) == 3


def test_a_text_that_is_loaded_while_its_helper_is_being_replaced_is_rebuilt_with_it(
    toy: Toy, loader: KernelLoader
) -> None:
    helper = loader.load(base(2), "helper")
    gate = toy.gate(base(3))
    thread = threading.Thread(target=loader.load, args=(base(3), "helper"))
    thread.start()
    gate.wait_until_entered()
    top = loader.load("top(x) = h.base(x)", "top", namespace={"h": helper}).top
    gate.opened.set()
    thread.join()
    assert top(1) == 3


def test_two_texts_that_use_each_other_cannot_both_be_loaded(toy: Toy, loader: KernelLoader) -> None:
    a, b = loader.load("f(x) = x", "a"), loader.load("g(x) = x", "b")
    text = "f(x) = b.g(x)"
    gate = toy.gate(text)
    errors: list[Exception] = []

    def load() -> None:
        try:
            loader.load(text, "a", namespace={"b": b})
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    gate.wait_until_entered()
    loader.load("g(x) = a.f(x)", "b", namespace={"a": a})
    gate.opened.set()
    thread.join()
    assert "depends on it" in str(errors[0])
    assert a.f(3) == 3


def test_info_of_a_module_lists_its_helpers_sorted(loader: KernelLoader) -> None:
    names = {n: loader.load(base(2), n) for n in ("b", "a")}
    top = loader.load("top(x) = b.base(a.base(x))", namespace=names)
    assert rekernel.info(top).depends_on == ("a", "b")
