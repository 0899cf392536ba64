"""Self-contained extension modules: each call does and says what the same call of a JIT-compiled kernel does."""

from __future__ import annotations

import ctypes
import doctest
import importlib.util
import inspect
import itertools
import re
import sysconfig
import threading
import warnings
from array import array as python_array
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from jitkernels import (
    AXPY,
    COUNT,
    ECHO_TYPES,
    ECHOES,
    JACOBI,
    PARTICLE,
    PLAIN,
    THREADS,
    TOTAL,
    WAVE,
    array,
    compilers,
    constant,
    each_compiler,
    extent,
    needs_compiler,
    needs_openmp,
    pointer,
    scalar,
    stride,
    value,
)
from rekernel import modulebuilder, moduletables, pymodule
from rekernel.jit import CpuJit
from rekernel.kernel import Kernel
from rekernel.modulebuilder import Unit
from rekernel.pymodule import PythonModuleBuilder, function_name, literal, module_name
from support import run_python

INCLUDES = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
FIXED = Kernel(
    "fixed", (array("a", "int16", 3, shape=(2, "n", 1), strides=(None, None, 1), trailing=1, written=True),), "cpp",
    code="long long fixed(const short *a, int n, int s, int t, short u) {\n"
         "    return a[0] + 10LL * n + 1000LL * s + 100000LL * t + 10000000LL * u; }\n",
    slots=(pointer("a"), extent("a", 1, "int32"), stride("a", 0, "int32"), stride("a", 1, "int32"),
           stride("a", 2, "int16")), returns="int64",
)  # fmt: skip
NARROW = Kernel(
    "narrow", (array("a", "uint8"),), "cpp", code="int narrow(unsigned char n, signed char s) { return n * 1000 + s; }\n",
    slots=(extent("a", 0, "uint8"), stride("a", 0, "int8")), returns="int32",
)  # fmt: skip
PAIRS = Kernel(
    "pairs", (array("a", None, itemsize=16, fields=(("x", "float64", 0),), written=True, restrict=True),
              array("b", None, itemsize=16, fields=(("y", "float64", 8),))), "cpp",
    code="void pairs(double *x, const double *y) { *x = *y; }\n", slots=(pointer("a", "x"), pointer("b", "y")),
)  # fmt: skip
KEYWORDS = replace(AXPY, name="by_name", function="by_name", policy="pystencils", doc=None,
                   code=AXPY.code.replace("axpy", "by_name"))  # fmt: skip
NOTHING = Kernel("nothing", (), "cpp", code="void nothing() {}\n")
MANY = Kernel(
    "many", tuple(scalar(f"a{i}", "int32") for i in range(40)), "cpp", returns="int32",
    code=f"int many({', '.join(f'int a{i}' for i in range(40))}) {{ return {' + '.join(f'a{i}' for i in range(40))}; }}\n",
    slots=tuple(value(f"a{i}") for i in range(40)),
)  # fmt: skip
MEDDLE = Kernel(
    "meddle", (array("x"),), "cpp", slots=(pointer("x"),),
    code="#include <cfenv>\nvoid meddle(const double *) { std::fesetround(FE_UPWARD); throw 1; }\n",
)  # fmt: skip
WAITS = Kernel(
    "waits", (array("flags", "int32", written=True), scalar("turns", "int64")), "cpp", returns="int32",
    code="int waits(int *flags, long long turns) {\n    __atomic_store_n(&flags[0], 1, __ATOMIC_SEQ_CST);\n"
         "    for (long long i = 0; i < turns; ++i)\n        if (__atomic_load_n(&flags[1], __ATOMIC_SEQ_CST)) return 1;\n"
         "    return 0;\n}\n",
    slots=(pointer("flags"), value("turns")),
)  # fmt: skip
KERNELS = (*PLAIN, MEDDLE, WAITS, FIXED, NARROW, PAIRS, KEYWORDS, NOTHING, MANY)
BY_NAME = {kernel.name: kernel for kernel in KERNELS}


