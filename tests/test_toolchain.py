"""From text to a shared object, with each compiler that is installed."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekernel import probe as probing
from rekernel import toolchain as building
from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.errors import ToolchainError
from rekernel.toolchain import CompileFailed, Product, Toolchain, build, flags, key_fields, openmp_works, probe
from support import run_python

COMPILERS = {"g++": GccInfo, "clang++": ClangInfo}
EXPORT = 'extern "C" __attribute__((visibility("default"))) '
STENCIL = EXPORT + (
    "void step(double *__restrict__ dst, const double *__restrict__ src, long n, long m, double k) {\n"
    "    for (long i = 1; i < n - 1; ++i)\n        for (long j = 1; j < m - 1; ++j)\n"
    "            dst[i * m + j] = src[i * m + j] + k * (src[(i - 1) * m + j] + src[(i + 1) * m + j]\n"
    "                + src[i * m + j - 1] + src[i * m + j + 1] - 4 * src[i * m + j]);\n}\n"
)


@pytest.fixture(params=COMPILERS)
def info(request: pytest.FixtureRequest) -> CompilerInfo:
    """One compiler after the other."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return COMPILERS[request.param]()


@pytest.fixture
def make(info: CompilerInfo, tmp_path: Path) -> Callable[..., Product]:
    """Build a text."""
    toolchain = probe(info)

    def made(text: str, **options: Any) -> Product:
        return build(toolchain, info, text, **{"workdir": tmp_path / "work", **options})

    return made


def load(product: Product, tmp_path: Path) -> ctypes.CDLL:
    path = tmp_path / f"lib{len(os.listdir(tmp_path))}.so"
    path.write_bytes(product.data)
    return ctypes.CDLL(str(path))


def needed(product: Product, tmp_path: Path) -> set[str]:
    path = tmp_path / "shown.so"
    path.write_bytes(product.data)
    shown = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].split(".so")[0] for line in shown.splitlines() if "(NEEDED)" in line}


def test_a_stencil_builds_and_runs(make: Callable[..., Product], tmp_path: Path) -> None:
    import numpy as np

    product = make(STENCIL)
    src, dst = np.random.default_rng(0).random((7, 9)), np.zeros((7, 9))
    step = load(product, tmp_path).step
    step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_double]
    step(dst.ctypes.data, src.ctypes.data, 7, 9, 0.25)
    inner = src[1:-1, 1:-1]
    expected = inner + 0.25 * (src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:] - 4 * inner)
    assert np.array_equal(dst[1:-1, 1:-1], expected)  # bit for bit: nothing is contracted
    assert product.warnings == ()
    assert product.output == ""
    assert product.seconds > 0
    assert os.path.basename(product.link_command[0]).startswith("ld")
    assert needed(product, tmp_path) == set()
    assert os.listdir(tmp_path / "work") == []


def test_the_same_text_gives_the_same_bytes(make: Callable[..., Product]) -> None:
    assert make(STENCIL).data == make(STENCIL).data


@pytest.mark.parametrize("level", ["0", "1", "2", "3", "fast"])
def test_no_level_changes_the_floating_point_environment(info: CompilerInfo, tmp_path: Path, level: str) -> None:
    info.optlevel = level
    info.command += " -ffast-math"  # a driver that links with this would link crtfastmath.o
    info.openmp = False
    text = EXPORT + "int unordered(double x) { return x != x; }\n"
    paths = []
    for number, extra in enumerate([[], ["-fuse-ld=bfd"]]):
        info.extra_cxxflags = extra  # once by the linker itself, once through the driver
        product = build(probe(info), info, text, workdir=tmp_path / "work")
        assert (product.link_command[0] == probe(info).driver) == bool(extra)
        paths.append(tmp_path / f"{number}.so")
        paths[-1].write_bytes(product.data)
    code = """
        import ctypes, sys, threading
        tiny, three, results = 5e-324, 3.0, []
        def works():
            results.append(tiny * 1.0 != 0 and 1 / three == 0.3333333333333333)
        libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
        works()
        thread = threading.Thread(target=works)
        thread.start()
        thread.join()
        assert results == [True, True], results
    """
    run_python(code, *map(str, paths))


def test_nan_and_infinity_are_right_by_default(make: Callable[..., Product], tmp_path: Path) -> None:
    text = EXPORT + "int odd(double x) { return x != x ? 1 : __builtin_isinf(x) ? 2 : 0; }\n"
    odd = load(make(text), tmp_path).odd
    odd.argtypes = [ctypes.c_double]
    assert [odd(float(x)) for x in ("nan", "inf", "1")] == [1, 2, 0]


