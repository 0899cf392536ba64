"""What `rekernel doctor` looks at beyond the core: languages, CUDA, packages that are extras."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rekernel.commands.checkrows import MISSING, OK, WARNING, Row, ask, package

__all__ = ["cuda", "extras", "languages"]

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
            name = cupy.cuda.runtime.getDeviceProperties(n)["name"].decode()
            answer["devices"][n] = f"{name}, {answer['devices'][n]}"
except Exception as error:
    answer["no_devices"] = str(error).partition("; the driver")[0].partition("\\n")[0]
"""
_EXTRA = 'pip install "rekernel[{}]"'


def cuda() -> Iterator[Row]:
    """Look at the driver and its devices, NVRTC, CuPy and the toolkit."""
    from rekernel.cuda import toolkit

    found = ask(_CUDA)
    if "trouble" in found:
        yield Row("CUDA", WARNING, found["trouble"], "look at nvidia-smi; kernels for the CPU work")
        return
    gpu = _EXTRA.format("cuda13") + ', for an older driver "rekernel[cuda12]"'
    if "devices" in found:
        yield Row("CUDA driver", OK, "; ".join(found["devices"]))
    else:
        advice = "needed to run GPU kernels only; the driver comes with the graphics card: look at nvidia-smi"
        yield Row("CUDA driver", MISSING, found["no_devices"], advice)
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


def languages() -> Iterator[Row]:
    """Look at the packages of Python texts: Taichi starts, pystencils is imported."""
    quiet = "import os\nos.environ.update(TI_SKIP_VERSION_CHECK='ON', ENABLE_TAICHI_HEADER_PRINT='False')\n"
    taichi = quiet + "import taichi as ti\nti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)\nanswer = {}"
    wheels = "" if sys.version_info < (3, 14) else " (no wheels for this Python)"
    yield package("taichi", taichi, f"for Taichi texts: {_EXTRA.format('taichi')}{wheels}", MISSING)
    stencils = _IMPORT.format("pystencils")
    yield package("pystencils", stencils, f"for stencil texts: {_EXTRA.format('stencils')}", MISSING)


def extras() -> Iterator[Row]:
    """Look at the packages of the other extras."""
    rows = (
        ("watchfiles", "watchfiles", "for loader.watch()", "watch"), ("ipython", "IPython", "for magics", "notebook"),
        ("anywidget", "anywidget", "for the live picture", "notebook"), ("pillow", "PIL", "for pictures", "notebook"),
    )  # fmt: skip
    for name, module, use, extra in rows:
        yield package(name, _IMPORT.format(module), f"{use}: {_EXTRA.format(extra)}", MISSING)
