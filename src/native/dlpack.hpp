// The structures of the DLPack standard (versions 0.x and 1.x), whose layout is fixed.
#pragma once

#include "function.hpp"

namespace rekernel {

struct Device {
    std::int32_t type, number;
    // Plain or page-locked memory of this computer.
    bool is_host() const { return type == 1 || type == 3 || type == 11; }
    // Managed memory, too.
    bool is_cuda() const { return type == 2 || type == 13; }
};

struct Tensor {
    void *data;
    Device device;
    std::int32_t ndim;
    std::uint8_t code, bits;
    std::uint16_t lanes;
    std::int64_t *shape, *strides;  // strides in elements; nullptr: C-contiguous
    std::uint64_t offset;
};

struct Managed {
    Tensor tensor;
    void *context;
    void (*deleter)(Managed *);
};

struct Versioned {
    std::uint32_t major, minor;
    void *context;
    void (*deleter)(Versioned *);
    std::uint64_t flags;  // 1: read-only, 2: a copy
    Tensor tensor;
};

// From now on release_foreign() calls the tensor's deleter.
template <class T>
void own_tensor(T *managed, Foreign *foreign) {
    foreign->managed = managed;
    if (managed->deleter) {
        foreign->deleter = [](void *memory) { static_cast<T *>(memory)->deleter(static_cast<T *>(memory)); };
    }
}

// Fills the view of a tensor whose memory `foreign` keeps; refuses one on another device.
bool view_tensor(const Refused &refused, const Tensor &tensor, std::uint64_t flags, View &out, Foreign *foreign);

// ---- exchange.cpp: the same without Python code, for types that offer it ----
enum class Exchange { done, failed, unavailable };
Exchange exchange_tensor(const Refused &refused, View &out, Foreign *foreign);

}  // namespace rekernel
