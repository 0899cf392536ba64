// Reading rows: what the readers of both tables of a Function share.
#pragma once

#include "function.hpp"

#include <algorithm>

namespace rekernel {

// A row of a table, with its place for messages.
struct Row {
    const char *table;
    Py_ssize_t position;
    PyObject *items;
};

inline bool bad_row(const Row &row, const char *problem) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%s[%zd]: %s", row.table, row.position, problem);
    return false;
}

inline PyObject *item(const Row &row, Py_ssize_t index) { return PyTuple_GET_ITEM(row.items, index); }

inline bool read_size(PyObject *number, Py_ssize_t low, Py_ssize_t high, Py_ssize_t &out) {
    if (!PyLong_Check(number)) return false;
    out = PyLong_AsSsize_t(number);
    if (out == -1 && PyErr_Occurred()) PyErr_Clear();
    else if (out >= low && out <= high) return true;
    return false;
}

template <class T>
inline bool allocate(T *&out, Py_ssize_t count) {
    out = static_cast<T *>(PyMem_Calloc(static_cast<size_t>(std::max<Py_ssize_t>(count, 1)), sizeof(T)));
    if (!out) PyErr_NoMemory();
    return out != nullptr;
}

inline bool is_tuple_of(PyObject *object, Py_ssize_t size) {
    return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == size;
}

bool parse_slots(Function *function, PyObject *slots);

}  // namespace rekernel
