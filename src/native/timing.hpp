// Timing: how long the calls of one handle took, in room that does not grow.
//
// Invariant: everything here is done with the GIL held, so no number is lost. A call in flight keeps only the time of
// its beginning; whatever is switched meanwhile, its end finds the record of the handle as it is then, or none.
#pragma once

#include "common.hpp"

#include <chrono>

namespace rekernel {

// Times in nanoseconds are counted in buckets: exact below 32, then 16 for each doubling, so that a percentile is off
// by at most 1/32 of itself. 2^42 ns are 73 minutes; what takes longer is counted in the last bucket.
struct Timing {
    static constexpr int octaves = 37, parts = 16, buckets = 32 + octaves * parts;

    std::uint64_t count, total, least, most;
    std::uint64_t counts[buckets];

    void add(std::uint64_t nanoseconds);
    // The time below which `share` of the calls are.
    double quantile(double share) const;

    static int bucket(std::uint64_t nanoseconds);
    // The middle of a bucket.
    static double middle(int bucket);
};

inline std::uint64_t now_ns() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// (count, total, min, p50, p95, p99, max), times in seconds; None before the first.
PyObject *summary(const Timing *timing);

}  // namespace rekernel
