"""`rekernel.view`: what a user calls to see a field live, and what each argument means."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from rekernel.handle import KernelHandle
from rekernel.notebook.used import Function, record_of
from rekernel.notebook.widget import FieldView, Target

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader


def view(
    field: Any, step: Function | None = None, *,
    kernel: str | ModuleType | KernelHandle | Sequence[Any] | None = None, loader: KernelLoader | None = None,
    limits: tuple[float, float] | None = None, colours: Any = "ember", size: int = 512, speed: float | None = None,
    fps: float = 30, play: bool = False,
) -> FieldView:  # fmt: skip
    """Show a field as a live picture in a notebook, which steps while you edit the kernels.

    `field`: a two-dimensional array of NumPy or CuPy, a Taichi field or ndarray, or a function that returns one (so
    that two buffers can be swapped); an array of shape (rows, columns, 3) is shown as an image. Row 0 is on top.
    `step`: a function without arguments that does one step, in the kernel's thread between the cells. Defining a
    function of the same name again replaces it.

    `kernel`: the ids, modules or handles whose versions are listed; without it, those that `step` and `field` use.
    `loader`: where ids are looked up, `rekernel.kernels` if not given. `limits`: the values of the first and the
    last colour; without them the extremes of each picture. `colours`: ``ember``, ``balance``, ``grey``, a table of
    RGB rows, or a colour map of Matplotlib; NaN and infinities are green. `size`: the longer side on the page, in
    pixels. `speed`: steps a second at most; `fps`: pictures a second at most. `play=True` starts at once.

    A step that raises pauses the picture and shows the error; the next good load goes on by itself. Raises
    ToolchainError where ``rekernel[notebook]`` is not installed, ValueError or TypeError for a field that is no
    picture.

    >>> import numpy as np
    >>> a = np.zeros((64, 64))
    >>> def step():
    ...     a[32, 32] += 1
    >>> w = view(a, step)  # in a notebook, as the last line of a cell: w
    >>> w.advance(3)
    >>> w
    <view of 64 x 64, 3 steps, paused; a notebook shows it live, here: advance(steps), png()>
    >>> w.close()
    """
    if step is not None and not callable(step):
        raise TypeError(f"step is a function without arguments; got {type(step).__name__}")
    if isinstance(step, KernelHandle) and step.parameters:
        names = ", ".join(parameter.name for parameter in step.parameters)
        raise TypeError(
            f"step is called without arguments, and {step.__name__} takes some; lambda: {step.__name__}({names})"
        )
    if limits is not None and not (np.shape(limits) == (2,) and limits[0] < limits[1]):
        raise ValueError(
            f"limits are two numbers, the lower one first, or None for the field's extremes; got {limits!r}"
        )
    for name, value in (("size", size), ("fps", fps), ("speed", speed)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} is a number above 0; got {value!r}")
    return FieldView(
        field, step, kernels=_named(kernel, loader), limits=limits, colours=colours, size=size, speed=speed, fps=fps,
        play=play,
    )  # fmt: skip


def _named(kernel: Any, loader: KernelLoader | None) -> list[Target] | None:
    """What the user names, as loaders and ids."""
    if kernel is None:
        return None
    from rekernel.default import kernels as default

    named: list[Target] = []
    for one in kernel if isinstance(kernel, list | tuple) else [kernel]:
        live = record_of(one)
        if isinstance(one, str):
            found = loader or default
            found[one]  # an unknown id is the user's mistake now, not a picture without versions later
            named.append((found, one))
        elif live is not None and (its := live.loader()) is not None:
            named.append((its, live.kernel_id))
        else:
            raise TypeError(f"kernel is an id, or a module or kernel that a loader gave out; got {type(one).__name__}")
    return named
