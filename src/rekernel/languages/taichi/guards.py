"""The checked way into a Taichi kernel: arguments, running program, one lock, errors at the user's line."""

from __future__ import annotations

import ast
import os
import threading
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rekernel import _native, underway
from rekernel.errors import ArgumentTypeError, KernelSourceError
from rekernel.forked import is_inherited
from rekernel.languages.taichi import helpers, signature
from rekernel.languages.taichi.failure import source_error
from rekernel.languages.taichi.package import LOCK, Package
from rekernel.why import Reason

if TYPE_CHECKING:
    from rekernel.languages.taichi.version import TaichiVersion

_FLOATS = ("f16", "f32", "f64")
#: Taichi's atomic operations, and whether they work on a ``u1`` place with an integer value.
_ATOMIC = {
    "expr_atomic_add": True, "expr_atomic_sub": True, "expr_atomic_bit_and": True, "expr_atomic_bit_or": True,
    "expr_atomic_bit_xor": True, "expr_atomic_mul": False, "expr_atomic_min": False, "expr_atomic_max": False,
}  # fmt: skip
_NOTHING = object()
_KIND = Reason("arguments", "it was not called with arguments of this kind before")
_ADVICE = "call it with such arguments before rekernel.freeze()"


def guard_kernel(version: TaichiVersion, kernel: Any, functions: Mapping[str, ast.FunctionDef]) -> Any:
    """Make `kernel` (Taichi's own object) checked wherever it is called from, and return its guard.

    Its class becomes a subclass of Taichi's, so that tapes, graphs and class methods, which hold the kernel
    object itself, pass the same checks as a handle does.
    """
    package = version.package
    kernel.__class__ = _guarded_class(package)
    rows = version.rows.get(kernel.func)
    if rows is None:  # a kernel and its adjoint have one
        rows = version.rows[kernel.func] = signature.rows(package, kernel, functions)
    guard = _native.Guard(
        types.MethodType(package.kernel_class.__call__, kernel),
        kernel.func.__name__,
        rows,
        owner=version,
        runtime=(package.impl, package.runtime_name, "prog"),
        # Before any ``ti.init`` there is no program: this one never matches, so that `_stale` is asked.
        program=version.program if version.program is not None else _NOTHING,
        lock=LOCK,
        stale=_stale,
        failed=_failed,
    )
    kernel._rekernel_guard = guard
    return guard


