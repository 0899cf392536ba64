"""`LegacyCpuJit`: the configuration of pystencils 1.x is found, checked and followed; the engine is that of `CpuJit`."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rekernel
from jitkernels import AXPY, THREADS, constant, each_compiler, needs_compiler, needs_openmp
from rekernel import JitError, KernelSourceError, LegacyCpuJit, RekernelWarning, ToolchainError
from rekernel.jit import CpuJit, cpujit, legacyconfig, legacyflags
from rekernel.kernel import Kernel
from rekernel.pch import PrecompiledHeaders
from rekernel.probe import probe
from rekernel.toolchain import openmp_works

FUNCTIONS = (
    "add_or_change_compiler_flags", "clear_cache", "get_cache_config", "get_compiler_config", "read_config",
    "set_config",
)  # fmt: skip
#: What pystencils 1.x writes when it is first imported.
WRITTEN = {
    "compiler": {
        "os": "linux", "command": "g++", "flags": "-Ofast -DNDEBUG -fPIC -march=native -fopenmp -std=c++11",
        "restrict_qualifier": "__restrict__",
    },
    "cache": {"object_cache": "~/.cache/pystencils/objectcache", "clear_cache_on_start": False},
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A user without any configuration, in an empty working directory."""
    place, here = tmp_path / "home", tmp_path / "here"
    place.mkdir()
    here.mkdir()
    for name in ("PYSTENCILS_CONFIG", "XDG_CONFIG_HOME", "REKERNEL_CXX", "CXX", "CPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(here)
    cpujit.set_config(None)
    yield place
    cpujit.set_config(None)


def write(path: os.PathLike[str] | str, config: object) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return path.absolute()


def flags(text: object, **more: object) -> dict[str, object]:
    return {"compiler": {"flags": text}, **more}


def entries(directory: Path) -> int:
    return rekernel.ObjectCache(directory).verify().entries if directory.is_dir() else 0


# --- where it is ------------------------------------------------------------------------------------------------


def test_without_a_configuration_there_are_defaults(home):
    assert legacyconfig.find() is None
    compiler = cpujit.get_compiler_config()
    assert compiler["flags"].startswith("-Ofast -DNDEBUG -fPIC -m")
    assert (compiler["restrict_qualifier"], compiler["env"]) == ("__restrict__", {})
    assert cpujit.get_cache_config() == {"object_cache": True, "clear_cache_on_start": False}
    assert list(home.rglob("*")) == []  # read, never written


def test_the_variable_goes_before_the_working_directory_and_this_before_the_home(home, monkeypatch, tmp_path):
    write(home / ".config/pystencils/config.json", flags("-Dhome"))
    assert cpujit.read_config()["compiler"]["flags"] == "-Dhome"
    write(tmp_path / "xdg/pystencils/config.json", flags("-Dxdg"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert cpujit.read_config()["compiler"]["flags"] == "-Dxdg"
    write("pystencils.json", flags("-Dhere"))
    assert cpujit.read_config()["compiler"]["flags"] == "-Dhere"
    write(home / "mine.json", flags("-Dnamed"))
    monkeypatch.setenv("PYSTENCILS_CONFIG", "~/mine.json")
    assert cpujit.read_config()["compiler"]["flags"] == "-Dnamed"


def test_on_macos_its_own_place_is_searched(home, monkeypatch):
    path = write(home / "Library/Application Support/pystencils/config.json", {})
    assert legacyconfig.find() is None
    monkeypatch.setattr(legacyconfig.sys, "platform", "darwin")
    assert legacyconfig.find() == str(path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner here")
def test_a_file_that_only_lies_there_and_is_not_the_users_own_is_not_read(monkeypatch):
    path = write("pystencils.json", flags("-Dmine"))
    path.chmod(0o666)
    with pytest.warns(RekernelWarning, match=r"pystencils\.json is not read.*everybody can write.*PYSTENCILS_CONFIG"):
        assert legacyconfig.find() is None
    path.chmod(0o644)
    owner = path.stat().st_uid
    monkeypatch.setattr(legacyconfig.os, "geteuid", lambda: owner + 1)
    if owner:
        with pytest.warns(RekernelWarning, match=f"it belongs to user {owner}"):
            assert legacyconfig.find() is None
    monkeypatch.setenv("PYSTENCILS_CONFIG", "pystencils.json")
    assert legacyconfig.find() == str(path)


# --- what is wrong with it --------------------------------------------------------------------------------------

WRONG_TEXTS = {
    "": r"line 1, column 1: this is no JSON",
    '{"compiler":\n {"flags": "-O3",}}': r"line 2, column \d+: this is no JSON",
    "[1, 2]": r"the configuration is \[1, 2\]; write an object",
    "null": "the configuration is null; write an object",
}


@pytest.mark.parametrize("text", WRONG_TEXTS)
def test_a_file_that_does_not_read_is_named_with_line_and_column(text):
    path = write("pystencils.json", text)
    with pytest.raises(JitError, match=WRONG_TEXTS[text]) as caught:
        LegacyCpuJit().compile(constant(1))
    assert str(caught.value).startswith(str(path))


WRONG_VALUES = [
    ("compiler", None),
    ("compiler", "g++"),
    ("cache", []),
    ("compiler.os", "windows"),
    ("compiler.os", "Windows"),
    ("compiler.os", "amiga"),
    ("compiler.os", 1),
    ("compiler.msvc_version", "latest"),
    ("compiler.arch", "x64"),
    ("compiler.command", ""),
    ("compiler.command", ["g++"]),
    ("compiler.command", None),
    ("compiler.flags", 3),
    ("compiler.flags", None),
    ("compiler.flags", ["-O3", 3]),
    ("compiler.flags", {"-O3": True}),
    ("compiler.flags", "-D\0"),
    ("compiler.restrict_qualifier", "two words"),
    ("compiler.restrict_qualifier", False),
    ("compiler.env", []),
    ("compiler.env", "A=1"),
    ("compiler.env.A", 4),
    ("compiler.env.A", None),
    ("compiler.env.A=B", "x"),
    ("cache.object_cache", None),
    ("cache.object_cache", ""),
    ("cache.object_cache", 0),
    ("cache.object_cache", "/tmp/{user}/{pid}"),
    ("cache.object_cache", "/tmp/{}"),
    ("cache.clear_cache_on_start", "no"),
    ("cache.clear_cache_on_start", 1),
]


@pytest.mark.parametrize(("key", "value"), WRONG_VALUES, ids=lambda x: str(x) if "." in str(x) else None)
def test_a_wrong_value_is_named_with_file_and_key(key, value):
    first, *middle = key.split(".", 2)
    config: object = value
    for name in reversed([first, *middle]):
        config = {name: config}
    path = write("pystencils.json", config)
    with pytest.raises(JitError) as caught:
        cpujit.get_compiler_config()
    assert str(caught.value).startswith(f"{path}: {key} is {json.dumps(value)}; ")
    with pytest.raises(JitError) as given:
        cpujit.set_config(config)  # type: ignore[arg-type]
    assert str(given.value) == str(caught.value).replace(str(path), "set_config")


def test_the_compiler_of_windows_is_refused_in_words():
    with pytest.raises(JitError, match=r"compiler\.msvc_version .* not supported; use Linux, or WSL, and remove"):
        cpujit.set_config({"compiler": {"msvc_version": "latest"}})


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"compilr": {}}, r": compilr is unknown .*; did you mean compiler\?"),
        ({"compiler": {"flag": "-O3"}}, r": compiler\.flag is unknown .*; did you mean compiler\.flags\?"),
        ({"4": 1}, r": 4 is unknown .*; known are compiler, cache"),
        ({"cache": {"zzz": 1}}, r": cache\.zzz is unknown .*; known are cache\.object_cache, "),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_file_and_key(config, said):
    path = write("pystencils.json", config)
    with pytest.warns(RekernelWarning, match=said) as caught:
        assert cpujit.read_config() == legacyconfig.defaults()
    assert str(caught[0].message).startswith(str(path))


def test_a_named_file_that_is_not_there_names_the_variable(monkeypatch, tmp_path):
    for path in (tmp_path / "nowhere.json", tmp_path):
        monkeypatch.setenv("PYSTENCILS_CONFIG", str(path))
        with pytest.raises(JitError, match=rf"^{path} cannot be read: .*PYSTENCILS_CONFIG names it"):
            cpujit.read_config()


def test_a_file_may_begin_with_a_byte_order_mark_and_must_be_utf_8():
    Path("pystencils.json").write_bytes(b"\xef\xbb\xbf{}")
    assert cpujit.read_config() == legacyconfig.defaults()
    Path("pystencils.json").write_bytes(b'{"\xff"')
    with pytest.raises(JitError, match=r"pystencils\.json is no text in UTF-8"):
        cpujit.read_config()


def test_a_wrong_configuration_can_be_corrected_and_tried_again():
    write("pystencils.json", flags(3))
    for _ in range(2):
        with pytest.raises(JitError):
            cpujit.get_compiler_config()
    write("pystencils.json", flags("-O1"))
    assert cpujit.get_compiler_config()["flags"] == "-O1"


# --- its functions ----------------------------------------------------------------------------------------------


def test_the_functions_have_their_names_in_all_places():
    for name in FUNCTIONS:
        function = getattr(cpujit, name)
        assert function is getattr(rekernel.jit, name)
        assert not hasattr(rekernel, name), "there they would read as if they were about all of rekernel"
        assert name == "read_config" or getattr(LegacyCpuJit(), name) is function
    assert cpujit.LegacyCpuJit is rekernel.jit.LegacyCpuJit is rekernel.LegacyCpuJit
    assert issubclass(LegacyCpuJit, rekernel.JitBase)


def test_importing_and_making_one_reads_nothing(tmp_path):
    write("pystencils.json", "no JSON")
    code = "import rekernel.jit as j; x = j.LegacyCpuJit(); print(x)\ntry: j.get_compiler_config()\n"
    code += "except j.JitError as error: print(type(error).__name__, x)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    read = "<LegacyCpuJit: no configuration read yet>"
    assert done.stdout == f"{read}\nJitError {read}\n"


def test_a_given_configuration_is_copied_and_filled_up_with_defaults():
    mine = flags(["-O1"], cache={"object_cache": False})
    cpujit.set_config(mine)
    mine["compiler"]["flags"].append("-DX")  # type: ignore[index]
    assert cpujit.get_compiler_config() == {**legacyconfig.defaults()["compiler"], "flags": ["-O1"]}
    assert cpujit.get_cache_config() == {"object_cache": False, "clear_cache_on_start": False}


def test_a_wrong_one_leaves_the_one_in_use():
    cpujit.set_config(flags("-O1"))
    for wrong in (flags(1), 3, "text"):
        with pytest.raises(JitError, match=r"^set_config: "):
            cpujit.set_config(wrong)  # type: ignore[arg-type]
    assert cpujit.get_compiler_config()["flags"] == "-O1"


def test_what_is_read_can_be_set_and_none_reads_again():
    write("pystencils.json", WRITTEN)
    read = cpujit.read_config()
    cpujit.set_config(read)
    assert {"compiler": cpujit.get_compiler_config(), "cache": cpujit.get_cache_config()} == read
    write("pystencils.json", flags("-Dlater"))
    assert cpujit.get_compiler_config()["flags"] == WRITTEN["compiler"]["flags"]
    cpujit.set_config(None)
    assert cpujit.get_compiler_config()["flags"] == "-Dlater"


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("-Ofast -fopenmp", "-O2", "-fopenmp -O2"),
        ("-O1 -std=c++11", "-std=c++20", "-O1 -std=c++20"),
        ("-DN=1 -DNDEBUG", ["-DN=2 "], "-DNDEBUG -DN=2"),
        ("-march=native", "-march=x86-64-v3 -g", "-march=x86-64-v3 -g"),
        ("-O1 -g", "-g", "-O1 -g"),
        ("-Wl,-z,now", ("-Wl,-rpath=/x", "-Wl,-rpath=/y"), "-Wl,-z,now -Wl,-rpath=/x -Wl,-rpath=/y"),
        (["-O1", "-DA=a b"], "-O2", ["-DA=a b", "-O2"]),
        ("-O1", [], "-O1"),
    ],
)
def test_flags_are_added_or_take_the_place_of_those_that_set_the_same(before, new, after):
    cpujit.set_config(flags(before))
    cpujit.add_or_change_compiler_flags(new)
    assert cpujit.get_compiler_config()["flags"] == after


