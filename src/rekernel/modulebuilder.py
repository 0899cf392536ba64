"""Kernels as text that a compiler can turn into a loadable artefact. Pure: text in, text out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rekernel.kernel import Kernel, Parameter, Slot

if TYPE_CHECKING:
    from rekernel.jit.base import KernelWrapper

__all__ = ["ExtensionModuleBuilderBase", "LibraryBuilder", "Unit", "entry_symbol"]

_UNSAFE = re.compile(r"\W")
_NO_CODE = re.compile(r'//.*|"[^"\n]*"|^#.*', re.M)
_WORD = re.compile(r"\b(?!__|REKERNEL|rk_)[A-Za-z_]\w*")

#: Our text comes after the kernel's: it begins with a line of its own name, and includes nothing. Each argument of
#: the function is converted to whatever type the function declares, and the compiler confirms that this type is the
#: one that the parameter table promises: a wrong table is an error here, never memory read as something else.
_GLUE = """
#line 1 "rekernel entry points"
namespace rekernel_entry {
template <class T> struct is_pointer { static constexpr bool value = false; };
template <class T> struct is_pointer<T *> { static constexpr bool value = true; };
template <class T> struct target { using type = T; };
template <class T> struct target<T *> { using type = T; };
template <class T> struct target<const T *> { using type = T; };
template <class T, bool arithmetic> struct check {
  static constexpr char code() {
    return static_cast<T>(0.5) != static_cast<T>(0) ? 'f' : static_cast<T>(-1) < static_cast<T>(0) ? 'i' : 'u';
  }
};
template <class T> struct check<T, false> { static constexpr char code() { return 'x'; } };
template <char code, unsigned size, bool pointer> struct argument {
  const rk_slot &slot;
  template <class T> operator T() const {
    using element = typename target<T>::type;
    static_assert(is_pointer<T>::value == pointer, "the parameter table and the function disagree about a pointer");
    static_assert(sizeof(element) == size, "the parameter table and the function disagree about a size");
    static_assert(code == 'x' || check<element, code != 'x'>::code() == code,
                  "the parameter table and the function disagree about a type");
    T value;
    __builtin_memcpy(&value, slot.bytes, sizeof value);
    return value;
  }
};
template <char code, unsigned size, class T> T result(const T &value) {
  static_assert(!is_pointer<T>::value, "the kernel and the function disagree about what is returned: a pointer");
  static_assert(sizeof(T) == size, "the kernel and the function disagree about the size of what is returned");
  static_assert(code == 'x' || check<T, code != 'x'>::code() == code,
                "the kernel and the function disagree about the type of what is returned");
  return value;
}
}
"""


def entry_symbol(kernel: Kernel, index: int) -> str:
    """Return the name under which profilers see a kernel's entry point.

    >>> entry_symbol(Kernel("heat.step", (), "cpp"), 0)
    'rk_heat_step_0'
    """
    return f"rk_{text_name(kernel)}_{index}"


def text_name(kernel: Kernel) -> str:
    """Return the name under which a compiler speaks of a kernel's text."""
    return _UNSAFE.sub("_", kernel.name)


def abi_text() -> str:
    """Return the text of the call ABI, which kernels and the native extension share."""
    # Not through importlib.resources, whose import takes longer than a whole warm start is meant to.
    with open(os.path.join(os.path.dirname(__file__), "include", "rekernel", "abi.hpp"), encoding="utf-8") as file:
        return file.read()


class ExtensionModuleBuilderBase:
    """Turns kernels into the text of one unit, and a built unit into wrappers.

    A subclass says by `artefact` what comes out of its text: a bare ``library``, called by the native call path,
    or a Python ``module``. ``CpuJit(module_builder=...)`` takes one that makes libraries.
    """

    artefact: ClassVar[str] = "library"

    @staticmethod
    def include_dirs() -> list[str]:
        """Return directories that a unit's text needs on the include path."""
        return []

    def render_module(self, kernel: Kernel | Sequence[Kernel], module_name: str) -> str:
        """Return the text of a unit of one or more kernels. The same kernels always give the same text."""
        raise NotImplementedError

    def get_wrapper(self, kernel: Kernel, module: Any) -> KernelWrapper:
        """Return the callable for one kernel of a loaded unit."""
        raise NotImplementedError


def kernel_title(kernels: Sequence[Kernel]) -> str:
    """Return a name for a unit, as people see it: ``heat``, ``heat and 3 more``."""
    more = len(kernels) - 1
    return kernels[0].name + (f" and {more} more" if more else "")


