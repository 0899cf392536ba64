"""Kernels as files for other programs: an extension module, and a ``.pyi`` that tells its types."""

from __future__ import annotations

import importlib.machinery
import inspect
import keyword
import os
import sysconfig
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.compilers import toolchain_error
from rekernel.kernel import Kernel, Parameter
from rekernel.pymodule import PythonModuleBuilder, function_name, hides_a_module, module_name

if TYPE_CHECKING:
    from rekernel.jit.cpu import CpuJit

__all__ = ["export", "stub"]


def export(jit: CpuJit, kernels: Sequence[Kernel], directory: str | os.PathLike[str], name: str | None = None) -> Path:
    """Write ``<name>`` as an importable module, and ``<name>.pyi``, into a directory, and return the module's path.

    The directory is made where it is missing. Each file appears whole, so a program that imports the old module
    goes on. `name` is that of the first kernel if not given; ValueError where it is no identifier or hides a module
    of Python's own. ToolchainError without a compiler or without Python's headers.
    """
    chosen = module_name(kernels) if name is None else _checked(name)
    builder = PythonModuleBuilder()
    text = builder.render_module(kernels, chosen)
    include_dirs = [*jit.module_builder.include_dirs(), *builder.include_dirs(), *_python_include_dirs()]
    artefact = jit.obtain(kernels, text, list(dict.fromkeys(include_dirs)), allow_undefined=True)
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    module = place / f"{chosen}{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    _write(place / f"{chosen}.pyi", stub(kernels).encode("utf-8"), 0o666)
    _write(module, artefact.data, 0o777)
    return module


def stub(kernels: Sequence[Kernel]) -> str:
    """Return the text of the ``.pyi`` of a module with these kernels."""
    imports = "from typing import Any\n\nimport numpy as np\nimport numpy.typing as npt\n"
    return f'"""Compiled kernels, made by rekernel."""\n\n{imports}' + "".join(
        f"\n{_function(kernel)}" for kernel in kernels
    )


def _checked(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} cannot be the name of a Python module: it is no identifier")
    if hides_a_module(name):
        raise ValueError(
            f"a module called {name!r} would hide the one that Python programs import; choose another name"
        )
    return name


def _python_include_dirs() -> list[str]:
    """Return where Python's headers are."""
    places = list(dict.fromkeys(filter(None, map(sysconfig.get_path, ("include", "platinclude")))))
    if not any(os.path.isfile(os.path.join(place, "Python.h")) for place in places):
        raise toolchain_error(
            f"exporting a module needs Python.h, which is not in {' or '.join(places) or 'any place'}; install the "
            "headers of this Python (Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel)"
        )
    return places


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file whole, by one rename, with the rights that the user's files get."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _function(kernel: Kernel) -> str:
    if any(keyword.iskeyword(p.name) for p in kernel.parameters):  # C++ has names that Python cannot write
        arguments = "*args: Any, **kwargs: Any"
    else:
        rows = [f"{p.name}: {_type(p)}" for p in kernel.parameters]
        if kernel.policy == "pystencils":
            rows = [*(["*"] if rows else []), *rows, "**ignored: object"]
        arguments = ", ".join(rows)
    doc = inspect.cleandoc(kernel.doc or str(kernel)).replace("\\", "\\\\")
    doc = doc.replace('"', '\\"') if '"""' in doc or doc.endswith('"') else doc
    body = textwrap.indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', "    ")
    return f"def {function_name(kernel)}({arguments}) -> {_result(kernel.returns)}:\n{body}\n"


def _type(parameter: Parameter) -> str:
    if parameter.kind != "scalar":
        element = "np.void" if parameter.fields or parameter.dtype is None else _element(parameter.dtype)
        return f"npt.NDArray[{element}]"
    dtype = parameter.dtype or ""
    if dtype == "bool":
        return "bool | np.bool_"
    if "int" in dtype:
        return "int | np.integer[Any]"
    real = "float | np.floating[Any] | np.integer[Any]"
    return f"complex | np.complexfloating[Any, Any] | {real[8:]}" if dtype.startswith("complex") else real


def _element(dtype: str) -> str:
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def _result(dtype: str | None) -> str:
    if dtype is None:
        return "None"
    return next(name for name in ("bool", "int", "float", "complex") if name in dtype)