def test_flags_that_are_none_are_refused_and_change_nothing():
    cpujit.set_config(flags("-O1"))
    for wrong in (3, None, ["-O2", 3]):
        with pytest.raises(JitError, match=r"^add_or_change_compiler_flags: compiler\.flags is "):
            cpujit.add_or_change_compiler_flags(wrong)  # type: ignore[arg-type]
    assert cpujit.get_compiler_config()["flags"] == "-O1"


# --- what is made from it ---------------------------------------------------------------------------------------


def info_of(text: object, **more: object) -> legacyflags.LegacyInfo:
    return legacyflags.compiler_info({**legacyconfig.merged(flags(text), "test")["compiler"], **more})


@pytest.mark.parametrize(
    ("text", "compiling", "linking", "openmp"),
    [
        (WRITTEN["compiler"]["flags"], "-Ofast -DNDEBUG -fPIC -march=native -std=c++11", "", True),
        ("-O3 -Xclang -fopenmp -Xclang -other", "-O3 -Xclang -other", "", True),
        ("-qopenmp -O3", "-O3", "", True),
        ("-O3 -fopenmp=libomp", "-O3 -fopenmp=libomp", "", True),
        ("-O3 -fopenmp -fno-openmp", "-O3", "", False),
        ("-O3 -fopenmp-simd", "-O3 -fopenmp-simd", "", False),
        ("-I /a -lm -I/b -L /c -L/d -l z -Wl,-z,now", "-I /a -I/b", "-lm -L /c -L/d -l z -Wl,-z,now", False),
        ("-O1 /opt/libomp.dylib -Xlinker -now", "-O1", "/opt/libomp.dylib -Xlinker -now", False),
        ("-D X -include x.h -pthread -isystem /s", "-D X -include x.h -pthread -isystem /s", "-pthread", False),
        ("", "", "", False),
        ("-I", "-I", "", False),
    ],
)
def test_flags_go_where_they_belong(text, compiling, linking, openmp):
    info = info_of(text)
    assert info.cxxflags() == compiling.split()
    assert info.linker_flags() == ["-shared", *linking.split()]
    assert info.openmp is openmp


