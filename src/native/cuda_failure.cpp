// What the driver says went wrong, in words, and which devices it has ended.
//
// Invariant: a device is dead from the first error that ends its context on, and what was said then stays its message.
#include "cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace rekernel {

namespace {

// These end the context: what a kernel did wrong, and hardware that broke.
constexpr int fatal[] = {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
constexpr int no_context = 709;

PyObject *error_text(const CudaDriver *driver, int code) {
    const char *name = nullptr, *text = nullptr;
    if (driver->calls.error_name && driver->calls.error_name(code, &name) != 0) name = nullptr;
    if (driver->calls.error_text && driver->calls.error_text(code, &text) != 0) text = nullptr;
    if (!name) return PyUnicode_FromFormat("CUDA error %d", code);
    return text ? PyUnicode_FromFormat("%s (%s)", name, text) : PyUnicode_FromString(name);
}

// "heat.step (version 3): grid (4, 1, 1), block (256, 1, 1), stream 0"
PyObject *line_text(const Launched &launch) {
    PyObject *geometry = geometry_text(launch.geometry);
    if (!geometry) return nullptr;
    PyObject *text = launch.kernel_id ? PyUnicode_FromFormat("%U.", launch.kernel_id) : PyUnicode_FromString("");
    char stream[32];
    std::snprintf(stream, sizeof stream, "%#zx", reinterpret_cast<size_t>(launch.stream));
    if (text) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%U (version %ld): %U, stream %s", launch.name,
                                                           launch.version, geometry, stream));
    }
    Py_DECREF(geometry);
    return text;
}

void append_launches(const CudaDriver *driver, int device, PyObject *&text) {
    unsigned long long count = std::min(driver->launched, remembered);
    for (unsigned long long i = 1; text && i <= count; ++i) {
        const Launched &launch = driver->last[(driver->launched - i) % remembered];
        if (launch.device != device) continue;
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString("\n  "));
        if (text) PyUnicode_AppendAndDel(&text, line_text(launch));
    }
}

bool mark_dead(CudaDriver *driver, int device, PyObject *message) {
    if (!driver->dead) driver->dead = PyDict_New();
    PyObject *number = driver->dead ? PyLong_FromLong(device) : nullptr;
    // What was said first stays.
    bool marked = number && PyDict_SetDefault(driver->dead, number, message) != nullptr;
    Py_XDECREF(number);
    return marked;
}

// What may help, for codes that say little.
const char *advice(int code) {
    switch (code) {
        case 1: return "; a value of the launch is not allowed for this kernel (shared memory, block)";
        case 3: return "; if this process was forked from one that used CUDA, start it with 'spawn' instead";
        case 201:
        case 400: return "; the stream may be of another device, or destroyed";
        case 701: return "; a block of this size needs more registers or shared memory than there are: use a smaller one";
        default: return "";
    }
}

}  // namespace

PyObject *failure_text(const Function *function, const Geometry &geometry, int code) {
    Owned text(geometry_text(geometry));
    if (!text) return nullptr;
    return PyUnicode_FromFormat("%U(): the launch with %U, %u bytes of shared memory failed%s", function->name,
                                text.object, geometry.shared, advice(code));
}

PyObject *geometry_text(const Geometry &geometry) {
    const unsigned *grid = geometry.grid, *block = geometry.block;
    return PyUnicode_FromFormat("grid (%u, %u, %u), block (%u, %u, %u)", grid[0], grid[1], grid[2], block[0], block[1],
                                block[2]);
}

// A borrowed message, nullptr where there is none.
PyObject *find_dead(const CudaDriver *driver, int device) {
    PyObject *number = driver->dead ? PyLong_FromLong(device) : nullptr;
    PyObject *message = number ? PyDict_GetItemWithError(driver->dead, number) : nullptr;
    Py_XDECREF(number);
    return message;
}

bool check_alive(CudaDriver *driver, int device, PyObject *errors) {
    if (!driver->dead) return true;
    PyObject *message = find_dead(driver, device);
    if (message) PyErr_SetObject(errors, message);
    return !PyErr_Occurred();
}

PyObject *tell_failure(CudaDriver *driver, int device, int code, PyObject *what) {
    PyObject *error = error_text(driver, code);
    PyObject *text = error ? PyUnicode_FromFormat("%U: %U", what, error) : nullptr;
    Py_XDECREF(error);
    if (std::find(std::begin(fatal), std::end(fatal), code) == std::end(fatal)) return text;
    if (text) {
        PyUnicode_AppendAndDel(
            &text, PyUnicode_FromFormat(". %s on CUDA device %d any more in this process; start a new one. Build the "
                                        "kernels with debug=True to see which line of which kernel is at fault. The "
                                        "last launches there, the latest first:",
                                        code == no_context ? "Its context is gone, so nothing can run"
                                                           : "A kernel that ran before has failed, and nothing can run",
                                        device));
    }
    append_launches(driver, device, text);
    if (text && !mark_dead(driver, device, text)) Py_CLEAR(text);
    return text;
}

}  // namespace rekernel
