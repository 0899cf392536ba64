"""Kernels as files for other programs: an extension module, and a ``.pyi`` that tells its types."""

from __future__ import annotations

import importlib.machinery
import inspect
import keyword
import os
import sysconfig
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.compilers import toolchain_error
from rekernel.files import write_whole
from rekernel.kernel import Kernel, Parameter
from rekernel.pymodule import PythonModuleBuilder, function_name, groups, hides_a_module, module_name

if TYPE_CHECKING:
    from rekernel.jit.cpu import CpuJit

__all__ = ["export", "name_of_module", "python_include_dirs", "stub", "write_module"]


def export(jit: CpuJit, kernels: Sequence[Kernel], directory: str | os.PathLike[str], name: str | None = None) -> Path:
    """Write ``<name>`` as an importable module, and ``<name>.pyi``, into a directory, and return the module's path.

    The directory is made where it is missing. Each file appears whole, so a program that imports the old module
    goes on. `name` is that of the first kernel if not given; ValueError where it is no identifier or hides a module
    of Python's own. ToolchainError without a compiler or without Python's headers.
    """
    chosen = name_of_module(name, kernels[0].name)
    builder = PythonModuleBuilder()
    text = builder.render_module(kernels, chosen)
    include_dirs = [*jit.module_builder.include_dirs(), *builder.include_dirs(), *python_include_dirs()]
    artefact = jit.obtain(kernels, text, list(dict.fromkeys(include_dirs)), allow_undefined=True)
    return write_module(Path(directory), chosen, artefact.data, stub(kernels))


def write_module(directory: Path, name: str, data: bytes, types: str) -> Path:
    """Write a module, after the text of its ``.pyi``; return the module's path."""
    directory.mkdir(parents=True, exist_ok=True)
    module = directory / f"{name}{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    write_whole(directory / f"{name}.pyi", types.encode("utf-8"), 0o666)
    write_whole(module, data, 0o777)
    return module


def stub(kernels: Sequence[Kernel]) -> str:
    """Return the text of the ``.pyi`` of a module with these kernels."""
    named = groups(kernels)
    names = "Any" if len(named) == len(kernels) else "Any, overload"
    parts = [f'"""Compiled kernels, made by rekernel."""\n\nfrom typing import {names}\n']
    parts += ["\nimport numpy as np\nimport numpy.typing as npt\n"]
    for numbers in named.values():
        parts += [f"\n{text}" for text in _functions([kernels[number] for number in numbers])]
    return "".join(parts)


def name_of_module(name: str | None, default: str) -> str:
    """Return the name of a module, made from `default` if none is given; ValueError for one that cannot be used."""
    if name is None:
        return module_name(default)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} cannot be the name of a Python module: it is no identifier")
    if hides_a_module(name):
        raise ValueError(
            f"a module called {name!r} would hide the one that Python programs import; choose another name"
        )
    return name


def python_include_dirs() -> list[str]:
    """Return where Python's headers are; ToolchainError where they are not."""
    places = list(dict.fromkeys(filter(None, map(sysconfig.get_path, ("include", "platinclude")))))
    if not any(os.path.isfile(os.path.join(place, "Python.h")) for place in places):
        raise toolchain_error(
            f"exporting a module needs Python.h, which is not in {' or '.join(places) or 'any place'}; install the "
            "headers of this Python (Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel)"
        )
    return places


def _functions(kernels: Sequence[Kernel]) -> list[str]:
    """Return the kernels of one name: as overloads, those first whose numbers Python would also take for wider ones."""
    narrow_first = sorted(kernels, key=lambda kernel: [_width(p) for p in kernel.parameters])
    heads = {_arguments(kernel): kernel for kernel in reversed(narrow_first)}  # float and double are one type here
    mark = "@overload\n" if len(heads) > 1 else ""
    chosen = [kernel for kernel in narrow_first if heads[_arguments(kernel)] is kernel]
    return [mark + _function(kernel) for kernel in chosen]


def _width(parameter: Parameter) -> int:
    if parameter.kind != "scalar":
        return 0
    return next(i for i, word in enumerate(("bool", "int", "float", "complex")) if word in (parameter.dtype or word))


def _arguments(kernel: Kernel) -> str:
    if any(keyword.iskeyword(p.name) for p in kernel.parameters):  # C++ has names that Python cannot write
        return "*args: Any, **kwargs: Any"
    rows = [f"{p.name}: {_type(p)}" for p in kernel.parameters]
    if kernel.policy == "pystencils":
        rows = [*(["*"] if rows else []), *rows, "**ignored: object"]
    return ", ".join(rows)


def _function(kernel: Kernel) -> str:
    doc = inspect.cleandoc(kernel.doc or str(kernel)).replace("\\", "\\\\")
    doc = doc.replace('"', '\\"') if '"""' in doc or doc.endswith('"') else doc
    body = textwrap.indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', "    ")
    return f"def {function_name(kernel)}({_arguments(kernel)}) -> {_result(kernel.returns)}:\n{body}\n"


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
