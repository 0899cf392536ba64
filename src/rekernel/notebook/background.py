"""A build in the background tells of its end: below its own cell where the host can do that, else at the next cell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from IPython.display import display as _display

from rekernel import htmltext as html
from rekernel.default import kernels
from rekernel.errors import KernelSourceError
from rekernel.live import Live

display: Any = _display  # IPython has no types for it

__all__ = ["Ends", "Failed", "display"]


@dataclass(frozen=True)
class Failed:
    """An error that nobody waits for: it is shown, not raised."""

    error: BaseException

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"

    def _repr_html_(self) -> str:
        if isinstance(self.error, KernelSourceError):
            return self.error._repr_html_()
        return html.block(html.bold(type(self.error).__name__), html.text(str(self.error)), colour=html.RED)


@dataclass
class Ends:
    """The builds in the background of one notebook."""

    in_place: bool
    """Whether the host can change an output that stands there already; a terminal cannot."""
    later: list[Any] = field(default_factory=list)
    """What is to be shown at the next cell."""

    def follow(self, live: Live, begun: Any, ended: Callable[[], Any], overtaken: Any) -> None:
        """Show `begun` now, and in its place what came of it as soon as that is known."""
        build = kernels._background.running[live.kernel_id]
        ticket = kernels._background.tickets[live.kernel_id]
        shown = display(begun, display_id=True)

        def wait() -> None:
            build.done.wait()
            if kernels._background.tickets[live.kernel_id] != ticket:
                what = overtaken
            else:
                what = Failed(build.error) if build.error is not None else ended()
            if self.in_place:
                shown.update(what)
            else:
                self.later.append(what)

        threading.Thread(target=wait, name=f"rekernel tells of {live.kernel_id}", daemon=True).start()

    def tell(self) -> None:
        """Show what has ended since the last cell."""
        while self.later:
            display(self.later.pop(0))
