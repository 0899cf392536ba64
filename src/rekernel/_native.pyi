"""The call path of rekernel, in C++.

Three kinds of objects stand between a user's call and the code of a kernel::

    Handle  ->  Cell.table[index]  ->  Guard     ->  a kernel that Python calls
    (held)      (swapped)          ->  Function  ->  code in a Library
                                       (checks)

A `Handle` never changes and follows its `Cell`; `swap` exchanges what any number of cells refer to, at once;
a `Guard` checks arguments against a parameter table; a `Function` does so, too, and runs compiled code itself.
An `Overloads` stands before several functions of one name and chooses one of them.
A `CudaKernel` is to a CUDA device what a Function is to the CPU; a `Launch` is a handle with its launch grid.
All are safe to use from any thread.
"""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Final, Protocol, TypeAlias, final

from typing_extensions import Buffer

class _Lock(Protocol):
    def acquire(self) -> object: ...
    def release(self) -> object: ...

_Table: TypeAlias = tuple[Callable[..., Any] | None, ...]
_Parameter: TypeAlias = tuple[
    str, int, int | float | None, int | float | None, int, int, bool, str, Callable[[Any], Any] | None
]

ANY: Final = 0
"""Kind of a parameter that is passed on untouched."""

INT: Final = 1
"""Kind of an integer parameter.

Takes Python ints, NumPy integer scalars (both passed on as they are), NumPy bools, 0-d arrays of integers or
bools and objects with `__index__` (all three become Python ints), if the value is between `low` and `high`,
both included.
"""

FLOAT: Final = 2
"""Kind of a floating parameter.

Takes Python ints and floats (passed on as they are), NumPy real scalars and bools and 0-d arrays of them
(these become Python floats; numpy.float64 is one). A finite value whose magnitude reaches `high` is refused;
infinities and NaN pass.
"""

ARRAY: Final = 3
"""Kind of an array parameter.

A NumPy array must match `typenum` and `ndim`, be in native byte order, aligned, C- or Fortran-contiguous and,
if `written`, writeable. None, numbers and text are refused. Other objects (device arrays, tensors) are passed
on.
"""

CHECK: Final = 5
"""Kind of a parameter whose value becomes `check(value)`."""

@final
class Cell:
    """The one mutable reference of a kernel id."""

    hook: Callable[[Handle], Callable[..., Any]] | None
    """Asked for something to call where the table has nothing; may raise."""

    override: bool
    """When True, every call asks the hook first. False in a new cell."""

    def __new__(cls) -> Cell: ...
    @property
    def table(self) -> _Table | None:
        """The callables of the current version by index, or None. Changed by `swap` only."""

    @property
    def version(self) -> Any:
        """The current version: any object, or None. Changed by `swap` only."""

class Handle:
    """A callable that calls entry `index` of its cell's table.

    The target is looked up once, when a call begins; a swap meanwhile changes later calls only. Where the
    table has no such entry, or `cell.override` is set, `cell.hook(handle)` returns what to call; without a
    hook that is a RuntimeError. A subclass that gets no new `__call__` should be passed to `seal`.
    """

    def __new__(cls, cell: Cell, index: int, name: str) -> Handle: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the current target with the same arguments."""

    def __getitem__(self, launch: Any, /) -> Launch:
        """Return the kernel with a launch grid; see `Launch`.

        If the current target is no CUDA kernel: what ``self._refuse_launch()`` raises, or a TypeError. A target that
        only the hook knows is looked at when the launch is called.
        """

    @property
    def _cell(self) -> Cell:
        """The cell that this handle follows."""

    @property
    def _index(self) -> int:
        """The place of this kernel in the cell's table."""

    @property
    def _name(self) -> str:
        """The name of the kernel."""

    @property
    def calls(self) -> int:
        """How many calls found a target and were begun."""

    @property
    def failures(self) -> int:
        """How many of these calls raised."""

    _timed: bool
    """Whether calls are timed. To switch it on begins anew; to switch it off keeps what was measured."""

    @property
    def _times(self) -> tuple[int, float, float, float, float, float, float] | None:
        """``(count, total, min, p50, p95, p99, max)`` of the timed calls that returned, in seconds; None before one.

        A percentile is off by at most 1/32 of itself. Calls are counted in buckets, so the room does not grow.
        """