CXX = (
    "#include <vector>\n#include <stdexcept>\n#include <string>\n"
    "struct Log { std::string text; ~Log() { text.clear(); } };\nstatic Log kept{\"0123456789012345678901234\"};\n"
    "inline int &count() { static int n = 0; return n; }\n"
) + EXPORT + (
    "int run(int n) {\n    thread_local std::vector<int> all(8);\n    try {\n        all.at(n) = n;\n"
    "        if (n == 3) throw std::runtime_error(\"three\");\n"
    "    } catch (const std::exception &) { return -n; }\n    return ++count() + int(kept.text.size()) * 0;\n}\n"
)  # fmt: skip


def test_the_whole_language_works_and_versions_share_nothing(make: Callable[..., Product], tmp_path: Path) -> None:
    product = make(CXX)
    first, second = load(product, tmp_path), load(make(CXX.replace("three", "3")), tmp_path)
    assert [first.run(1), first.run(1), first.run(3), first.run(99)] == [1, 2, -3, -99]
    assert second.run(1) == 1
    assert "libstdc++" in needed(product, tmp_path)


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("double f(double x) { return __builtin_sin(x); }", "libm"),
        ("void f(double *x, long n) { __builtin_memset(x, 1, n * 8); }", "libc"),
    ],
)
def test_libraries_are_linked_where_they_are_needed(
    make: Callable[..., Product], tmp_path: Path, text: str, library: str
) -> None:
    assert needed(make(EXPORT + text), tmp_path) == {library}


def test_the_c_library_alone_can_be_asked_for(make: Callable[..., Product], tmp_path: Path) -> None:
    thrower = EXPORT + "int f() { try { throw 1; } catch (int i) { return i; } }"
    assert "libstdc++" in needed(make(thrower, link_cxx=False), tmp_path)  # it would not link without
    assert load(make(thrower), tmp_path).f() == 1


PARALLEL = (
    EXPORT + "long total(long n) {\n    long sum = 0;\n    #pragma omp parallel for reduction(+ : sum)\n"
    "    for (long i = 0; i < n; ++i) sum += i;\n    return sum;\n}\n"
)


def test_openmp(make: Callable[..., Product], info: CompilerInfo, tmp_path: Path) -> None:
    assert needed(make(PARALLEL), tmp_path) == set()
    if not openmp_works(probe(info)):
        with pytest.raises(ToolchainError, match=r"(?s)cannot compile and link OpenMP.*openmp=False.*doctor$"):
            make("#include <omp.h>\n" + PARALLEL, openmp=True)
        pytest.skip(f"{info.command} has no OpenMP here")
    product = make(PARALLEL, openmp=True)
    assert any("omp" in name for name in needed(product, tmp_path))
    assert "-fopenmp" not in make(PARALLEL, openmp=True, debug=True).command
    run_python("import ctypes, sys; assert ctypes.CDLL(sys.argv[1]).total(1000) == 499500", str(tmp_path / "shown.so"))


def test_openmp_false_runs_in_one_thread(info: CompilerInfo, tmp_path: Path) -> None:
    info.openmp = False
    product = build(probe(info), info, PARALLEL, openmp=True, workdir=tmp_path / "work")
    assert "-fopenmp" not in product.command
    assert load(product, tmp_path).total(1000) == 499500


def test_an_error_has_place_text_command_and_output(make: Callable[..., Product], tmp_path: Path) -> None:
    text = 'int a;\n#line 7 "heat.cpp"\n/* ü */ int f(int src) { return sr + 1; }\n'
    with pytest.raises(CompileFailed, match="sr") as caught:
        make(text)
    error = caught.value
    first = next(d for d in error.diagnostics if d.severity == "error")
    assert (first.filename, first.line, first.column) == ("heat.cpp", 7, 33)
    assert first.text == "/* ü */ int f(int src) { return sr + 1; }"
    assert "-c" in error.command
    assert "heat.cpp:7" in error.output
    assert os.listdir(tmp_path / "work") == []


def test_a_failed_compile_pickles(make: Callable[..., Product]) -> None:
    import pickle

    with pytest.raises(CompileFailed) as caught:
        make("int f( {")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.diagnostics) == (str(caught.value), caught.value.diagnostics)


def test_a_symbol_that_nobody_has_is_an_error_at_once(make: Callable[..., Product]) -> None:
    with pytest.raises(CompileFailed, match=r"linking failed: undefined reference to .missing\(\)"):
        make("void missing();\n" + EXPORT + "int f() { missing(); return 0; }\n")
    assert make("void missing();\n" + EXPORT + "int f() { missing(); return 0; }\n", allow_undefined=True).data


def test_warnings_are_collected(info: CompilerInfo, tmp_path: Path) -> None:
    info.extra_cxxflags = ["-Wall"]
    product = build(probe(info), info, EXPORT + "int f() { int unused = 1; return 0; }", workdir=tmp_path)
    assert [(w.severity, w.line) for w in product.warnings] == [("warning", 1)]
    assert "unused" in product.warnings[0].message


