"""Kernels as one CPython extension module: text that needs nothing of rekernel, when it is built and when it runs.

::

    Python.h, our own C++ (include/rekernel/pymodule/), the tables, PyInit    <- nothing of the user's can break it
    the unit of a bare library: the kernels' text and their entry points      <- what a JIT compiles, too

The first part alone is a unit to be linked with another that has the entry points.
Arrays come by the buffer protocol, so NumPy's headers are not needed and any NumPy will do.
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from rekernel.kernel import Kernel
from rekernel.modulebuilder import (
    ExtensionModuleBuilderBase,
    LibraryBuilder,
    Unit,
    abi_text,
    as_tuple,
    entry_symbol,
)
from rekernel.moduletables import function_name, identifier, limits, literal, tables

if TYPE_CHECKING:
    from rekernel.jit.base import KernelWrapper

__all__ = ["PythonModuleBuilder", "function_name", "groups", "module_name"]

_PARTS = ("tables", "words", "scalars", "arrays", "overlap", "call")
_HEADERS = ("exception", "typeinfo", "cxxabi.h", "fenv.h", "stdio.h", "stdlib.h", "string.h")

#: The start of the unit. Python's own headers are not written for -Wconversion.
_START = """#line 1 "rekernel module"
#define PY_SSIZE_T_CLEAN
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <Python.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
"""

_FINISH = """
PyModuleDef_Slot steps[] = {{
#if PY_VERSION_HEX >= 0x030C0000
    {{Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED}},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {{Py_mod_gil, Py_MOD_GIL_NOT_USED}},
#endif
    {{0, nullptr}},
}};
PyModuleDef definition = {{PyModuleDef_HEAD_INIT, {name}, {doc}, 0, methods, steps, nullptr, nullptr, nullptr}};

}}  // namespace rekernel_module

PyMODINIT_FUNC {init}() {{ return PyModuleDef_Init(&rekernel_module::definition); }}
"""


class PythonModuleBuilder(ExtensionModuleBuilderBase):
    """Kernels as a self-contained extension module: any Python of the same version imports it, without rekernel.

    Calls are checked as those of a JIT are and refused in the same words, with TypeError and ValueError.
    """

    artefact = "module"

    def render_module(self, kernel: Kernel | Sequence[Kernel], module_name: str) -> str:
        """Return the module's text. `module_name` is the name under which it is imported, an identifier.

        ValueError for kernels that cannot stand in one module: a table that contradicts itself, two of one name.
        """
        kernels = as_tuple(kernel)
        names = [function_name(one) for one in kernels]
        if len(set(names)) < len(names):
            raise ValueError(f"two kernels of one module have the same name: {', '.join(names)}")
        symbols = [entry_symbol(one, index) for index, one in enumerate(kernels)]
        own = self.render_interface(kernels, module_name, symbols)
        return f"{own}\n{LibraryBuilder().render_module(kernels, module_name)}"

    def render_interface(
        self, kernels: Sequence[Kernel], module_name: str, symbols: Sequence[str], *, nogil: bool | None = None
    ) -> str:
        """Return the module's text without the kernels' own: a unit to be linked with theirs.

        `symbols` are the names of their entry points. Kernels of one name are overloads of one function. `nogil`:
        whether calls release the GIL; None for those that have much to do. ValueError for what cannot stand in one
        module.
        """
        if not module_name.isidentifier():
            raise ValueError(f"{module_name!r} cannot be the name of a Python module")
        named = groups(kernels)
        parts = [_START, *_includes(kernels), abi_text(), limits(kernels)]
        parts += [_part(name) for name in _PARTS]
        if len(named) < len(kernels):
            parts += [_part("choose")]
        parts += ['#line 1 "rekernel module"\nnamespace rekernel_module {\n']
        parts += [tables(one, index, symbols[index], nogil) for index, one in enumerate(kernels)]
        parts += [_methods(kernels, named), _finish(kernels, module_name)]
        return "\n".join(parts)

    def get_wrapper(self, kernel: Kernel, module: Any) -> KernelWrapper:
        """Return the callable for one kernel of an imported module, or of a `Unit` that holds one."""
        from rekernel.jit.base import KernelWrapper

        imported = module.library if isinstance(module, Unit) else module
        return KernelWrapper.over(kernel, getattr(imported, function_name(kernel)))


def groups(kernels: Sequence[Kernel]) -> dict[str, tuple[int, ...]]:
    """Return the functions of a module: for each name the numbers of its kernels, of which several are overloads."""
    found: dict[str, tuple[int, ...]] = {}
    for number, kernel in enumerate(kernels):
        name = function_name(kernel)
        others = found.get(name, ())
        if others and kernels[others[0]].name != kernel.name:
            raise ValueError(f"{kernels[others[0]].name} and {kernel.name} would both be called {name} in Python")
        found[name] = (*others, number)
    return found


def module_name(text: str) -> str:
    """Return a name for a module after a kernel or an id, where it hides no module of Python's.

    >>> [module_name(text) for text in ("heat.step", "copy")]
    ['heat_step', 'copy_kernel']
    """
    name = identifier(text)
    return f"{name}_kernel" if hides_a_module(name) else name


def hides_a_module(name: str) -> bool:
    """Return whether a module of this name could be imported in the place of one of Python's, or of NumPy."""
    return name in sys.stdlib_module_names or name in sys.builtin_module_names or name in ("numpy", "rekernel")