@final
class Guard:
    """A callable that checks its arguments and then calls `call` with positional arguments only.

    `parameters` is read once. Each row is a tuple (a NamedTuple will do) of

    - `name`;
    - `kind`: one of ANY, INT, FLOAT, ARRAY, CHECK;
    - `low`, `high`: the range of an INT; `high` alone is the limit of a FLOAT, or None for no limit;
    - `typenum`, `ndim`: of an ARRAY, -1 for any;
    - `written`: True where the kernel writes to an ARRAY;
    - `expected`: the type as messages tell it;
    - `check`: the function of a CHECK, else None.

    A malformed row raises TypeError or ValueError.

    One call does, in this order:

    1. bind arguments to names; TypeError in Python's wording;
    2. check and convert them one by one; see `configure` for the exceptions;
    3. `lock.acquire()`, which must not return without the lock;
    4. if `stale` is given, and `runtime`, an (object, str, str), no longer leads to `program`, or the
       process has been forked since (`note_fork`): `stale(guard)`, which raises, returns another callable for
       this one call, or returns None to go on;
    5. the call itself;
    6. `lock.release()`, whatever happened;
    7. if the call raised, but not KeyboardInterrupt or SystemExit, and `failed` is given: its
       `failed(guard, exception, args)` takes the place of the call; `args` are the converted arguments.
    """

    program: Any
    """What `runtime` has to lead to, compared by identity."""

    def __new__(
        cls,
        call: Callable[..., Any],
        name: str,
        parameters: tuple[_Parameter, ...],
        *,
        owner: Any = None,
        runtime: tuple[Any, str, str] | None = None,
        program: Any = None,
        lock: _Lock | None = None,
        stale: Callable[[Guard], Callable[..., Any] | None] | None = None,
        failed: Callable[[Guard, BaseException, tuple[Any, ...]], Any] | None = None,
    ) -> Guard: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments and call."""

    @property
    def call(self) -> Callable[..., Any]:
        """What is called once all checks have passed."""

    @property
    def name(self) -> str:
        """The name of the kernel, for messages."""

    @property
    def owner(self) -> Any:
        """Whatever the guard was made with."""

    @property
    def stale(self) -> Callable[[Guard], Callable[..., Any] | None] | None:
        """Asked when the program has changed or the process was forked."""

    @property
    def failed(self) -> Callable[[Guard, BaseException, tuple[Any, ...]], Any] | None:
        """Asked when `call` has raised."""

_ScalarRow: TypeAlias = tuple[str, str, str, str]
_ArrayRow: TypeAlias = tuple[
    str,
    str,
    str,
    str,
    int,
    int,
    tuple[int | str | None, ...],
    tuple[int | str | None, ...],
    int,
    bool,
    bool,
    bool,
    tuple[tuple[str, str, int], ...],
    int,
    tuple[int, ...],
]
_FunctionParameter: TypeAlias = _ScalarRow | _ArrayRow
_FunctionSlot: TypeAlias = tuple[str, int, int, int, str]

@final
class Library:
    """Compiled code in memory, until the last reference to it goes.

    `data` is a shared object (any bytes-like object). It becomes a file in memory that no name leads to, so
    nothing on disk can change or break it, and equal data loaded twice are two independent copies. Where there
    are no files in memory it is a private temporary file, removed at once. With `path` that file is loaded
    instead and `data` is not looked at; a path that is loaded already gives the code of then.

    Raises OSError with the text of the dynamic loader.
    """

    def __new__(cls, data: Buffer | None, *, name: str, path: str | PathLike[str] | None = None) -> Library: ...
    def symbol(self, name: str, /) -> int:
        """Return the address of a symbol; OSError if there is none."""

    @staticmethod
    def hold_open(names: Sequence[str], /) -> None:
        """Keep these shared libraries (``libstdc++.so.6``) in memory until the process ends.

        Otherwise unloading the last kernel that uses one would unload it as well. Raises OSError at the first
        that cannot be loaded.
        """

    @property
    def name(self) -> str:
        """The name, for messages."""

    @property
    def path(self) -> str | PathLike[str] | None:
        """The file that was loaded, or None."""

@final
class Function:
    """A compiled kernel: a callable that checks its arguments and runs the code at `symbol` of the library.

    `parameters` and `slots` are plain tuples, made by `rekernel.jit.calltable.rows` and read once. A row of
    `parameters` is ``(name, 'scalar', type, dtype)`` or ``(name, 'array', type, dtype, itemsize, ndim, shape,
    strides, trailing, contiguous, written, restrict, fields)``:

    - `type`: the type as messages tell it;
    - `dtype`: of the scalar or element, by NumPy's name; empty for records;
    - `ndim`: -1 for any; `shape`: an int, a name or None for each axis, or empty; `strides`: in items, an int
      or None for each axis, or empty;
    - `trailing`: how many axes at the end may be left out; only those of extent 1 really can;
    - `fields`: of records: (name, dtype, offset in bytes).

    A row of `slots` is ``(kind, parameter, axis, offset, dtype)``: ``pointer`` (plus `offset` bytes), ``shape``
    or ``stride`` (in items) of an axis, ``scalar``; `parameter` is an index, `dtype` the integer type that a
    shape or stride has to fit. A malformed row raises ValueError.

    One call does, in this order:

    1. bind arguments to names. Policy ``python``: TypeError in Python's wording; ``pystencils``: keywords only,
       KeyError for a missing one, unknown ones are ignored;
    2. convert scalars and open arrays that are not NumPy's, by the buffer protocol or by DLPack;
    3. check the arrays, and that none overlaps a `restrict` one if either is written;
    4. run the code, without the GIL if `nogil` is True, or if it is None and the arrays together hold 16,384
       elements or more; the floating-point environment stays as it was;
    5. raise what the code reports (RuntimeError for a C++ exception, IndexError, ZeroDivisionError,
       AssertionError), else return the result as a Python number, or None.

    `filename` and `first_line` say where the code's text is, for the lines that the code reports.

    Wrong arguments raise the exceptions of `configure`. With `openmp`, a process that was forked after its
    parent had run such a kernel gets a RuntimeError. Nothing of a call is kept after it.
    """

    def __new__(
        cls,
        library: Library,
        symbol: str,
        name: str,
        parameters: tuple[_FunctionParameter, ...],
        slots: tuple[_FunctionSlot, ...],
        *,
        returns: str | None = None,
        policy: str = "python",
        nogil: bool | None = None,
        kernel_id: str | None = None,
        openmp: bool = False,
        filename: str | None = None,
        first_line: int = 1,
    ) -> Function: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments and run the code."""

    @property
    def name(self) -> str:
        """The name of the kernel, for messages."""

    @property
    def __name__(self) -> str:
        """The name of the kernel."""

    @property
    def library(self) -> Library:
        """The library that holds the code."""

    @property
    def kernel_id(self) -> str | None:
        """Told with the name where the code itself fails."""

    @property
    def calls(self) -> int:
        """How many calls were begun."""

    @property
    def failures(self) -> int:
        """How many of these calls raised."""

