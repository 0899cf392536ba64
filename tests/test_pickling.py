"""Handles and modules that travel: back to themselves here, built anew from their texts elsewhere."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toy as toys
from rekernel import KernelHandle, KernelLoader, KernelRemovedError
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


def text(factor: int) -> str:
    return f"factor := {factor}\nstep(x) = {factor} * x"


def travel(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


# --- in the same process ---------------------------------------------------------------------------------------


def test_a_kernel_comes_back_as_itself(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    assert travel(step) is step


def test_a_module_comes_back_as_itself(loader: KernelLoader) -> None:
    module = loader.load(text(1), "heat")
    assert travel(module) is module


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_works(loader: KernelLoader, protocol: int) -> None:
    step = loader.load(text(1), "heat").step
    assert pickle.loads(pickle.dumps(step, protocol)) is step


def test_a_kernel_of_a_loader_that_nobody_holds_comes_back_as_itself(toy: Toy) -> None:
    step = KernelLoader().load(text(1)).step
    assert travel(step) is step


def test_an_older_pickle_never_replaces_a_newer_version(toy: Toy, loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    data = pickle.dumps(step)
    loader.load(text(2), "heat")
    assert pickle.loads(data) is step
    assert (step(1), loader.info("heat").version) == (2, 2)


def test_a_kernel_that_a_newer_version_lost_says_so_when_called(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    data = pickle.dumps(step)
    loader.load("other(x) = x", "heat")
    assert pickle.loads(data) is step
    with pytest.raises(KernelRemovedError, match="has no kernel 'step'"):
        step(1)


def test_a_pinned_kernel_comes_back_pinned(loader: KernelLoader) -> None:
    pinned = loader.load(text(1), "heat").step.pinned()
    data = pickle.dumps(pinned)
    loader.load(text(2), "heat")
    again = pickle.loads(data)
    assert (again(1), again.version) == (1, 1)
    assert repr(again) == repr(pinned)
    assert loader.info("heat").version == 2


def test_a_pinned_kernel_comes_back_when_its_version_is_long_gone(loader: KernelLoader) -> None:
    data = pickle.dumps(loader.load(text(1), "heat").step.pinned())
    for factor in range(2, 6):
        loader.load(text(factor), "heat")
    again = pickle.loads(data)
    assert (again(1), again.version, loader["heat"].step(1)) == (1, 1, 5)


def test_an_unloaded_kernel_does_not_pickle(loader: KernelLoader) -> None:
    step = loader.load(text(1), "heat").step
    loader.unload("heat")
    with pytest.raises(KernelRemovedError):
        pickle.dumps(step)


def test_containers_with_kernels_pickle(loader: KernelLoader) -> None:
    module = loader.load(text(1), "heat")
    again = travel({"m": module, "s": [module.step]})
    assert again["s"][0] is module.step


# --- what cannot travel ----------------------------------------------------------------------------------------


def test_names_that_cannot_travel_are_listed(loader: KernelLoader) -> None:
    names = {"a": [1], "b": object(), "k": 2}
    step = loader.load("step(x) = x + k + a + b", "heat", namespace=names).step
    with pytest.raises(pickle.PicklingError, match=r"heat v1 uses a, b of the namespace.*pass the others as arguments"):
        pickle.dumps(step)


def test_names_of_a_helper_that_cannot_travel_are_listed_with_the_helper(loader: KernelLoader) -> None:
    helper = loader.load("base(x) = x + b", "helper", namespace={"b": object()})
    top = loader.load("top(x) = h.base(x)", namespace={"h": helper}).top
    with pytest.raises(pickle.PicklingError, match="helper v1 uses b of the namespace"):
        pickle.dumps(top)


# --- in another process ----------------------------------------------------------------------------------------

CHILD = """
import pickle, sys
import rekernel, toy
rekernel.languages.register(toy.Toy())
with open(sys.argv[1], "rb") as stream:
    things = [pickle.loads(data) for data in pickle.load(stream)]
