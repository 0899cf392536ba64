"""The Gray-Scott model as CUDA text and as GPU stencils, with the edits that the acts of the demo make.

The CUDA text is the C++ text of `rekernel.demo.cpp_text`, a thread for each cell. The stencils have the same terms; their
border stays as it is, and `kill` is the same everywhere, so that their patterns are others.
"""

from __future__ import annotations

from rekernel.demo.cpp_text import CPP
from rekernel.demo.gray_scott import Text

_STEP = """\
__global__ void step(float (*u)[n][n], float (*v)[n][n], int k) {  // reads buffer k, writes the other
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && j < n) cell(u, v, k, {wrap(i - 1), i, wrap(i + 1), wrap(j - 1), j, wrap(j + 1)});
}
"""


def _cuda(text: str) -> str:
    """The C++ text with a kernel in the place of its loops."""
    return (
        text[: text.index("void step(")].replace(
            "float u[2][n][n], float v[2][n][n]", "float (*u)[n][n], float (*v)[n][n]"
        )
        + _STEP
    )


def _word(text: str) -> str:
    """A piece of an edit: NVRTC needs no header for the square root."""
    return text.replace("std::sqrt", "sqrtf").replace("#include <cmath>\n\n", "")


CUDA = Text(
    "cuda",
    "CUDA",
    _cuda(CPP.first),
    {
        name: tuple((_word(old), _word(new)) for old, new in edits if _word(old) != _word(new))
        for name, edits in CPP.edits.items()
    },
)

STENCIL = Text(
    "stencil",
    "GPU stencil",
    """\
config = ps.CreateKernelConfig(target=ps.Target.CUDA, default_dtype="float32")
_feed = 0.0545
_kill = 0.0620
_u, _v, _a, _b = ps.fields("u, v, a, b: float32[2D]")


def _laplacian(f):
    sides = f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1]
    corners = f[-1, -1] + f[-1, 1] + f[1, -1] + f[1, 1]
    return 0.2 * sides + 0.05 * corners - f[0, 0]


_reaction = _u[0, 0] * _v[0, 0] ** 2
step = [
    ps.Assignment(_a[0, 0], _u[0, 0] + _laplacian(_u) - _reaction + _feed * (1 - _u[0, 0])),
    ps.Assignment(_b[0, 0], _v[0, 0] + 0.5 * _laplacian(_v) + _reaction - (_feed + _kill) * _v[0, 0]),
]
""",
    {
        "flower": (("_feed = 0.0545", "_feed = 0.0320"), ("_kill = 0.0620", "_kill = 0.0570")),
        "typo": (("0.5 * _laplacian(_v)", "0.5 * _lapalcian(_v)"),),
        "whirl": (("_feed = 0.0320", "_feed = 0.0350"), ("_kill = 0.0570", "_kill = 0.0605")),
    },
)
