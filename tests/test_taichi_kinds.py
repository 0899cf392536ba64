"""Everything that a Taichi text may contain: functions, classes, templates, fields, gradients, graphs."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from kit import ti


def test_functions_real_functions_and_several_kernels_of_one_text(loader):
    m = loader.load("""
@ti.func
def twice(a):
    return 2 * a

@ti.real_func
def factorial(n: ti.i32) -> ti.i32:
    r = 1
    for i in range(1, n + 1):
        r *= i
    return r

@ti.kernel
def double(x: ti.types.ndarray()):
    for i in x:
        x[i] = twice(x[i])

@ti.kernel
def fact(n: ti.i32) -> ti.i32:
    return factorial(n)
""")
    x = np.arange(3.0, dtype=np.float32)
    m.double(x)
    assert x.tolist() == [0, 2, 4]
    assert m.fact(5) == 120
    assert list(loader) == ["double"]
    assert loader.info().kernels[1].returns == "int32"


def test_templates_specialise_per_value_and_per_field(loader):
    m = loader.load("""
@ti.kernel
def fill(f: ti.template(), n: ti.template()):
    for I in ti.grouped(f):
        f[I] = n * 2
""")
    a, b = ti.field(ti.f32, shape=3), ti.field(ti.i32, shape=(2, 2))
    m.fill(a, 1.5)
    m.fill(b, 4)
    assert a.to_numpy().tolist() == [3, 3, 3]
    assert b.to_numpy().tolist() == [[8, 8], [8, 8]]


def test_fields_come_from_the_namespace_by_reference(loader):
    x = ti.field(ti.f32, shape=4)
    scale = 3.0
    m = loader.load("@ti.kernel\ndef up():\n    for i in x:\n        x[i] += scale\n", namespace=locals())
    m.up()
    assert x.to_numpy().tolist() == [3, 3, 3, 3]
    assert sorted(loader.info().history[0].kernels) == ["up"]


def test_vectors_matrices_and_structs_are_arguments(loader):
    m = loader.load("""
vec3 = ti.types.vector(3, ti.f32)
Ray = ti.types.struct(o=vec3, t=ti.f32)

@ti.kernel
def dot(a: vec3, b: vec3) -> ti.f32:
    return a.dot(b)

@ti.kernel
def at(r: Ray) -> ti.f32:
    return r.o[0] + r.t

@ti.kernel
def trace(a: ti.types.matrix(2, 2, ti.f32)) -> ti.f32:
    return a.trace()
""")
    assert m.dot([1, 2, 3], ti.Vector([1.0, 1.0, 1.0])) == 6
    assert m.at(m.Ray(o=[1, 2, 3], t=0.5)) == 1.5
    assert m.trace(ti.Matrix([[1, 2], [3, 4]])) == 5


def test_a_tape_records_handles(loader):
    m = loader.load("""
x = ti.field(ti.f32, shape=(), needs_grad=True)
y = ti.field(ti.f32, shape=(), needs_grad=True)

@ti.kernel
def square():
    y[None] += x[None] ** 2
""")
    m.x[None] = 3.0
    with ti.ad.Tape(m.y):
        m.square()
    assert m.x.grad[None] == 6
    m.y.grad[None] = 1.0
    m.x.grad[None] = 0.0
    m.square.grad()
    assert m.x.grad[None] == 6


def test_a_graph_takes_a_handle(loader):
    m = loader.load("""
@ti.kernel
def add(x: ti.types.ndarray(dtype=ti.f32, ndim=1), k: ti.f32):
    for i in x:
        x[i] += k
""")
    builder = ti.graph.GraphBuilder()
    symbol = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, "x", ti.f32, ndim=1)
    number = ti.graph.Arg(ti.graph.ArgKind.SCALAR, "k", ti.f32)
    builder.dispatch(m.add, symbol, number)
    graph = builder.compile()
    x = ti.ndarray(ti.f32, shape=3)
    graph.run({"x": x, "k": 2.0})
    assert x.to_numpy().tolist() == [2, 2, 2]


def test_class_kernels_are_checked_like_handles(loader):
    from rekernel import ArgumentTypeError, ArgumentValueError

    m = loader.load("""
@ti.data_oriented
class Box:
    def __init__(self, n):
        self.f = ti.field(ti.i32, shape=n)

    @ti.func
    def more(self, a):
        return a + 1

    @ti.kernel
    def put(self, v: ti.i32):
        for i in self.f:
            self.f[i] = self.more(v)

    @staticmethod
    @ti.kernel
    def three() -> ti.i32:
        return 3
""")
    box = m.Box(2)
    box.put(4)
    assert box.f.to_numpy().tolist() == [5, 5]
    assert box.three() == 3
    with pytest.raises(ArgumentValueError, match=r"put\(\) argument 'v': 1099511627776 does not fit int32"):
        box.put(2**40)
    with pytest.raises(ArgumentTypeError, match="expected int32, got float"):
        box.put(1.5)
    assert box.f.to_numpy().tolist() == [5, 5]


def test_a_handle_looks_like_the_function(loader):
    m = loader.load('''
@ti.kernel
def blur(dst: ti.types.ndarray(dtype=ti.f32, ndim=2), src: ti.types.ndarray(dtype=ti.f32, ndim=2), k: float) -> ti.f64:
    """Blurs."""
    s = 0.0
    for i, j in dst:
        dst[i, j] = k * src[i, j]
    return s
''')
    blur = m.blur
    assert (blur.__name__, blur.__doc__) == ("blur", "Blurs.")
    assert str(inspect.signature(blur)) == ("(dst: 'float32[:, :]', src: 'float32[:, :]', k: 'float32') -> 'float64'")
    assert [p.written for p in blur.parameters] == [True, False, False]
    assert repr(blur) == (
        "<kernel blur.blur v1 (taichi): blur(dst: float32[:, :], src: float32[:, :], k: float32) -> float64>"
    )


def test_a_text_may_import_taichi_itself_and_use_star_imports(loader):
    m = loader.load("""
import taichi as tch
from math import *
from taichi.math import *

@tch.kernel
def f() -> tch.f32:
    v = vec2(1.0, 2.0)
    return v.y + floor(pi)
""")
    assert m.f() == 5
    assert "tch" in dir(m)


def test_only_the_users_names_show(loader):
    m = loader.load("k = 2\n@ti.kernel\ndef f() -> ti.i32:\n    return k\n")
    assert dir(m) == ["__name__", "f", "k"]
    with pytest.raises(AttributeError, match="has no 'ti'"):
        _ = m.ti


def test_a_main_block_does_not_run(loader):
    m = loader.load("""
ran = []
@ti.kernel
def f():
    pass
if __name__ == '__main__':
    ran.append(1)
""")
    assert m.ran == []


def test_numpy_scalars_and_0d_arrays_are_scalars(loader):
    m = loader.load("""
@ti.kernel
def add(a: ti.i32, b: ti.f32, c: ti.u1) -> ti.f32:
    return a + b + ti.cast(c, ti.i32)
""")
    assert m.add(np.array(2), np.array(0.5), np.bool_(True)) == 3.5
    assert m.add(np.int64(2), np.float64(0.5), False) == 2.5
    assert m.add(True, 1, np.array(True)) == 3
