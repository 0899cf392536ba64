// What stands in the brackets of `kernel[...]`.
//
// Invariant: the order is that of Numba: grid, block, stream, shared bytes. An object with `grid` and `block` (a
// LaunchGrid) stands for the first two.
#include "cuda.hpp"

namespace rekernel {

namespace {

bool bad_brackets(PyObject *name, PyObject *index) {
    PyErr_Format(PyExc_TypeError,
                 "%U[%S] is no launch grid; write %U[grid, block], %U[grid, block, stream, shared_bytes] or "
                 "%U[LaunchGrid.cover(array.shape)]",
                 name, index, name, name, name);
    return false;
}

// 1: it is one, and grid and block are read; 0: it is none; -1: an exception.
int read_launch_grid(PyObject *object, Brackets &out) {
    if (PyTuple_Check(object) || PyLong_Check(object)) return 0;
    out.grid = PyObject_GetAttrString(object, "grid");
    out.block = out.grid ? PyObject_GetAttrString(object, "block") : nullptr;
    if (out.block) return 1;
    Py_CLEAR(out.grid);
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return 0;
}

}  // namespace

bool read_brackets(PyObject *name, PyObject *index, Brackets &out) {
    Owned items(PyTuple_Check(index) ? new_reference(index) : PyTuple_Pack(1, index));
    if (!items) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(items.object), next = 0;
    int covers = count > 0 ? read_launch_grid(PyTuple_GET_ITEM(items.object, 0), out) : 0;
    if (covers < 0) return false;
    PyObject **places[] = {&out.grid, &out.block, &out.stream, &out.shared};
    Py_ssize_t first = covers ? 2 : 0, taken = covers ? 1 : 0;
    if (count - taken > 4 - first || (!covers && count < 2)) return bad_brackets(name, index);
    for (next = taken; next < count; ++next) *places[first++] = new_reference(PyTuple_GET_ITEM(items.object, next));
    return true;
}

}  // namespace rekernel
