"""What a notebook adds: magics, and a live picture of a field."""

from __future__ import annotations

from typing import Any

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Bring ``%%kernel``, ``%kernels``, ``%kernel_rollback`` and the rest: ``%load_ext rekernel``."""
    try:
        from rekernel.notebook.magics import start
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "IPython":
            raise
        raise ImportError("the magics need IPython: pip install 'rekernel[notebook]'") from None
    start(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away again; kernels stay loaded: ``%unload_ext rekernel``."""
    from rekernel.notebook.magics import stop

    stop(shell)
