"""What `rekernel doctor` looks at: each check is a function that gives rows, and may fail in any way it likes.

What may crash or hang (a package with native code, a driver, a compiler) is looked at by another process.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["CHECKS", "OK", "Row", "environment", "rows_of"]

OK, WARNING, MISSING = "ok", "warning", "missing"
PATIENCE = 120.0
"""Seconds that another process gets: Taichi's first import takes 20 on a slow disk."""


@dataclass(frozen=True)
class Row:
    """One thing that was looked at."""

    part: str
    state: str
    """``ok``; ``warning``: works, but; ``missing``: is not there or does not work."""
    found: str
    advice: str = ""
    """What to do, where something is to be done."""
    core: bool = False
    """Whether rekernel's core does not work without it."""


def rows_of(check: Callable[[], Iterator[Row]]) -> list[Row]:
    """Return the rows of a check; one that fails says so in a row of its own."""
    rows: list[Row] = []
    try:
        rows.extend(check())
    except Exception as error:  # whatever is broken: the next check is another matter
        rows.append(Row(check.__name__.strip("_"), WARNING, f"could not be looked at ({_said(error)})"))
    return rows


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _ask(code: str, **variables: str) -> dict[str, Any]:
    """Run code in another process; it prints JSON as its last line. What goes wrong is ``{"trouble": ...}``."""
    with tempfile.TemporaryDirectory(prefix="rekernel-doctor-") as place:
        answer = os.path.join(place, "answer")
        env = {**os.environ, "REKERNEL_ANSWER": answer, **variables}
        last = "\nimport json, os\nopen(os.environ['REKERNEL_ANSWER'], 'w').write(json.dumps(answer))"
        try:
            done = subprocess.run(
                [sys.executable, "-c", code + last], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", timeout=PATIENCE,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"trouble": f"no answer within {PATIENCE:.0f} s"}
        if os.path.exists(answer):
            with open(answer, encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
            return found
        lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
        if done.returncode < 0:
            return {"trouble": f"it crashes ({signal.Signals(-done.returncode).name})"}
        text = done.stderr.strip()
        start = text.rfind("rekernel.errors.ToolchainError: ")
        if start >= 0:
            text = " ".join(text[start:].partition(": ")[2].split()).partition(" to see what is there:")[0]
            return {"trouble": text}
        return {"trouble": lines[-1][:300] if lines else f"it ends the process with exit status {done.returncode}"}


# --- the core --------------------------------------------------------------------------------------------------


def _python() -> Iterator[Row]:
    yield Row("Python", OK, f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}")
    known = platform.system() in ("Linux", "Darwin")
    advice = "" if known else "C++ kernels need Linux, macOS or WSL"
    yield Row("platform", OK if known else WARNING, f"{platform.platform()}, {platform.machine()}", advice)


def _rekernel() -> Iterator[Row]:
    found = _ask("import rekernel\nfrom rekernel import _native\nanswer = {'version': rekernel.__version__}")
    good = "trouble" not in found
    advice = "pip install --force-reinstall rekernel"
    yield Row("rekernel", OK if good else MISSING, found.get("version") or found["trouble"], "" if good else advice, True)
    code = "import importlib\nm = importlib.import_module({!r})\nanswer = {{'version': getattr(m, '__version__', '')}}"
    for module, package in (("numpy", "numpy"), ("tree_sitter_cpp", "tree-sitter-cpp"), ("rich", "rich")):
        yield _package(package, code.format(module), f"pip install --force-reinstall {package}", MISSING, core=True)


def _package(package: str, code: str, advice: str, absent: str, *, core: bool = False) -> Row:
    """Return the row of a package, which is imported by another process."""
    try:
        number = version(package)
    except PackageNotFoundError:
        number = ""
    if not number and not core:
        return Row(package, absent, "not installed", advice)
    found = _ask(code)
    if "trouble" in found:
        return Row(package, MISSING, f"{number}: cannot be imported: {found['trouble']}".lstrip(": "),
                   f"pip install --force-reinstall {package}", core)  # fmt: skip
    return Row(package, OK, " ".join(filter(None, [number or found.get("version", ""), found.get("more", "")])), core=core)


_BUILD = """
import rekernel
from rekernel import KernelLoader
from rekernel.compilers import CompilerInfo
from rekernel.openmp import openmp_works
from rekernel.probe import probe
info = CompilerInfo.get_default()
tool = probe(info)
with KernelLoader() as loader:
    m = loader.load("int twice(int x) { return 2 * x; }", "doctor")
    good = m.twice(21) == 42
    answer = {"driver": tool.driver, "version": tool.version, "good": good, "seconds": loader.info("doctor").build_seconds,
              "openmp": openmp_works(tool)}
"""


def _compilers() -> Iterator[Row]:
    from rekernel.compilers import CompilerInfo
    from rekernel.errors import ToolchainError

    get = "Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; or pip install \"rekernel[compiler]\" and set " \
          "REKERNEL_CXX=\"python -m ziglang c++\""  # fmt: skip
    try:
        infos = CompilerInfo.get_available_compilers()
        chosen = CompilerInfo.get_default()
    except ToolchainError as error:
        yield Row("C++ compiler", MISSING, str(error).partition("\n")[0], get, True)
        return
    for info in infos:
        default = info.cxx() == chosen.cxx()
        with tempfile.TemporaryDirectory(prefix="rekernel-doctor-") as cache:
            found = _ask(_BUILD, REKERNEL_CXX=info.cxx(), REKERNEL_CACHE_DIR=os.path.join(cache, "cache"))
        part = f"{'C++' if default else 'another'} compiler"
        if "trouble" in found or not found["good"]:
            why = found.get("trouble", "a kernel that it built gives a wrong result")
            advice = f"name another one with REKERNEL_CXX; {get}" if default else "nothing, as long as it is not used"
            yield Row(part, MISSING if default else WARNING, f"{info.cxx()}: {why}", advice, default)
            continue
        yield Row(part, OK, f"{found['driver']}: {found['version']}; built a kernel in {1000 * found['seconds']:.0f} ms",
                  core=default)  # fmt: skip
        if default and found["openmp"]:
            yield Row("OpenMP", OK, f"works with {info.cxx()}, {len(_cpus())} CPUs")
        elif default:
            yield Row("OpenMP", WARNING, f"{info.cxx()} cannot build it: kernels with #pragma omp fail",
                      "Debian, Ubuntu: apt install libgomp1 (g++), libomp-dev (clang++); or load with openmp=False")  # fmt: skip


def _cpus() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _cpu() -> Iterator[Row]:
    names = {"avx2": "AVX2", "fma": "FMA", "avx512f": "AVX-512", "asimd": "NEON", "sve": "SVE"}
    text = ""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            text = file.read(16384)
    fields = dict(line.partition(":")[::2] for line in text.split("\n\n")[0].splitlines())
    known = {name.strip(): value.strip() for name, value in fields.items()}
    model = known.get("model name") or platform.processor() or platform.machine()
    flags = set((known.get("flags") or known.get("Features") or "").split())
    features = [said for name, said in names.items() if name in flags]
    said = f"; {', '.join(features)}" if features else ""
    yield Row("CPU", OK, f"{model}, {len(_cpus())} of {os.cpu_count()} CPUs for this process{said}")


# --- languages and extras --------------------------------------------------------------------------------------

_IMPORT = "import {0}\nanswer = {{'version': str(getattr({0}, '__version__', ''))}}"
_CUDA = """
from rekernel.cuda import devices, nvrtc
answer = {}
try:
    import cupy
    answer["cupy"] = cupy.__version__
except Exception as error:
    answer["no_cupy"] = f"{type(error).__name__}: {error}"
try:
    known = nvrtc.about()
    answer["nvrtc"] = ".".join(map(str, known.version))
    answer["archs"] = f"sm_{min(known.architectures)} to sm_{max(known.architectures)}"
except Exception as error:
    answer["no_nvrtc"] = str(error).partition("; it comes")[0].partition("\\n")[0]
try:
    found = devices.devices()
    answer["devices"] = [f"compute capability {found.capability(n) / 10}" for n in range(found.count)]
    if "cupy" in answer:
        for n in range(found.count):
            answer["devices"][n] = f"{cupy.cuda.runtime.getDeviceProperties(n)['name'].decode()}, " + answer["devices"][n]
except Exception as error:
    answer["no_devices"] = str(error).partition("; the driver")[0].partition("\\n")[0]
"""
_EXTRA = 'pip install "rekernel[{}]"'


def _cuda() -> Iterator[Row]:
    from rekernel.cuda import toolkit

    found = _ask(_CUDA)
    if "trouble" in found:
        yield Row("CUDA", WARNING, found["trouble"], "look at nvidia-smi; kernels for the CPU work")
        return
    gpu = _EXTRA.format("cuda13") + ", for an older driver " + '"rekernel[cuda12]"'
    if "devices" in found:
        yield Row("CUDA driver", OK, f"{len(found['devices'])} devices: {'; '.join(found['devices'])}")
    else:
        yield Row("CUDA driver", MISSING, found["no_devices"],
                  "needed to run GPU kernels only; the driver comes with the graphics card: look at nvidia-smi")  # fmt: skip
    if "nvrtc" in found:
        yield Row("NVRTC", OK, f"{found['nvrtc']}, for {found['archs']}")
    else:
        yield Row("NVRTC", MISSING, found["no_nvrtc"], f"needed for CUDA texts: {gpu}")
    if "cupy" in found:
        yield Row("CuPy", OK, found["cupy"])
    else:
        yield Row("CuPy", MISSING, found["no_cupy"], f"needed for CUDA texts: {gpu}")
    place = toolkit.environment()
    yield Row("CUDA toolkit", OK, place or "none is named (CUDA_PATH), and none is needed")


def _languages() -> Iterator[Row]:
    quiet = "import os\nos.environ.update(TI_SKIP_VERSION_CHECK='ON', ENABLE_TAICHI_HEADER_PRINT='False')\n"
    taichi = quiet + "import taichi as ti\nti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)\nanswer = {}"
    wheels = "" if sys.version_info < (3, 14) else " (no wheels for this Python)"
    yield _package("taichi", taichi, f"for Taichi texts: {_EXTRA.format('taichi')}{wheels}", MISSING)
    stencils = _IMPORT.format("pystencils")
    yield _package("pystencils", stencils, f"for stencil texts: {_EXTRA.format('stencils')}", MISSING)


def _extras() -> Iterator[Row]:
    rows = (
        ("watchfiles", "watchfiles", "for loader.watch()", "watch"), ("ipython", "IPython", "for magics", "notebook"),
        ("anywidget", "anywidget", "for the live picture", "notebook"), ("pillow", "PIL", "for pictures", "notebook"),
    )  # fmt: skip
    for package, module, use, extra in rows:
        yield _package(package, _IMPORT.format(module), f"{use}: {_EXTRA.format(extra)}", MISSING)


# --- the cache -------------------------------------------------------------------------------------------------


def _cache() -> Iterator[Row]:
    import shutil

    from rekernel import buildlock, cachedir, cachelist
    from rekernel.commands.cache import bytes_said

    place = cachedir.choose()
    for tried, why in place.tried:
        yield Row("cache", WARNING, f"{tried} is not used: {why}", "set REKERNEL_CACHE_DIR to a directory of your own")
    if place.path is None:
        yield Row("cache", WARNING, "in memory only: every process compiles anew",
                  "set REKERNEL_CACHE_DIR to a directory of your own")  # fmt: skip
        return
    try:
        limit = cachedir.parse_size(os.environ.get("REKERNEL_CACHE_SIZE", "").strip() or cachedir.DEFAULT_SIZE)
    except ValueError as error:
        limit = cachedir.DEFAULT_SIZE
        yield Row("cache size", WARNING, f"REKERNEL_CACHE_SIZE: {error}", "set it to bytes, or such as 500M")
    count, bad = cachelist.damaged(place.path)
    total, free = sum(one.size for one in cachelist.listed(place.path)), shutil.disk_usage(place.path).free
    yield Row("cache", OK, f"{place.path}: {count} entries, {bytes_said(total)} of {bytes_said(limit)}")
    if bad:
        yield Row("cache entries", WARNING, f"{len(bad)} damaged: {bad[0]}", "rekernel cache verify")
    kind = _file_system(place.path)
    slow = kind.startswith(("nfs", "cifs", "smb", "fuse.sshfs", "lustre", "gpfs", "beegfs", "afs"))
    yield Row("cache disk", WARNING if slow or free < 1 << 28 else OK, f"{kind or 'unknown file system'}, {bytes_said(free)} free",
              "set REKERNEL_CACHE_DIR to a directory on a local disk with room" if slow or free < 1 << 28 else "")  # fmt: skip
    with buildlock.turn(os.path.join(place.path, "locks", "doctor"), 1.0) as mine:
        held = mine.held
    advice = "" if held else "nothing is lost but work: two processes may build the same at the same time"
    yield Row("cache locks", OK if held else WARNING, "work" if held else f"do not work: {mine.trouble or mine.holder}", advice)


def _file_system(path: str) -> str:
    best, kind = "", ""
    if os.path.exists("/proc/mounts"):
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                words = line.split()
                where = words[1].replace("\\040", " ")
                if (path + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best):
                    best, kind = where, words[2]
    return kind


CHECKS = (_python, _rekernel, _compilers, _cpu, _languages, _cuda, _extras, _cache)

READ = (
    "REKERNEL_CACHE_DIR", "REKERNEL_CACHE_SIZE", "REKERNEL_CXX", "REKERNEL_KEEP", "REKERNEL_PROGRESS", "CXX",
    "XDG_CACHE_HOME", "HOME", "TMPDIR", "CUDA_PATH", "CUDA_HOME", "OMP_NUM_THREADS",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return the variables that rekernel and its compilers read, as far as they are set."""
    from rekernel.process import CHANGING

    return {name: os.environ[name] for name in (*READ, *CHANGING) if name in os.environ}