@final
class Overloads:
    """Several compiled kernels of one name: the arguments choose which one runs.

    `functions` are `Function` objects, or all of them `CudaKernel` objects; those take a launch grid in brackets.
    `signatures` are texts for messages, one for each function: ``axpy(y: float32[:], a: float32)``. Raises
    ValueError where there is no function, or not as many signatures.

    One call does, in this order:

    1. leave out the functions that cannot be bound to the arguments, by count and names. If one is left it is
       called; if none is, that is a TypeError, in Python's wording where all functions would say the same;
    2. leave out those whose arrays do not match. The dtype must be the very same, in any byte order; so must
       the rank, but a parameter that takes other ranks, too, is used where no function has the exact one.
       Whatever a `Function` takes for an array is one: it is opened for the choice, and again for the call;
    3. take the function whose numbers are nearest: NumPy's of exactly the type; then the same kind, the widest
       first (and signed before unsigned for Python's ints); then what a `Function` would convert, by kind: bool,
       int, float, complex. A type that is too small for the value comes last. Of equals the first is taken;
    4. call it. It makes all its checks anew, so an array in foreign byte order, a read-only one, or a number that
       is too large for all types is refused in the function's own words.

    If nothing matches, the class `argument_type_error` of `configure` is raised, with `argument` None; its text
    lists the types of the arguments and the signatures. Nothing of a call is kept after it.

    ::

        axpy = Overloads((axpy_f4, axpy_f8), "axpy", signatures=("axpy(y: float32[:])", "axpy(y: float64[:])"))
        axpy(np.zeros(3))  # runs axpy_f8
        axpy(np.zeros(3, "i4"))  # ArgumentTypeError: axpy: no overload takes (int32[:]); there are: ...
    """

    def __new__(
        cls, functions: tuple[Function, ...] | tuple[CudaKernel, ...], name: str, *, signatures: tuple[str, ...]
    ) -> Overloads: ...
    def __getitem__(self, launch: Any, /) -> Launch:
        """Return them with a launch grid; see `Launch`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Choose a function and call it with the same arguments."""

    @property
    def name(self) -> str:
        """The name of the kernels, for messages."""

    @property
    def __name__(self) -> str:
        """The name of the kernels."""

    @property
    def functions(self) -> tuple[Function, ...] | tuple[CudaKernel, ...]:
        """The functions, in the order given."""

    @property
    def calls(self) -> int:
        """How many calls were begun. Those that reached a function are counted there, too."""

    @property
    def failures(self) -> int:
        """How many of these calls raised."""