def _part(name: str) -> str:
    file = resources.files("rekernel").joinpath(f"include/rekernel/pymodule/{name}.hpp")
    return f'#line 1 "rekernel/pymodule/{name}.hpp"\n{file.read_text(encoding="utf-8")}'


def _includes(kernels: Sequence[Kernel]) -> list[str]:
    lines = [f"#include <{header}>" for header in _HEADERS]
    if any(kernel.openmp for kernel in kernels):
        lines += ["#include <pthread.h>", "#define REKERNEL_MODULE_OPENMP"]
    return lines


def _methods(kernels: Sequence[Kernel], named: Mapping[str, Sequence[int]]) -> str:
    rows = ""
    for name, numbers in named.items():
        way = "call" if len(numbers) == 1 else "call_nearest"
        doc = _doc(kernels[numbers[0]]) if len(numbers) == 1 else _doc_of_overloads([kernels[n] for n in numbers])
        chosen = ", ".join(f"kernel_{number}" for number in numbers)
        rows += f"    {{{literal(name)}, as_method({way}<{chosen}>), METH_FASTCALL | METH_KEYWORDS, {literal(doc)}}},\n"
    return f"PyMethodDef methods[] = {{\n{rows}    {{nullptr, nullptr, 0, nullptr}},\n}};\n"


def _doc(kernel: Kernel) -> str:
    """Return a docstring whose first line `inspect.signature` reads."""
    doc = kernel.doc or str(kernel)
    names = [parameter.name for parameter in kernel.parameters]
    if any(keyword.iskeyword(name) or not name.isidentifier() for name in names):
        return doc
    if kernel.policy == "pystencils":
        names = [*(["*"] if names else []), *names, "**ignored"]
    return f"{function_name(kernel)}({', '.join(['$module', '/', *names])})\n--\n\n{doc}"


def _doc_of_overloads(kernels: Sequence[Kernel]) -> str:
    docs = dict.fromkeys(kernel.doc for kernel in kernels if kernel.doc)
    return "\n\n".join([*docs, "\n".join(map(str, kernels))])


def _finish(kernels: Sequence[Kernel], name: str) -> str:
    doc = "Compiled kernels, made by rekernel:\n\n" + "\n".join(map(str, kernels))
    init = f"PyInit_{name}" if name.isascii() else "PyInitU_" + name.encode("punycode").decode().replace("-", "_")
    return _FINISH.format(name=literal(name), doc=literal(doc), init=init)