def load(data: bytes, name: str, directory):
    path = directory / f"{name}.so"
    path.write_bytes(data)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(kernels, name: str, directory, info=None):
    jit = CpuJit(info, None)
    text = PythonModuleBuilder().render_module(kernels, name)
    return load(jit.obtain(kernels, text, INCLUDES, allow_undefined=True).data, name, directory)


@pytest.fixture(scope="module", params=compilers(), ids=lambda info: info.command)
def both(request, tmp_path_factory):
    """One module with all kernels, and the same kernels through the native call path."""
    info = request.param
    module = build(KERNELS, "everything", tmp_path_factory.mktemp("module"), info)
    return module, dict(zip(BY_NAME, CpuJit(info, None).compile_many(KERNELS), strict=True))


def outcome(function, args, kwargs):
    """What a call did: its result, or its exception in plain words; and what became of the arrays."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's own opinions on the arguments
            returned = function(*args, **kwargs)
        result = ("returned", type(returned), repr(returned))
    except Exception as error:
        kinds = (TypeError, ValueError, KeyError, RuntimeError, IndexError)
        result = ("raised", next(kind for kind in kinds if isinstance(error, kind)), str(error))
    return result, [repr(a.tolist()) for a in itertools.chain(args, kwargs.values()) if isinstance(a, np.ndarray)]


def same(both, name, made):
    """Check that both ways of calling a kernel do the same with arguments that `made` makes; return the outcome."""
    module, natives = both
    calls = []
    for function in (natives[name], getattr(module, function_name(BY_NAME[name]))):
        args, kwargs = made()
        before = [(a, a.copy()) for a in (*args, *kwargs.values()) if isinstance(a, np.ndarray) and a.flags.writeable]
        result, arrays = outcome(function, args, kwargs)
        for changed, was in before:
            changed[...] = was
        calls.append(((*result[:2], result[2].replace(f"{name}()", f"{function_name(BY_NAME[name])}()")), arrays))
    assert calls[0] == calls[1]
    return calls[1][0]


class HasIndex:
    def __index__(self):
        return 7


class HasFloat:
    def __float__(self):
        return 7.0


class Broken:
    def __index__(self):
        raise RuntimeError("broken")


class MyInt(int):
    def __repr__(self):
        return "mine"


class MyFloat(float):
    def __float__(self):
        return 99.0


NUMBERS = [
    0, 1, -1, True, False, 127, 128, -128, -129, 255, 256, 32767, -32769, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1,
    2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64, 2**255, 2**256, -(2**300), 10**400,
    MyInt(3), 0.0, -0.0, 1.5, -2.5, 1e-8, 5.96e-8, 2.98e-8, 2.99e-8, 6.1e-5, 65504.0, 65519.99, 65520.0, -65520.0,
    3.4028235677973366e38, 3.4028235e38, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"), MyFloat(2.5),
    1j, 1 + 2j, complex("nan"), complex(0, 1e300), complex("inf+infj"),
    np.bool_(True), np.int8(-3), np.uint8(200), np.int64(-5), np.uint64(2**64 - 1), np.longlong(5), np.float16(1.5),
    np.float32(1.1), np.float64(1.1), np.float32("inf"), np.longdouble(1.5), np.longdouble("1e4000"),
    np.longdouble("inf"), np.complex64(1 + 2j), np.complex128(1e300), np.clongdouble(1), np.timedelta64(1, "s"),
    np.datetime64("2000-01-01"), np.str_("1"), np.bytes_(b"1"), np.void(b"12"),
    np.array(3), np.array(3.5), np.array(300, "u2"), np.array(True), np.array(1j), np.array(2.5, ">f8"),
    np.array(5, ">i4"), np.array([1]), np.array([1.5]), np.array("a"), np.array(None), np.array(1, "m8[s]"),
    np.array(1.5, "longdouble"),
    None, "1", b"1", bytearray(b"1"), [1], (1,), {}, object, Decimal(1), Fraction(1, 2), HasIndex(), HasFloat(), Broken(),
    ctypes.c_int(1), ctypes.c_double(1), memoryview(b"1"), python_array("i", [1]), range(1), ...,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ECHO_TYPES)
def test_numbers_of_every_type(both, dtype):
    kinds = [same(both, f"echo_{dtype}", lambda number=number: ((number,), {}))[0] for number in NUMBERS]
    assert set(kinds) == {"returned", "raised"}


def arrays_of(dtype):
    """Arrays of one dtype in all layouts, and arrays of many dtypes: what is right and what is wrong with them."""
    base = np.arange(24).astype(dtype)
    read_only = base[:6].copy()
    read_only.flags.writeable = False
    raw = np.zeros(24 * base.itemsize + 1, "u1")[1:].view(dtype)
    yield from (
        base,
        base[:6],
        base[::2],
        base[::-1],
        base[:0],
        base[:1],
        base[3],
        base.reshape(4, 6),
        base.reshape(4, 6).T,
    )
    yield from (base.reshape(2, 3, 4), base.reshape(4, 6)[:, ::2], base.reshape(6, 4)[::2, 1:], base.reshape(24, 1))
    yield from (
        base.reshape(1, 24),
        base[:1].reshape(1, 1, 1),
        np.array(base[3]),
        np.zeros((0, 5), dtype),
        read_only,
        raw,
    )
    yield from (np.broadcast_to(base[:1], 6), np.broadcast_to(base[:6], (4, 6)), base.astype(base.dtype.newbyteorder()))
    yield from (np.lib.stride_tricks.as_strided(base, (3,), (1,)), base.reshape(4, 6).copy("F"), base[3:4, None, None])
    yield from (memoryview(base), memoryview(base).toreadonly(), base.tolist(), base.reshape(4, 6).view(np.matrix))
    yield np.frombuffer(b"\0" * 48, dtype)


FOREIGN = [
    None, 1, 2.5, 1j, "text", b"12345678", bytearray(16), [1.0], (), {}, object(), np.float32(1), np.float64(1), np.int64(1),
    np.bool_(True), np.zeros(3, "O"), np.zeros(3, "U2"), np.zeros(3, "S2"), np.zeros(3, "M8[s]"), np.zeros(3, "m8[s]"),
    np.zeros(3, "longdouble"), np.zeros(3, PARTICLE), np.zeros(3, [("a", "f8")]), (ctypes.c_double * 3)(1, 2, 3),
    ((ctypes.c_double * 3) * 2)(), ctypes.c_double(1), python_array("d", [1, 2, 3]), python_array("f", [1, 2, 3]),
    memoryview(b"12345678"), memoryview(bytearray(16)).cast("d"), np.ma.zeros(3), np.zeros(3, ">f8"), np.zeros(3, ">c8"),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "?", "i8", "i2", "u1", "longlong"])
@pytest.mark.parametrize("name", ["axpy", "total", "rotate", "count", "wave", "fixed", "narrow"])
def test_arrays_in_every_layout(both, name, dtype):
    before = {"count": (np.zeros((), int),)}.get(name, ())
    after = {"axpy": (np.ones(6), 2), "rotate": (1j,), "wave": (2,)}.get(name, ())
    for number, argument in enumerate(arrays_of(dtype)):
        if name != "total" or np.asarray(argument).size >= 4:  # a raw pointer has no size
            same(both, name, lambda number=number: ((*before, list(arrays_of(dtype))[number], *after), {}))


@pytest.mark.parametrize("name", ["axpy", "total", "rotate", "heat.jacobi", "count", "wave", "fixed", "kick", "pairs"])
def test_other_objects_in_the_place_of_an_array(both, name):
    kernel = BY_NAME[name]
    good = {"y": np.ones(3), "x": np.ones(3), "a": 2, "w": 1j, "k": 2, "dst": np.ones((3, 3)), "src": np.ones((3, 3)),
            "out": np.zeros((), int), "mask": np.ones(3, bool), "p": np.zeros(3, PARTICLE)}  # fmt: skip
    for parameter, foreign in itertools.product(kernel.parameters, FOREIGN):
        if name == "total" and foreign is not None and np.asarray(foreign).nbytes < 16:
            continue
        if parameter.kind == "array":
            kwargs = {p.name: good.get(p.name, np.zeros(1, "f8,f8")) for p in kernel.parameters} | {
                parameter.name: foreign
            }
            same(both, name, lambda kwargs=kwargs: ((), kwargs))


@pytest.mark.parametrize("name", ["axpy", "by_name", "nothing", "many", "echo_int8"])
def test_names_and_numbers_of_arguments(both, name):
    names = [parameter.name for parameter in BY_NAME[name].parameters]
    values = [np.ones(3), np.ones(3), 2.0][: len(names)] if name in ("axpy", "by_name") else [1] * len(names)
    pairs = dict(zip(names, values, strict=True))
    for count in range(len(names) + 3):
        same(both, name, lambda count=count: ((values * 3)[:count] or [1] * count, {}))
    for missing in names[:4]:
        same(both, name, lambda missing=missing: ((), {k: v for k, v in pairs.items() if k != missing}))
    for extra in ("b", "", "é", "\ud800", "y", "a0", "x\0"):
        same(both, name, lambda extra=extra: (values[:1], {extra: 1}))
        same(both, name, lambda extra=extra: ((), {**pairs, extra: 1}))
        same(both, name, lambda extra=extra: (values, {extra: 1}))
    assert same(both, name, lambda: ((), dict(reversed(pairs.items()))))[0] == "returned"


def test_pystencils_policy(both):
    by_name = both[0].by_name
    with pytest.raises(KeyError, match="misses the keyword argument 'x'"):
        by_name(y=np.ones(2), a=1)
    with pytest.raises(TypeError, match=re.escape("call it as by_name(y=..., x=..., a=...)")):
        by_name(np.ones(2), np.ones(2), 1)
    by_name(y=np.ones(2), x=np.ones(2), a=1, unknown=object())


# ---- what the kernels compute ----


def test_results(both):
    module = both[0]
    rng = np.random.default_rng(1)
    x, y = rng.random(50), rng.random(50)
    wanted = y + 3 * x
    assert module.axpy(y, x, a=3) is None
    np.testing.assert_allclose(y, wanted)

    src, dst = rng.random((9, 14)), np.zeros((14, 9)).T
    module.heat_jacobi(dst[::-1], src[::-1])
    np.testing.assert_allclose(
        dst[1:-1, 1:-1], 0.25 * (src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:])
    )

    assert module.total(np.arange(8, dtype="f4").reshape(2, 2, 2)) == 6.0
    z = np.array([1, 2j], "c8")
    assert module.rotate(z, 1j) == -2 + 1j
    assert z.tolist() == [1j, -2]
    p = np.zeros(6, PARTICLE)
    p["charge"] = range(6)
    module.kick(p[::-2])
    assert p["mass"].tolist() == [0, 1, 0, 3, 0, 5]
    for out in (np.array(1), np.ones(1, int), np.ones((1, 1), int)):
        module.count(out, np.array([True, False, True]))
        assert out == 3
    module.wave(x, 0.5)
    assert module.throws(7) == 8
    assert [module.state() for _ in range(3)] == [1001001, 2002002, 3003003]


@pytest.mark.parametrize("how", range(5))
def test_cxx_exceptions(both, how):
    kind, *rest = same(both, "throws", lambda: ((how,), {}))
    if how in (0, 1, 2):
        words = ["too hot: ü", "just text", "Odd"][how]
        assert (kind, rest) == ("raised", [RuntimeError, f"throws(): {words}"])
    else:
        assert (kind, rest) == ("returned", [int, str(how + 1)])


OVERLAPS = {
    "the same": lambda b: (b[:3], b[:3]),
    "a part": lambda b: (b[:3], b[2:5]),
    "beside": lambda b: (b[:3], b[3:6]),
    "interleaved rows": lambda b: (b[0:6:2], b[1:7:2]),
    "interleaved columns": lambda b: (b[:6, 0:6:2], b[:6, 1:7:2]),
    "crossing": lambda b: (b[:3, 2:5], b[2:5, :3]),
    "mirrored": lambda b: (b[:3][::-1], b[3:6][:, ::-1]),
    "mirrored on itself": lambda b: (b[:3], b[:3][::-1, ::-1]),
    "transposed": lambda b: (b[:4, :4], b[:4, :4].T),
    "empty": lambda b: (b[:0], b[:0]),
    "half an item": lambda b: (b[:3], b.reshape(-1).view("u1")[4:].view("u1")[: 24 * 8].view("u1")),
}


@pytest.mark.parametrize("how", OVERLAPS)
def test_overlap_where_restrict_is_promised(both, how):
    same(both, "heat.jacobi", lambda: (OVERLAPS[how](np.ones((8, 8))), {}))


def test_overlap_that_is_none(both):
    base = np.ones((8, 8))
    both[0].heat_jacobi(base[:6, 0:6:2], base[:6, 1:7:2])
    with pytest.raises(ValueError, match="'src': it overlaps 'dst'"):
        both[0].heat_jacobi(base[:4, :4], base[:4, :4].T)


def test_fields_of_one_array_do_not_overlap(both):
    records = np.zeros(1, "f8,f8")
    records.dtype.names = "x", "y"
    records["y"] = 5
    assert same(both, "pairs", lambda: ((records, records), {}))[0] == "returned"
    both[0].pairs(records, records)
    assert records["x"] == [5]


def test_random_pairs_overlap_alike(both):
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(300):
        base = np.zeros((12, 12))
        cut = [tuple(slice(int(rng.integers(0, 6)), int(rng.integers(6, 13)), int(rng.choice([1, 2, 3, -1]))) for _ in "yx")
               for _ in "ab"]  # fmt: skip
        cut = [tuple(slice(s.stop - 1, s.start, -1) if s.step < 0 else s for s in pair) for pair in cut]
        a, b = (base[pair] for pair in cut)
        rows, columns = (min(n) for n in zip(a.shape, b.shape, strict=True))
        a, b = a[:rows, :columns], b[:rows, :columns]
        kind, *rest = same(both, "heat.jacobi", lambda a=a, b=b: ((a, b), {}))
        assert (kind == "raised") == np.shares_memory(a, b), rest
        kinds.add(kind)
    assert kinds == {"raised", "returned"}


def test_the_floating_point_environment_stays(both):
    third = 1 / float("3")
    for size in (1, 20_000):
        with pytest.raises(RuntimeError, match=r"meddle\(\): int"):
            both[0].meddle(np.zeros(size))
        assert 1 / float("3") == third
        assert -1 / float("3") == -third


@pytest.mark.parametrize(("size", "turns"), [(16384, 3 * 10**10), (16383, 3 * 10**7)])
def test_the_gil_is_released_for_real_work_only(both, size, turns):
    flags = np.zeros(size, "i4")

    def answer():
        while not flags[0]:
            pass
        flags[1] = 1

    thread = threading.Thread(target=answer)
    thread.start()
    assert both[0].waits(flags, turns) == (size == 16384)
    thread.join()


# ---- records ----

ODD_RECORDS = [
    np.zeros(3, [("mass", "f8"), ("charge", "i1")]), np.zeros(3, PARTICLE.newbyteorder()), np.zeros((2, 2), PARTICLE),
    np.zeros(3, np.dtype({"names": ["mass", "charge"], "formats": ["f8", "i1"], "offsets": [8, 24], "itemsize": 32})),
    np.zeros(3, np.dtype({"names": ["mass", "charge"], "formats": ["f8", "i1"], "offsets": [0, 24], "itemsize": 32})),
    np.zeros(3, np.dtype({"names": ["mass", "charge"], "formats": ["f4", "i1"], "offsets": [8, 24], "itemsize": 32})),
    np.zeros(3, np.dtype({"names": ["mass"], "formats": ["f8"], "offsets": [8], "itemsize": 32})),
    np.zeros(3, PARTICLE).view(np.recarray), np.zeros(0, PARTICLE), np.zeros(1, PARTICLE), np.zeros(3, "V32"),
    np.zeros(97, "u1")[1:].view(PARTICLE), np.broadcast_to(np.zeros(1, PARTICLE), 3), np.zeros(6, PARTICLE)[::2],
    np.zeros(3, [("mass", "f8", (4,))]), memoryview(np.zeros(3, [("pad", "f8"), ("mass", "f8"), ("more", "f8"), ("charge", "i1"), ("e", "V7")])),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ODD_RECORDS)))
def test_records_of_other_layouts(both, number):
    same(both, "kick", lambda: ((ODD_RECORDS[number],), {}))


def test_records_that_are_read_only(both):
    p = np.zeros(3, PARTICLE)
    p.flags.writeable = False
    assert same(both, "kick", lambda: ((p,), {}))[1] is ValueError


# ---- what the module is ----


@needs_compiler
def test_signatures_and_docstrings(both):
    module = both[0]
    assert str(inspect.signature(module.axpy)) == "(y, x, a)"
    assert str(inspect.signature(module.by_name)) == "(*, y, x, a, **ignored)"
    assert str(inspect.signature(module.nothing)) == "()"
    assert module.axpy.__doc__ == AXPY.doc
    assert module.axpy.__text_signature__ == "($module, /, y, x, a)"
    assert module.by_name.__doc__ == str(KEYWORDS)
    assert module.axpy.__module__ == module.axpy.__self__.__name__ == "everything"
    assert "axpy(y: float64[n]" in module.__doc__
    assert {n for n in dir(module) if n[0] != "_"} == {function_name(kernel) for kernel in KERNELS}


def test_get_wrapper(both):
    module, builder = both[0], PythonModuleBuilder()
    for loaded in (module, Unit(module, KERNELS)):
        wrapper = builder.get_wrapper(JACOBI, loaded)
        src, dst = np.ones((4, 4)), np.zeros((4, 4))
        wrapper(dst, src)
        assert dst[1:-1, 1:-1].all()
        assert (wrapper.kernel, wrapper.stats) == (JACOBI, {"calls": 1, "failures": 0})
    with pytest.raises(AttributeError):
        builder.get_wrapper(THREADS, module)


def test_nothing_is_kept_after_a_call(both):
    import sys

    module = both[0]
    y, x, bad = np.ones(3), np.ones(3), np.ones(4)
    p = np.zeros(3, PARTICLE)
    objects = (y, x, bad, p, p.dtype)
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        module.axpy(y, x, 1.5)
        module.kick(p)
        for args in ((y, bad, 1), (y, x, None), (y, x), (p, p, 1), (y, "x", 1), ("y", "x", 1)):
            with pytest.raises((TypeError, ValueError)):
                module.axpy(*args)
        with pytest.raises(TypeError):
            module.kick(y)
    assert [sys.getrefcount(o) for o in objects] == before
    y.resize(6, refcheck=False)  # would raise while a buffer is out


@each_compiler
def test_openmp_in_a_module_and_after_a_fork(info, tmp_path):
    needs_openmp(info)
    build([THREADS], "omp_module", tmp_path, info)
    program = f"""