def as_tuple(kernel: Kernel | Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return one or several kernels as a tuple."""
    return (kernel,) if isinstance(kernel, Kernel) else tuple(kernel)


class LibraryBuilder(ExtensionModuleBuilderBase):
    """The default: the kernels' own text, and for each an entry point that unpacks its slots."""

    artefact = "library"

    def render_module(self, kernel: Kernel | Sequence[Kernel], module_name: str) -> str:
        """Return the unit's text; `module_name` is not needed, because a bare library has no name.

        ValueError for a kernel whose table contradicts itself.
        """
        from rekernel.jit.calltable import rows

        kernels = as_tuple(kernel)
        for one in kernels:
            rows(one)  # raises where a table contradicts itself
        headers = sorted({header for one in kernels for header in one.headers})
        parts = [f"#include {header}\n" for header in headers]
        texts: dict[str, str] = {}  # a text that several kernels share comes once
        for one in kernels:
            texts.setdefault(one.code, text_name(one))
        parts += [f'#line 1 "{name}"\n{code}' for code, name in texts.items()]
        own = [abi_text(), _GLUE, *(_entry(one, index) for index, one in enumerate(kernels))]
        parts += [_undefined(own, kernels), *own]
        return "\n".join(part if part.endswith("\n") else part + "\n" for part in parts)

    def get_wrapper(self, kernel: Kernel, module: Any) -> KernelWrapper:
        """Return the callable for one kernel of a `Unit`."""
        from rekernel import _native
        from rekernel.jit.base import KernelWrapper
        from rekernel.jit.calltable import rows

        parameters, slots = rows(kernel)
        symbol = entry_symbol(kernel, module.kernels.index(kernel))
        function = _native.Function(
            module.library,
            symbol,
            kernel.name,
            parameters,
            slots,
            returns=kernel.returns,
            policy=kernel.policy,
            openmp=kernel.openmp,
        )
        return KernelWrapper.over(kernel, function)


@dataclass(frozen=True)
class Unit:
    """A built and loaded unit, as a builder's `get_wrapper` takes it."""

    library: Any
    """The loaded library, or the imported Python module."""
    kernels: tuple[Kernel, ...]
    """The kernels of the unit, in the order of its text."""


def _undefined(texts: Sequence[str], kernels: Sequence[Kernel]) -> str:
    """Return lines that take back the user's macros which our own text would trip over: ``#define h 0.01``.

    They begin with a comment: it may become part of a last line of the user's that ends in a backslash.
    """
    words = {word for text in texts for word in _WORD.findall(_NO_CODE.sub("", text))}
    words -= {word for kernel in kernels for word in _WORD.findall(kernel.function or kernel.name)}
    return "// \n" + "".join(f"#undef {word}\n" for word in sorted(words))


def _entry(kernel: Kernel, index: int) -> str:
    parameters = {p.name: p for p in kernel.parameters}
    arguments = ", ".join(_argument(slot, number, parameters) for number, slot in enumerate(kernel.slots))
    call = f"{kernel.function or kernel.name}({arguments})"
    return (
        f'extern "C" __attribute__((visibility("default"))) __INT32_TYPE__ {entry_symbol(kernel, index)}'
        "(rk_call *call) {\n"
        "  try {\n"
        f"    {_store(kernel, call)}\n"
        "  } catch (...) {\n"
        "    call->describe(call->error);\n"
        "    return 1;\n"
        "  }\n"
        "  return 0;\n"
        "}\n"
    )


def _argument(slot: Slot, number: int, parameters: dict[str, Parameter]) -> str:
    code, size, pointer = row_of(slot, parameters)
    return f"rekernel_entry::argument<'{code}', {size}, {str(pointer).lower()}>{{call->slots[{number}]}}"


def row_of(slot: Slot, parameters: Mapping[str, Parameter]) -> tuple[str, int, bool]:
    """Return what a compiler is to confirm of an argument: the letter and the size of its type, and if it points there.

    The letter is ``x`` where only the size can be compared.
    """
    parameter = parameters[slot.parameter]
    if slot.kind in ("shape", "stride"):
        dtype: str | None = slot.dtype
    elif slot.field:
        dtype = next(kind for name, kind, _ in parameter.fields if name == slot.field)
    else:
        dtype = parameter.dtype
    pointer = slot.kind == "pointer"
    if dtype is None:
        code, size = "x", parameter.itemsize
    else:
        code, size = _code(dtype), np.dtype(dtype).itemsize
    return code, size, pointer


def _code(dtype: str) -> str:
    """Return the letter by which the glue tells kinds of types; ``x`` where only the size can be compared."""
    kind = np.dtype(dtype).kind
    return kind if kind in "iu" else "f" if kind == "f" and dtype != "float16" else "x"


def _store(kernel: Kernel, call: str) -> str:
    if kernel.returns is None:
        return f"{call};"
    dtype = np.dtype(kernel.returns)
    checked = f"rekernel_entry::result<'{_code(kernel.returns)}', {dtype.itemsize}>({call})"
    if dtype.kind in "iub":
        return f"call->result->{'i' if dtype.kind == 'i' else 'u'} = {checked};"
    return f"auto result = {checked};\n    __builtin_memcpy(call->result->bytes, &result, sizeof result);"
