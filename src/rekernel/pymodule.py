"""Kernels as one CPython extension module: text that needs nothing of rekernel, when it is built and when it runs.

::

    Python.h, our own C++ (include/rekernel/pymodule/), the tables, PyInit    <- nothing of the user's can break it
    the unit of a bare library: the kernels' text and their entry points      <- what a JIT compiles, too

Arrays come by the buffer protocol, so NumPy's headers are not needed and any NumPy will do.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Sequence
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

if TYPE_CHECKING:
    from rekernel._native import _FunctionParameter, _FunctionSlot
    from rekernel.jit.base import KernelWrapper

__all__ = ["PythonModuleBuilder", "function_name", "module_name"]

_PARTS = ("tables", "words", "scalars", "arrays", "overlap", "call")
_HEADERS = ("exception", "typeinfo", "cxxabi.h", "fenv.h", "stdio.h", "stdlib.h", "string.h")
_ELEMENTS = {
    name: place
    for place, name in enumerate(
        ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "complex64", "complex128"), start=1,
    )
}  # fmt: skip
"""The numbers of ``Element`` in tables.hpp."""
_SLOTS = {"pointer": "p", "shape": "n", "stride": "s", "scalar": "v"}

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
        if not module_name.isidentifier():
            raise ValueError(f"{module_name!r} cannot be the name of a Python module")
        names = [function_name(one) for one in kernels]
        if len(set(names)) < len(names):
            raise ValueError(f"two kernels of one module have the same name: {', '.join(names)}")
        parts = [_START, *_includes(kernels), abi_text(), _limits(kernels)]
        parts += [_part(name) for name in _PARTS]
        parts += ['#line 1 "rekernel module"\nnamespace rekernel_module {\n']
        parts += [_tables(one, index) for index, one in enumerate(kernels)]
        parts += [_methods(kernels), _finish(kernels, module_name), LibraryBuilder().render_module(kernels, module_name)]
        return "\n".join(parts)

    def get_wrapper(self, kernel: Kernel, module: Any) -> KernelWrapper:
        """Return the callable for one kernel of an imported module, or of a `Unit` that holds one."""
        from rekernel.jit.base import KernelWrapper

        imported = module.library if isinstance(module, Unit) else module
        return KernelWrapper.over(kernel, getattr(imported, function_name(kernel)))


def function_name(kernel: Kernel) -> str:
    """Return the name that a kernel has in a module: its own, made an identifier.

    >>> [function_name(Kernel(name, (), "cpp")) for name in ("step", "heat.step", "2d", "lambda")]
    ['step', 'heat_step', '_2d', 'lambda_']
    """
    name = re.sub(r"\W", "_", kernel.name)
    name = name if name.isidentifier() else f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def module_name(kernels: Sequence[Kernel]) -> str:
    """Return a name for a module of these kernels: that of the first, where it hides no module of Python's.

    >>> [module_name([Kernel(name, (), "cpp")]) for name in ("heat.step", "copy")]
    ['heat_step', 'copy_kernel']
    """
    name = function_name(kernels[0])
    return f"{name}_kernel" if hides_a_module(name) else name


def hides_a_module(name: str) -> bool:
    """Return whether a module of this name could be imported in the place of one of Python's, or of NumPy."""
    return name in sys.stdlib_module_names or name in sys.builtin_module_names or name in ("numpy", "rekernel")


