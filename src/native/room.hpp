// Memory of one call.
#pragma once

#include "common.hpp"

namespace rekernel {

// Few on the stack, many on the heap; nullptr where there is no memory. Nothing is initialised.
template <class T, Py_ssize_t small>
class Room {
public:
    explicit Room(Py_ssize_t count) {
        if (count > small) storage = PyMem_New(T, static_cast<size_t>(count));
    }
    ~Room() {
        if (storage != stack) PyMem_Free(storage);
    }
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;
    T *data() { return storage; }

private:
    T stack[small];
    T *storage = stack;
};

}  // namespace rekernel