def test_paths_among_the_linkers_flags_are_absolute():
    here = os.getcwd()
    assert info_of("lib/x.a -Llib").linker_flags() == ["-shared", f"{here}/lib/x.a", f"-L{here}/lib"]


def test_the_info_tells_what_the_flags_say():
    info = info_of("-O1 -march=a -std=c++11 -Ofast -march=b", restrict_qualifier="", command="~/cc", env={"A": "1"})
    assert (info.optlevel, info.target, info.cxx_standard) == ("fast", "b", "c++11")
    assert (info.restrict_qualifier(), info.cxx(), info.env) == ("", os.path.expanduser("~/cc"), {"A": "1"})
    assert info_of("").target == "generic"


# --- the real thing ---------------------------------------------------------------------------------------------


def macro(name: str = "FOUND") -> Kernel:
    """A kernel that returns a macro."""
    return Kernel("macro", (), "cpp", code=f"int macro() {{ return {name}; }}\n", returns="int32")


@needs_compiler
def test_a_user_of_pystencils_1_finds_the_file_that_it_wrote_and_goes_on(home):
    config = {**WRITTEN, "compiler": {**WRITTEN["compiler"], "command": legacyconfig.defaults()["compiler"]["command"]}}
    path = write(home / ".config/pystencils/config.json", config)
    jit = LegacyCpuJit()
    first = jit.compile(AXPY)
    y = np.ones(5)
    first(y, np.arange(5.0), 2.0)
    assert y.tolist() == [1, 3, 5, 7, 9]
    assert (first.target, first.from_cache, jit.compile(AXPY).from_cache) == ("native", False, True)
    assert jit.objcache.directory == str(home / ".cache/pystencils/objectcache")
    assert repr(jit) == f"<LegacyCpuJit: {path}>"


