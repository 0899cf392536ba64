"""Row 37: a kernel never writes into read-only memory; what it only reads may be read-only. Here: Taichi kernels."""

import numpy as np
import pytest

import rekernel
from support import START, lines_of, run_python

ARRAY = "x: ti.types.ndarray(ti.f64, 1)"
WRITES = {
    "store": "x[0] = 1",
    "augmented": "x[0] += 1",
    "in a loop": "for i in x:\n        x[i] = i",
    "in a branch": "if x[0] > 5:\n        x[0] = 1",
    "atomic": "ti.atomic_add(x[0], 1.0)",
    "through a function": "write(x)",
    "through two functions": "through(x)",
    "by keyword": "write(y=x)",
    "alias": "y = ti.static(x)\n    y[0] = 1",
    "in a tuple": "x[0], k = 1.0, 2.0",
    "through a function of the namespace": "outside(x)",
    "nested": "for i in range(1):\n        for j in ti.static(range(2)):\n            x[j] -= i",
    "element by reference": "assign(x[0])",
    "element by reference, deeper": "assign_through(x[1])",
    "element added to by reference": "increase(x[0])",
    "chosen": "y = ti.static(x if True else x)\n    y[0] = 3",
}
READS = {
    "sum": "s = 0.0\n    for i in x:\n        s += ti.cast(x[i], ti.f32)",
    "shape": "n = x.shape[0]",
    "element of a function": "k = read(x[0])",
    "whole to a function": "k = first(x)",
    "element to a function that changes its copy": "k = copies(x[0])",
    "element by reference that is only read": "k = peek(x[0])",
    "mathematics": "k = ti.max(ti.sin(x[0]), tm.clamp(x[0], 0.0, 1.0))",
    "comparison": "k = x[0] > x[1]",
    "element as value": "y = x[0]\n    y = 3.0",
}
FUNCTIONS = """
@ti.func
def write(y: ti.template()):
    y[0] = 7

@ti.func
def through(z: ti.template()):
    write(z)

@ti.func
def assign(e: ti.template()):
    e = 5.0

@ti.func
def assign_through(e: ti.template()):
    assign(e)

@ti.func
def increase(e: ti.template()):
    e += 5.0

@ti.func
def copies(v):
    v = 5.0
    return v

@ti.func
def peek(e: ti.template()):
    return e + 1

@ti.func
def read(v):
    return v + 1

@ti.func
def first(y: ti.template()):
    return y[0] + 1

"""


def read_only(kind, tmp_path):
    x = np.arange(4.0)
    if kind == "flag":
        x.flags.writeable = False
    elif kind == "bytes":
        x = np.frombuffer(x.tobytes(), float)
    elif kind == "memory map":
        path = tmp_path / "x"
        x.tofile(path)
        x = np.memmap(path, float, "r")
    elif kind == "broadcast":
        x = np.broadcast_to(x[:1], (1,))
    elif kind == "view":
        x.flags.writeable = False
        x = x[:2]
    return x


@pytest.fixture
def load(ti, loader):
    @ti.func
    def outside(y: ti.template()):
        y[0] = 9

    def made(body):
        text = f"{FUNCTIONS}@ti.kernel\ndef f({ARRAY}):\n    {body}\n"
        return loader.load(text, "k", namespace={"outside": outside}).f

    return made


@pytest.mark.parametrize("kind", ["flag", "bytes", "memory map", "broadcast", "view"])
@pytest.mark.parametrize("how", WRITES)
def test_what_writes_refuses_read_only_arrays_before_any_write(load, tmp_path, how, kind):
    f, x = load(WRITES[how]), read_only(kind, tmp_path)
    before = x.copy()
    with pytest.raises(rekernel.ArgumentValueError, match="read-only") as caught:
        f(x)
    assert caught.value.argument == "x"
    assert np.array_equal(x, before)
    f(np.arange(4.0))


@pytest.mark.parametrize("kind", ["flag", "bytes", "memory map", "broadcast", "view"])
@pytest.mark.parametrize("how", READS)
def test_what_only_reads_takes_read_only_arrays(load, tmp_path, how, kind):
    f, x = load(READS[how]), read_only(kind, tmp_path)
    if how == "comparison":
        x = x if len(x) > 1 else np.arange(2.0)
    before = x.copy()
    f(x)
    assert np.array_equal(x, before)


def test_methods_count(loader):
    text = """
@ti.data_oriented
class C:
    @ti.func
    def put(self, y: ti.template()):
        y[0] = 1
    @ti.kernel
    def f(self, x: ti.types.ndarray(ti.f64, 1)):
        self.put(x)
"""
    item = loader.load(text, "k").C()
    x = np.zeros(1)
    item.f(x)
    assert x[0] == 1
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        item.f(x)


def test_a_read_only_memory_map_is_no_crash(tmp_path):
    np.zeros(1000).tofile(tmp_path / "x")
    program = (
        START
        + f"""
x = np.memmap({str(tmp_path / "x")!r}, float, "r")
f = loader.load(scale(2), "k").f
for attempt in range(3):
    try:
        f(x)
    except ValueError as error:
        print("read-only" in str(error))
f(np.memmap({str(tmp_path / "x")!r}, float, "r+"))
"""
    )
    assert lines_of(run_python(program)) == ["True"] * 3
