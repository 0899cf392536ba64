"""What `rekernel doctor` looks at: each check is a function that gives rows, and may fail in any way it likes."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress

from rekernel.commands import checkcache, checkextras
from rekernel.commands.checkrows import MISSING, OK, WARNING, Row, ask, package

_GET = (
    "Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; "
    'or pip install "rekernel[compiler]" and set REKERNEL_CXX="python -m ziglang c++"'
)

__all__ = ["CHECKS", "environment"]


def python() -> Iterator[Row]:
    """Look at the interpreter and the system."""
    yield Row("Python", OK, f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}")
    known = platform.system() in ("Linux", "Darwin")
    advice = "" if known else "C++ kernels need Linux, macOS or WSL"
    yield Row("platform", OK if known else WARNING, f"{platform.platform()}, {platform.machine()}", advice)


def rekernel() -> Iterator[Row]:
    """Look at this package and those that it always needs."""
    found = ask("import rekernel\nfrom rekernel import _native\nanswer = {'version': rekernel.__version__}")
    good = "trouble" not in found
    advice = "pip install --force-reinstall rekernel"
    said = found["version"] if good else found["trouble"]
    yield Row("rekernel", OK if good else MISSING, said, "" if good else advice, True)
    code = "import importlib\nm = importlib.import_module({!r})\nanswer = {{'version': getattr(m, '__version__', '')}}"
    for module, name in (("numpy", "numpy"), ("tree_sitter_cpp", "tree-sitter-cpp"), ("rich", "rich")):
        yield package(name, code.format(module), f"pip install --force-reinstall {name}", MISSING, core=True)


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
    answer = {"driver": tool.driver, "version": tool.version, "good": good, "openmp": openmp_works(tool),
              "seconds": loader.info("doctor").build_seconds}
"""


def compilers() -> Iterator[Row]:
    """Let each compiler build a kernel, in a cache that is gone afterwards."""
    from rekernel.compilers import CompilerInfo
    from rekernel.errors import ToolchainError

    try:
        infos = CompilerInfo.get_available_compilers()
        chosen = CompilerInfo.get_default()
    except ToolchainError as error:
        yield Row("C++ compiler", MISSING, str(error).partition("\n")[0], _GET, True)
        return
    for info in infos:
        default = info.cxx() == chosen.cxx()
        with tempfile.TemporaryDirectory(prefix="rekernel-doctor-") as cache:
            found = ask(_BUILD, REKERNEL_CXX=info.cxx(), REKERNEL_CACHE_DIR=os.path.join(cache, "cache"))
        part = f"{'C++' if default else 'another'} compiler"
        if "trouble" in found or not found["good"]:
            why = found.get("trouble", "a kernel that it built gives a wrong result")
            advice = f"name another one with REKERNEL_CXX; {_GET}" if default else "nothing, as long as it is not used"
            yield Row(part, MISSING if default else WARNING, f"{info.cxx()}: {why}", advice, default)
            continue
        took = f"built a kernel in {1000 * found['seconds']:.0f} ms"
        yield Row(part, OK, f"{found['driver']}: {found['version']}; {took}", core=default)
        if default and found["openmp"]:
            yield Row("OpenMP", OK, f"works with {info.cxx()}, {len(_cpus())} CPUs")
        elif default:
            advice = "Debian, Ubuntu: apt install libgomp1 (g++), libomp-dev (clang++); or load with openmp=False"
            yield Row("OpenMP", WARNING, f"{info.cxx()} cannot build it: kernels with #pragma omp fail", advice)


def _cpus() -> set[int]:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def cpu() -> Iterator[Row]:
    """Look at the processor."""
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


CHECKS = (
    python, rekernel, compilers, cpu, checkextras.languages, checkextras.cuda, checkextras.extras, checkcache.cache,
)  # fmt: skip

READ = (
    "REKERNEL_CACHE_DIR", "REKERNEL_CACHE_SIZE", "REKERNEL_CXX", "REKERNEL_KEEP", "REKERNEL_PROGRESS", "CXX",
    "XDG_CACHE_HOME", "HOME", "TMPDIR", "CUDA_PATH", "CUDA_HOME", "OMP_NUM_THREADS",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return the variables that rekernel and its compilers read, as far as they are set."""
    names = list(READ)
    with suppress(ImportError):  # without NumPy
        from rekernel.process import CHANGING

        names += CHANGING
    return {name: os.environ[name] for name in names if name in os.environ}