import importlib.util, os
import numpy as np
spec = importlib.util.spec_from_file_location("omp_module", {str(tmp_path / "omp_module.so")!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
x = np.zeros(1000, "i4")
print(module.threads(x), x.sum(), flush=True)
pid = os.fork()
if pid == 0:
    try:
        module.threads(x)
    except RuntimeError as error:
        print("spawn" in str(error), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(module.threads(x), x.sum())
"""
    said = run_python(program, OMP_NUM_THREADS="2", timeout=60).stdout.split()
    assert said == ["2", "1000", "True", "2", "2000"]


@needs_compiler
def test_fast_math_keeps_the_checks_right(tmp_path):
    from rekernel.compilers import CompilerInfo

    info = CompilerInfo.get_default(optlevel="fast")
    module = build(ECHOES, "fast_module", tmp_path, info)
    natives = CpuJit(info, None).compile_many(ECHOES)
    for kernel, native in zip(ECHOES, natives, strict=True):
        for number in NUMBERS:
            assert outcome(native, (number,), {}) == outcome(getattr(module, kernel.name), (number,), {})


# ---- the text ----

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror"]
CLEAN = (AXPY, JACOBI, FIXED, NARROW, PAIRS, COUNT, KEYWORDS, NOTHING, MANY, WAVE, TOTAL, THREADS)


@each_compiler
@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
def test_the_text_gives_no_warning(info, standard):
    info.cxx_standard, info.extra_cxxflags, info.optlevel = standard, STRICT, "0"
    text = PythonModuleBuilder().render_module(CLEAN, "clean")
    assert CpuJit(info, None).obtain(CLEAN, text, INCLUDES, allow_undefined=True).warnings == ()


@needs_compiler
def test_macros_of_the_kernels_break_nothing(tmp_path):
    words = (
        "N name kind count call what view slots double_ kernel out value text size error self real release raise bind"
    )
    macros = "".join(f"#define {word} 1 +\n" for word in words.split())
    kernel = Kernel(
        "macros", (), "cpp", code=f"{macros}int macros() {{ return N 1; }}\n", returns="int32", function="macros"
    )
    assert build([kernel], "macros_module", tmp_path).macros() == 2


@needs_compiler
@pytest.mark.parametrize("name", ["ünter", "x_1", "核"])
def test_names_of_modules(tmp_path, name):
    assert build([constant(5)], name, tmp_path).constant() == 5


@pytest.mark.parametrize("name", ["", "a-b", "1a", "a.b", 'a"; int x'])
def test_names_that_no_module_can_have(name):
    with pytest.raises(ValueError, match="cannot be the name"):
        PythonModuleBuilder().render_module(AXPY, name)


def test_two_kernels_of_one_name():
    with pytest.raises(ValueError, match="the same name: a_b, a_b"):
        PythonModuleBuilder().render_module([constant(1, "a_b"), replace(constant(1, "x"), name="a.b")], "m")


def test_a_parameter_that_python_cannot_write(tmp_path):
    kernel = Kernel("odd", (scalar("lambda", "int32"),), "cpp", code="int odd(int lambda) { return lambda; }\n",
                    returns="int32", slots=(value("lambda"),))  # fmt: skip
    if not compilers():
        assert "$module" not in PythonModuleBuilder().render_module(kernel, "m")
        return
    module = build([kernel], "odd_module", tmp_path)
    assert module.odd(3) == module.odd(**{"lambda": 3}) == 3
    assert module.odd.__text_signature__ is None


def test_module_names_hide_nothing():
    assert module_name("select") == "select_kernel"
    assert module_name("numpy") == "numpy_kernel"
    assert module_name("heat.jacobi") == "heat_jacobi"
    assert function_name(replace(AXPY, name="class")) == "class_"


def test_literals_are_plain_ascii():
    assert literal('a"b\\c\nd?\x01é1') == '"a\\"b\\\\c\\nd\\?\\001\\303\\2511"'


def test_a_table_that_contradicts_itself_is_refused():
    with pytest.raises(ValueError, match="unknown parameter 'z'"):
        PythonModuleBuilder().render_module(replace(AXPY, slots=(pointer("z"),)), "m")


@pytest.mark.parametrize("module", [pymodule, moduletables, modulebuilder], ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