LONG = "ü\"'$x " + "l" * 180


def test_blanks_quotes_unicode_and_long_names(info: CompilerInfo, tmp_path: Path) -> None:
    place = tmp_path / "a b" / LONG
    (place / "inc #1").mkdir(parents=True)
    (place / "inc #1" / "my $ header.h").write_text("#define ONE 1\n")
    product = build(
        probe(info, place / "cache"), info, '#include "my $ header.h"\n' + EXPORT + "int f() { return ONE; }\n",
        workdir=place / "work", include_dirs=[place / "inc #1"],
    )  # fmt: skip
    assert load(product, tmp_path).f() == 1
    own = [header for header in product.headers if not header.system]
    assert [header.path for header in own] == [str(place / "inc #1" / "my $ header.h")]


def test_headers_are_told_apart(make: Callable[..., Product], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.h").write_text("#pragma once\n#include <cstdint>\n")
    (tmp_path / "a.h").write_text('#include "b.h"\n#include "b.h"\n')
    monkeypatch.chdir(tmp_path)
    headers = make('#include "a.h"\n', include_dirs=["."]).headers
    assert [h.path for h in headers if not h.system] == [str(tmp_path / "a.h"), str(tmp_path / "b.h")]
    assert any(h.path.endswith("/cstdint") for h in headers if h.system)
    assert all(os.path.isfile(h.path) for h in headers)


def test_debug_builds_point_to_the_kept_text(make: Callable[..., Product], tmp_path: Path) -> None:
    product = make(STENCIL, debug=True, debug_dir=str(tmp_path / "kept"), name="heat.cpp")
    assert str(tmp_path / "kept").encode() in product.data
    assert b"heat.cpp" in product.data
    assert "-g" in product.command


def test_native_is_spelled_out_and_means_the_same(info: CompilerInfo, tmp_path: Path) -> None:
    toolchain = probe(info)
    given = flags(toolchain, info)
    assert "-march=native" not in given
    assert set(toolchain.native) <= set(given)
    (tmp_path / "unit.cpp").write_text(STENCIL)
    base = [toolchain.driver, "-S", "-o", "-", "unit.cpp", "-fno-ident"]
    plain = [flag for flag in given if flag not in toolchain.native]
    texts = [
        subprocess.run([*base, *chosen], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for chosen in (given, [*plain, "-march=native"])
    ]
    assert texts[0].replace("-Xclang", "") == texts[1]


def test_the_key_has_compiler_flags_and_where_it_matters_the_cpu(
    info: CompilerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fields() -> dict[str, Any]:
        return dict(key_fields(probe(info), info))

    native = fields()
    assert native == fields()
    monkeypatch.setattr(probing, "cpu_features", lambda: "another")
    assert fields() != native
    info.target = "generic"
    generic = fields()
    monkeypatch.setattr(probing, "cpu_features", lambda: "a third")
    assert fields() == generic
    monkeypatch.setenv("CPATH", "/x")
    assert fields() != generic


def test_the_users_own_subclass(info: CompilerInfo, tmp_path: Path) -> None:
    command = info.cxx()

    class Own(CompilerInfo):
        def cxx(self) -> str:
            return command

        def cxxflags(self) -> list[str]:
            return ["-std=c++11", "-O2", "-DTHREE=3"]

        def linker_flags(self) -> list[str]:
            return ["-shared", "-Wl,--no-undefined", "-lm"]

    product = build(probe(Own()), Own(), EXPORT + "int f() { return THREE; }", workdir=tmp_path / "work")
    assert load(product, tmp_path).f() == 3
    assert "-fvisibility=hidden" in product.command


def test_a_launcher_runs_the_compiler_only(info: CompilerInfo, tmp_path: Path) -> None:
    launcher = tmp_path / "ccache"
    launcher.write_text('#!/bin/sh\necho used >> "$(dirname "$0")/log"\nexec "$@"\n')
    launcher.chmod(0o755)
    info.command = f"{launcher} {info.command} -m64"
    product = build(probe(info), info, STENCIL, workdir=tmp_path / "work")
    assert (tmp_path / "log").read_text() == "used\n"
    assert product.command[0] == str(launcher)
    assert "-m64" in product.command


@pytest.mark.skipif(shutil.which("ld.lld") is None, reason="lld is not installed")
def test_another_linker_is_called_through_the_driver(info: CompilerInfo, tmp_path: Path) -> None:
    class Lld(CompilerInfo):
        def linker_flags(self) -> list[str]:
            return ["-shared", "-fuse-ld=lld"]

    lld = Lld(command=info.command)
    product = build(probe(lld), lld, CXX, workdir=tmp_path / "work")
    assert "-fuse-ld=lld" in product.link_command
    assert load(product, tmp_path).run(99) == -99


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_compiler_without_its_parts_is_a_toolchain_error(tmp_path: Path) -> None:
    shown = 'echo "Target: x86_64-linux-gnu" >&2; echo " cc1plus -quiet unit.cpp" >&2'
    broken = {
        "no cc1plus": shown,
        "exec": "echo \"g++: fatal error: cannot execute 'cc1plus': execvp: No such file\" >&2; exit 1",
        "nothing": "exit 5",
    }
    for name, text in broken.items():
        with pytest.raises(ToolchainError) as caught:
            probe(GccInfo(command=script(tmp_path / f"g++ {name}", text)))
        assert "REKERNEL_CXX" in str(caught.value)
        assert f"g++ {name}" in str(caught.value)
        assert str(caught.value).endswith("python -m rekernel doctor")
        assert ("cc1plus" in str(caught.value)) == (name != "nothing")


def test_a_file_that_does_not_run_is_a_toolchain_error(tmp_path: Path) -> None:
    path = tmp_path / "g++"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    with pytest.raises(ToolchainError, match="cannot be started"):
        probe(GccInfo(command=str(path)))


def test_an_empty_path_says_where_was_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"'g\+\+' was not found: looked in PATH \(.*REKERNEL_CXX"):
        probe(GccInfo())


def test_a_missing_linker_is_named(make: Callable[..., Product], info: CompilerInfo, tmp_path: Path) -> None:
    said = "collect2: fatal error: cannot find 'ld'"
    fake = script(tmp_path / "g++", f'case "$*" in *-c*) exit 0;; esac; echo "{said}" >&2; exit 1')
    from dataclasses import replace

    broken = replace(probe(info), driver=fake, verbs=(), link=None)
    with pytest.raises(ToolchainError, match="cannot find 'ld'"):
        building._Unit(broken, info, str(tmp_path), "unit.cpp", "", [], False)._refuse(
            building.call([*broken.command, "unit.o"], str(tmp_path)), "link"
        )


def test_a_compiler_that_was_killed_is_not_the_users_error(info: CompilerInfo, tmp_path: Path) -> None:
    from dataclasses import replace

    said = "g++: fatal error: Killed signal terminated program cc1plus"
    fake = replace(probe(info), driver=script(tmp_path / "g++", f"echo '{said}'; exit 1"))
    with pytest.raises(ToolchainError, match="out of memory"):
        build(fake, info, STENCIL, workdir=tmp_path / "work")


def test_output_that_cannot_be_read_is_shown_raw(info: CompilerInfo, tmp_path: Path) -> None:
    from dataclasses import replace

    fake = replace(probe(info), driver=script(tmp_path / "g++", "printf 'strange \\377 words'; exit 1"))
    with pytest.raises(CompileFailed, match="strange") as caught:
        build(fake, info, STENCIL, workdir=tmp_path / "work")
    assert [d.severity for d in caught.value.diagnostics] == ["error"]
    fake = replace(fake, driver=script(tmp_path / "g++", "exit 4"))
    with pytest.raises(CompileFailed, match="exit code 4 without a word"):
        build(fake, info, STENCIL, workdir=tmp_path / "work")


def test_where_the_link_line_is_unknown_the_driver_links(info: CompilerInfo, tmp_path: Path) -> None:
    from dataclasses import replace

    toolchain: Toolchain = replace(probe(info), link=None)
    product = build(toolchain, info, CXX, workdir=tmp_path / "work")
    assert product.link_command[0] == toolchain.driver
    assert load(product, tmp_path).run(3) == -3


def test_ctrl_c_during_a_compile(info: CompilerInfo, tmp_path: Path) -> None:
    fake = script(tmp_path / "slow g++", 'kill -INT "$PARENT"; exec sleep 1000')
    code = """
        import os, sys
        from dataclasses import replace
        from rekernel import compilers, toolchain
        os.environ["PARENT"] = str(os.getpid())
        info = compilers.CompilerInfo(command=sys.argv[1])
        slow = replace(toolchain.probe(info), driver=sys.argv[2])
        try:
            toolchain.build(slow, info, "int x;", workdir=sys.argv[3])
        except KeyboardInterrupt:
            print(os.listdir(sys.argv[3]))
        toolchain.build(toolchain.probe(info), info, "int x;", workdir=sys.argv[3])
    """
    assert run_python(code, info.command, fake, str(tmp_path / "work"), timeout=60).stdout == "[]\n"


def test_importing_starts_nothing() -> None:
    code = """
        import subprocess, sys
        subprocess.Popen.__init__ = None
        import rekernel.compilers, rekernel.toolchain, rekernel.pch
    """
    run_python(code, PATH="", HOME="/nonexistent", LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""))
    assert sys.executable
