"""NVRTC without a device: code for several architectures, headers, messages at lines, keys, the cache."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rekernel import key
from rekernel.cuda import cubins, headertexts, includes, messages, nvrtc, toolkit
from rekernel.errors import RekernelWarning, ToolchainError
from rekernel.objcache import ObjectCache
from rekernel.product import CompileFailed

pytest.importorskip("cupy_backends.cuda.libs.nvrtc", reason="CuPy is not installed (rekernel[cuda13])")
try:
    ABOUT = nvrtc.about()
except ToolchainError as problem:  # CuPy without a CUDA that it could load
    pytest.skip(str(problem), allow_module_level=True)

KERNEL = "__global__ void k(int *x) { x[0] = 1; }"


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


def obtain(cache: ObjectCache, text: str = KERNEL, arch: str = "sm_90", **options: Any) -> Any:
    return cubins.obtain(cache, cubins.Order(text, arch, **options))


def compiled(text: str, **options: Any) -> nvrtc.Compiled:
    return nvrtc.compile_text(text, **{"arch": "sm_90", **options})


def refused(text: str, **options: Any) -> CompileFailed:
    with pytest.raises(CompileFailed) as caught:
        compiled(text, **options)
    return caught.value


# ---- architectures ----


@pytest.mark.parametrize("capability", ABOUT.architectures)
def test_there_is_code_for_every_architecture_that_nvrtc_has(capability: int) -> None:
    arch = nvrtc.architecture(capability, ABOUT)
    made = compiled(KERNEL, arch=arch, expressions=("&k",))
    assert (arch, made.data[:4]) == (f"sm_{capability}", b"\x7fELF")
    assert made.names == {"&k": "_Z1kPi"}


def test_a_newer_device_gets_portable_code_and_an_older_one_advice() -> None:
    newest = max(ABOUT.architectures)
    assert nvrtc.architecture(newest + 9, ABOUT) == f"compute_{newest}"
    ptx = compiled(KERNEL, arch=f"compute_{newest}").data
    assert b".visible .entry _Z1kPi" in ptx
    assert ptx.endswith(b"\0")
    with pytest.raises(ToolchainError, match=r"this device has 3\.5.*rekernel\[cuda12\]"):
        nvrtc.architecture(35, ABOUT)


def test_two_architectures_live_in_one_cache(cache: ObjectCache) -> None:
    first, second = obtain(cache, arch="sm_80"), obtain(cache, arch="sm_90")
    assert first.data != second.data
    assert [obtain(cache, arch=a).from_cache for a in ("sm_80", "sm_90")] == [True, True]
    assert obtain(cache, arch="sm_80").data == first.data


# ---- messages ----


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("\n\n__global__ void k(int *x) { x[0] = y; }", 3, 36, 'identifier "y" is undefined'),
        ("__global__ void k(int *x) {\n  /* ü */ x[0] = y; }", 2, 18, 'identifier "y" is undefined'),
        ("__global__ void k(int *x) {\n\tx[0] = y; }", 2, 9, 'identifier "y" is undefined'),
        ("\n#error no such thing\n", 2, 2, "#error directive: no such thing"),
        ("\n#include <iostream>\n", 2, None, "there is no header iostream: <iostream> is a header of the host"),
        ("#include <complex>\n", 1, None, "device code has it as <cuda/std/complex> and cuda::std"),
        ('#include "mine.h"\n', 1, None, "there is no header mine.h in the include directories"),
        ("\n#if 1\n", 2, 2, "the #endif for this directive is missing"),
        ("int f(int x) { return x; }", 1, 5, "device code needs __device__ before it"),
        ("float table[4];", 1, 7, "write __device__ or __constant__ before it"),
        ("__global__ void k() {", None, None, 'at the end of the text: expected a "}"'),
        (
            "__device__ int f(int);\n__global__ void k(int *x) { x[0] = f(1); }",
            None,
            None,
            "Unresolved extern function",
        ),
    ],
)
def test_an_error_is_at_its_line_and_column(text: str, line: int | None, column: int | None, message: str) -> None:
    first = refused(text).diagnostics[0]
    assert message in first.message
    assert first.line == line
    assert column is None or first.column == column
    assert first.filename in (None, "kernel.cu")


def test_a_template_s_error_tells_who_asked_for_it() -> None:
    text = "template <class T> __device__ void f(T *x) { x.foo(); }\n\n__global__ void k(int *x) {\n  f(x); }\n"
    error = refused(text).diagnostics[0]
    assert error.line == 1
    told = compiled_note("template <class T> struct A { static_assert(sizeof(T) == 8, \"8 bytes\"); };\n"
                         "__global__ void k(int *x) {\n  A<int> a; }")  # fmt: skip
    assert [(step.line, step.filename) for step in told.via] == [(3, "kernel.cu")]


def compiled_note(text: str) -> Any:
    return refused(text).diagnostics[0]


def test_an_error_in_a_header_tells_the_line_that_includes_it(cache: ObjectCache, tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('\n#include "b.h"\n', encoding="utf-8")
    (tmp_path / "b.h").write_text("\n\n__device__ int f() { return bad; }\n", encoding="utf-8")
    with pytest.raises(CompileFailed) as caught:
        obtain(cache, '\n#include "a.h"\n' + KERNEL, directory=str(tmp_path))
    error = caught.value.diagnostics[0]
    assert (error.filename, error.line) == (str(tmp_path / "b.h"), 3)
    assert [(step.filename, step.line) for step in error.via] == [(str(tmp_path / "a.h"), 2), ("kernel.cu", 2)]


def test_warnings_do_not_fail_and_those_of_foreign_headers_are_left_out(cache: ObjectCache) -> None:
    made = obtain(cache, "#include <cstdint>\n#include <climits>\n\n__global__ void k(int *x) { int unused; }")
    assert made.warnings == ('line 4: variable "unused" was declared but never referenced',)
    assert (
        obtain(cache, "#include <cstdint>\n#include <climits>\n\n__global__ void k(int *x) { int unused; }").warnings
        == made.warnings
    )


def test_a_wrong_option_and_a_wrong_name_are_said_in_nvrtcs_words() -> None:
    assert "unrecognized option --foo" in str(refused(KERNEL, options=("--foo",)))
    assert "sm_12" in refused(KERNEL, arch="sm_12").command[1]
    error = refused(KERNEL, expressions=("&k", "&nope"))
    assert [d.message for d in error.diagnostics] == ['identifier "nope" is undefined']


def test_a_macro_that_breaks_cudas_own_header_is_one_message() -> None:
    error = refused(KERNEL, options=("-DT=3",))
    assert "breaks CUDA's own header" in error.diagnostics[0].message
    assert len(error.diagnostics) == 1


def test_any_log_is_read() -> None:
    assert messages.parse("", "kernel.cu") == ()
    assert messages.parse("what is this?\n  and that\n\n", "kernel.cu") == ()
    (only,) = messages.parse("ptxas error   : too much shared data\n \n", "kernel.cu")
    assert (only.message, only.severity, only.line) == ("too much shared data", "error", None)


# ---- headers ----


@pytest.mark.parametrize("header", sorted(headertexts.HEADERS))
def test_each_header_of_ours_compiles_alone(header: str) -> None:
    assert compiled(f"#include <{header}>\n{KERNEL}").warnings == ()


def test_all_headers_together_give_what_a_host_has() -> None:
    text = (
        "".join(f"#include <{header}>\n" for header in headertexts.HEADERS)
        + """
    __global__ void k(double *x, float *y, int *z, std::int64_t n, uint8_t u) {
        static_assert(sizeof(std::sin(1.0f)) == 4, "");
        static_assert(sizeof(std::sqrt(2)) == 8, "");
        static_assert(sizeof(std::size_t) == 8 && sizeof(intptr_t) == 8 && sizeof(long) == 8, "");
        assert(n > 0);
        x[0] = std::sqrt(2) + std::pow(x[1], 2) + std::pow(2, 3) + std::abs(-2) + std::abs(-2.0f) + M_PI + NAN + INFINITY;
        y[0] = std::max(y[0], FLT_MAX) + std::exp(y[1]) + std::fmax(y[0], y[1]);
        std::swap(x[0], x[1]);
        std::memset(z, 0, 4);
        std::printf("%d %lld %d", INT_MAX, LLONG_MIN, UINT8_MAX + u);
        z[0] = std::clamp(z[1], 0, 1) + std::isnan(x[0]);
    }"""
    )
    assert compiled(text).data[:4] == b"\x7fELF"


def test_cudas_own_headers_are_found(cache: ObjectCache) -> None:
    if ABOUT.version < (13, 3) and not toolkit.directories(ABOUT.version, str(cache.directory)):
        pytest.skip("this NVRTC has no headers inside, and there is no CUDA toolkit")
    text = "#include <cuda/std/cstdint>\n#include <cuda_fp16.h>\n#include <cstdint>\n#include <cmath>\n"
    made = obtain(cache, text + "__global__ void k(__half *x, int64_t n) { x[n] = hsin(x[n]); }")
    assert made.warnings == ()
    assert [os.path.basename(path) for path, *_ in made.manifest["headers"]["system"]] == ["cstdint", "cuda_fp16.h"]
    assert obtain(cache, text + "__global__ void k(__half *x, int64_t n) { x[n] = hsin(x[n]); }").from_cache


def test_headers_given_as_texts_are_read_before_and_named() -> None:
    texts = {"mine/a.hpp": "#define ONE 1\n", "mine/b.hpp": '#include "mine/a.hpp"\n#define TWO (ONE + 1)\n'}
    assert compiled(
        "__global__ void k(int *x) { x[0] = TWO; }", headers=texts, before=("mine/a.hpp", "mine/b.hpp")
    ).data
    assert "TWO" in refused("__global__ void k(int *x) { x[0] = TWO; }", headers=texts).output


def test_the_current_directory_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.h").write_text("#define ONE 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    text = '#include "mine.h"\n__global__ void k(int *x) { x[0] = ONE; }'
    assert "mine.h" in str(refused(text))
    for options in ({"directory": str(tmp_path)}, {"include_dirs": ["."]}, {"options": ("-I", ".")}):
        assert compiled(text, **options).data


def test_a_header_of_the_users_goes_before_ours_of_its_name(cache: ObjectCache, tmp_path: Path) -> None:
    (tmp_path / "float.h").write_text("#define MINE 1\n", encoding="utf-8")
    text = '#include "float.h"\n__global__ void k(int *x) { x[0] = MINE; }'
    assert obtain(cache, text, directory=str(tmp_path)).data
    assert obtain(cache, text, include_dirs=[str(tmp_path)]).data


# ---- which headers a text may include ----


def found(text: str, directory: Path) -> includes.Included:
    return includes.scan(text, "kernel.cu", str(directory), [], ())


@pytest.mark.parametrize(
    "line",
    [
        '#include "a.h"', '  #  include   "a.h"', '#include/**/"a.h"', '/* x */ #include "a.h"', '%:include "a.h"',
        '#inc\\\nlude "a.h"', '#if 0\n#include "a.h"\n#endif', '#include_next "a.h"', 'int x; /* " */\n#include "a.h" // x',
    ],
)  # fmt: skip
def test_every_way_to_include_is_seen(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("", encoding="utf-8")
    assert found(f"{line}\n", tmp_path).files == [str(tmp_path / "a.h")]


def test_headers_of_headers_are_found_beside_them_and_circles_end(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.h").write_text('#include "sub/b.h"\n', encoding="utf-8")
    (tmp_path / "sub" / "b.h").write_text('#include "c.h"\n#include "../a.h"\n#include "a.h"\n', encoding="utf-8")
    (tmp_path / "sub" / "c.h").write_text("#include <gone.h>\n", encoding="utf-8")
    seen = found('\n#include "a.h"\n', tmp_path)
    assert [os.path.basename(path) for path in seen.files][:3] == ["a.h", "b.h", "c.h"]
    assert sorted(seen.missing) == ["a.h", "gone.h"]
    assert seen.via[str(tmp_path / "a.h")] == ("kernel.cu", 2)
    assert seen.exact


@pytest.mark.parametrize(("text", "exact"), [("#include NAME\n", False), ("// #include NAME\n", True), ("x", True)])
def test_a_header_that_a_macro_names_is_not_known(text: str, exact: bool, tmp_path: Path) -> None:
    assert found(text, tmp_path).exact is exact


# ---- the key and the cache ----


def key_of(order: cubins.Order, about: nvrtc.About = ABOUT) -> str:
    return key.digest(cubins._fields(order, about))


def test_the_key_differs_by_all_that_changes_the_result(cache: ObjectCache, tmp_path: Path, monkeypatch: Any) -> None:
    including = f'#include "a.h"\n{KERNEL}'
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.h").write_text("", encoding="utf-8")
    one, two = (str(tmp_path / name) for name in ("one", "two"))
    orders: list[dict[str, Any]] = [
        {"text": KERNEL}, {"text": KERNEL + " "}, {"text": KERNEL, "arch": "sm_80"}, {"text": KERNEL, "options": ("-lineinfo",)},
        {"text": KERNEL, "expressions": ("&k",)}, {"text": KERNEL, "headers": {"x.h": "1"}}, {"text": KERNEL, "headers": {"x.h": "2"}},
        {"text": KERNEL, "headers": {"x.h": "2"}, "before": ("x.h",)}, {"text": KERNEL, "name": "other.cu"},
        {"text": KERNEL, "fields": (("schema", 1),)}, {"text": including, "directory": one}, {"text": including, "directory": two},
        {"text": including, "include_dirs": (one,)}, {"text": including, "include_dirs": (two, one)},
    ]  # fmt: skip
    keys = [key_of(cubins.Order(**{"arch": "sm_90", **order})) for order in orders]
    other = nvrtc.About((11, 8), ABOUT.architectures)
    keys.append(key_of(cubins.Order(KERNEL, "sm_90"), other))
    monkeypatch.setenv("CUDA_PATH", one)
    keys.append(key_of(cubins.Order(including, "sm_90", directory=one)))
    assert len(set(keys)) == len(keys)


def test_a_text_that_includes_nothing_is_the_same_from_everywhere() -> None:
    keys = {key_of(cubins.Order(KERNEL, "sm_90", directory=d, include_dirs=(d,))) for d in ("/a", "/b")}
    assert len(keys) == 1


def test_a_changed_header_is_noticed_and_the_old_text_comes_back_from_the_cache(
    cache: ObjectCache, tmp_path: Path
) -> None:
    header = tmp_path / "a.h"
    text = '#include "a.h"\n__global__ void k(int *x) { x[0] = ONE; }'
    results = []
    for value in (1, 2, 1):
        header.write_text(f"#define ONE {value}\n", encoding="utf-8")
        os.utime(header, (1, 1))  # the compiler must not be able to start before the file was written
        results.append(obtain(cache, text, directory=str(tmp_path)))
    assert [one.from_cache for one in results] == [False, False, True]
    assert results[1].rebuilt_because == f"header changed: {header}"
    assert results[0].data == results[2].data != results[1].data


def test_a_header_that_would_be_found_first_is_noticed(cache: ObjectCache, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    (second / "a.h").write_text("#define ONE 1\n", encoding="utf-8")
    text = "#include <a.h>\n__global__ void k(int *x) { x[0] = ONE; }"
    places = [str(first), str(second)]
    before = obtain(cache, text, include_dirs=places)
    (first / "a.h").write_text("#define ONE 2\n", encoding="utf-8")
    after = obtain(cache, text, include_dirs=places)
    assert not after.from_cache
    assert before.data != after.data


@pytest.mark.parametrize(
    "text", ["__global__ void k(char *x) { x[0] = __TIME__[0]; }", "#define N <cmath>\n#include N\n" + KERNEL]
)
def test_what_depends_on_more_than_its_texts_is_not_kept(cache: ObjectCache, text: str) -> None:
    assert [obtain(cache, text).from_cache for _ in range(2)] == [False, False]


def test_a_damaged_cubin_is_never_used(cache: ObjectCache) -> None:
    good = obtain(cache)
    hurt = 0
    for path in Path(str(cache.directory)).rglob("*"):
        if path.is_file() and good.data[:64] in (blob := path.read_bytes()):
            at = blob.index(good.data[:64]) + 200
            path.write_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
            hurt += 1
    assert hurt == 1
    with pytest.warns(RekernelWarning, match="damaged"):
        again = obtain(cache)
    assert (again.from_cache, again.data) == (False, good.data)


def test_a_failed_compile_leaves_nothing_and_is_tried_again(cache: ObjectCache) -> None:
    for _ in range(2):
        with pytest.raises(CompileFailed):
            obtain(cache, "__global__ void k(int *x) { x[0] = y; }")
    assert cache.stats.published == 0


def test_make_may_compile_more_than_once_and_adds_to_the_manifest(cache: ObjectCache) -> None:
    def make(compile_: cubins.Compile) -> Any:
        with pytest.raises(CompileFailed):
            compile_(KERNEL + "wrong", ())
        return compile_(KERNEL + "\n", ["&k"]), {"entries": [1, 2]}

    for from_cache in (False, True):
        made = cubins.obtain(cache, cubins.Order(KERNEL, "sm_90"), make)
        assert (made.from_cache, made.manifest["entries"], made.manifest["names"]) == (
            from_cache,
            [1, 2],
            {"&k": "_Z1kPi"},
        )


def test_a_warm_start_does_not_load_nvrtc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_known", [])
    place = str(tmp_path)
    if nvrtc._store(place) is None:
        pytest.skip("NVRTC is not one file of a package here")
    assert nvrtc.about(place) == ABOUT
    monkeypatch.setattr(nvrtc, "_known", [])
    monkeypatch.setattr(nvrtc, "api", lambda: pytest.fail("it was loaded"))
    assert nvrtc.about(place) == ABOUT
    monkeypatch.setattr(nvrtc, "_known", [])
    (kept,) = tmp_path.iterdir()
    kept.write_text("{", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="it was loaded"):
        nvrtc.about(place)


def test_other_threads_run_while_nvrtc_compiles() -> None:
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    compiled('__global__ void k(double *x) { printf("%f", tgamma(x[0])); }')
    after = counted
    done.set()
    thread.join()
    assert after > before + 10


def test_threads_compile_the_same_text_once(cache: ObjectCache) -> None:
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(obtain(cache))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.data for one in results}) == 1
    assert cache.stats.published == 1
