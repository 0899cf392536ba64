"""Runs one example in a process of its own and writes down what it left behind.

``python driver.py ROW MODE OUT [STATE]``, where ROW is the id of a row and MODE one of

- ``direct``: the text is a file, imported the plain way, and run to the end;
- ``loaded``: the same text goes through ``rekernel.KernelLoader`` as a string;
- ``until``: direct, to the step of the change; STATE receives the state, then the run goes on unchanged;
- ``after``: the changed text, direct; STATE is put in, and the remaining steps run;
- ``reloaded``: one loader: the original text, the first steps, the changed text, the remaining steps.

OUT receives every array that module-level names lead to (fields, gradients, members of structs, attributes of
instances of the text's classes, lists, numbers), a digest of every drawing call, and one of every file that the
program wrote.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from taichi.lang._ndarray import Ndarray
from taichi.lang.field import ScalarField
from taichi.lang.matrix import Matrix, MatrixField
from taichi.lang.struct import StructField

from programs import headless
from programs.catalogue import BY_ID
from programs.row import Row, Swap, original_text, swap_texts

FIELDS = (ScalarField, MatrixField)


def state_names(text: str) -> tuple[list[str], set[str]]:
    """The names that the text binds at module level, but not to a definition, and those of its classes."""
    names: dict[str, None] = {}
    classes: set[str] = set()
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(text), True)]
    while todo:
        node, top = todo.pop(0)
        if isinstance(node, ast.Global):
            names.update(dict.fromkeys(node.names))
        elif top and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif top and isinstance(node, ast.ClassDef):
            classes.add(node.name)
        inner = top and not isinstance(
            node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)
        )
        todo += [(child, inner) for child in ast.iter_child_nodes(node)]
    return list(names), classes


def is_plain(value: object) -> bool:
    """Whether a value is numbers and nothing else, so that it can be compared as one array."""
    if isinstance(value, np.ndarray):
        return value.dtype != object
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(entry, (int, float)) for entry in value)
    return isinstance(value, (Ndarray, Matrix, bool, int, float, np.generic))


def holders(path: str, value: object, classes: set[str], depth: int = 3) -> Iterator[tuple[str, object]]:
    """Everything below ``value`` that holds numbers, each with the path that leads to it."""
    inside: list[tuple[str, object]] = []
    if isinstance(value, StructField):
        inside = [(f"{path}.{key}", value.get_member_field(key)) for key in value.keys]
    elif isinstance(value, FIELDS):
        yield path, value
        for kind in ("grad", "dual"):
            # Every field of real numbers has these two; they have memory only if the program asked for it.
            twin = getattr(value, kind, None)
            if twin is not None and twin.snode.ptr is not None:
                yield f"{path}.{kind}", twin
    elif is_plain(value):
        yield path, value
    elif isinstance(value, (list, tuple)):
        inside = [(f"{path}[{i}]", entry) for i, entry in enumerate(value)]
    elif isinstance(value, dict):
        inside = [(f"{path}[{key}]", entry) for key, entry in value.items()]
    elif type(value).__name__ in classes:
        inside = [(f"{path}.{key}", entry) for key, entry in vars(value).items()]
    if depth:
        for below, entry in inside:
            yield from holders(below, entry, classes, depth - 1)


def arrays(namespace: ModuleType, text: str, extra: dict[str, object]) -> dict[str, np.ndarray]:
    """The contents of every holder, as arrays of our own."""
    names, classes = state_names(text)
    found: dict[str, np.ndarray] = {}
    for name in names:
        extra.setdefault(name, getattr(namespace, name, None))
    for name, value in extra.items():
        for path, holder in holders(name, value, classes):
            content = holder.to_numpy() if hasattr(holder, "to_numpy") else np.array(holder)
            if content.dtype != object:
                found[path] = content
    return found


def put(namespace: ModuleType, text: str, saved: dict[str, np.ndarray], sparse: tuple[str, ...]) -> None:
    """Write saved contents into the fields and arrays of another run of the same program.

    Numbers stay as the new text set them: the change under test is one of them.
    """
    names, classes = state_names(text)
    for name in names:
        for path, holder in holders(name, getattr(namespace, name, None), classes):
            if path not in saved:
                continue
            content = saved[path]
            if isinstance(holder, (*FIELDS, Ndarray)):
                holder.from_numpy(content)
                if name in sparse:
                    # `from_numpy` writes only cells that are active already; assignment activates.
                    for index in zip(*np.nonzero(content.reshape(*holder.shape, -1).any(-1)), strict=True):
                        holder[index] = content[index].tolist()
            elif isinstance(holder, np.ndarray):
                holder[...] = content


def run_direct(text: str, row: Row) -> ModuleType:
    """The plain Python way: a file, a module spec, the import machinery."""
    path = Path(f"{row.module_name}.py").absolute()
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(row.module_name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[row.module_name] = module
    spec.loader.exec_module(module)
    return module


class Held:
    """A view of a module that keeps its first answer for some names, like a caller who stored the kernel."""

    def __init__(self, module: ModuleType, names: tuple[str, ...]) -> None:
        self._module = module
        self._kept = {name: getattr(module, name) for name in names}

    def __getattr__(self, name: str) -> object:
        return self._kept[name] if name in self._kept else getattr(self._module, name)


def run_whole(row: Row, mode: str) -> dict[str, np.ndarray]:
    """Test (a): the program as it is, from start to end."""
    text = original_text(row)
    if mode == "direct":
        module = run_direct(text, row)
    else:
        import rekernel

        loader = rekernel.KernelLoader()
        module = loader.load(text, kernel_id=row.module_name)
    extra: dict[str, object] = {}
    with suppress(headless.OutOfFramesError, SystemExit):  # the two ways in which a program leaves its window
        extra = (row.run(module) if row.run else None) or {}
    return arrays(module, text, extra)


def steps(swap: Swap, module: object, first: int, last: int) -> None:
    for i in range(first, last):
        swap.step(module, i)


def run_swap(row: Row, mode: str, state: Path) -> dict[str, np.ndarray]:
    """Test (b): the program with a change in the middle, or one of the two halves of its reference."""
    swap, (before, after) = row.swap, swap_texts(row)
    if mode == "until":
        module = run_direct(before, row)
        swap.setup(module)
        steps(swap, module, 0, swap.at)
        np.savez(state, **arrays(module, before, {}))
        steps(swap, module, swap.at, swap.total)
        return arrays(module, after, {})
    if mode == "after":
        module = run_direct(after, row)
        swap.setup(module)
        with np.load(state) as saved:
            put(module, after, dict(saved), swap.sparse)
        steps(swap, module, swap.at, swap.total)
        return arrays(module, after, {})

    import rekernel

    loader = rekernel.KernelLoader()
    module = loader.load(before, kernel_id=row.module_name)
    swap.setup(module)
    held = Held(module, swap.held)
    steps(swap, held, 0, swap.at)
    loader.load(after, kernel_id=row.module_name)
    steps(swap, held, swap.at, swap.total)
    return arrays(module, after, {})


def main(row_id: str, mode: str, out: str, state: str = "") -> None:
    row = BY_ID[row_id]
    whole = mode in ("direct", "loaded")
    session = headless.Session(row.frames if whole else 0, row.mouse)
    headless.install(session, row.absent)
    random.seed(0)
    np.random.seed(0)
    sys.argv = [f"{row.module_name}.py", *row.argv]
    before = set(os.listdir())
    found = run_whole(row, mode) if whole else run_swap(row, mode, Path(state))
    written = sorted(set(os.listdir()) - before - {f"{row.module_name}.py", "__pycache__"})
    digests = [
        f"{name} {hashlib.sha256(Path(name).read_bytes()).hexdigest()}" for name in written if os.path.isfile(name)
    ]
    np.savez(out, **found, **{"drawn()": np.array(session.drawn), "files()": np.array(digests)})


if __name__ == "__main__":
    main(*sys.argv[1:])
