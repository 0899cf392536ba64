"""The error of just-in-time compilers, under the name that pystencils gives its module."""

from rekernel.errors import JitError

__all__ = ["JitError"]
