"""From a Taichi text to a version: run it aside, find and guard its kernels, check, and on any error undo."""

from __future__ import annotations

import ast
import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from rekernel.languages import Built, Request, pytext
from rekernel.languages.taichi import execute, guards, helpers, initguard, instances, kinds, signature, state, written
from rekernel.languages.taichi.declared import Declared
from rekernel.languages.taichi.execute import Execution
from rekernel.languages.taichi.failure import helper_error, source_error
from rekernel.languages.taichi.package import LOCK, Package, choose, kernels_of, package
from rekernel.languages.taichi.precheck import precheck
from rekernel.languages.taichi.version import TaichiVersion
from rekernel.locks import heard
from rekernel.why import Reason

ANEW = Reason("unit", "Taichi compiles each new version")
"""Why: Taichi cannot tell beforehand what its own cache has."""
ADVICE = "load it, and call it with every kind of argument, before rekernel.freeze()"


def build(request: Request, *, tree: ast.Module | None = None, survivor: TaichiVersion | None = None) -> Built:
    """Run the text aside and make its kernels ready; on any error nothing has changed.

    `survivor` is the same version under a program that has ended: only what outlives a program is taken over.
    """
    tree = tree or request.draft.facts
    found = package(choose(pytext.imports(tree), request.draft.wants, request.borrowed.values()))
    previous: TaichiVersion | None = request.previous.private if request.previous is not None else None
    notes: list[str] = []
    with LOCK:
        guards.refuse_inherited(found, request.kernel_id)
        _materialise(found)
        try:
            helped = helpers.refresh(previous.helpers if previous is not None else ())
        except helpers.HelperError as error:
            cause, file = error.__cause__, str(error)
            assert cause is not None
            raise helper_error(cause, file, request.kernel_id, request.number, request.source.language) from cause
        notes += [f"imported anew: {name}" for name in helped.names]
        names = {**found.injected, **request.borrowed}
        execution = Execution(request.source, request.kernel_id, request.number, names)
        version = TaichiVersion(request, found, execution, tree)
        before, declared = len(kernels_of(found)), Declared(found)
        try:
            execution.enter()
            donor = survivor or (previous if request.keep_state else None)
            with heard():  # Taichi's decorators swallow all exceptions while they look at the frame
                _run(version, donor, bool(helped.names), notes, again=survivor is not None)
            _finish(version, before)
            # Before the compiler runs: it leaves the processor's caches cold, and this would take three times as long.
            built = _built(version, previous, notes)
            execution.settle()
            # What served before, and the caller's globals, are not needed any more: a version must not hold them.
            version.request = dataclasses.replace(request, previous=None, hints={}, check=True)
            keeps = request.keeps
            precheck(version, previous, request.check, keeps)
        except (Exception, SystemExit) as error:
            _abandon(version, before, declared)
            helped.undo()
            if isinstance(error, TypeError | ValueError) and error.__traceback__ is not None and _is_own(error):
                raise
            raise source_error(
                error, version.text, keeps=request.keeps, names=version.globals, hints=version.hints
            ) from error
        except BaseException:
            _abandon(version, before, declared)
            helped.undo()
            raise
    return built


def _abandon(version: TaichiVersion, before: int, declared: Declared) -> None:
    """Forget a text whose run failed: Taichi would hold its kernels, and with them all of its globals, for ever."""
    found = version.package
    mine = _made_by(version, before)
    guards.weaken(found, mine, before)
    declared.undo()
    version.execution.discard()