@each_compiler
def test_fast_math_in_the_flags_leaves_the_floating_point_environment_alone(info):
    libm = ctypes.CDLL("libm.so.6") if sys.platform.startswith("linux") else pytest.skip("no glibc")
    libm.ldexp.restype, libm.ldexp.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_int)
    for text in ("-Ofast -march=native -fopenmp", "-O1 -ffast-math -flto"):
        cpujit.set_config({"compiler": {"command": info.command, "flags": text}, "cache": {"object_cache": False}})
        y = np.array([1.0])
        LegacyCpuJit().compile(AXPY)(y, np.array([1.0]), 1.0)
        assert y[0] == 2
        tiny = np.array([5e-324])
        assert (tiny * 1.0)[0] == 5e-324
        assert libm.ldexp(1.0, -1074) == 5e-324


@each_compiler
def test_openmp_is_on_where_the_flags_say_so(info):
    needs_openmp(info)
    code = "int on() {\n#ifdef _OPENMP\n  return 1;\n#endif\n  return 0;\n}\n"
    kernel = Kernel("on", (), "cpp", code=code, returns="int32", openmp=True)
    for text, on in (("-O2 -fopenmp", True), ("-O2", False), ("-O2 -fopenmp -fno-openmp", False)):
        cpujit.set_config({"compiler": {"command": info.command, "flags": text}})
        assert LegacyCpuJit().compiler_info.openmp is on
        assert LegacyCpuJit().compile(kernel)() == on
        assert LegacyCpuJit().compile(THREADS)(np.zeros(100, "int32")) >= 1


