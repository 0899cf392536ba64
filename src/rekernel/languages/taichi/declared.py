"""Fields that a text declared before it failed: if they stayed, no kernel of the process could run any more.

Taichi refuses every kernel while a field without a place or a builder without an end is on its lists, and every
new field after a layout that it could not finish.
"""

from __future__ import annotations

from typing import Any

from rekernel.languages.taichi.package import Package

_LISTS = ("global_vars", "grad_vars", "dual_vars", "matrix_fields")


class Declared:
    """What is declared at one moment and has not been laid out yet."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.runtime = package.runtime
        # The objects themselves: the number of one that is gone could be given to another.
        self.known = {kind: list(getattr(self.runtime, kind, ())) for kind in _LISTS}
        self.builders = list(getattr(self.runtime, "unfinalized_fields_builder", ()))
        self.root = getattr(package.impl, "_root_fb", None)
        self.root_in_use = self.runtime.prog is not None and not getattr(self.root, "empty", True)

    def undo(self) -> None:
        """Take off Taichi's lists what was declared since, and give ``ti.root`` a new tree if it was touched."""
        impl, runtime = self.package.impl, self.package.runtime
        if runtime.prog is None:
            return
        same = runtime is self.runtime  # otherwise the text itself has started the program: all is its own
        for kind in _LISTS:
            known = {id(item) for item in self.known[kind]} if same else set()
            declared: list[Any] = getattr(runtime, kind, [])
            declared[:] = [item for item in declared if id(item) in known]
        pending: dict[Any, Any] = getattr(runtime, "unfinalized_fields_builder", {})
        root = getattr(impl, "_root_fb", None)
        for builder in list(pending):
            if builder is not root and not (same and any(builder is one for one in self.builders)):
                del pending[builder]
        if root is not None and not root.empty and not (root is self.root and self.root_in_use):
            pending.pop(root, None)
            impl._root_fb = type(root)()
