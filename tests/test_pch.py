"""Precompiled headers: found where they fit, never felt in a result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rekernel.compilers import ClangInfo, CompilerInfo, GccInfo
from rekernel.leading import leading_headers
from rekernel.pch import PrecompiledHeaders
from rekernel.toolchain import CompileFailed, Product, build, flags, probe

COMPILERS = {"g++": GccInfo, "clang++": ClangInfo}
EXPORT = 'extern "C" __attribute__((visibility("default"))) '
TEXT = "// waves\n#include <cmath>\n" + EXPORT + "double f(double x) { return std::sin(x) + 1; }\n"


@pytest.mark.parametrize(
    ("text", "names", "rest"),
    [
        ("#include <cmath>\nint x;", ("cmath",), "\nint x;"),
        ('#line 1 "a.cpp"\n\n// c\n#include <cmath> // why\n', ("cmath",), '#line 1 "a.cpp"\n\n// c\n// why\n'),
        ("/* a\n b */\n  # include  <a/b.h>\n#include <cmath>", ("a/b.h", "cmath"), "/* a\n b */\n\n"),
        ("#define X\n#include <cmath>\n", (), None),
        ('#include "own.h"\n#include <cmath>\n', (), None),
        ("#include <cmath>\nint x;\n#include <vector>\n", ("cmath",), "\nint x;\n#include <vector>\n"),
        ("/* a */ #define X\n#include <cmath>\n", (), None),
        ("/* a\n*/ int x;\n#include <cmath>\n", (), None),
        ("// a \\\n#include <cmath>\n", (), None),
        ("#if 1\n#include <cmath>\n#endif\n", (), None),
        ("#include <cmath> /* and\n*/\n", (), None),
        ("#include MACRO\n", (), None),
        ("", (), None),
    ],
)
def test_leading_headers(text: str, names: tuple[str, ...], rest: str | None) -> None:
    assert leading_headers(text) == (names, text if rest is None else rest)


@pytest.fixture(params=COMPILERS)
def info(request: pytest.FixtureRequest) -> CompilerInfo:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return COMPILERS[request.param](optlevel="1", target="generic")


@pytest.fixture
def store(tmp_path: Path) -> PrecompiledHeaders:
    return PrecompiledHeaders(tmp_path / "p c'h")


@pytest.fixture
def make(info: CompilerInfo, store: PrecompiledHeaders, tmp_path: Path) -> Callable[..., Product]:
    def made(text: str, **options: Any) -> Product:
        return build(probe(info), info, text, **{"workdir": tmp_path / "work", "pch": store, **options})

    return made


def ready(store: PrecompiledHeaders, info: CompilerInfo, text: str = TEXT) -> None:
    assert store.precompile(probe(info), flags(probe(info), info), text)


def test_the_result_is_the_same(make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo) -> None:
    without = make(TEXT, pch=None)
    ready(store, info)
    product = make(TEXT)
    assert product.precompiled
    assert product.data == without.data
    assert set(product.headers) == set(without.headers)
    assert (product.output, product.warnings) == ("", ())


def test_it_is_made_in_the_background_after_a_build_that_took_long(
    make: Callable[..., Product], store: PrecompiledHeaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekernel.pch.WORTH", 0)
    assert not make(TEXT).precompiled
    store.wait()
    assert make(TEXT.replace("1", "2")).precompiled


def test_a_build_that_was_fast_is_not_worth_it(
    make: Callable[..., Product], store: PrecompiledHeaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rekernel.pch.WORTH", 1e9)
    make(TEXT)
    assert not store._busy


def test_other_flags_need_another_one(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo
) -> None:
    ready(store, info)
    info.extra_cxxflags = ["-DNDEBUG"]
    assert not make(TEXT).precompiled


@pytest.mark.parametrize("damage", ["half", "empty", "flip", "gone", "manifest"])
def test_a_damaged_one_is_not_used(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo, damage: str
) -> None:
    ready(store, info)
    (place,) = Path(store.directory).iterdir()
    (compiled,) = [path for path in place.iterdir() if path.suffix in (".gch", ".pch")]
    data = compiled.read_bytes()
    if damage == "manifest":
        (place / "manifest").write_bytes(b"{")
    elif damage == "gone":
        compiled.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        compiled.write_bytes({"half": data[:middle], "empty": b"", "flip": flipped}[damage])
    assert not make(TEXT).precompiled
    ready(store, info)
    assert make(TEXT).precompiled


def test_a_header_that_changed_is_noticed(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(store, info)
    (place,) = Path(store.directory).iterdir()
    manifest = place / "manifest"
    import json

    values = json.loads(manifest.read_bytes())
    values["headers"][3][2] += 1  # as if the file had been one byte longer then
    manifest.write_text(json.dumps(values))
    assert not make(TEXT).precompiled


@pytest.mark.parametrize("name", ["cmath", "bits/x.h"])
def test_a_file_that_could_take_a_headers_place_turns_it_off(
    info: CompilerInfo, store: PrecompiledHeaders, tmp_path: Path, name: str
) -> None:
    (tmp_path / "inc").mkdir()
    chosen = flags(probe(info), info, include_dirs=[tmp_path / "inc"])
    assert store.precompile(probe(info), chosen, TEXT)
    with store.find(probe(info), chosen, TEXT) as found:
        assert found is not None
    (tmp_path / "inc" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "inc" / name).write_text("#error mine\n")
    with store.find(probe(info), chosen, TEXT) as found:
        assert found is None


def test_a_header_of_the_users_is_not_precompiled(
    info: CompilerInfo, store: PrecompiledHeaders, tmp_path: Path
) -> None:
    (tmp_path / "mine.h").touch()
    chosen = flags(probe(info), info, include_dirs=[tmp_path])
    assert not store.precompile(probe(info), chosen, "#include <mine.h>\n")
    assert not store.precompile(probe(info), chosen, "#include <does_not_exist.h>\n")


def test_search_paths_in_the_environment_turn_it_off(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert not store.precompile(probe(info), flags(probe(info), info), TEXT)
    assert make(TEXT).data


def test_a_text_without_the_header_may_use_its_names(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo
) -> None:
    ready(store, info)
    product = make("static double gamma(double x) { return x; }\n" + EXPORT + "double f(double x) { return gamma(x); }")
    assert not product.precompiled


def test_special_functions_still_work(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo, tmp_path: Path
) -> None:
    import ctypes

    ready(store, info)
    product = make("#include <cmath>\n" + EXPORT + "double f(double x) { return std::riemann_zeta(x); }\n")
    path = tmp_path / "zeta.so"
    path.write_bytes(product.data)
    f = ctypes.CDLL(str(path)).f
    f.argtypes, f.restype = [ctypes.c_double], ctypes.c_double
    assert f(2.0) == pytest.approx(1.6449340668482264)


def test_errors_are_those_of_the_plain_text(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo
) -> None:
    ready(store, info)
    with pytest.raises(CompileFailed) as with_it:
        make(TEXT + "int g() { return nothing; }\n")
    with pytest.raises(CompileFailed) as without:
        make(TEXT + "int g() { return nothing; }\n", pch=None)
    assert with_it.value.diagnostics == without.value.diagnostics
    assert with_it.value.diagnostics[-1].line == 4


def test_a_directory_that_others_can_write_to_is_not_used(
    make: Callable[..., Product], store: PrecompiledHeaders, info: CompilerInfo
) -> None:
    ready(store, info)
    os.chmod(store.directory, 0o777)
    assert not make(TEXT).precompiled
    assert not store.precompile(probe(info), flags(probe(info), info), "#include <cstdint>\n")


def test_the_least_recently_used_go_first(store: PrecompiledHeaders, info: CompilerInfo) -> None:
    texts = ["#include <cstdint>\n", "#include <cstddef>\n", "#include <climits>\n"]
    for number, text in enumerate(texts[:2]):
        ready(store, info, text)
        place = max(Path(store.directory).iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(place / "manifest", (number + 1, number + 1))
    with store.find(probe(info), flags(probe(info), info), texts[0]) as found:  # using it makes it young
        assert found is not None
    one = sum(path.stat().st_size for path in Path(found.directory).iterdir())
    store.size = int(one * 2.5)
    ready(store, info, texts[2])
    kept = []
    for text in texts:
        with store.find(probe(info), flags(probe(info), info), text) as found:
            kept.append(found is not None)
    assert kept == [True, False, True]