def literal(text: str) -> str:
    """Return a text as a C string literal, the same for every compiler and encoding.

    >>> print(literal('a "b"\\n\u00e9?'))
    "a \\"b\\"\\n\\303\\251\\?"
    """
    named = {0x0A: "\\n", 0x22: '\\"', 0x5C: "\\\\", 0x3F: "\\?"}  # ?: trigraphs
    encoded = text.encode("utf-8", "replace")
    return '"' + "".join(named.get(b, chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in encoded) + '"'


def _part(name: str) -> str:
    file = resources.files("rekernel").joinpath(f"include/rekernel/pymodule/{name}.hpp")
    return f'#line 1 "rekernel/pymodule/{name}.hpp"\n{file.read_text(encoding="utf-8")}'


def _includes(kernels: Sequence[Kernel]) -> list[str]:
    lines = [f"#include <{header}>" for header in _HEADERS]
    if any(kernel.openmp for kernel in kernels):
        lines += ["#include <pthread.h>", "#define REKERNEL_MODULE_OPENMP"]
    return lines


def _limits(kernels: Sequence[Kernel]) -> str:
    """Return how much room a call needs at most."""
    rows = {
        "most_parameters": max(len(kernel.parameters) for kernel in kernels),
        "most_slots": max(len(kernel.slots) for kernel in kernels),
        "most_extents": max(len(_extents(kernel)) for kernel in kernels),
    }
    constants = "".join(f"constexpr int {name} = {max(count, 1)};\n" for name, count in rows.items())
    return f'#line 1 "rekernel module"\nnamespace rekernel_module {{\n{constants}}}\n'


def _extents(kernel: Kernel) -> dict[str, int]:
    """Return the numbers of the named extents."""
    named = dict.fromkeys(e for p in kernel.parameters for e in p.shape if isinstance(e, str))
    return {name: number for number, name in enumerate(named)}


def _tables(kernel: Kernel, index: int) -> str:
    """Return the constants that describe one kernel, and the declaration of its entry point."""
    from rekernel.jit.calltable import rows

    parameters, slots = rows(kernel)
    extents = _extents(kernel)
    symbol = entry_symbol(kernel, index)
    texts = [
        f'extern "C" __attribute__((visibility("default"), noinline)) __INT32_TYPE__ {symbol}(rk_call *);\n',
        *(_axes(row, f"{index}_{place}", extents) for place, row in enumerate(parameters) if len(row) > 4),
        *(_fields(row, f"{index}_{place}") for place, row in enumerate(parameters) if len(row) > 4),
        _array("Parameter", f"parameters_{index}", [_parameter(r, f"{index}_{i}") for i, r in enumerate(parameters)]),
        _array("Slot", f"slots_{index}", [_slot(row) for row in slots]),
        _array("const char *", f"extents_{index}", [literal(name) for name in extents]),
    ]
    values = [
        literal(function_name(kernel)),
        *_counted(f"parameters_{index}", len(parameters)), *_counted(f"slots_{index}", len(slots)),
        *_counted(f"extents_{index}", len(extents)), symbol, _element(kernel.returns or ""),
        _flag(kernel.policy == "pystencils"), _flag(kernel.openmp),
    ]  # fmt: skip
    return "".join([*texts, f"constexpr Kernel kernel_{index} = {{{', '.join(values)}}};\n"])


def _array(kind: str, name: str, rows: Sequence[str]) -> str:
    return f"constexpr {kind} {name}[] = {{{', '.join(rows)}}};\n" if rows else ""


def _counted(name: str, count: int) -> tuple[str, str]:
    return name if count else "nullptr", str(count)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _element(dtype: str) -> str:
    return f"static_cast<Element>({_ELEMENTS[dtype]})" if dtype else "Element::none"


def _axes(row: _FunctionParameter, place: str, extents: dict[str, int]) -> str:
    _, _, _, _, itemsize, ndim, shape, strides, *_ = row  # type: ignore[misc]
    rank = max(ndim, 0)
    made = []
    for extent, stride in zip(shape or (None,) * rank, strides or (None,) * rank, strict=True):
        fixed = extent if isinstance(extent, int) else -1
        name = extents[extent] if isinstance(extent, str) else -1
        made.append(f"{{{fixed}, {name}, {_flag(stride is not None)}, {(stride or 0) * itemsize}}}")
    return _array("Axis", f"axes_{place}", made)


def _fields(row: _FunctionParameter, place: str) -> str:
    rows = [f"{{{literal(name)}, {_element(dtype)}, {offset}}}" for name, dtype, offset in row[12]]  # type: ignore[misc]
    return _array("Field", f"fields_{place}", rows)


def _parameter(row: _FunctionParameter, place: str) -> str:
    name, kind, shown, dtype = row[:4]
    first = f"{literal(name)}, {literal(shown)}, {_element(dtype)}"
    if kind == "scalar":
        return f"{{{first}, false, false, false, false, 0, 0, 0, nullptr, nullptr, 0}}"
    itemsize, ndim, shape, _, trailing, contiguous, written, restrict, fields = row[4:]  # type: ignore[misc]
    least = ndim
    while trailing and shape[least - 1] == 1:  # of any other extent there would be memory to miss
        least, trailing = least - 1, trailing - 1
    flags = ", ".join(map(_flag, (True, contiguous, written, restrict)))
    axes = f"axes_{place}" if ndim > 0 else "nullptr"
    return f"{{{first}, {flags}, {ndim}, {least}, {itemsize}, {axes}, {_counted_fields(place, len(fields))}}}"


def _counted_fields(place: str, count: int) -> str:
    return ", ".join(_counted(f"fields_{place}", count))


def _slot(row: _FunctionSlot) -> str:
    kind, parameter, axis, offset, dtype = row
    return f"{{'{_SLOTS[kind]}', {parameter}, {axis}, {offset}, {_element(dtype)}}}"


def _methods(kernels: Sequence[Kernel]) -> str:
    rows = "".join(
        f"    {{{literal(function_name(one))}, as_method(call<kernel_{index}>), METH_FASTCALL | METH_KEYWORDS, "
        f"{literal(_doc(one))}}},\n"
        for index, one in enumerate(kernels)
    )
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


def _finish(kernels: Sequence[Kernel], name: str) -> str:
    doc = "Compiled kernels, made by rekernel:\n\n" + "\n".join(map(str, kernels))
    init = f"PyInit_{name}" if name.isascii() else "PyInitU_" + name.encode("punycode").decode().replace("-", "_")
    return _FINISH.format(name=literal(name), doc=literal(doc), init=init)
