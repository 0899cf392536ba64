"""Where CUDA's own headers are: in the toolkit, in NVIDIA's packages, or inside NVRTC, which can write them out."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence

__all__ = ["directories", "environment"]

_MARK = "cuda_fp16.h"
_PACKAGES = {12: ("nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include"), 13: ("nvidia/cu13/include",)}
"""By CUDA's version: a process may have the packages of both."""
_VARIABLES = ("CUDA_PATH", "CUDA_HOME")


def environment() -> str:
    """Return the directory of the CUDA toolkit that the environment names, or nothing."""
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")


def directories(version: tuple[int, int], keep: str) -> Sequence[str]:
    """Return the include directories of CUDA's headers; none where there are none.

    `version`: that of NVRTC, which is loaded. `keep`: where headers may be written that NVRTC has inside (26 MB).
    """
    toolkit = [os.path.join(environment(), "include")] if environment() else []
    packages = [os.path.join(place, name) for place in sys.path for name in _PACKAGES.get(version[0], ())]
    for found in (toolkit, packages):
        if any(os.path.isfile(os.path.join(place, _MARK)) for place in found):
            places = [place for each in found for place in (each, os.path.join(each, "cccl"))]
            return [place for place in places if os.path.isdir(place)]
    if version >= (13, 3):
        place = os.path.join(keep, f"cuda-headers-{version[0]}.{version[1]}")
        if _written(place, version[0]):
            return [place, os.path.join(place, "cccl")]
    return []


def _written(place: str, major: int) -> bool:
    """Let NVRTC write its headers, once; it does so whole, and other processes wait for it."""
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        library = ctypes.CDLL(f"libnvrtc.so.{major}")  # by this name CuPy has loaded it
        return not library.nvrtcInstallBundledHeaders(os.fsencode(place), ctypes.c_uint(0), None)
    except (OSError, AttributeError):
        return False