_Extents: TypeAlias = tuple[int, int, int]
_Shapes: TypeAlias = tuple[tuple[int, ...], ...]
_Resolved: TypeAlias = tuple[int, int, Callable[[], object] | None]

@final
class CudaDriver:
    """The driver library of CUDA, and what it was asked to launch last. Make one and keep it.

    `path`: None for ``libcuda.so.1``. The library stays in memory until the process ends; making a CudaDriver calls
    nothing of it. Raises OSError with the text of the dynamic loader.
    """

    def __new__(cls, path: str | PathLike[str] | None = None) -> CudaDriver: ...
    @property
    def path(self) -> str | PathLike[str]:
        """The library that was opened."""

    def launches(self) -> tuple[tuple[str | None, str, int, int, _Extents, _Extents, int], ...]:
        """Return the last 16 launches, the latest last.

        Each is (kernel_id, name, version, device, grid, block, stream).
        """

    def dead(self, device: int, /) -> str | None:
        """Return why nothing can run on the device any more in this process, or None.

        That is so after an error that ends CUDA's context (an illegal address, a failed assertion, a time-out): every
        launch there raises this text at once.
        """

    def failed(self, device: int, code: int, what: str, /) -> str:
        """Return the words for an error of the driver: ``what: CUDA_ERROR_...``; and note a device that it ended."""

@final
class CudaKernel:
    """A compiled kernel for a CUDA device: it checks its arguments and launches.

    `parameters`, `slots`, `policy` and `kernel_id` are those of a `Function`. `arguments` says how many slots each
    parameter of the device's function takes, in order: several slots of one array, of 64 bits each, are one struct
    (``rekernel::Array``: pointer, extents, strides), a single one is passed as it is. None: one slot each.

    - ``resolve(device)`` returns (function, context, captured): the addresses of the kernel's CUfunction and of the
      device's primary context. It is called once for each device, when the kernel is first launched there. If a launch
      is captured into a graph, ``captured()`` is called before it, once for each device; None for nothing.
    - ``grid(shapes, scalars)`` returns (grid, block, shared_bytes) for a call without brackets: the shapes of the
      arrays, in order, and the values of the scalars, None for those that are no integers. Its answers are kept by
      these values, unless they have a fourth item, False. None: the kernel needs brackets.
    - ``checked(device, stream)`` is called after each launch, if given; what it raises the call raises.
    - `errors`: the class raised, with one message, for errors of the driver.

    One call does, in this order:

    1. bind arguments to names, and convert scalars, as a `Function` does;
    2. look at the arrays: CuPy's and PyTorch's, ``__cuda_array_interface__``, DLPack. One in host memory is an
       `argument_type_error` that says how to move it; arrays of two devices, a tensor that requires a gradient and is
       written, and one with a conj or neg bit are an `argument_value_error`;
    3. choose the device: that of the arrays, else CuPy's current one; and the stream: that of the brackets, else
       PyTorch's current one if a tensor is among the arguments, else CuPy's current one;
    4. check the arrays, as a `Function` does;
    5. launch, unless an extent of the grid is 0, after work that was begun on the streams of the arrays' interfaces. It
       waits for nothing, allocates nothing on the device and leaves the thread's context as it was. The GIL is
       released meanwhile, because the driver waits where its queue is full.

    Returns None. Nothing of a call is kept after it.

    ::

        kernel = CudaKernel(driver, "step", *rows(value), resolve=lambda device: (function, context, None))
        kernel[(4, 1), 256](y, x, 0.5)
    """

    def __new__(
        cls,
        driver: CudaDriver,
        name: str,
        parameters: tuple[_FunctionParameter, ...],
        slots: tuple[_FunctionSlot, ...],
        *,
        resolve: Callable[[int], _Resolved],
        errors: type[BaseException] = ...,
        policy: str = "python",
        kernel_id: str | None = None,
        version: int = 0,
        grid: Callable[[_Shapes, tuple[int | None, ...]], tuple[Any, Any, int] | tuple[Any, Any, int, bool]]
        | None = None,
        arguments: tuple[int, ...] | None = None,
        checked: Callable[[int, int], object] | None = None,
    ) -> CudaKernel: ...
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch with the kernel's own grid; without one, a TypeError that shows the brackets."""

    def __getitem__(self, launch: Any, /) -> Launch:
        """Return the kernel with a launch grid; see `Launch`."""

    @property
    def name(self) -> str:
        """The name of the kernel, for messages."""

    @property
    def __name__(self) -> str:
        """The name of the kernel."""

    @property
    def kernel_id(self) -> str | None:
        """Told where a launch fails."""

    @property
    def version(self) -> int:
        """Told where a launch fails."""

    @property
    def driver(self) -> CudaDriver:
        """The driver that launches it."""

    @property
    def calls(self) -> int:
        """How many calls were begun."""

    @property
    def failures(self) -> int:
        """How many of these calls raised."""