print({expression})
"""


def elsewhere(tmp_path: Path, expression: str, *things: Any) -> Any:
    """Return what an expression over the unpickled `things` gives in a fresh process."""
    data = [thing if isinstance(thing, bytes) else pickle.dumps(thing) for thing in things]
    file = tmp_path / "things"
    file.write_bytes(pickle.dumps(data))
    code = CHILD.replace("{expression}", expression)
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        env={"PYTHONPATH": str(Path(toys.__file__).parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


def test_a_kernel_is_built_again_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    step = loader.load(text(3), "heat", scale=10).step
    assert elsewhere(tmp_path, "(things[0](1), things[0].version, things[0].kernel_id)", step) == (30, 1, "heat")


def test_a_module_is_built_again_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    module = loader.load(text(3), "heat")
    assert elsewhere(tmp_path, "(things[0].factor, things[0].step is things[1])", module, module.step) == (3, True)


def test_numbers_are_the_same_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    for factor in (1, 2, 3):
        step = loader.load(text(factor), "heat").step
    assert elsewhere(tmp_path, "things[0].version", step) == 3


def test_a_newer_pickle_reloads_and_an_older_one_does_not(loader: KernelLoader, tmp_path: Path) -> None:
    step = loader.load(text(1), "heat").step
    one = pickle.dumps(step)
    loader.load(text(2), "heat")
    two = pickle.dumps(step)
    for order in ((one, two), (two, one)):
        expression = "(things[0] is things[1], things[0](1), things[0].version)"
        assert elsewhere(tmp_path, expression, *order) == (True, 2, 2)


def test_a_pinned_kernel_stays_pinned_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    step = loader.load(text(1), "heat").step
    one = pickle.dumps(step.pinned())
    loader.load(text(2), "heat")
    expression = "(things[0](1), things[1](1), things[0].version)"
    assert elsewhere(tmp_path, expression, step, one) == (2, 1, 2)
    assert elsewhere(tmp_path, "(things[0](1), things[1](1), things[0].version)", one, step) == (1, 2, 1)


def test_two_loaders_stay_two_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    with KernelLoader() as other:
        one, two = loader.load(text(1), "heat").step, other.load(text(2), "heat").step
        assert elsewhere(tmp_path, "(things[0](1), things[1](1))", one, two) == (1, 2)


def test_helpers_travel_along_and_are_followed_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    base = loader.load(text(2), "base")
    mid = loader.load("mid(x) = b.step(x)", "mid", namespace={"b": base})
    top = loader.load("top(x) = mid(x) + 1", "top", namespace={"mid": mid.mid}).top
    before = pickle.dumps(top)
    assert elsewhere(tmp_path, "things[0](1)", before) == 3
    loader.load(text(5), "base")
    assert elsewhere(tmp_path, "(things[0](1), things[1](1))", before, base.step) == (6, 5)


def test_a_helper_of_another_loader_travels_with_its_loader(loader: KernelLoader, tmp_path: Path) -> None:
    with KernelLoader() as other:
        base = other.load("base() = 5", "heat", language="toy")
        step = loader.load("step(x) = x + base.base()", "heat", language="toy", namespace={"base": base}).step
        expression = "(things[0](1), things[1](), things[0].kernel_id, things[1].kernel_id)"
        assert elsewhere(tmp_path, expression, step, base.base) == (6, 5, "heat", "heat")


def test_what_is_unpickled_is_not_the_last_load(loader: KernelLoader, tmp_path: Path) -> None:
    step = loader.load(text(1), "heat").step
    expression = "things[0]._live.loader().get(None)"
    assert elsewhere(tmp_path, expression, step) is None


def test_constants_and_modules_of_the_namespace_travel_along(loader: KernelLoader, tmp_path: Path) -> None:
    names = {"i": 2, "f": 0.5, "t": "ab", "n": None, "m": math, "c": 1j, "s": (3, (4, 5))}
    module = loader.load("all := [i, f, t, n, m.floor(2.5), c, s]", "heat", language="toy", namespace=names)
    assert elsewhere(tmp_path, "things[0].all", module) == [2, 0.5, "ab", None, 2, 1j, (3, (4, 5))]


def test_a_derived_id_is_derived_elsewhere(loader: KernelLoader, tmp_path: Path) -> None:
    step = loader.load("step(x) = x").step
    expression = "things[0]._live.loader().load(chr(10).join(['new(x) = x', 'step(x) = 9 * x'])) and things[0](1)"
    assert elsewhere(tmp_path, expression, step) == 9


def test_a_kernel_goes_to_a_pool_of_spawned_processes(loader: KernelLoader, tmp_path: Path) -> None:
    """As a user does it: a script whose pool maps a kernel."""
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, rekernel, toy\n"
        "rekernel.languages.register(toy.Toy())\n"
        "if __name__ == '__main__':\n"
        "    step = rekernel.kernels.load('step(x) = k * x', namespace={'k': 3}).step\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        first = pool.map(step, [1, 2])\n"
        "        rekernel.kernels.load('step(x) = k + x')\n"
        "        print(first, pool.map(step, [1, 2]))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(Path(toys.__file__).parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("[3, 6] [4, 5]\n", "")


def test_a_handle_is_a_handle_again(loader: KernelLoader) -> None:
    assert type(travel(loader.load(text(1)).step.pinned())) is KernelHandle
