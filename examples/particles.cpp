// A cluster of stars under their own gravity. Lengths in pc, velocities in km/s, masses in solar masses;
// then times are in pc/(km/s) = 0.978 million years. Rows of x and v are stars, columns the three directions.
#include <cmath>

using Points = rekernel::Array<const double, 2>;
using Masses = rekernel::Array<const double, 1>;

constexpr double G = 4.30091e-3;      // pc (km/s)2 / solar mass
constexpr double softening = 0.05;    // pc: closer than that, stars attract as if they were this far apart

// Velocities after a time dt under the gravity of all others.
void kick(rekernel::RestrictArray<double, 2> v, Points x, Masses m, double dt) {
    const int64_t n = x.shape(0);
    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        double ax = 0, ay = 0, az = 0;
        #pragma omp simd reduction(+ : ax, ay, az)
        for (int64_t j = 0; j < n; ++j) {  // j == i adds nothing: its distance is 0
            double dx = x(j, 0) - x(i, 0), dy = x(j, 1) - x(i, 1), dz = x(j, 2) - x(i, 2);
            double r2 = dx * dx + dy * dy + dz * dz + softening * softening;
            double pull = G * m(j) / (r2 * std::sqrt(r2));
            ax += pull * dx, ay += pull * dy, az += pull * dz;
        }
        v(i, 0) += dt * ax, v(i, 1) += dt * ay, v(i, 2) += dt * az;
    }
}

// Positions after a time dt with constant velocities.
void drift(rekernel::RestrictArray<double, 2> x, Points v, double dt) {
    #pragma omp parallel for
    for (int64_t i = 0; i < x.shape(0); ++i)
        for (int axis = 0; axis < 3; ++axis) x(i, axis) += dt * v(i, axis);
}

// Kinetic energy, in solar masses (km/s)2.
double kinetic(Points v, Masses m) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (int64_t i = 0; i < v.shape(0); ++i)
        sum += 0.5 * m(i) * (v(i, 0) * v(i, 0) + v(i, 1) * v(i, 1) + v(i, 2) * v(i, 2));
    return sum;
}

// Potential energy, in the same unit; every pair counts once.
double potential(Points x, Masses m) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum) schedule(dynamic, 16)
    for (int64_t i = 0; i < x.shape(0); ++i)
        for (int64_t j = 0; j < i; ++j) {
            double dx = x(j, 0) - x(i, 0), dy = x(j, 1) - x(i, 1), dz = x(j, 2) - x(i, 2);
            double r2 = dx * dx + dy * dy + dz * dz + softening * softening;
            sum -= G * m(i) * m(j) / std::sqrt(r2);
        }
    return sum;
}

// Counts the stars in square cells, seen along the third direction; the map reaches from -reach to reach (pc).
// Adds to what `map` holds, and returns how many stars are outside.
int64_t count(rekernel::Array<int64_t, 2> map, Points x, double reach) {
    const double rows = map.shape(0), columns = map.shape(1);
    int64_t outside = 0;
    #pragma omp parallel for reduction(+ : outside)
    for (int64_t star = 0; star < x.shape(0); ++star) {
        double i = std::floor((x(star, 0) / reach + 1) / 2 * rows), j = std::floor((x(star, 1) / reach + 1) / 2 * columns);
        if (i >= 0 && i < rows && j >= 0 && j < columns) {
            #pragma omp atomic  // two threads may have stars in one cell
            ++map(int64_t(i), int64_t(j));
        } else {
            ++outside;
        }
    }
    return outside;
}