@final
class Launch:
    """A kernel with its launch grid, made by ``kernel[grid, block, stream, shared_bytes]``; calling it launches.

    `target`: a `Handle`, which is followed through reloads, a `CudaKernel` or an `Overloads` of them. `grid` and
    `block`: an int or up to three, in the order x, y, z. ``kernel[launch_grid]``, ``kernel[launch_grid, stream]`` and
    so on take an object with the attributes `grid` and `block` (`rekernel.LaunchGrid`) for both.

    `stream`: the address of a stream as an int (0: the default stream), an object with ``ptr`` (CuPy), ``cuda_stream``
    (PyTorch), ``__cuda_stream__()`` or ``handle`` (Numba), which is kept; None: chosen at each call.

    Raises the `argument_type_error` or `argument_value_error` of `configure` for wrong types and for what is beyond a
    limit of CUDA; TypeError for brackets of another form.
    """

    def __new__(
        cls, target: Handle | CudaKernel | Overloads, grid: Any, block: Any, stream: Any = None, shared_bytes: int = 0
    ) -> Launch: ...
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Check the arguments and launch."""

    @property
    def target(self) -> Handle | CudaKernel | Overloads:
        """The handle or kernel that is launched."""

    @property
    def grid(self) -> _Extents:
        """How many blocks there are along x, y and z."""

    @property
    def block(self) -> _Extents:
        """How many threads a block has along x, y and z."""

    @property
    def stream(self) -> Any:
        """The stream that was given, or None."""

    @property
    def shared_bytes(self) -> int:
        """The dynamic shared memory of a block."""

def swap(changes: Iterable[tuple[Cell, _Table | None, Any]], /) -> list[tuple[_Table | None, Any]]:
    """Give each cell its new (table, version), all at once; return what they held before.

    Everything is validated first: on TypeError nothing has changed. No Python code runs between the first
    change and the last, so no other thread sees some of them only.
    """

def seal(cls: type[Handle], /) -> None:
    """Make calls of a Handle subclass as fast as those of Handle, and the class immutable.

    Raises TypeError unless `cls` is such a class, neither it nor a class between the two defines `__call__`,
    and all its bases are immutable already.
    """

def configure(
    *,
    argument_type_error: type[BaseException] | None = None,
    argument_value_error: type[BaseException] | None = None,
) -> None:
    """Set the exception classes that guards and functions raise; None stands for TypeError and ValueError.

    A class is called as `cls(message, argument=name, expected=text, got=text)`; the built-in ones get the
    message alone.
    """

def note_fork() -> None:
    """Tell all guards that this process is a forked child; for `os.register_at_fork(after_in_child=...)`."""

def fork_generation() -> int:
    """How often `note_fork` was called on the way to this process."""
