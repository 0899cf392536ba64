"""``rekernel build``: what it builds, a program need not; what fails is said and stops nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commandkit import HEAT, STENCIL, TAICHI, cache, call, call_json, command, here, needs_nvrtc  # noqa: F401
from jitkernels import needs_compiler
from rekernel import cachedir
from support import run_python

pytestmark = needs_compiler

FROZEN = """
    import sys, json, rekernel
    loader = rekernel.KernelLoader()
    rekernel.freeze()
    name, options = sys.argv[1], json.loads(sys.argv[2])
    module = loader.load_file(name, **options)
    info = loader.info(name.partition(".")[0])
    print(info.from_cache, *[kernel.name for kernel in info.kernels])
"""
"""A program that may compile nothing."""


def test_a_program_has_nothing_left_to_compile(here, cache, call):
    status, out, errors = call("build", "heat.cpp")
    assert (status, errors) == (0, "")
    assert "compiled" in out
    assert run_python(FROZEN, "heat.cpp", "{}").stdout == "True step\n"
    assert "from cache" in call("build", "heat.cpp")[1]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["-O", "optlevel=1"], '{"optlevel": "1"}'),
        (["-O", "openmp=false", "-O", "flags=-DN=8"], '{"openmp": false, "flags": "-DN=8"}'),
        (["--option", 'flags=["-DN=8"]', "--language", "cpp"], '{"flags": ["-DN=8"]}'),
        (["-O", "target=generic"], '{"target": "generic"}'),
    ],
)
def test_options_are_those_of_the_load(words, options, here, cache, call):
    assert call("build", "heat.cpp", *words)[0] == 0
    assert run_python(FROZEN, "heat.cpp", options).stdout == "True step\n"
    missing = run_python(FROZEN, "heat.cpp", "{}", returncode=1)
    assert "FrozenError" in missing.stderr


def test_headers_and_the_working_directory_do_not_matter(here, cache):
    Path("lib").mkdir()
    Path("lib/own.hpp").write_text("const double two = 2;\n")
    Path("lib/uses.cpp").write_text('#include "own.hpp"\ndouble twice(double x) { return two * x; }\n')
    assert command("build", "lib/uses.cpp", cwd=here).returncode == 0
    assert run_python(FROZEN, "uses.cpp", "{}", cwd=here / "lib").stdout == "True twice\n"
    (here / "lib/own.hpp").write_text("const double two = 3;\n")
    assert "FrozenError" in run_python(FROZEN, "uses.cpp", "{}", cwd=here / "lib", returncode=1).stderr


def test_every_kernel_of_a_stencil_text_is_built(here, cache, call_json):
    pytest.importorskip("pystencils", reason="pystencils is not installed")
    Path("lattice.py").write_text(STENCIL)
    status, document = call_json("build", "lattice.py")
    assert status == 0
    assert document["files"][0]["kernels"] == ["mean", "twice"]
    assert run_python(FROZEN + "\n    import numpy as np\n    module.mean(f=np.ones((4, 4)), g=np.ones((4, 4)))\n"
                      "    module.twice(f=np.ones((4, 4)), g=np.ones((4, 4)))", "lattice.py", "{}").returncode == 0  # fmt: skip


def test_taichi_kernels_are_compiled_as_far_as_their_types_are_told(here, cache, tmp_path):
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("paint.py").write_text(TAICHI)
    done = command("build", "paint.py", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 compiled" in done.stdout
    assert "compiled at the first call, which alone tells the types: anything" in done.stderr
    kept = list((tmp_path / "ticache").glob("*.tic"))
    assert len(kept) == 1
    code = """
        import taichi as ti, numpy as np, rekernel
        ti.init(arch=ti.cpu, log_level=ti.ERROR)
        rekernel.KernelLoader().load_file("paint.py").scale(np.ones(5, np.float32), 2.0)
        ti.reset()
    """
    run_python(code, cwd=here)
    assert list((tmp_path / "ticache").glob("*.tic")) == kept  # what the program needed was there


def test_each_taichi_text_has_its_own_program(here, cache, call_json):
    ti = pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("one.py").write_text(
        "import taichi as ti\nti.init(arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR)\n" + TAICHI
    )
    Path("other.py").write_text(TAICHI)
    status, document = call_json("build", "other.py", "one.py", "other.py")
    assert status == 0, document
    assert [one["waiting"] for one in document["files"]] == [["anything"], ["anything"]]
    assert [one["notes"] for one in document["files"]] == [[], []]
    assert ti.lang.impl.get_runtime().prog is None


def test_cuda_is_compiled_without_a_device(here, cache, call, call_json):
    needs_nvrtc()
    Path("k.cu").write_text("__global__ void fill(rekernel::Array<float, 1> x) { x(0) = 1; }\n")
    status, document = call_json("build", "k.cu", "heat.cpp", "--arch", "sm_80")
    assert status == 0, document
    assert [one["kernels"] for one in document["files"]] == [["fill"], ["step"]]
    assert call_json("build", "k.cu", "-O", "arch=sm_80")[1]["files"][0]["from_cache"]
    assert call("build", "heat.cpp", "--arch", "sm_80")[0] == 2  # no text there has such an option


def test_a_file_that_fails_stops_no_other(here, cache, call, call_json):
    Path("unknown.txt").write_text("nothing that anybody knows\n")
    status, out, errors = call("build", "broken.cpp", "unknown.txt", "heat.cpp")
    assert status == 1
    assert "broken.cpp:2:12: 'yy' was not declared" in errors
    assert "cannot tell the language" in errors
    assert "1 of 3 files are built; 2 failed" in out
    status, document = call_json("build", "broken.cpp", "unknown.txt", "heat.cpp")
    assert status == 1
    assert [one["state"] for one in document["files"]] == ["failed", "failed", "from cache"]
    assert document["files"][0]["error"]["line"] == 2
    assert document["cache"] == str(cache)


def test_warnings_and_what_is_skipped_are_told(here, cache, call_json):
    Path("odd.cpp").write_text(
        "#warning take care\nint f(int x) { return x; }\ntemplate <class T> T g(T x) { return x; }\n"
    )
    one = call_json("build", "odd.cpp")[1]["files"][0]
    assert "take care" in one["warnings"][0]
    assert list(one["skipped"]) == ["g"]


def test_many_files_of_one_name_in_many_jobs(here, cache, call_json):
    files = []
    for number in range(6):
        (here / str(number)).mkdir()
        files.append(here / str(number) / "same.cpp")
        files[-1].write_text(f"int same(int x) {{ return x + {number}; }}\n")
    status, document = call_json("build", *files, "--jobs", "3")
    assert status == 0
    assert [one["file"] for one in document["files"]] == [str(file) for file in files]
    assert [one["state"] for one in document["files"]] == ["compiled"] * 6


def test_export_writes_modules_and_says_where_it_cannot(here, cache, call_json):
    pytest.importorskip("taichi", reason="Taichi is not installed")
    Path("paint.py").write_text(TAICHI)
    status, document = call_json("build", "heat.cpp", "paint.py", "--export", "out")
    assert status == 1
    heat, paint = document["files"]
    assert Path(heat["exported"]).exists()
    assert "cannot be exported" in paint["error"]["message"]
    done = subprocess.run(
        [sys.executable, "-c", "import heat; print(heat.step.__doc__)"], cwd="out", capture_output=True, timeout=60
    )
    assert done.stdout.startswith(b"One step.")


def test_without_a_cache_there_is_nothing_to_build_for(here, call, monkeypatch):
    monkeypatch.setattr(cachedir, "choose", lambda directory: cachedir.Place(None))
    status, out, errors = call("build", "heat.cpp")
    assert (status, out) == (1, "")
    assert "there is no cache directory, so nothing would stay" in errors
    assert "rekernel doctor" in errors


def test_no_compiler_is_an_error_of_each_file(here, cache, tmp_path):
    done = command("build", "heat.cpp", cwd=here, PATH=str(tmp_path), CXX="", REKERNEL_CXX="")
    assert done.returncode == 1
    assert "no C++ compiler was found" in done.stderr
    assert "1 failed" in done.stdout


def test_a_bar_is_shown_on_a_terminal(here, cache):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "rekernel", "build", "heat.cpp"], stdout=subprocess.PIPE, stderr=follower,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert b"\x1b" not in process.communicate(timeout=120)[0]  # only the terminal has colours
    assert process.returncode == 0
    assert b"building" in shown
    assert b"1/1" in shown


def test_ctrl_c_leaves_nothing_behind(here, cache, tmp_path):
    started = tmp_path / "started"
    slow = tmp_path / "slow-g++"
    # What asks about the compiler is answered; what compiles a kernel waits for ever.
    slow.write_text(f'#!/bin/sh\ncase "$*" in *kernel.cpp*) touch {started}; sleep 600 & wait;; esac\nexec g++ "$@"\n')
    slow.chmod(0o755)
    texts = [f"k{number}.cpp" for number in range(4)]
    for name in texts:
        Path(name).write_text(HEAT + f"// {name}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "rekernel", "build", *texts, "--jobs", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "REKERNEL_CXX": str(slow)}, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not started.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, b"", b"")
    assert list((cache / "tmp").iterdir()) == []
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if str(slow).encode() in _read(p)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