def _is_own(error: BaseException) -> bool:
    """Whether an error is about the arguments of ``load`` (``check=``), not about the text."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and traceback.tb_frame.f_globals.get("__name__") == precheck.__module__


def _materialise(found: Package) -> None:
    """Let the first kernel of a program be made on the thread of ``ti.init``, as Taichi demands.

    Nothing is declared yet, so nothing is decided by it; on any other thread Taichi refuses, and says so later.
    """
    runtime = found.runtime
    if (
        runtime.prog is not None
        and not runtime.materialized
        and threading.current_thread() is threading.main_thread()
        and not any(getattr(runtime, kind, ()) for kind in ("global_vars", "unfinalized_fields_builder"))
    ):
        runtime.materialize()


def _run(version: TaichiVersion, donor: TaichiVersion | None, helped: bool, notes: list[str], *, again: bool) -> None:
    """Execute the statements that have to run, binding what goes on from `donor`."""
    alive = donor is not None and donor.program is version.package.program
    plan = state.Plan()

    def is_state(value: Any) -> bool:
        return kinds.is_state(value, program=alive)

    if donor is not None and not helped and _has_state(donor, is_state):
        borrowed = version.request.borrowed
        plan = state.plan(
            state.statements(version.tree),
            state.statements(donor.tree),
            donor.globals,
            lambda name: same_value(donor.request.borrowed.get(name), borrowed.get(name)),
            is_state,
        )

    def adopt(index: int) -> None:
        assert donor is not None
        for name in plan.adopt[index]:
            if _continues(donor, name, version.globals.get(name)):
                version.globals[name] = donor.globals[name]

    def wanted(index: int) -> bool:
        assert donor is not None
        if any(version.globals.get(name) is not donor.globals.get(name) for name in plan.maybe[index]):
            return True
        binds = pytext.bound([version.tree.body[index]])
        version.globals.update({name: donor.globals[name] for name in binds})
        return False

    version.globals.update(plan.carry)
    with initguard.guarded(version.package, notes, again=again):
        version.execution.run(version.tree, plan, wanted, adopt)
    version.program = version.package.program


def _has_state(donor: TaichiVersion, is_state: Callable[[Any], bool]) -> bool:
    """Whether there is anything to plan for: most texts are kernels and nothing else."""
    return any(is_state(value) for name, value in donor.globals.items() if not name.startswith("__"))


def _continues(donor: TaichiVersion, name: str, new: Any) -> bool:
    """Whether the donor's value goes on in place of a newly made one.

    A NumPy array that nobody has changed since it was made is a table of constants: the new text's numbers count.
    """
    old = donor.globals.get(name)
    if new is old or not kinds.same_kind(old, new):
        return False
    return _had_data(donor, name)


def same_value(old: Any, new: Any) -> bool:
    """Whether two namespace values are one: the same object, or equal plain constants."""
    if old is new:
        return True
    plain = (int, float, complex, str, bytes, bool)
    return type(old) is type(new) and isinstance(old, plain) and old == new


def _finish(version: TaichiVersion, before: int) -> None:
    """Find the kernels that the text made, guard them and let Taichi hold them weakly."""
    found = version.package
    mine = _made_by(version, before)
    functions = written.functions_of(version.tree)
    for kernel in mine:
        guards.guard_kernel(version, kernel, functions)
        adjoint = not str(kernel.autodiff_mode).endswith("NONE")
        version.kernels[kernel.func.__qualname__, adjoint] = kernel
    guards.weaken(found, mine, before)
    bound = pytext.defined(version.tree)
    own = dict(execute.OwnNames(version.globals, bound))
    primals = {id(kernel) for kernel in mine}
    for name, value in own.items():
        primal = getattr(value, "_primal", None)
        if primal is not None and id(primal) in primals and not getattr(value, "_is_classkernel", False):
            version.entries[name] = primal._rekernel_guard
    version.classes = instances.classes_of(own, version.execution.module_name)
    version.struct_types = instances.struct_types_of(own)
    version.helpers = helpers.local_helpers(pytext.imports(version.tree))
    version.prints = {name: kinds.print_of(value) for name, value in own.items()}
    version.state_names = frozenset(n for n, v in own.items() if kinds.is_state(v))


def _made_by(version: TaichiVersion, before: int) -> list[Any]:
    """Return the kernels that the text has made since the package's list had `before` entries."""
    entries = kernels_of(version.package)
    new = entries[before:] if isinstance(version.package.runtime.kernels, list) else entries
    return [kernel for kernel in new if _globals_of(kernel) is version.globals]


def _globals_of(kernel: Any) -> Any:
    return getattr(getattr(kernel, "func", None), "__globals__", None)


def _built(version: TaichiVersion, previous: TaichiVersion | None, notes: list[str]) -> Built:
    tree, code = version.tree, version.text.source.code
    functions = written.functions_of(tree)
    bound = pytext.defined(tree)
    own = execute.OwnNames(version.globals, bound)
    values = []
    for name, guard in version.entries.items():
        value = signature.kernel_value(version.package, guard.call.__self__, functions, code, own[name])
        values.append(value if value.name == name else dataclasses.replace(value, name=name))
    anew: tuple[str, ...] = ()
    if previous is not None:
        both = version.state_names & previous.state_names
        anew = tuple(
            sorted(n for n in both if version.globals[n] is not previous.globals.get(n) and _had_data(previous, n))
        )
    return Built(
        entries=dict(version.entries),
        kernels=tuple(values),
        names=execute.OwnNames(version.globals, bound, version.entries),
        doc=version.globals.get("__doc__"),
        originals={n: own[n] for n in version.entries},
        warnings=tuple(version.execution.warnings),
        notes=tuple(notes),
        anew=anew,
        private=version,
    )


def _had_data(donor: TaichiVersion, name: str) -> bool:
    """Whether a value is more than a table of constants: a NumPy array as it was made has nothing to lose."""
    made = donor.prints.get(name)
    return made is None or kinds.print_of(donor.globals[name]) != made
