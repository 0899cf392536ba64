"""The values: what a kernel is, before and after it is built. No I/O, nothing heavy."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

__all__ = ["Extent", "Kernel", "Parameter", "Slot"]

Extent = int | str | None
"""An extent of an array: fixed, named (equal wherever the name occurs), or free."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as the caller sees it.

    >>> print(Parameter("x", "array", dtype="float64", ndim=2, shape=("n", 3)))
    x: const float64[n, 3]
    """

    name: str
    """The name, as the user wrote it."""
    kind: str
    """``array``, ``scalar``, ``pointer``, ``template`` or ``other`` (matrices, structs, textures)."""
    type: str = ""
    """The type in NumPy's names, as it is shown: ``float64[:, :]``, ``int32``. Made from the rest when empty."""
    written: bool = False
    """True for an array that the kernel may write to."""
    dtype: str | None = None
    """NumPy's name of the element or scalar type; None where the language does not say. For records, the type that
    the function's pointer is declared with, or None for a struct."""
    ndim: int | None = None
    """The rank of an array; None for any. A written array of rank 0 also takes an array of one element."""
    shape: tuple[Extent, ...] = ()
    """One extent for each axis, or empty when all are free."""
    strides: tuple[int | str | None, ...] = ()
    """One stride for each axis in elements: fixed, named (equal wherever the name occurs), or None. Empty when all are
    free."""
    trailing: int = 0
    """How many trailing axes of fixed extent the caller may leave out."""
    order: str = "any"
    """``any`` strides; ``C`` for C-contiguous arrays only (raw pointers); ``free`` for any, where the function does not
    step along an axis whose stride it does not get. With ``any``, an array must be C-contiguous for such a function."""
    restrict: bool = False
    """Whether the text promises that no other argument overlaps this one."""
    group: int = 0
    """Two arrays of one group (unless 0), one of them written, may be one and the same array in spite of `restrict`:
    of both the kernel touches the same element at the same time."""
    margins: tuple[int, ...] = ()
    """How many ghost layers each axis has at either end, which the function counts neither in the pointer nor in the
    extent; or empty."""
    fields: tuple[tuple[str, str, int], ...] = ()
    """For arrays of records: name, dtype and byte offset of each field that the kernel uses."""
    itemsize: int = 0
    """For arrays of records: the size of one record in bytes."""

    def __post_init__(self) -> None:
        if not self.type:
            object.__setattr__(self, "type", self._shown())

    def _shown(self) -> str:
        element = self.dtype or ("record" if self.fields else "any")
        if self.kind == "scalar":
            return element
        const = "" if self.written else "const "
        if self.ndim is None:
            return f"{const}{element}*"
        extents = self.shape or (None,) * self.ndim
        return f"{const}{element}[{', '.join(':' if e is None else str(e) for e in extents)}]"

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class Slot:
    """One argument of a compiled function: what is derived from which parameter.

    ``Slot("stride", "x", axis=1)`` is the stride of the second axis of `x`, as an int64.
    """

    kind: str
    """``pointer``, ``shape``, ``stride`` (in elements) or ``scalar``."""
    parameter: str
    """The parameter's name."""
    axis: int = 0
    """Of which axis, for a shape or stride."""
    dtype: str = "int64"
    """The C type of a shape or stride, in NumPy's name. A pointer or scalar has its parameter's type."""
    field: str = ""
    """For arrays of records: the field that a pointer points to."""


@dataclass(frozen=True)
class Kernel:
    """A kernel as a value: name, parameters, the text it came from.

    What a loader finds in a text (`parse`, `KernelInfo.kernels`), and what a program makes that generates code:
    `CpuJit` and `CupyJit` compile it.

    >>> print(Kernel("fill", (Parameter("x", "array", dtype="float32", ndim=1, written=True),), "cpp"))
    fill(x: float32[:])
    """

    name: str
    """The name under which the module has it."""
    parameters: tuple[Parameter, ...]
    """In the order of a positional call."""
    language: str
    """A name of the table of languages."""
    code: str = ""
    """The text that is compiled."""
    doc: str | None = None
    """The kernel's own docstring."""
    returns: str | None = None
    """The type of the return value in NumPy's names, or None."""
    line: int | None = None
    """The line of the user's text on which the kernel begins."""
    slots: tuple[Slot, ...] = ()
    """The arguments of the compiled function, in its order; empty where another tool compiles."""
    function: str = ""
    """The name of the compiled function, where it is not `name`."""
    headers: tuple[str, ...] = ()
    """Headers that the code needs and does not include itself: ``<cmath>``, ``"x.h"``."""
    policy: str = "python"
    """What a wrong call raises: ``python`` (TypeError in Python's wording) or ``pystencils`` (keyword only,
    KeyError for a missing one, unknown ones ignored)."""
    openmp: bool = False
    """Whether the code uses OpenMP."""

    @property
    def signature(self) -> inspect.Signature:
        """The signature for `inspect.signature` and for help in a notebook."""
        by_name = self.policy == "pystencils"
        kind = inspect.Parameter.KEYWORD_ONLY if by_name else inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(p.name, kind, annotation=p.type) for p in self.parameters],
            return_annotation=inspect.Signature.empty if self.returns is None else self.returns,
        )

    def __str__(self) -> str:
        returns = f" -> {self.returns}" if self.returns else ""
        return f"{self.name}({', '.join(map(str, self.parameters))}){returns}"
