// How long calls took: counting, and the numbers that people ask for.
#include "timing.hpp"

#include <algorithm>

namespace rekernel {

namespace {

int highest_bit(std::uint64_t value) {
    int bit = 0;
    while (value >>= 1) ++bit;
    return bit;
}

}  // namespace

int Timing::bucket(std::uint64_t nanoseconds) {
    if (nanoseconds < 32) return static_cast<int>(nanoseconds);
    int bit = highest_bit(nanoseconds);  // 5 for 32 to 63
    int part = static_cast<int>((nanoseconds >> (bit - 4)) & 15);
    return std::min(32 + (bit - 5) * parts + part, buckets - 1);
}

double Timing::middle(int bucket) {
    if (bucket < 32) return bucket;
    int octave = (bucket - 32) / parts, part = (bucket - 32) % parts;
    double width = static_cast<double>(std::uint64_t(1) << (octave + 1));
    return (parts + part + 0.5) * width;
}

void Timing::add(std::uint64_t nanoseconds) {
    least = count ? std::min(least, nanoseconds) : nanoseconds;
    most = std::max(most, nanoseconds);
    ++count;
    total += nanoseconds;
    ++counts[bucket(nanoseconds)];
}

double Timing::quantile(double share) const {
    double rank = share * static_cast<double>(count);
    std::uint64_t seen = 0;
    for (int i = 0; i < buckets; ++i) {
        seen += counts[i];
        if (counts[i] && static_cast<double>(seen) >= rank) {
            return std::clamp(middle(i), static_cast<double>(least), static_cast<double>(most));
        }
    }
    return static_cast<double>(most);
}

PyObject *summary(const Timing *timing) {
    if (!timing || !timing->count) Py_RETURN_NONE;
    auto seconds = [](double nanoseconds) { return nanoseconds / 1e9; };
    return Py_BuildValue("(Kdddddd)", static_cast<unsigned long long>(timing->count),
                         seconds(static_cast<double>(timing->total)), seconds(static_cast<double>(timing->least)),
                         seconds(timing->quantile(0.50)), seconds(timing->quantile(0.95)),
                         seconds(timing->quantile(0.99)), seconds(static_cast<double>(timing->most)));
}

}  // namespace rekernel
