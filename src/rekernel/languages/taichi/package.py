"""Taichi itself, or a relative with the same kernel API (quadrants, taichi_forge): the one place that imports it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from rekernel.errors import ToolchainError
from rekernel.locks import rlock

#: One lock for every load, first call and launch. Taichi's compiler is not thread-safe (loads and first calls
#: from several threads corrupt each other) and holds the GIL while it compiles and launches, so nothing is lost.
LOCK: Any = rlock()

#: Package -> the name under which its users import it.
ALIASES = {"taichi": "ti", "quadrants": "qd", "taichi_forge": "ti"}


@dataclass(frozen=True)
class Package:
    """Handles on what rekernel uses of the package beyond its public names."""

    name: str
    module: ModuleType
    impl: Any
    kernel_class: type
    func_class: type
    runtime_name: str
    """The attribute of `impl` that holds the runtime: replaced by every ``ti.init``."""
    guarded: dict[str, type] = field(default_factory=dict)
    """The kernel class with checks, made once."""

    @property
    def runtime(self) -> Any:
        """The runtime of this moment."""
        return getattr(self.impl, self.runtime_name)

    @property
    def program(self) -> Any:
        """The running program, or None before ``ti.init`` and after ``ti.reset``."""
        return self.runtime.prog

    @property
    def injected(self) -> dict[str, Any]:
        """Names that a text may use without importing them."""
        import numpy

        names = {ALIASES[self.name]: self.module, "np": numpy}
        if (math := getattr(self.module, "math", None)) is not None:
            names["tm"] = math
        return names


_packages: dict[str, Package] = {}


def choose(imported: Iterable[str], wants: Iterable[str], borrowed: Iterable[Any]) -> str:
    """Return the package that a text is written for, by its imports, its names and what it is handed."""
    roots = {name.split(".")[0] for name in imported}
    for name in ALIASES:
        if name in roots:
            return name
    for value in borrowed:
        if isinstance(value, ModuleType) and value.__name__ in ALIASES:
            return value.__name__
    return "quadrants" if "qd" in set(wants) else "taichi"


def package(name: str) -> Package:
    """Import the package and find its inside; a ToolchainError says what to install."""
    found = _packages.get(name)
    if found is not None:
        return found
    try:
        module = importlib.import_module(name)
        impl = importlib.import_module(f"{name}.lang.impl")
        kernel_impl = importlib.import_module(f"{name}.lang.kernel_impl")
    except ImportError as error:
        extra = "rekernel[taichi]" if name == "taichi" else name.replace("_", "-")
        raise ToolchainError(
            f"the text needs the package {name!r}, which cannot be imported here ({error}); "
            f'install it with: pip install "{extra}"   (python -m rekernel doctor)'
        ) from error
    runtime = impl.get_runtime()
    runtime_name = next(key for key, value in vars(impl).items() if value is runtime)
    found = Package(name, module, impl, kernel_impl.Kernel, kernel_impl.Func, runtime_name)
    _packages[name] = found
    return found


def imported() -> list[Package]:
    """Return the packages that are imported by now, without importing any."""
    return [package(name) for name in ALIASES if name in sys.modules and f"{name}.lang.impl" in sys.modules]


def specialisations(kernel: Any) -> dict[Any, Any]:
    """Return the compiled kernels of a kernel object, by (function, number, mode)."""
    compiled = getattr(kernel, "compiled_kernels", None)
    if compiled is None:
        compiled = kernel.materialized_kernels
    return compiled  # type: ignore[no-any-return]


def arguments(kernel: Any) -> list[Any]:
    """Return a kernel's parameters: objects with ``name`` and ``annotation``."""
    found = getattr(kernel, "arguments", None)
    if found is None:
        found = kernel.arg_metas
    return list(found)


def features_of(package: Package, kernel: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what tells one specialisation of a kernel from another, for a call with these arguments."""
    if package.name == "quadrants":
        return tuple(kernel.mapper.lookup(package.impl.current_cfg().raise_on_templated_floats, values)[1])
    return tuple(kernel.mapper.extract(values))


def is_class_kernel(kernel: Any) -> bool:
    """Whether a kernel is a method, called with its object as first argument."""
    return bool(getattr(kernel, "classkernel", getattr(kernel, "is_classkernel", False)))


def prepare_to_compile(package: Package, kernel: Any) -> None:
    """Give a quadrants kernel what its own first call would give it before compiling."""
    if package.name == "quadrants":
        kernel.raise_on_templated_floats = package.impl.current_cfg().raise_on_templated_floats


def kernels_of(package: Package) -> list[Any]:
    """Return the entries of the package's own list of kernels, which is a set of weak references in taichi_forge."""
    return list(package.runtime.kernels)


def pending(runtime: Any) -> bool:
    """Whether fields are declared that have no place yet: nothing can be compiled before they have one."""
    for kind in ("global_vars", "grad_vars", "dual_vars"):
        for variable in getattr(runtime, kind, ()):
            if variable.ptr.snode() is None:
                return True
    return False
