"""The Gray-Scott model as C++ text, and the edits that are made to it. Pure data.

Operation by operation it is the text of `taichi_text`. The first and the last column are done apart, because a loop
without wrapped indices is one that the compiler turns into vector instructions.
"""

from __future__ import annotations

from rekernel.demo.gray_scott import Text

_FIRST = """\
constexpr int n = 512;  // a power of two, see wrap
constexpr float feed = 0.0545f;
constexpr float trace = 1e-12f;  // of v, everywhere: nothing gets so small that processors are slow with it

struct At { int up, i, down, left, j, right; };  // a cell, with the rows and columns beside it

inline int wrap(int i) { return i & (n - 1); }

inline float kill(int i, int j) { return 0.0620f; }

inline float laplacian(float f[n][n], At c) {
    float sides = f[c.up][c.j] + f[c.down][c.j] + f[c.i][c.left] + f[c.i][c.right];
    float corners = f[c.up][c.left] + f[c.up][c.right] + f[c.down][c.left] + f[c.down][c.right];
    return 0.2f * sides + 0.05f * corners - f[c.i][c.j];
}

inline void cell(float u[2][n][n], float v[2][n][n], int k, At c) {
    float a = u[k][c.i][c.j], b = v[k][c.i][c.j];
    float reaction = a * b * b;
    u[1 - k][c.i][c.j] = a + laplacian(u[k], c) - reaction + feed * (1 - a);
    v[1 - k][c.i][c.j] = b + 0.5f * laplacian(v[k], c) + reaction - (feed + kill(c.i, c.j)) * b + trace;
}

void step(float u[2][n][n], float v[2][n][n]) {  // two buffers: a step reads one and writes the other
    for (int k = 0; k < 2; ++k) {
        #pragma omp parallel for
        for (int i = 0; i < n; ++i) {
            int up = wrap(i - 1), down = wrap(i + 1);
            cell(u, v, k, {up, i, down, n - 1, 0, 1});
            #pragma omp simd
            for (int j = 1; j < n - 1; ++j) cell(u, v, k, {up, i, down, j - 1, j, j + 1});
            cell(u, v, k, {up, i, down, n - 2, n - 1, 0});
        }
    }
}
"""

_KILL_EVERYWHERE = """\
inline float kill(int i, int j) { return 0.0620f; }
"""

_KILL_FLOWER = """\
inline float kill(int i, int j) {
    float x = 2 * (j + 0.5f) / n - 1, y = 2 * (i + 0.5f) / n - 1;
    float r2 = x * x + y * y;
    float c2 = x * x / r2;
    float petals = ((32 * c2 - 48) * c2 + 18) * c2 - 1;  // cos(6 * angle)
    float outside = 1.25f * (std::sqrt(r2) / (0.59f + 0.17f * petals)) - 0.75f;
    return 0.0562f + 0.0078f * (outside < 0 ? 0 : outside > 1 ? 1 : outside);
}
"""

_KILL_FOR_STRIPES = """\
inline float kill(int i, int j) { return 0.0605f; }
"""

_WHIRL = """\
inline float whirl(float f[n][n], At c) {  // more diffusion along a spiral, less across it
    float x = c.j + 0.5f - n / 2, y = c.i + 0.5f - n / 2;
    float p = x * x - y * y, q = 2 * x * y, r2 = x * x + y * y;  // p, q: r2 times cosine, sine of twice the angle
    float along = (-0.17f * p - 0.98f * q) / r2, aslant = (-0.17f * q + 0.98f * p) / r2;
    float straight = f[c.i][c.left] + f[c.i][c.right] - f[c.up][c.j] - f[c.down][c.j];
    float slanted = f[c.up][c.left] + f[c.down][c.right] - f[c.up][c.right] - f[c.down][c.left];
    return laplacian(f, c) + 0.15f * (along * straight + 0.5f * aslant * slanted);
}

"""

CPP = Text(
    "cpp",
    "C++",
    _FIRST,
    {
        "flower": (
            ("constexpr int n", "#include <cmath>\n\nconstexpr int n"),
            ("feed = 0.0545f", "feed = 0.0320f"),
            (_KILL_EVERYWHERE, _KILL_FLOWER),
        ),
        "typo": (("0.5f * laplacian(v", "0.5f * lapalcian(v"),),
        "whirl": (
            ("feed = 0.0320f", "feed = 0.0350f"),
            (_KILL_FLOWER, _KILL_FOR_STRIPES),
            ("inline void cell", _WHIRL + "inline void cell"),
            ("0.5f * laplacian(v", "0.5f * whirl(v"),
        ),
    },
)
