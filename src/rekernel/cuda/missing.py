"""What to do where a part of CUDA is missing, as errors. Pure."""

from __future__ import annotations

from rekernel.errors import ToolchainError

__all__ = ["architecture", "cupy", "driver", "forked", "nvrtc"]

_DOCTOR = "\nto see what is there: python -m rekernel doctor"
_EXTRAS = '"rekernel[cuda13]" for CUDA 13, "rekernel[cuda12]" for CUDA 12'


def cupy(error: BaseException) -> ToolchainError:
    """Return the error for a CuPy that cannot be imported."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] in ("cupy", "cupy_backends"):
        return ToolchainError(f"CuPy is not installed, which GPU kernels need: pip install {_EXTRAS}{_DOCTOR}")
    said = f"{type(error).__name__}: {_line(error)}"
    return ToolchainError(f"CuPy cannot be imported ({said}); a working one: pip install {_EXTRAS}{_DOCTOR}")


def nvrtc(error: BaseException) -> ToolchainError:
    """Return the error for an NVRTC that cannot be loaded."""
    return ToolchainError(
        f"NVRTC, CUDA's compiler, cannot be loaded ({_line(error)}); it comes with pip install {_EXTRAS}{_DOCTOR}"
    )


def driver(error: BaseException) -> ToolchainError:
    """Return the error for a driver that is missing or has no device."""
    return ToolchainError(
        f"there is no CUDA device to use ({_line(error)}); the driver comes with the graphics card, not with a Python "
        f"package, and nvidia-smi shows whether it works{_DOCTOR}"
    )


def forked() -> ToolchainError:
    """Return the error for a process that was forked from one that used CUDA."""
    return ToolchainError(
        "this process was forked from one that had used CUDA, and CUDA does not work in such a child; start processes "
        'by multiprocessing.get_context("spawn"), or fork before the first use of CUDA'
    )


def architecture(capability: int, version: tuple[int, int], known: tuple[int, ...]) -> ToolchainError:
    """Return the error for a device that NVRTC no longer compiles for."""
    return ToolchainError(
        f"NVRTC {version[0]}.{version[1]} compiles for compute capabilities from {_dotted(min(known))} on, and this "
        f'device has {_dotted(capability)}; an older CUDA may do: pip install "rekernel[cuda12]"{_DOCTOR}'
    )


def _dotted(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
