// Filters of images with 8 bits a channel: image(row, column, channel), as NumPy and Pillow have them.
// An Array takes any strides: crops, flips and single channels come in without a copy, and are written in place.
#include <algorithm>
#include <cmath>
#include <cstdlib>

using Image = rekernel::Array<const uint8_t, 3>;
using Target = rekernel::RestrictArray<uint8_t, 3>;  // must not overlap the image, which is checked at the call

// The nearest index that exists: what is outside looks like the edge.
static int64_t inside(int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }

// The mean over squares of 2 * radius + 1 pixels a side.
void blur(Target out, Image in, int radius) {
    const int side = 2 * radius + 1, pixels = side * side;
    #pragma omp parallel for
    for (int64_t i = 0; i < in.shape(0); ++i)
        for (int64_t j = 0; j < in.shape(1); ++j)
            for (int64_t c = 0; c < in.shape(2); ++c) {
                int sum = 0;
                for (int di = -radius; di <= radius; ++di)
                    for (int dj = -radius; dj <= radius; ++dj)
                        sum += in(inside(i + di, in.shape(0)), inside(j + dj, in.shape(1)), c);
                out(i, j, c) = uint8_t((sum + pixels / 2) / pixels);
            }
}

// A mean that keeps edges: pixels count less with their distance (near, in pixels) and with the difference of their
// colours (like, in levels of 0 to 255). Both are standard deviations.
void bilateral(Target out, Image in, int radius, float near, float like) {
    #pragma omp parallel for
    for (int64_t i = 0; i < in.shape(0); ++i)
        for (int64_t j = 0; j < in.shape(1); ++j) {
            float sum[3] = {0, 0, 0}, weights = 0;
            for (int di = -radius; di <= radius; ++di)
                for (int dj = -radius; dj <= radius; ++dj) {
                    int64_t ii = inside(i + di, in.shape(0)), jj = inside(j + dj, in.shape(1));
                    float differ = 0;
                    for (int c = 0; c < 3; ++c) {
                        float d = float(in(ii, jj, c)) - float(in(i, j, c));
                        differ += d * d;
                    }
                    float weight = std::exp(-0.5f * ((di * di + dj * dj) / (near * near) + differ / (like * like)));
                    for (int c = 0; c < 3; ++c) sum[c] += weight * in(ii, jj, c);
                    weights += weight;
                }
            for (int c = 0; c < 3; ++c) out(i, j, c) = uint8_t(sum[c] / weights + 0.5f);
        }
}

// Edges by Sobel's operator on the brightness: |d/di| + |d/dj|, scaled to 0 to 255.
void edges(rekernel::RestrictArray<uint8_t, 2> out, Image in) {
    auto bright = [&](int64_t i, int64_t j) {
        i = inside(i, in.shape(0)), j = inside(j, in.shape(1));
        return (299 * in(i, j, 0) + 587 * in(i, j, 1) + 114 * in(i, j, 2) + 500) / 1000;
    };
    #pragma omp parallel for
    for (int64_t i = 0; i < in.shape(0); ++i)
        for (int64_t j = 0; j < in.shape(1); ++j) {
            int down = bright(i + 1, j - 1) + 2 * bright(i + 1, j) + bright(i + 1, j + 1)
                     - bright(i - 1, j - 1) - 2 * bright(i - 1, j) - bright(i - 1, j + 1);
            int right = bright(i - 1, j + 1) + 2 * bright(i, j + 1) + bright(i + 1, j + 1)
                      - bright(i - 1, j - 1) - 2 * bright(i, j - 1) - bright(i + 1, j - 1);
            out(i, j) = uint8_t(std::min((std::abs(down) + std::abs(right)) / 4, 255));
        }
}
