"""Row 18: reloading, failing, unloading and renaming leave nothing behind but what is live.

What Taichi itself keeps until ``ti.reset`` is bounded here, and counted in ``loader.stats()``.
"""

from __future__ import annotations

import gc
import inspect
import linecache
import logging
import sys
import weakref

import pytest

import rekernel
from support import START, lines_of, run_python, times


def footprint(ti):
    """Count all that one version could leave behind, in places that outlive it."""
    gc.collect()
    runtime = ti.lang.impl.get_runtime()
    return {
        "modules": len([m for m in sys.modules if m.startswith("_rekernel_live.")]),
        "linecache": len([f for f in linecache.cache if "#v" in f]),
        "inspect": len([f for f in getattr(inspect, "modulesbyfile", ()) if "#v" in f]),
        "inspect names": len([m for m in getattr(inspect, "_filesbymodname", ()) if m.startswith("_rekernel_live.")]),
        "kernels": len([k for k in runtime.kernels if getattr(k, "reference", lambda: 1)() is not None]),
        "fields": len(runtime.global_vars) + len(runtime.unfinalized_fields_builder),
    }


def test_a_version_goes_with_the_second_load_after_it(ti, loader):
    module = loader.load(times(1), "k")
    gone = []
    for factor in range(2, 12):
        gone.append(weakref.ref(module.f._primal))
        loader.load(times(factor), "k")
        module.f(1)
    gc.collect()
    assert [reference() is None for reference in gone] == [True] * 9 + [False]


WAYS = {
    "replace": lambda loader, n: loader.load(times(n), "k"),
    "replace and call": lambda loader, n: loader.load(times(n), "k").f(1),
    "to and fro": lambda loader, n: loader.load(times(n % 2), "k").f(1),
    "roll back": lambda loader, n: (loader.load(times(n), "k"), loader.load(times(-n), "k"), loader.rollback("k")),
    "unload": lambda loader, n: (loader.load(times(n), f"id{n}").f(1), loader.unload(f"id{n}")),
    "unload and load again": lambda loader, n: (loader.unload("k"), loader.load(times(n), "k")),
    "a new name each time": lambda loader, n: loader.load(times(n, f"f{n}"), "k"),
    "a new loader each time": lambda loader, n: rekernel.KernelLoader().load(times(n), "k").f(1),
    "fail in the text": lambda loader, n: fails(loader, times(n) + "nonsense\n"),
    "fail to parse": lambda loader, n: fails(loader, times(n) + ")\n"),
    "fail in a kernel": lambda loader, n: fails(loader, times(f"nonsense{n}")),
    "fail with a field": lambda loader, n: fails(loader, f"x{n} = ti.field(ti.f32)\n" + times(n) + "nonsense\n"),
    "fail at the call": lambda loader, n: fails_late(loader, times(f"nonsense{n}")),
    "classes": lambda loader, n: loader.load(CLASS.format(n), "k").C().f(),
    "pinned": lambda loader, n: loader.load(times(n), "k").f.pinned()(1),
    "helper": lambda loader, n: with_helper(loader, n),
    "namespace": lambda loader, n: loader.load(times("a"), "k", namespace={"a": n, "b": [n]}).f(1),
}

CLASS = """
@ti.data_oriented
class C:
    @ti.kernel
    def f(self) -> ti.i32:
        return {}
"""


def fails(loader, text):
    with pytest.raises(rekernel.KernelSourceError):
        loader.load(text, "k")


def fails_late(loader, text):
    with pytest.raises(rekernel.KernelSourceError):
        loader.load(text, "late", check=False).f(1)


def with_helper(loader, n):
    helper = loader.load(f"@ti.func\ndef h(x):\n    return x * {n}\n", "helper")
    text = "@ti.kernel\ndef f(n: ti.template()) -> ti.f32:\n    return helper.h(n)\n"
    loader.load(text, "user", namespace={"helper": helper})
    assert loader["user"].f(1) == n


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_does_not_grow(ti, loader, way, caplog):
    caplog.set_level(logging.CRITICAL, logger="rekernel")  # a record of the log would hold each error
    loader.load(times(1), "k").f(1)
    for n in range(3, 8):
        WAYS[way](loader, n)
    before = footprint(ti)
    for n in range(8, 28):
        WAYS[way](loader, n)
    assert footprint(ti) == before


def test_a_loader_that_is_dropped_goes_with_all_it_had(ti):
    before = footprint(ti)
    loader = rekernel.KernelLoader()
    for n in range(3):
        loader.load(times(n), f"k{n}").f(1)
    gone = weakref.ref(loader)
    del loader
    assert footprint(ti) == before
    assert gone() is None


def test_a_held_handle_holds_its_own_id_only(ti, loader):
    before = footprint(ti)
    held = loader.load(times(3), "held").f
    for n in range(5):
        loader.load(times(n), f"k{n}")
    loader.cleanup_all()
    assert footprint(ti)["modules"] <= before["modules"] + 1
    with pytest.raises(rekernel.KernelRemovedError):
        held(1)


def test_a_thousand_reloads_in_one_process():
    # Taichi keeps about 7 KB for each kernel object and 100 KB for each distinct compiled kernel until ti.reset.
    program = (
        START
        + """
import gc, os, sys, linecache, weakref
from pathlib import Path
def resident():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
def counts():
    gc.collect()
    return [len(sys.modules), len(linecache.cache), len(os.listdir("/proc/self/fd")),
            len([o for o in gc.get_objects() if type(o).__name__ in ("TaichiVersion", "Edition", "Guard")])]
texts = [scale(n % 8) + f"# {n}\\n" for n in range(1000)]
x = np.ones(4, np.float32)
for text in texts[:100]:
    loader.load(text, "k").f(x)
first, memory = counts(), resident()
for text in texts[100:]:
    loader.load(text, "k").f(x)
last, grown = counts(), resident() - memory
print("grown", grown, file=sys.stderr)
print(first == last, first, last)
print(grown < 60, grown)
stats = loader.stats()
count = stats.languages["taichi"]  # entries of Taichi's list may be dead until the next load
print(stats.versions_held, stats.loads, count["compiled"], count["kernels"] < 500)
loader.cleanup_all(reset_taichi=True)
print(counts()[3])
"""
    )
    printed = lines_of(run_python(program, timeout=300))
    assert printed[0].startswith("True"), printed[0]
    assert printed[1].startswith("True"), printed[1]
    assert printed[2:] == ["2 1000 2 True", "0"]
