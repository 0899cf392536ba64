"""Compile a new version, without launching, for the argument types that the live one has been called with.

Taichi compiles at the first call. Doing it before the swap is what keeps a broken edit from ever replacing a
working kernel. No array is kept for it: Taichi's own table of specialisations has dtype, rank and template values.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rekernel.languages.taichi import instances
from rekernel.languages.taichi.failure import source_error
from rekernel.languages.taichi.package import arguments, features_of, pending, prepare_to_compile, specialisations

if TYPE_CHECKING:
    from rekernel.languages.taichi.version import TaichiVersion

#: Specialisations of one kernel that are checked, the latest first: a kernel may have been called with thousands
#: of template values.
MOST = 16
_UNKNOWN = object()
#: Annotations whose arguments specialise a kernel by more than their own type.
_FEATURED = frozenset({"TextureType", "RWTextureType", "ArgPackType", "SparseMatrixBuilder", "sparse_matrix_builder"})


def precheck(version: TaichiVersion, previous: TaichiVersion | None, check: Any, keeps: int | None) -> None:
    """Compile what can be known now; the first failure raises `KernelSourceError` and nothing has changed."""
    package = version.package
    explicit = _explicit(version, check)
    if version.program is None or (pending(package.runtime) and not explicit):
        return
    moved: list[instances.Undo] = []
    if previous is not None and previous.program is version.program:
        moved = instances.move(previous.classes, version.classes)
        moved += instances.move_structs(previous.struct_types, version.struct_types)
    try:
        for kernel, features, values in _known(version, previous, check, explicit):
            try:
                _compile(version, kernel, features, values)
            except Exception as error:
                guard = kernel._rekernel_guard
                names, line = version.known_names(guard), version.definition_line(kernel)
                raise source_error(
                    error, version.text, keeps=keeps, line=line, names=names, hints=version.hints
                ) from error
    finally:
        for undo in moved:  # the swap itself moves them, when everything is good
            undo()


def _explicit(version: TaichiVersion, check: Any) -> Mapping[str, tuple[Any, ...]]:
    if isinstance(check, Mapping):
        unknown = [name for name in check if name not in version.entries]
        if unknown:
            raise ValueError(
                f"check= names no kernel of the text: {', '.join(unknown)}; it has {', '.join(version.entries)}"
            )
        return {name: tuple(args) if isinstance(args, tuple | list) else (args,) for name, args in check.items()}
    if isinstance(check, tuple):
        if not version.entries:
            raise ValueError("check= gives arguments, but the text has no kernel")
        return {next(iter(version.entries)): check}
    if not isinstance(check, bool):
        raise TypeError(f"check= takes True, False, a tuple of arguments or a dict of them, not {check!r}")
    return {}


def _known(
    version: TaichiVersion, previous: TaichiVersion | None, check: Any, explicit: Mapping[str, tuple[Any, ...]]
) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Give (kernel, features, template values) for all that is to be compiled."""
    for name, args in explicit.items():
        kernel = version.entries[name].call.__self__
        if len(args) != len(arguments(kernel)):
            raise TypeError(f"check= gives {len(args)} arguments for {name}(), which takes {len(arguments(kernel))}")
        yield kernel, features_of(version.package, kernel, args), args
    if check is False:
        return
    for place, kernel in version.kernels.items():
        if not arguments(kernel) and _primal(kernel) and not version.waits_for_globals(kernel):
            yield kernel, (), ()
        old = previous.kernels.get(place) if previous is not None else None
        if old is not None and arguments(kernel) and previous is not None:
            for features in _called_with(old):
                translated = _translate(version, previous, old, kernel, features)
                if translated is not None:
                    yield (kernel, *translated)


def _primal(kernel: Any) -> bool:
    return str(kernel.autodiff_mode).endswith("NONE")


def _called_with(kernel: Any) -> list[tuple[Any, ...]]:
    by_number = {number: features for features, number in kernel.mapper.mapping.items()}
    numbers = [key[1] for key in specialisations(kernel)]
    return [by_number[n] for n in reversed(numbers[-MOST:]) if n in by_number]


def _translate(
    version: TaichiVersion, previous: TaichiVersion, old: Any, new: Any, features: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """Turn the features of a call of the old kernel into those that the same call of the new one would have.

    Matched by parameter name; None when the new kernel wants something that the old call did not have.
    """
    known = {a.name: (a.annotation, f) for a, f in zip(arguments(old), features, strict=True)}
    made, values = [], []
    for argument in arguments(new):
        annotation, kind = argument.annotation, type(argument.annotation).__name__
        old_annotation, feature = known.get(argument.name, (None, _UNKNOWN))
        value: Any = None
        if kind in ("template", "Template"):
            value = feature() if isinstance(feature, weakref.ref) else feature
            if type(old_annotation) is not type(annotation) or value is _UNKNOWN or value is None:
                return None
            value = version.counterpart(previous, value)
            feature = weakref.ref(value) if isinstance(feature, weakref.ref) else value
            if type(value).__name__ == "SNode" or (isinstance(value, int) and abs(value) >= 1 << 31):
                return None  # an address: what it stood for is not known any more
        elif kind == "NdarrayType":
            if (
                type(old_annotation) is not type(annotation)
                or feature is _UNKNOWN
                or not _fits(annotation, old_annotation, feature)
            ):
                return None
            element, rank, grad, boundary, *more = feature
            grad = grad if annotation.needs_grad is None else annotation.needs_grad
            boundary = boundary if annotation.boundary == old_annotation.boundary else annotation.boundary
            feature = (element, rank, grad, boundary, *more)
        elif kind in _FEATURED:
            if type(old_annotation) is not type(annotation) or feature is _UNKNOWN:
                return None
        else:
            feature = "#"  # scalars, matrices and structs are told by their annotation alone
        made.append(feature)
        values.append(value)
    return tuple(made), tuple(values)


def _fits(new: Any, old: Any, feature: tuple[Any, ...]) -> bool:
    """Whether the array of an old call could be passed to the new annotation at all."""
    if new.ndim is not None and new.ndim != feature[1]:
        return False
    return (
        bool(new.dtype is None and old.dtype is None)
        or new.dtype == old.dtype
        or (new.dtype is not None and str(new.dtype) == str(old.dtype))
    )


def _compile(version: TaichiVersion, kernel: Any, features: Any, values: tuple[Any, ...]) -> None:
    package = version.package
    prepare_to_compile(package, kernel)
    mapping = kernel.mapper.mapping
    number = mapping.setdefault(tuple(features), len(mapping))
    key = (kernel.func, number, kernel.autodiff_mode)
    kernel.materialize(key, values, tuple(features))
    program = package.program
    program.compile_kernel(program.config(), program.get_device_caps(), specialisations(kernel)[key])
