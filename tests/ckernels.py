"""Small compiled kernels for tests: a body in C++, a `Kernel` value, a `_native.Function`."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import rekernel
from rekernel._native import Function, Library
from rekernel.jit.calltable import rows
from rekernel.kernel import Kernel, Parameter, Slot

INCLUDE = Path(rekernel.__file__).parent / "include"
CXX = shutil.which(os.environ.get("REKERNEL_TEST_CXX", "g++"))
FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-gnu-unique", f"-I{INCLUDE}")

C_TYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned", "uint64": "unsigned long long",
    "float16": "unsigned short", "float32": "float", "float64": "double",
    "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip
"""C's types by NumPy's names. A float16 stays bits."""

MEMBERS = {"float16": "h", "float32": "f", "float64": "d"}
"""Members of a slot by type; integers are in `i`."""


@functools.cache
def compiled(text: str, *flags: str) -> bytes:
    """Compile a text into a shared object, once per session; skip the test where there is no compiler."""
    if CXX is None:
        pytest.skip("there is no C++ compiler (g++, or set REKERNEL_TEST_CXX)")
    with tempfile.TemporaryDirectory() as directory:
        source, product = Path(directory, "kernel.cpp"), Path(directory, "kernel.so")
        source.write_text('#include "rekernel/abi.hpp"\n#define ENTRY extern "C" __attribute__((visibility("default")))'
                          f" int\n{text}\n")  # fmt: skip
        done = subprocess.run([CXX, *FLAGS, *flags, str(source), "-o", str(product)], capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return product.read_bytes()


def array(name: str, dtype: str = "float64", ndim: int | None = 1, **options: object) -> Parameter:
    return Parameter(name, "array", dtype=dtype, ndim=ndim, **options)  # type: ignore[arg-type]


def scalar(name: str, dtype: str = "float64") -> Parameter:
    return Parameter(name, "scalar", dtype=dtype)


def slots_of(parameter: Parameter) -> tuple[Slot, ...]:
    """Return all that can be told of a parameter: pointers, extents, strides; or the value."""
    if parameter.kind == "scalar":
        return (Slot("scalar", parameter.name),)
    fields = [field for field, *_ in parameter.fields] or [""]
    axes = range(parameter.ndim or 0)
    return (
        *(Slot("pointer", parameter.name, field=field) for field in fields),
        *(Slot("shape", parameter.name, axis) for axis in axes),
        *(Slot("stride", parameter.name, axis) for axis in axes),
    )


def declaration(slot: Slot, parameter: Parameter, index: int) -> str:
    """Declare the C variable of a slot: ``x``, ``x_field``, ``x_n0`` (extent), ``x_s0`` (stride), or a scalar."""
    if slot.kind == "pointer":
        dtype = dict((f, d) for f, d, _ in parameter.fields).get(slot.field, parameter.dtype)
        name = f"{parameter.name}_{slot.field}" if slot.field else parameter.name
        return f"{C_TYPES[dtype]} *{name} = ({C_TYPES[dtype]} *)s[{index}].p;"
    if slot.kind == "scalar":
        if parameter.dtype.startswith("complex"):
            return f"{C_TYPES[parameter.dtype]} {parameter.name} = *({C_TYPES[parameter.dtype]} *)&s[{index}];"
        kind = C_TYPES[parameter.dtype]
        return f"{kind} {parameter.name} = ({kind})s[{index}].{MEMBERS.get(parameter.dtype, 'i')};"
    return f"long long {parameter.name}_{'n' if slot.kind == 'shape' else 's'}{slot.axis} = s[{index}].i;"


def entry(kernel: Kernel, body: str, number: int = 0) -> str:
    """Return the text of an entry ``rk_<name>_<number>`` around a body that sees the variables of the slots."""
    by_name = {p.name: p for p in kernel.parameters}
    variables = "\n".join(declaration(slot, by_name[slot.parameter], i) for i, slot in enumerate(kernel.slots))
    return (
        f"ENTRY rk_{kernel.name}_{number}(rk_call *call) {{\n"
        "const rk_slot *s = call->slots; rk_slot *result = call->result; rk_error *error = call->error;\n"
        "(void)s; (void)result; (void)error;\n"
        f"try {{\n{variables}\n{body}\n}} catch (...) {{ call->describe(error); return 1; }}\nreturn 0;\n}}\n"
    )


def make(
    body: str, *parameters: Parameter, name: str = "step", before: str = "", flags: tuple[str, ...] = (),
    slots: tuple[Slot, ...] | None = None, **options: object,
) -> Function:  # fmt: skip
    """Compile a body and return the function; `options` are those of `_native.Function`."""
    if slots is None:
        slots = tuple(slot for parameter in parameters for slot in slots_of(parameter))
    kernel = Kernel(name, parameters, "cpp", slots=slots)
    library = Library(compiled(f"{before}\n{entry(kernel, body)}", *flags), name=name)
    return Function(library, f"rk_{name}_0", name, *rows(kernel), **options)  # type: ignore[arg-type]
