// Heat in a metal plate: dT/dt = alpha * (d2T/dx2 + d2T/dy2), by explicit steps on a grid of square cells.
// The outermost cells keep the temperature that they have. Temperatures in degrees Celsius.
#include <algorithm>
#include <cmath>

constexpr double alpha = 1.1e-4;  // thermal diffusivity in m2/s: copper

// The longest step in s that is stable, for cells of dx metres.
double longest_step(double dx) { return 0.25 * dx * dx / alpha; }

// One step of dt seconds from `now` to `next`. Returns the largest change of a cell, in K.
double step(rekernel::RestrictArray<double, 2> next, rekernel::Array<const double, 2> now, double dx, double dt) {
    const double k = alpha * dt / (dx * dx);
    const int64_t rows = now.shape(0), columns = now.shape(1);
    double largest = 0;
    #pragma omp parallel for reduction(max : largest)
    for (int64_t i = 1; i < rows - 1; ++i)
        for (int64_t j = 1; j < columns - 1; ++j) {
            double around = now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1);
            double change = k * (around - 4 * now(i, j));
            next(i, j) = now(i, j) + change;
            largest = std::max(largest, std::fabs(change));
        }
    return largest;
}
