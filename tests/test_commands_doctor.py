"""``rekernel doctor``: never fails, whatever is broken, and says what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from commandkit import cache, call, command  # noqa: F401
from jitkernels import needs_compiler
from rekernel.commands import checkcache, checkrows, checks, doctor

GARBAGE = b"this is no library\n"


@pytest.fixture
def only(monkeypatch):
    """Let the doctor look at some things only."""

    def choose(*names):
        monkeypatch.setattr(checks, "CHECKS", tuple(one for one in checks.CHECKS if one.__name__ in names))

    return choose


@pytest.fixture
def look(only, call):
    """Look at some things; gives status and rows by part."""
    import json

    def run(*names):
        only(*names)
        status, out, _errors = call("doctor", "--json")
        document = json.loads(out)
        assert document["ok"] is (status == 0)
        return status, {row["part"]: row for row in document["rows"]}

    return run


def program(directory: Path, name: str, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def without_a_compiler(monkeypatch, path: Path) -> None:
    path.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("REKERNEL_CXX", raising=False)


@needs_compiler
def test_where_all_is_well_the_core_works(cache, look):
    status, rows = look("python", "rekernel", "compilers", "cpu", "cache")
    assert status == 0
    assert rows["Python"]["found"].startswith(sys.version.split()[0])
    assert {
        rows[part]["state"] for part in ("Python", "rekernel", "numpy", "C++ compiler", "cache", "cache locks")
    } == {"ok"}
    assert "built a kernel in" in rows["C++ compiler"]["found"]
    assert str(cache) in rows["cache"]["found"]


@needs_compiler
def test_the_whole_of_it_is_one_page(cache, tmp_path):
    done = command("doctor", COLUMNS="80")
    assert done.returncode == 0, done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""
    assert done.stdout.endswith("the core works\n")
    assert f"set      REKERNEL_CACHE_DIR  {str(cache)[:20]}" in done.stdout
    for part in (
        "Python",
        "OpenMP",
        "CPU",
        "taichi",
        "pystencils",
        "CUDA driver",
        "NVRTC",
        "CuPy",
        "watchfiles",
        "ipython",
    ):
        assert part in done.stdout


def test_the_cache_of_the_user_is_not_written_to_by_the_tries(cache, look):
    look("compilers")
    assert not cache.exists()


def test_no_compiler(cache, look, monkeypatch, tmp_path):
    without_a_compiler(monkeypatch, tmp_path / "bin")
    status, rows = look("python", "compilers")
    row = rows["C++ compiler"]
    assert (status, row["state"]) == (1, "missing")
    assert "no C++ compiler was found" in row["found"]
    assert "apt install g++" in row["advice"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("exit 1", "does not work as a C++ compiler"),
        ("echo what?; exit 0", ""),
        ("kill -SEGV $$", "killed"),
        ("", ""),
    ],
    ids=["fails", "says nonsense", "crashes", "does nothing"],
)
def test_a_broken_compiler(body, said, cache, look, monkeypatch, tmp_path):
    without_a_compiler(monkeypatch, tmp_path / "bin")
    program(tmp_path / "bin", "g++", body)
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    status, rows = look("compilers")
    row = rows["C++ compiler"]
    assert (status, row["state"]) == (1, "missing")
    assert row["found"].startswith("g++: ")
    assert said in row["found"]
    assert "REKERNEL_CXX" in row["advice"]


@needs_compiler
def test_a_compiler_whose_code_is_wrong(cache, look, monkeypatch):
    monkeypatch.setattr(checks, "_BUILD", checks._BUILD.replace("2 * x", "3 * x"))
    status, rows = look("compilers")
    assert status == 1
    assert rows["C++ compiler"]["found"].endswith("a kernel that it built gives a wrong result")


@needs_compiler
def test_a_second_compiler_that_is_broken_is_a_warning(cache, look, monkeypatch, tmp_path):
    program(tmp_path / "bin", "clang++", "exit 3")
    monkeypatch.delenv("REKERNEL_CXX", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    status, rows = look("compilers")
    assert status == 0
    assert rows["another compiler"]["state"] == "warning"


@pytest.mark.parametrize("named", ["/nowhere/g++", 'g++ "', "   -m64"])
def test_a_compiler_that_cannot_be_named_so(named, cache, look, monkeypatch):
    monkeypatch.setenv("REKERNEL_CXX", named)
    status, rows = look("compilers")
    assert status == 1
    assert rows["C++ compiler"]["state"] == "missing"


@needs_compiler
def test_a_compiler_that_hangs_is_given_up(cache, look, monkeypatch, tmp_path):
    monkeypatch.setattr(checkrows, "PATIENCE", 3.0)
    monkeypatch.setenv("REKERNEL_CXX", str(program(tmp_path / "bin", "g++", "sleep 600")))
    assert "no answer within 3 s" in look("compilers")[1]["C++ compiler"]["found"]


BROKEN = {
    "raises": "raise RuntimeError('broken inside')",
    "exits": "import sys; sys.exit(7)",
    "crashes": "import os; os.abort()",
    "is another": "",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize(("check", "module", "part"), [
    ("languages", "taichi", "taichi"), ("languages", "pystencils", "pystencils"), ("extras", "watchfiles", "watchfiles"),
    ("extras", "anywidget", "anywidget"), ("rekernel", "tree_sitter_cpp", "tree-sitter-cpp"),
])  # fmt: skip
def test_a_broken_package(check, module, part, body, cache, look, monkeypatch, tmp_path):
    pytest.importorskip(module, reason=f"{module} is not installed")
    (tmp_path / f"{module}.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, rows = look(check)
    if body == "" and check != "languages":  # an empty module can be imported
        assert rows[part]["state"] == "ok"
        return
    if body == "" and module == "pystencils":
        return
    assert rows[part]["state"] == "missing"
    assert "cannot be imported" in rows[part]["found"]
    assert rows[part]["advice"] == f"pip install --force-reinstall {part}"
    assert status == (1 if check == "rekernel" else 0)


@pytest.mark.parametrize("module", ["numpy", "rich"])
def test_a_broken_package_that_the_doctor_itself_could_use(module, cache, tmp_path):
    (tmp_path / f"{module}.py").write_text("raise RuntimeError('broken inside')")
    done = command("doctor", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "broken inside" in done.stdout
    end, _, parts = done.stdout.splitlines()[-1].partition(": ")
    assert end == "the core does not work"
    assert module in parts.split(", ")


def test_a_package_that_is_not_there_names_its_extra(cache, look, monkeypatch):
    def nothing(package):
        raise checkrows.PackageNotFoundError(package)

    monkeypatch.setattr(checkrows, "version", nothing)
    status, rows = look("languages", "extras")
    assert status == 0
    extras = {
        "taichi": "taichi",
        "pystencils": "stencils",
        "watchfiles": "watch",
        "ipython": "notebook",
        "pillow": "notebook",
    }
    for part, extra in extras.items():
        assert (rows[part]["state"], rows[part]["found"]) == ("missing", "not installed")
        assert f'pip install "rekernel[{extra}]"' in rows[part]["advice"]


@pytest.mark.parametrize("library", [GARBAGE, None], ids=["garbage", "crashes"])
def test_a_broken_driver(library, cache, look, monkeypatch, tmp_path):
    file = tmp_path / "libcuda.so.1"
    if library is None:
        compiler = shutil.which("gcc") or pytest.skip("needs gcc")
        (tmp_path / "d.c").write_text("#include <stdlib.h>\nint cuInit(unsigned x) { abort(); }\n")
        os.spawnv(os.P_WAIT, compiler, [compiler, "-shared", "-fPIC", str(tmp_path / "d.c"), "-o", str(file)])
    else:
        file.write_bytes(library)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    status, rows = look("cuda")
    assert status == 0
    row = rows.get("CUDA driver") or rows["CUDA"]
    assert row["state"] in ("missing", "warning")
    assert "nvidia-smi" in row["advice"]


def test_a_cache_that_cannot_be_used(tmp_path, look, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, rows = look("cache")
    assert (status, rows["cache"]["state"]) == (0, "ok")
    assert str(tmp_path / "rekernel-") in rows["cache"]["found"]  # the next best place
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    only_memory = [row for row in checkrows.rows_of(checkcache.cache) if "in memory only" in row.found]
    assert [row.state for row in only_memory] == ["warning"]
    assert "REKERNEL_CACHE_DIR" in only_memory[0].advice


def test_damaged_entries_and_a_size_that_is_none(cache, look, monkeypatch):
    from rekernel.objcache import ObjectCache

    ObjectCache(cache).publish("ab" * 16, {}, b"data")
    next(cache.glob("objects/*/*/*")).write_bytes(b"damaged")
    monkeypatch.setenv("REKERNEL_CACHE_SIZE", "plenty")
    _status, rows = look("cache")
    assert rows["cache entries"]["advice"] == "rekernel cache verify"
    assert rows["cache size"]["state"] == "warning"
    assert next(cache.glob("objects/*/*/*")).read_bytes() == b"damaged"  # looking takes nothing out


def test_locks_that_do_not_work_are_told(cache, look, monkeypatch):
    from rekernel import buildlock

    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(buildlock, "_open_file", none)
    assert look("cache")[1]["cache locks"]["state"] == "warning"


def test_a_check_that_fails_is_a_row(monkeypatch, call):
    def gone():
        yield checkrows.Row("first", checkrows.OK, "is told")
        raise KeyError("what nobody thought of")

    monkeypatch.setattr(checks, "CHECKS", (gone,))
    status, out, _errors = call("doctor")
    assert status == 0
    assert "is told" in out
    assert "could not be looked at (KeyError: 'what nobody thought of')" in out


def test_every_row_that_is_not_ok_says_what_to_do(cache, look):
    _status, rows = look(*(one.__name__ for one in checks.CHECKS))
    assert [part for part, row in rows.items() if row["state"] != "ok" and not row["advice"]] == []
    assert {row["state"] for row in rows.values()} <= set(doctor._COLOURS)


def test_variables_are_told_that_are_set(monkeypatch):
    monkeypatch.setenv("REKERNEL_CACHE_SIZE", "5M")
    monkeypatch.setenv("CPATH", "/x")
    monkeypatch.delenv("REKERNEL_CXX", raising=False)
    told = checks.environment()
    assert (told["REKERNEL_CACHE_SIZE"], told["CPATH"]) == ("5M", "/x")
    assert "REKERNEL_CXX" not in told
