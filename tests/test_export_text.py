"""Exported texts: a module of Python that has all kernels of an id, works alone, and takes nothing away from the user."""

from __future__ import annotations

import ast
import ctypes
import errno
import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from jitkernels import compilers, each_compiler, needs_compiler
from rekernel import JitError, KernelLoader, KernelNotFoundError, KernelSourceError
from rekernel.jit import CpuJit, NoJit
from rekernel.languages import find, register, unregister
from rekernel.objcache import ObjectCache
from test_export import SUFFIX, alone, checked
from toy import Toy

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return ObjectCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def loader(cache):
    return KernelLoader(jit=CpuJit(objcache=cache))


def imported(path: Path) -> ModuleType:
    """Import a module from its file, as often as it is asked for."""
    spec = importlib.util.spec_from_file_location(path.name.partition(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MIXED = """\
#include <complex>
#include <stdexcept>
// Doubles it: ü.
static double doubled(double x) { return 2 * x; }
double twice(double x) { return doubled(x); }
int64_t shift(int32_t n, uint8_t by, bool back) { return back ? n >> by : int64_t(n) << by; }
std::complex<double> turn(std::complex<float> *z, int n, std::complex<double> w) {
    for (int i = 0; i < n; ++i) z[i] *= std::complex<float>(w);
    return w * w;
}
void put(rekernel::Array<double, 0> place, double value) { place() = value; }
namespace grid {
void transpose(rekernel::Array<float, 2> to, rekernel::Array<const float, 2> from) {
    for (int64_t i = 0; i < to.shape(0); ++i)
        for (int64_t j = 0; j < to.shape(1); ++j) to(i, j) = from(j, i);
}
}
int trace(const int (*m)[3][3], int n) {
    int sum = 0;
    for (int k = 0; k < n; ++k)
        for (int i = 0; i < 3; ++i) sum += m[k][i][i];
    return sum;
}
void fail(int code) { if (code) throw std::runtime_error("too hot: ü"); }
void nothing() {}
"""


@each_compiler
def test_all_kinds_of_kernels_run_without_rekernel(info, tmp_path):
    loader = KernelLoader(jit=CpuJit(info, None))
    loader.load(MIXED, "mixed")
    path = loader.export("mixed", tmp_path / "made" / "here")
    assert path == tmp_path / "made" / "here" / f"mixed{SUFFIX}"
    program = """
import mixed
z, place = np.ones(3, "c8"), np.array(1.0)
print(mixed.twice(1.5), mixed.shift(3, by=2, back=False), mixed.turn(z, 3, 2j), z.tolist(), mixed.nothing())
mixed.put(place, 7)
grid = np.zeros((4, 6), "f4")[::2, ::-2]
mixed.transpose(grid, np.arange(6, dtype="f4").reshape(3, 2))
print(place, grid.tolist(), mixed.trace(np.arange(18, dtype="i4").reshape(2, 3, 3), 2))
for wrong in (lambda: mixed.fail(1), lambda: mixed.twice(), lambda: mixed.twice("x"), lambda: mixed.shift(1, 300, True),
              lambda: mixed.put(np.array(1), 2), lambda: mixed.trace(np.zeros((2, 3, 4), "i4"), 2)):
    try:
        wrong()
    except Exception as error:
        print(type(error).__name__, error)
print("rekernel" in sys.modules, "rekernel._native" in sys.modules)
"""
    assert alone(path.parent, program) == [
        "3.0 12 (-4+0j) [2j, 2j, 2j] None",
        "7.0 [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]] 51",
        "RuntimeError fail(): too hot: ü",
        "TypeError twice() missing 1 required positional argument: 'x'",
        "TypeError twice() argument 'x': expected float64, got str",
        "ValueError shift() argument 'by': 300 does not fit uint8 (0 to 255)",
        "TypeError put() argument 'place': expected float64[], got an int64 array; the kernel writes to it, so make it an "
        "array of that type",
        "ValueError trace() argument 'm': axis 2 must have extent 3, got 4 (an int32 array of shape (2, 3, 4))",
        "False False",
    ]


# ---- names ----


def test_no_name_of_the_users_meets_pythons_headers(loader, tmp_path):
    text = """
#define PyObject nothing
#define Kernel 1 +
#define call )
#define module "
static double gamma(double x) { return x; }
double PyInit_names(double x) { return gamma(x); }
namespace rekernel_module { static int limit = 3; }
extern "C" double pow10(double x) { return x + rekernel_module::limit; }
double malloc(double x) { return pow10(x); }
"""
    module = loader.load(text, "names", flags="-DPy_buffer=1 -Dargs=x")
    exported = imported(loader.export("names", tmp_path))
    assert exported.malloc(2.0) == module.malloc(2.0) == 5
    assert exported.PyInit_names(2.0) == 2


def test_nothing_but_the_module_is_visible_from_outside(loader, tmp_path):
    loader.load('extern "C" double seen(double x) { return x; }', "hidden")
    library = ctypes.CDLL(str(loader.export("hidden", tmp_path)))
    assert hasattr(library, "PyInit_hidden")
    assert not hasattr(library, "seen")
    assert not hasattr(library, "rk_seen_0")


def test_two_versions_in_one_global_scope_do_not_meet(loader, tmp_path):
    program = """
import os
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
sys.path[:0] = [sys.argv[1] + "/1", sys.argv[1] + "/2"]
import first, second
print(first.f(), second.f(), first.f())
"""
    for number, name in ((1, "first"), (2, "second")):
        loader.load(f"static int count = 0;\nint helper() {{ return {number}; }}\n"
                    "int f() { return 10 * helper() + count++; }", "k")  # fmt: skip
        loader.export("k", tmp_path / str(number), name)
    assert alone(tmp_path, program) == ["10 20 11"]


def test_a_module_can_be_imported_again(loader, tmp_path):
    loader.load("int f(const float *x, int i) { return int(x[i]); }", "again")
    path = loader.export("again", tmp_path)
    first, second = imported(path), imported(path)
    assert first is not second
    assert first.f(np.arange(3, dtype="f4"), 2) == second.f(np.arange(3, dtype="f4"), 2) == 2


@pytest.mark.parametrize(("kernel_id", "name"), [("heat.step", "heat_step"), ("2d", "_2d"), ("select", "select_kernel"),
                                                 ("wärme", "wärme"), ("a/../b", "a____b"), ("class", "class_")])  # fmt: skip
def test_the_name_is_made_from_the_id(loader, tmp_path, kernel_id, name):
    loader.load("int f() { return 4; }", kernel_id)
    path = loader.export(kernel_id, tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([f"{name}{SUFFIX}", f"{name}.pyi", f"{name}.cpp"])
    assert imported(path).f() == 4


@pytest.mark.parametrize(("name", "said"), [("select", "would hide"), ("numpy", "would hide"), ("a.b", "no identifier"),
                                            ("../a", "no identifier"), ("if", "no identifier"), ("", "no identifier")])  # fmt: skip
def test_a_name_that_cannot_be_imported_is_refused(loader, tmp_path, name, said):
    loader.load("int f() { return 4; }", "k")
    with pytest.raises(ValueError, match=said):
        loader.export("k", tmp_path / "none", name)
    assert os.listdir(tmp_path) == []


def test_kernels_that_would_have_one_name_in_python_are_refused(loader, tmp_path):
    loader.load("int lambda() { return 1; }\nint lambda_() { return 2; }", "k")
    with pytest.raises(ValueError, match="lambda and lambda_ would both be called lambda_ in Python"):
        loader.export("k", tmp_path)


# ---- overloads ----

OVERLOADS = """
int which(int8_t) { return 1; }
int which(int64_t) { return 2; }
int which(float) { return 3; }
int which(std::complex<double>) { return 4; }
int which(const float *, int) { return 5; }
int which(rekernel::Array<const double, 1>, int) { return 6; }
int which(rekernel::Array<const double, 2>, float) { return 7; }
int which(rekernel::Array<const double, 1>, double, bool) { return 8; }
int which(const double *) { return 9; }
// Adds a multiple.
template <class T> void axpy(T a, rekernel::Array<const T, 1> x, rekernel::Array<T, 1> y) {
    for (int64_t i = 0; i < x.shape(0); ++i) y(i) += a * x(i);
}
template void axpy<float>(float, rekernel::Array<const float, 1>, rekernel::Array<float, 1>);
template void axpy<double>(double, rekernel::Array<const double, 1>, rekernel::Array<double, 1>);
"""
VALUES = (
    3, 300, 2**70, True, 1.5, 1e60, 2j, np.int8(3), np.uint8(3), np.int64(3), np.float32(1), np.float64(1), np.complex64(1),
    np.bool_(1), np.array(3), np.array(1.5), "x", None, [1.0], np.zeros(3), np.zeros(3, "f4"), np.zeros((2, 2)),
    np.zeros((2, 2, 2)), np.zeros(3, ">f8"), np.zeros(6)[::2], np.zeros(3, "M8[s]"), np.zeros(3, "i2"),
)  # fmt: skip


def outcome(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except (TypeError, ValueError) as error:
        base = TypeError if isinstance(error, TypeError) else ValueError
        return base, len(str(error).splitlines())


def test_overloads_choose_as_the_handle_does(loader, tmp_path):
    module = loader.load("#include <complex>\n" + OVERLOADS, "overloads")
    exported = imported(loader.export("overloads", tmp_path))
    calls = [(), *((v,) for v in VALUES), *itertools.product(VALUES, VALUES), *((v, 1, True) for v in VALUES)]
    assert [(call, outcome(exported.which, *call)) for call in calls] == [
        (call, outcome(module.which, *call)) for call in calls
    ]
    assert {outcome(exported.which, *call) for call in calls} > set(range(1, 10))
    assert outcome(exported.which, arg0=3) == outcome(module.which, arg0=3) == 2
    for dtype in ("f4", "f8"):
        y = np.ones(3, dtype)
        exported.axpy(2, y=y, x=np.arange(3, dtype=dtype))
        assert y.tolist() == [1, 3, 5]
    with pytest.raises(TypeError) as caught:
        exported.axpy(1, x=y, y=np.zeros(3, "i4"))
    assert str(caught.value) == (
        "axpy: no overload takes (int, x=float64[:], y=int32[:]); there are:\n"
        "  axpy(a: float32, x: const float32[:], y: float32[:])\n"
        "  axpy(a: float64, x: const float64[:], y: float64[:])"
    )
    first, *signatures = exported.axpy.__doc__.split("\n\n")[0], *exported.axpy.__doc__.splitlines()[2:]
    assert (first, len(signatures)) == ("Adds a multiple.", 2)


# ---- beside the module ----


def test_the_text_is_beside_it_byte_for_byte(loader, tmp_path):
    data = "\ufeff// ü\r\nint\tf() { return 7; }\r\n\f// no end of line".encode()
    (tmp_path / "heat.cc").write_bytes(data)
    loader.load_file(tmp_path / "heat.cc")
    loader.export("heat", tmp_path / "out")
    assert (tmp_path / "out" / "heat.cc").read_bytes() == data


def test_an_export_beside_the_users_file_leaves_it_alone(loader, tmp_path):
    file = tmp_path / "heat.cpp"
    file.write_text("int f() { return 7; }\n")
    before = file.stat()
    loader.load_file(file)
    loader.export("heat", tmp_path)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    file.write_text("int f() { return 8; } // not loaded yet\n")
    with pytest.raises(FileExistsError, match=r"heat\.cpp is another text .* name="):
        loader.export("heat", tmp_path)
    assert file.read_text() == "int f() { return 8; } // not loaded yet\n"


def test_the_live_version_replaces_what_an_export_wrote(loader, tmp_path):
    texts = [f"int f() {{ return {number}; }}\n" for number in (1, 2)]
    for number, text in enumerate(texts, start=1):
        loader.load(text, "k")
        path = loader.export("k", tmp_path)
        assert (tmp_path / "k.cpp").read_text() == text
        assert alone(tmp_path, "import k\nprint(k.f())") == [str(number)]
    with pytest.raises(KernelSourceError):
        loader.load("int f() { return }", "k")
    loader.rollback("k")
    old = imported(path)
    loader.export("k", tmp_path)
    assert alone(tmp_path, "import k\nprint(k.f())") == ["1"]
    assert old.f() == 2
    assert (tmp_path / "k.cpp").read_text() == texts[0]
    assert sorted(os.listdir(tmp_path)) == sorted(["k.cpp", "k.pyi", path.name])


def test_the_stub_has_docstrings_and_overloads(loader, tmp_path):
    loader.load("// Adds them.\ndouble add(double a, double b) { return a + b; }\n" + OVERLOADS.replace(
        "std::complex<double>", "double _Complex"), "typed")  # fmt: skip
    loader.export("typed", tmp_path)
    tree = ast.parse((tmp_path / "typed.pyi").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [ast.get_docstring(f) for f in functions if f.name == "add"] == ["Adds them."]
    marks = {f.name: [ast.unparse(mark) for mark in f.decorator_list] for f in functions}
    assert marks == {"add": [], "which": ["overload"], "axpy": ["overload"]}
    program = """
import numpy as np
import typed

total: float = typed.add(1, 2.5)
number: int = typed.which(3) + typed.which(1.5) + typed.which(2j) + typed.which(np.zeros(3), 1, True)
typed.axpy(2.0, np.zeros(3, np.float32), np.zeros(3, np.float32))
"""
    assert checked(tmp_path, program) == "Success: no issues found in 1 source file\n"
    assert checked(tmp_path, program + "typed.which('x')\n").count("error:") == 1


# ---- options of the load ----


def test_headers_directories_and_libraries_go_with_it(loader, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "given").mkdir()
    (tmp_path / "own" / "near.h").write_text("inline int near_by() { return 100; }\n")
    (tmp_path / "given" / "far.h").write_text('extern "C" int ten();\n')
    (tmp_path / "ten.cpp").write_text('extern "C" int ten() { return 10; }\n')
    (tmp_path / "own" / "uses.cpp").write_text(
        '#include "near.h"\n#include <far.h>\nint f() { return near_by() + ten() + ONE; }\n'
    )
    compiler = next(iter(compilers())).cxx()
    subprocess.run([*compiler.split(), "-shared", "-fPIC", "ten.cpp", "-o", "libten.so"], cwd=tmp_path, check=True)
    flags = ["-DONE=1", "-L", str(tmp_path), "-lten", f"-Wl,-rpath,{tmp_path}"]
    loader.load_file(tmp_path / "own" / "uses.cpp", include_dirs=[tmp_path / "given"], flags=flags)
    loader.export("uses", tmp_path / "out")
    assert alone(tmp_path / "out", "import uses\nprint(uses.f())") == ["111"]

    (tmp_path / "own" / "near.h").write_text("inline int near_by() { return 200; }\n")
    with pytest.raises(JitError, match="a header that 'uses' includes has changed since it was loaded"):
        loader.export("uses", tmp_path / "out")


def test_a_header_that_changes_at_the_last_moment_is_noticed(loader, tmp_path, monkeypatch):
    (tmp_path / "real.h").write_text("typedef float real;\n")
    (tmp_path / "k.cpp").write_text('#include "real.h"\nreal f(const real *x) { return x[0]; }\n')
    loader.load_file(tmp_path / "k.cpp")
    (tmp_path / "real.h").write_text("typedef double real;\n")
    monkeypatch.setattr(type(find("cpp")), "same", lambda self, built: True)
    with pytest.raises(JitError, match="what 'k' includes has changed meanwhile"):
        loader.export("k", tmp_path / "out")
    assert not (tmp_path / "out").exists()


RESTRICT = """
void shift(double *__restrict__ to, const double *__restrict__ from, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i] + 1;
}
"""


@pytest.mark.parametrize("allow", [False, True])
def test_overlap_is_checked_where_the_text_promises_none(loader, tmp_path, allow):
    loader.load(RESTRICT, "k", allow_alias=allow)
    exported = imported(loader.export("k", tmp_path))
    x = np.zeros(4)
    if allow:
        exported.shift(x, x, 4)
        assert x.tolist() == [1, 1, 1, 1]
    else:
        with pytest.raises(ValueError, match="overlaps 'to'"):
            exported.shift(x, x, 4)


def test_nogil_lets_other_threads_run_during_a_short_call(loader, tmp_path):
    loader.load("void wait(volatile int32_t *flags) { flags[0] = 1; while (!flags[1]) {} }", "k", nogil=True)
    loader.export("k", tmp_path)
    program = """
import threading, k
flags = np.zeros(2, "i4")
waiting = threading.Thread(target=k.wait, args=(flags,))
waiting.start()
while not flags[0]:
    pass
flags[1] = 1
waiting.join()
print("both ran")
"""
    assert alone(tmp_path, program) == ["both ran"]


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has no GIL")
def test_nogil_false_keeps_other_threads_waiting_in_a_long_call(loader, tmp_path):
    text = """
int seen(volatile int32_t *flags, int turns) {
    flags[0] = 1;
    for (int i = 0; i < turns; ++i)
        if (flags[1]) return i;
    return -1;
}
"""
    loader.load(text, "k", nogil=False)
    loader.export("k", tmp_path)
    program = """
import threading, k
flags = np.zeros(100_000, "i4")
def answer():
    while not flags[0]:
        pass
    flags[1] = 1
answering = threading.Thread(target=answer)
answering.start()
print(k.seen(flags, 30_000_000))
answering.join()
"""
    assert alone(tmp_path, program) == ["-1"]


def test_openmp_runs_in_several_threads(loader, tmp_path):
    text = """
#include <omp.h>
int threads(rekernel::Array<double, 1> x) {
    int count = 0;
    #pragma omp parallel num_threads(3) reduction(+ : count)
    count += 1;
    #pragma omp parallel for
    for (int64_t i = 0; i < x.shape(0); ++i) x(i) = 2 * i;
    return count;
}
"""
    loader.load(text, "k")
    loader.export("k", tmp_path)
    program = "import k\nx = np.zeros(5)\nprint(k.threads(x), x.tolist())"
    assert alone(tmp_path, program) == ["3 [0.0, 2.0, 4.0, 6.0, 8.0]"]


def test_the_module_is_compiled_for_the_target_of_the_load(loader, tmp_path, monkeypatch):
    from rekernel import toolchain

    commands = []
    call = toolchain.call
    monkeypatch.setattr(toolchain, "call", lambda command, *rest: commands.append(command) or call(command, *rest))
    loader.load("int f(int n) { return 17 * n; }", "k", target="generic", flags="-mno-red-zone")
    loader.export("k", tmp_path)
    assert any("beside.cpp" in command for command in commands)
    assert not [word for command in commands for word in command if word.startswith("-mavx") or "native" in word]
    assert all("-mno-red-zone" in command for command in commands if "-c" in command)


def test_an_unchanged_export_compiles_nothing(loader, tmp_path, monkeypatch):
    from rekernel import toolchain

    loader.load("int f(int n) { return 19 * n; }", "k")
    first = loader.export("k", tmp_path).read_bytes()
    monkeypatch.setattr(toolchain, "call", None)
    assert loader.export("k", tmp_path).read_bytes() == first


# ---- what cannot be exported ----


def test_a_debug_version_is_refused(loader, tmp_path):
    loader.load("int f(int n) { return 100 / n; }", "k", debug=True)
    with pytest.raises(JitError, match=r"'k' is loaded with debug=True.*load it with debug=False, then export"):
        loader.export("k", tmp_path)
    loader.load("int f(int n) { return 100 / n; }", "k", debug=False)
    assert imported(loader.export("k", tmp_path)).f(5) == 20


def test_an_id_that_is_not_loaded_is_not_found(loader, tmp_path):
    with pytest.raises(KernelNotFoundError, match="no kernel id 'k' is loaded"):
        loader.export("k", tmp_path)


def test_a_language_without_an_export_says_so(tmp_path):
    register(Toy())
    try:
        loader = KernelLoader()
        loader.load("f() = 1", "k", language="toy")
        with pytest.raises(JitError, match=r"'k' cannot be exported: its kernels run in toy .*: cpp"):
            loader.export("k", tmp_path)
    finally:
        unregister("toy")
    assert not hasattr(find("taichi"), "export")


def test_a_loader_with_another_jit_says_so(loader, tmp_path):
    loader.load("int f() { return 1; }", "k")
    loader.jit = NoJit()
    with pytest.raises(JitError, match="needs a CpuJit"):
        loader.export("k", tmp_path)


def test_the_version_that_a_thread_holds_is_the_one_that_it_exports(loader, tmp_path):
    import threading

    loader.load("int f() { return 1; }", "k")
    with loader.hold():
        other = threading.Thread(target=loader.load, args=("int f() { return 2; }", "k"))
        other.start()
        other.join()
        assert imported(loader.export("k", tmp_path)).f() == 1


def test_a_full_disk_leaves_the_module_of_before(loader, tmp_path, monkeypatch):
    loader.load("int f() { return 1; }", "k")
    path = loader.export("k", tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(*paths):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    loader.jit = CpuJit(objcache=None)
    with pytest.raises(OSError, match="No space left"):
        loader.export("k", tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert imported(path).f() == 1
