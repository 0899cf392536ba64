"""Kernels as files for other programs: an extension module, and a ``.pyi`` that tells its types."""

from __future__ import annotations

import importlib.machinery
import inspect
import keyword
import os
import sysconfig
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rekernel.compilers import toolchain_error
from rekernel.files import write_whole
from rekernel.kernel import Kernel, Parameter
from rekernel.pymodule import PythonModuleBuilder, function_name, groups, hides_a_module, module_name

if TYPE_CHECKING:
    from rekernel.jit.cpu import CpuJit

__all__ = ["HEAD", "export", "name_of_module", "python_include_dirs", "stub", "write_module"]

HEAD = '"""Compiled kernels, made by rekernel."""'
"""What every ``.pyi`` begins with."""


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


def stub(kernels: Sequence[Kernel], *, whole: bool = True) -> str:
    """Return the text of the ``.pyi`` of a module with these kernels; unless they are the `whole`, the rest is Any."""
    named = groups(kernels)
    names = "Any" if len(named) == len(kernels) else "Any, overload"
    parts = [f"{HEAD}\n\nfrom typing import {names}\n"]
    parts += ["\nimport numpy as np\nimport numpy.typing as npt\n"]
    for numbers in named.values():
        same = [kernels[number] for number in numbers]
        parts += [_launched(same)] if same[0].language == "cuda" else [f"\n{text}" for text in _functions(same)]
    if not whole:
        parts += ["\ndef __getattr__(name: str) -> Any: ...\n"]
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


def _functions(kernels: Sequence[Kernel], method: str = "") -> list[str]:
    """Return kernels of one name, as overloads: narrow numbers first, each kind of number in one of them."""
    narrow_first = sorted(kernels, key=lambda kernel: [_width(p) for p in kernel.parameters])
    heads = {_arguments(kernel): kernel for kernel in reversed(narrow_first)}  # float and double are one type here
    mark = "@overload\n" if len(heads) > 1 else ""
    chosen = [kernel for kernel in narrow_first if heads[_arguments(kernel)] is kernel]
    texts = []
    for at, kernel in enumerate(chosen):
        alike = [k.parameters for k in chosen[:at] if len(k.parameters) == len(kernel.parameters)]
        taken = [{_width(other[i]) for other in alike} for i in range(len(kernel.parameters))]
        texts.append(mark + _function(kernel, method, taken))
    return texts


def _launched(kernels: Sequence[Kernel]) -> str:
    """Return kernels of one name that are launched on a grid, whose arrays are of any library that has a GPU's."""
    known = [replace(p, kind="other") if p.kind != "scalar" else p for kernel in kernels for p in kernel.parameters]
    parameters = iter(known)
    loose = [replace(kernel, parameters=tuple(next(parameters) for _ in kernel.parameters)) for kernel in kernels]
    name, calls = function_name(kernels[0]), "".join(f"\n{text}" for text in _functions(loose, "__call__"))
    head = f"\nclass _{name}:\n    def __getitem__(self, launch: Any) -> _{name}: ...\n"
    return f"{head}{textwrap.indent(calls.lstrip(), '    ')}\n{name}: _{name}\n"


def _width(parameter: Parameter) -> int:
    if parameter.kind != "scalar":
        return 0
    return next(i for i, word in enumerate(("bool", "int", "float", "complex")) if word in (parameter.dtype or word))


def _arguments(kernel: Kernel, taken: Sequence[Collection[int]] = ()) -> str:
    if any(keyword.iskeyword(p.name) for p in kernel.parameters):  # C++ has names that Python cannot write
        return "*args: Any, **kwargs: Any"
    others = taken or [()] * len(kernel.parameters)
    rows = [f"{p.name}: {_type(p, other)}" for p, other in zip(kernel.parameters, others, strict=True)]
    if kernel.policy == "pystencils":
        rows = [*(["*"] if rows else []), *rows, "**ignored: object"]
    return ", ".join(rows)


def _function(kernel: Kernel, method: str, taken: Sequence[Collection[int]]) -> str:
    doc = inspect.cleandoc(kernel.doc or str(kernel)).replace("\\", "\\\\")
    doc = doc.replace('"', '\\"') if '"""' in doc or doc.endswith('"') else doc
    body = textwrap.indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', "    ")
    arguments = ", ".join(filter(None, ["self" * bool(method), _arguments(kernel, taken)]))
    return f"def {method or function_name(kernel)}({arguments}) -> {_result(kernel.returns)}:\n{body}\n"


_NUMBERS = (
    "bool | np.bool_", "int | np.integer[Any]", "float | np.floating[Any]",
    "complex | np.complexfloating[Any, Any]",
)  # fmt: skip


def _type(parameter: Parameter, taken: Collection[int] = ()) -> str:
    """Return the type of an argument, without numbers of a kind that another overload has `taken`."""
    if parameter.kind in ("template", "other"):  # fields, matrices, textures: another library's own
        return "Any"
    if parameter.kind != "scalar":
        element = "np.void" if parameter.fields else "Any" if parameter.dtype is None else _element(parameter.dtype)
        return f"npt.NDArray[{element}]"
    width = _width(parameter)
    narrower = range(0 if width == 0 else 1, width)  # what Python converts: no bool to a number
    return " | ".join(_NUMBERS[kind] for kind in (width, *reversed(narrower)) if kind == width or kind not in taken)


def _element(dtype: str) -> str:
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def _result(dtype: str | None) -> str:
    if dtype is None:
        return "None"
    if not dtype.isidentifier():  # a vector, several values
        return "Any"
    return next((name for name in ("bool", "int", "float", "complex") if name in dtype), "Any")