def _guarded_class(package: Package) -> type:
    found = package.guarded.get("Kernel")
    if found is None:
        base: Any = package.kernel_class

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._rekernel_guard(*args, **kwargs)

        def materialize(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = kwargs.get("key", args[0] if args else None)
            if key is not None and key in self.compiled_kernels:
                return base.materialize(self, *args, **kwargs)
            version: TaichiVersion = self._rekernel_guard.owner
            title = f"{version.text.kernel_id}.{self.func.__name__}"
            with underway.doing(version.work):
                underway.refuse(self.func.__name__, "taichi", _KIND, advice=_ADVICE)
            version.execution.show_source()
            with helpers.as_loaded(version.helpers, title), checked_stores(package):
                return base.materialize(self, *args, **kwargs)

        def reset(self: Any) -> None:
            base.reset(self)
            self._rekernel_guard.owner.program_ended()

        body: dict[str, Any] = {"__call__": call, "reset": reset, "__module__": __name__, "__doc__": base.__doc__}
        if package.name != "quadrants":
            body["materialize"] = materialize
        found = type("Kernel", (base,), body)
        package.guarded["Kernel"] = found
    return found


@contextmanager
def checked_stores(package: Package) -> Iterator[None]:
    """While a kernel is being translated, refuse stores at which LLVM would end the whole process.

    Taichi 1.7 lets through a floating value into a ``u1`` (bool) place and a vector into a scalar place, and
    then aborts inside LLVM. Runs under the Taichi lock.
    """
    expr_class = package.module.lang.expr.Expr
    syntax_error = package.module.lang.exception.TaichiTypeError
    core = package.module._lib.core
    own, inherited = expr_class.__dict__.get("_assign"), expr_class._assign
    originals = {name: getattr(core, name) for name in (*_ATOMIC, "value_cast")}

    def type_of(expression: Any) -> str:
        try:
            return str(expression.get_rvalue_type().to_string())
        except Exception:  # not typed yet: Taichi's own check comes later
            return ""

    def assign(self: Any, other: Any) -> Any:
        target = type_of(self.ptr)
        value = type_of(other.ptr) if isinstance(other, expr_class) else _python_type(other)
        if target and not target.startswith("[") and value.startswith("[Tensor"):
            raise syntax_error(f"cannot store a vector or matrix {value} into a place of type {target}")
        if target == "u1" and value in _FLOATS:
            raise syntax_error(
                f"cannot store a value of type {value} into a place of type u1 (bool); store a comparison (v != 0)"
            )
        if (
            target.startswith("[Tensor")
            and target.endswith(" u1]")
            and any(value.endswith(f"{f}]") or value == f for f in _FLOATS)
        ):
            raise syntax_error(f"cannot store a value of type {value} into a place of type {target}")
        return inherited(self, other)

    def atomic(name: str) -> Any:
        def checked(target: Any, value: Any, *rest: Any) -> Any:
            if type_of(target).lstrip("*") == "u1":
                if not _ATOMIC[name]:
                    raise syntax_error(f"ti.{name.removeprefix('expr_')} does not work on a place of type u1 (bool)")
                if _is_floating(type_of(value)):
                    raise syntax_error(f"cannot combine a value of type {type_of(value)} with a place of type u1")
            return originals[name](target, value, *rest)

        return checked

    def cast(value: Any, dtype: Any, *rest: Any) -> Any:
        if str(dtype.to_string()) == "u1" and _is_floating(type_of(value)):
            raise syntax_error(f"cannot convert a value of type {type_of(value)} to u1 (bool); write v != 0")
        return originals["value_cast"](value, dtype, *rest)

    expr_class._assign = assign
    core.value_cast = cast
    for name in _ATOMIC:
        setattr(core, name, atomic(name))
    try:
        yield
    finally:
        if own is None:
            del expr_class._assign  # the inherited one shows again
        else:
            expr_class._assign = own
        for name, original in originals.items():
            setattr(core, name, original)


def _is_floating(name: str) -> bool:
    """Whether a type, or the element type of a tensor, is one that LLVM cannot compare as an integer."""
    return name.removesuffix("]").split(" ")[-1] in _FLOATS


def _python_type(value: Any) -> str:
    if isinstance(value, float):
        return "f32"
    kind = type(value).__name__
    return "[Tensor]" if kind in ("Matrix", "Vector") or isinstance(value, list | tuple) else ""


def refuse_inherited(package: Package, title: str) -> None:
    """Raise in a forked child that would use its parent's program: the program's threads are not there."""
    if package.program is not None and is_inherited(package.runtime):
        raise RuntimeError(
            f"{title}: Taichi's program does not work in a forked child process (pid {os.getpid()}); start the child "
            "with multiprocessing's 'spawn' method, call ti.init in the child, or make Taichi calls only in the parent"
        )


def _stale(guard: Any) -> Any:
    """Asked by the guard when the program it was made for is not the running one, or in a forked child."""
    version: TaichiVersion = guard.owner
    package = version.package
    refuse_inherited(package, f"{version.text.kernel_id}.{guard.name}")
    program = package.program
    if program is None:
        alias = package.module.__name__
        raise RuntimeError(
            f"{version.text.kernel_id}.{guard.name}: no {alias} program is running; call ti.init(...) first "
            "(fields made before a ti.reset or ti.init are gone)"
        )
    return version.renewed(guard)


def _failed(guard: Any, error: BaseException, arguments: tuple[Any, ...]) -> Any:
    """Asked by the guard when a call raised: says it in the user's terms, or answers by an older version."""
    version: TaichiVersion = guard.owner
    made = _wrong_dtype(guard, error, arguments) or explain(version, guard, error)
    if isinstance(made, KernelSourceError) and version.on_failure is not None:
        return version.on_failure(guard.name, made, arguments)
    if made is error:
        raise error
    raise made from made.__cause__


def _wrong_dtype(guard: Any, error: BaseException, arguments: tuple[Any, ...]) -> ArgumentTypeError | None:
    """Return the error for an array whose dtype Taichi does not have, which it notices by an assertion."""
    if not isinstance(error, AssertionError) or not str(error).startswith("Unknown type"):
        return None
    for parameter, value in zip(guard.call.__self__.arguments, arguments, strict=False):
        dtype = getattr(value, "dtype", None)
        if dtype is not None and str(error) == f"Unknown type {dtype}":
            return ArgumentTypeError(
                f"{guard.name}() argument {parameter.name!r}: Taichi has no type for {dtype} arrays",
                argument=parameter.name, expected="an array of numbers", got=f"{dtype} array",
            )  # fmt: skip
    return None


def explain(version: TaichiVersion, guard: Any, error: BaseException) -> BaseException:
    """Return the exception that the user should see for one that came out of a call or a compilation."""
    exceptions = version.package.module.lang.exception
    if isinstance(error, KernelSourceError):
        return error
    compilation = getattr(exceptions, "TaichiCompilationError", None) or exceptions.QuadrantsCompilationError
    if isinstance(error, compilation) or "not placed" in str(error):
        return source_error(
            error,
            version.text,
            line=version.definition_line(guard.call.__self__),
            names=version.known_names(guard),
            hints=version.hints,
        )
    message = str(error)
    if "main_thread_id" in message:
        made = RuntimeError(
            f"{version.text.kernel_id}.{guard.name}: Taichi's first kernel must run on the thread that called "
            f"ti.init (this is {threading.current_thread().name!r}); call ti.sync() once on that thread first"
        )
        made.__cause__ = error
        return made
    if isinstance(error, TypeError) and isinstance(error, RuntimeError):  # TaichiRuntimeTypeError
        made_type = ArgumentTypeError(f"{guard.name}(): {message.strip()}")
        made_type.__cause__ = error
        return made_type
    return error


def weaken(package: Package, kernels: list[Any], before: int) -> None:
    """Turn the entries that a text added to Taichi's own list of kernels into weak ones.

    The list is strong and outlives ``ti.reset``: it would hold every version of every text for ever. Plain
    removal is a trap, because a kernel that is not in the list is not reset by the next ``ti.init``.
    """
    entries = package.runtime.kernels
    if not isinstance(entries, list):
        return  # taichi_forge holds its kernels weakly by itself
    mine = {id(kernel) for kernel in kernels}
    entries[:] = [e for e in entries[:before] if not (isinstance(e, _WeakKernel) and e.reference() is None)] + [
        _WeakKernel(entry) if id(entry) in mine else entry for entry in entries[before:]
    ]


class _WeakKernel:
    """Stands for a kernel in Taichi's list and passes on what is asked of its entries."""

    __slots__ = ("reference",)

    def __init__(self, kernel: Any) -> None:
        self.reference = weakref.ref(kernel)

    def reset(self) -> None:
        kernel = self.reference()
        if kernel is not None:
            kernel.reset()

    @property
    def compiled_kernels(self) -> Any:
        kernel = self.reference()
        return {} if kernel is None else kernel.compiled_kernels

    @property
    def materialized_kernels(self) -> Any:
        kernel = self.reference()
        return {} if kernel is None else kernel.materialized_kernels