@each_compiler
def test_the_standard_of_the_flags_counts(info):
    code = "int standard() { return __cplusplus; }"
    kernel = Kernel("standard", (), "cpp", code=code, returns="int32")
    for text, year in (("-std=c++11", 201103), ("-std=c++17", 201703)):
        cpujit.set_config({"compiler": {"command": info.command, "flags": f"-O1 {text}"}})
        assert LegacyCpuJit().compile(kernel)() == year


@needs_compiler
def test_every_change_of_the_configuration_is_followed():
    jit = LegacyCpuJit()
    cpujit.set_config(flags("-O1 -DFOUND=1"))
    old = jit.compile(macro())
    jit.add_or_change_compiler_flags("-DFOUND=2")
    assert jit.compile(macro())() == 2
    jit.get_compiler_config()["flags"] = "-DFOUND=3"
    assert jit.compile(macro())() == 3
    jit.get_compiler_config()["flags"] = 4
    for use in (lambda: jit.compile(macro()), lambda: jit.add_or_change_compiler_flags("-O2")):
        with pytest.raises(JitError, match=r"^set_config: compiler\.flags is 4"):
            use()
    del jit.get_compiler_config()["flags"]
    assert "-Ofast" in jit.compiler_info.cxxflags()
    write("pystencils.json", flags("-DFOUND=5"))
    jit.set_config(None)
    assert jit.compile(macro())() == 5
    assert old() == 1


@each_compiler
def test_variables_reach_the_compiler_only_and_belong_to_the_key(info, tmp_path):
    for number in (1, 2):
        write(tmp_path / f"inc{number}/found.h", f"#define FOUND {number}")
    kernel = Kernel("macro", (), "cpp", code='#include "found.h"\nint macro() { return FOUND; }\n', returns="int32")
    jit, before = LegacyCpuJit(), dict(os.environ)
    found = []
    for number in (1, 2, 1):
        variables = {"CPATH": str(tmp_path / f"inc{number}"), "LM_PROJECT": "iwia"}
        cpujit.set_config({"compiler": {"command": info.command, "flags": "-O1", "env": variables}})
        wrapper = jit.compile(kernel)
        found.append((wrapper(), wrapper.from_cache))
    assert found == [(1, False), (2, False), (1, True)]
    assert dict(os.environ) == before
    cpujit.set_config({"compiler": {"command": info.command, "flags": "-O1"}})
    with pytest.raises(KernelSourceError, match=r"found\.h"):
        jit.compile(kernel)


@needs_compiler
def test_the_path_among_the_variables_is_where_the_compiler_is_searched(tmp_path):
    real = shutil.which(legacyconfig.defaults()["compiler"]["command"])
    without = tmp_path / "without"
    told = f'[ -n "$MINE" ] || echo "$@" >> {without}'
    script = write(tmp_path / "bin/mycc", f'#!/bin/sh\n{told}\nexec {real} -DFOUND="$MINE" "$@"\n')
    script.chmod(0o755)
    variables = {"PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}", "MINE": "7"}
    cpujit.set_config({"compiler": {"command": "mycc", "flags": "-O1", "env": variables}})
    assert LegacyCpuJit().compile(macro())() == 7
    cpujit.get_compiler_config()["env"]["MINE"] = "8"
    assert LegacyCpuJit().compile(macro())() == 8
    info = LegacyCpuJit().compiler_info
    assert PrecompiledHeaders(tmp_path / "pch").precompile(probe(info), info.cxxflags(), "#include <cmath>\n")
    openmp_works(probe(info))
    assert not without.exists()  # every call had them
    del cpujit.get_compiler_config()["env"]["PATH"]
    with pytest.raises(ToolchainError, match=r"^set_config: compiler\.command is 'mycc': .*not found"):
        LegacyCpuJit().compile(macro())


