"""``rekernel bench``: time a kernel over sizes, beside a copy of as many bytes."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.commands import CommandError, UsageError, console, dump, existing, subcommand, table, texts, whole
from rekernel.commands.example import CannotGuessError, rank
from rekernel.commands.timing import Given, Measured, arguments_for, bytes_of, measure, seconds_said, sizes_for, value

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.kernel import Kernel

__all__ = ["add"]

_SMALL = 8
"""Extent of the arrays of a call that does next to nothing."""


def add(subparsers: Subparsers) -> None:
    """Add the subcommand."""
    parser = subcommand(
        subparsers, "bench", _run,
        help="time a kernel over sizes",
        description="Time a kernel over sizes. Arrays are made from its signature, with n elements along each free\n"
        "axis and values from 0 to 1 (integers: 0); floating-point numbers are 0.5. What could read beyond an\n"
        "array is never guessed: raw pointers have no size, and integers may be extents. GB/s counts the bytes\n"
        "of each array argument once; the copy beside it reads and writes as many bytes in one thread.",
    )  # fmt: skip
    parser.add_argument("kernel", metavar="FILE[:KERNEL]", help="a text, and which kernel if it has several")
    parser.add_argument("--sizes", metavar="N,N,...", help="extents n of the arrays: 256,1024 or 1e3,1e6")
    parser.add_argument(
        "--arg", action="append", default=[], metavar="NAME=EXPR",
        help="an argument as a Python expression of n and np: --arg k=0.1 --arg 'x=np.ones(n*n)' --arg n=n",
    )  # fmt: skip
    parser.add_argument("--threads", type=whole(1), help="OpenMP threads (OMP_NUM_THREADS)")
    parser.add_argument("--seconds", type=float, default=0.4, help="time for each size (default: %(default)s)")
    parser.add_argument("--launch", metavar="EXPR", help="GPU: grid and block, such as 'LaunchGrid.cover((n, n))'")
    texts.add_load_arguments(parser)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.threads:
        os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # before the runtime is loaded, which reads it once
    from rekernel.loader import KernelLoader

    path, name = _named(arguments.kernel)
    sizes, given = _sizes(arguments.sizes), [_given(text) for text in arguments.arg]
    text = texts.one(path, arguments)
    with KernelLoader() as loader:
        module = texts.loaded(loader, text)
        info = loader.info(text.kernel_id)
        kernels = _chosen(info.kernels, name, path)
        gpu = text.language.name == "cuda"
        bench = _Bench(getattr(module, kernels[0].name), kernels, given, gpu, arguments.launch)
        rows = []
        for n in sizes or sizes_for(max([rank(p) or 1 for p in bench.arrays], default=0)):
            try:
                rows.append(bench.row(n, arguments.seconds))
            except CommandError as error:
                if sizes or not rows:
                    raise
                print(f"stopped at n = {n}: {error}", file=sys.stderr)  # nobody has asked for this size
                break
        overhead = bench.overhead(arguments.seconds)
    _tell(arguments.json, f"{path}:{kernels[0].name}", str(bench.kernel), rows, overhead)
    return 0


class _Bench:
    """A kernel and where its arguments come from."""

    def __init__(
        self, handle: Any, kernels: Sequence[Kernel], given: Sequence[Given], gpu: bool, launch: str | None
    ) -> None:
        import numpy

        import rekernel

        self.handle, self.given = handle, given
        self.launch = None if launch is None else _code(launch, "--launch")
        self.kernel = kernels[0]
        if len(kernels) > 1:  # overloads: the one whose parameters are named
            names = {one.name for one in given}
            self.kernel = next((k for k in kernels if names <= {p.name for p in k.parameters}), kernels[0])
        self.arrays = [p for p in self.kernel.parameters if p.kind not in ("scalar", "template", "other")]
        known = [p.name for p in self.kernel.parameters]
        if unknown := [one.name for one in given if one.name not in known]:
            raise UsageError(f"{self.kernel.name} has no parameter {unknown[0]!r}; it has {', '.join(known) or 'none'}")
        self.xp: Any = numpy
        self.wait: Callable[[], object] = lambda: None
        if gpu and launch is None:
            raise UsageError("a CUDA kernel is launched on a grid: give --launch, such as 'LaunchGrid.cover(n)'")
        if gpu:
            self.xp, self.wait = _gpu()
        self.names: Mapping[str, Any] = {"np": numpy, "math": math, "xp": self.xp, "LaunchGrid": rekernel.LaunchGrid}

    def call(self, n: int) -> tuple[Callable[[], object], dict[str, Any]]:
        """Return a call of the kernel with arguments of a size, and these."""
        try:
            values = arguments_for(self.kernel.parameters, n, self.given, self.names, self.xp)
        except CannotGuessError as error:
            example = " ".join(f"--arg {p.name}={_proposal(p)}" for p in self.kernel.parameters if _open(p, self.given))
            raise CommandError(
                f"{self.kernel.name} needs arguments that its signature does not tell:\n{error}",
                f"give them as expressions of n, such as: {example}",
            ) from None
        handle = self.handle
        if self.launch is not None:
            handle = handle[value(self.launch, "--launch", {**self.names, "n": n})]
        if self.kernel.policy == "pystencils":
            return partial(handle, **values), values
        return partial(handle, *values.values()), values

    def row(self, n: int, seconds: float) -> Measured:
        """Time one size."""
        try:
            call, values = self.call(n)
            return measure(call, n, values, self.xp, self.wait, seconds)
        except CommandError:
            raise
        except MemoryError as error:
            raise CommandError(f"there is not enough memory for n = {n}: {error}", "give smaller --sizes") from None
        except Exception as error:
            raise CommandError(
                f"{self.kernel} refuses the arguments for n = {n}: {error}",
                "give those that it takes: --arg NAME=EXPR, such as --arg 'x=np.ones((n, 3))'",
            ) from None

    def overhead(self, seconds: float) -> float | None:
        """Return the seconds of a call with arrays of a few elements, or None where such a call is not possible."""
        try:
            call, values = self.call(_SMALL)
            return measure(call, _SMALL, values, self.xp, self.wait, seconds).min_seconds if bytes_of(values) else None
        except CommandError:
            return None
        except Exception:  # too small for this kernel, by its own or by the user's account
            return None


def _gpu() -> tuple[Any, Callable[[], object]]:
    """Return CuPy, and what waits for the device. ToolchainError says what is missing."""
    from rekernel.cuda import devices, missing

    devices.devices()
    try:
        import cupy
    except Exception as error:
        raise missing.cupy(error) from error
    return cupy, cupy.cuda.runtime.deviceSynchronize


def _named(text: str) -> tuple[Path, str]:
    """Take ``FILE:KERNEL`` apart; a file whose own name has a colon is taken whole."""
    path, colon, name = text.rpartition(":")
    if not colon or os.path.exists(text):
        path, name = text, ""
    try:
        return existing(path), name
    except argparse.ArgumentTypeError as error:
        raise UsageError(str(error)) from None


def _chosen(kernels: Sequence[Kernel], name: str, path: Path) -> list[Kernel]:
    names = list(dict.fromkeys(kernel.name for kernel in kernels))
    if not name and len(names) == 1:
        name = names[0]
    found = [kernel for kernel in kernels if kernel.name == name]
    if found:
        return found
    choice = ", ".join(f"{path}:{one}" for one in names) or "none"
    raise UsageError(f"{path} has no kernel {name!r}; it has {choice}" if name else f"which kernel? {choice}")


def _sizes(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        found = [int(float(word)) for word in text.split(",") if word.strip()]
    except (ValueError, OverflowError):
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"--sizes takes numbers such as 256,1024 or 1e3,1e6, not {text!r}")
    return found


def _given(text: str) -> Given:
    name, equals, expression = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise UsageError(f"--arg takes NAME=EXPR, such as k=0.1, not {text!r}")
    return Given(name.strip(), expression, _code(expression, "--arg"))


def _code(expression: str, option: str) -> Any:
    try:
        return compile(expression.strip(), option, "eval")
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{option} {expression!r} is no Python expression: {error}") from None


def _open(parameter: Any, given: Sequence[Given]) -> bool:
    from rekernel.commands.example import example

    if any(one.name == parameter.name for one in given):
        return False
    try:
        example(parameter, 1)
    except CannotGuessError:
        return True
    return False


def _proposal(parameter: Any) -> str:
    if parameter.kind == "scalar":
        return "n" if parameter.name.lower() in ("n", "size", "count", "length", "len") else "1"
    return f"'np.ones(n, \"{parameter.dtype}\")'" if parameter.dtype else "..."


def _tell(as_json: bool, name: str, signature: str, rows: Sequence[Measured], overhead: float | None) -> None:
    if as_json:
        listed = [row.document() for row in rows]
        dump({"kernel": name, "signature": signature, "rows": listed, "overhead_seconds": overhead})
        return
    made = table(">n", ">bytes", ">min", ">median", ">GB/s", ">copy GB/s", ">of copy")
    for row in rows:
        speed, copy = row.bandwidth, row.copy_bandwidth
        made.add_row(
            f"{row.n:,}", f"{row.bytes:,}", seconds_said(row.min_seconds), seconds_said(row.median_seconds),
            f"{speed / 1e9:.2f}" if speed else "-", f"{copy / 1e9:.2f}" if copy else "-",
            f"{speed / copy:.0%}" if speed and copy else "-",
        )  # fmt: skip
    out = console()
    out.print(signature, style="bold", soft_wrap=True)
    out.print(made)
    if overhead is not None:
        out.print(f"a call with arrays of {_SMALL} elements along each axis takes {seconds_said(overhead)}")