@each_compiler
@pytest.mark.parametrize("text", ["-nonsense", "-std=c++3", "-O1 -lnothere", "-include nothere.h", "/nothere/lib.a"])
def test_flags_that_the_compiler_refuses_are_named_with_file_and_key(info, text):
    path = write("pystencils.json", {"compiler": {"command": info.command, "flags": text}})
    with pytest.raises(JitError, match=r": compiler\.flags is .*: ") as caught:
        LegacyCpuJit().compile(AXPY)
    assert str(caught.value).startswith(str(path))


@each_compiler
@pytest.mark.parametrize("code", ["int f() { return x; }", "int g(); int f() { return g(); }", '#include "none.h"'])
def test_a_wrong_text_is_not_blamed_on_the_configuration(info, code):
    cpujit.set_config({"compiler": {"command": info.command}})
    with pytest.raises(KernelSourceError):
        LegacyCpuJit().compile(Kernel("f", (), "cpp", code=code, returns="int32"))


# --- the cache --------------------------------------------------------------------------------------------------


@needs_compiler
def test_the_cache_is_where_the_configuration_says(home, tmp_path):
    jit = LegacyCpuJit()
    for place, directory in ((True, tmp_path / "cache"), ("~/mine/{pid}", home / f"mine/{os.getpid()}")):
        cpujit.set_config({"cache": {"object_cache": place}})
        jit.compile(constant(1))
        assert (jit.objcache.directory, entries(directory)) == (str(directory), 1)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@needs_compiler
def test_false_keeps_nothing(home, tmp_path):
    cpujit.set_config({"cache": {"object_cache": False}})
    assert [LegacyCpuJit().compile(constant(1)).from_cache for _ in range(2)] == [False, False]
    assert cpujit.clear_cache() == 0
    assert not (tmp_path / "cache").exists()
    assert list(home.rglob("*")) == []


@needs_compiler
def test_clearing_takes_compiled_kernels_out_and_leaves_other_files_and_loaded_kernels(tmp_path):
    cpujit.set_config({"cache": {"object_cache": str(tmp_path / "c")}})
    jit = LegacyCpuJit()
    kernels = [jit.compile(constant(number)) for number in (1, 2)]
    other = write(tmp_path / "c/module_of_pystencils_1.so", "x")
    assert jit.clear_cache() == 2
    assert entries(tmp_path / "c") == 0
    assert other.exists()
    assert [kernel() for kernel in kernels] == [1, 2]
    assert jit.compile(constant(1)).from_cache is False


@needs_compiler
def test_clearing_on_start_happens_once_in_a_process(tmp_path):
    place = tmp_path / "c"
    write("pystencils.json", {"cache": {"object_cache": str(place)}})
    LegacyCpuJit().compile(constant(1))
    write("pystencils.json", {"cache": {"object_cache": str(place), "clear_cache_on_start": True}})
    cpujit.set_config(None)
    assert LegacyCpuJit().compile(constant(1)).from_cache is False
    cpujit.add_or_change_compiler_flags("-O1")
    LegacyCpuJit().compile(constant(1))
    assert entries(place) == 2


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_the_cache_of_its_own_number(tmp_path):
    cpujit.set_config({"cache": {"object_cache": f"{tmp_path}/{{pid}}"}})
    LegacyCpuJit().compile(constant(1))
    child = os.fork()
    if not child:
        ok = False
        try:
            ok = LegacyCpuJit().objcache.directory == f"{tmp_path}/{os.getpid()}"
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert LegacyCpuJit().objcache.directory == f"{tmp_path}/{os.getpid()}"


@needs_compiler
def test_what_it_compiles_is_what_the_other_front_door_compiles():
    jit = LegacyCpuJit()
    first = jit.compile(constant(1))
    assert CpuJit(jit.compiler_info, jit.objcache).compile(constant(1)).from_cache
    assert first.code == constant(1).code
    assert [kernel() for kernel in jit.compile_many([constant(3, "a"), constant(4, "b")])] == [3, 4]


@needs_compiler
def test_threads_may_compile_and_change_the_configuration_at_once():
    cpujit.set_config(flags("-O0 -DFOUND=0"))
    start, results, failures = threading.Barrier(6), [], []

    def work(number: int) -> None:
        try:
            start.wait()
            for _ in range(5):
                if number % 2:
                    cpujit.add_or_change_compiler_flags(f"-DFOUND={number}")
                results.append(LegacyCpuJit().compile(macro())())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(results) <= {0, 1, 3, 5}
    assert len(results) == 30
    assert cpujit.get_compiler_config()["flags"] in {f"-O0 -DFOUND={number}" for number in (1, 3, 5)}
