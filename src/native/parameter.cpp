// One row of a kernel's parameter table, read once when a guard is made.
//
// Invariant: a Parameter that parse_parameter filled needs no further checks: its kind, type number and range are
// sound and its texts are str. A row that is not so raises and names its place in the table.
#include "numpy_api.hpp"

#include <limits>

namespace rekernel {

namespace {

constexpr Py_ssize_t row_size = 9;  // (name, kind, low, high, typenum, ndim, written, expected, check)

bool bad_row(PyObject *exception, Py_ssize_t position, const char *problem) {
    PyErr_Format(exception, "parameters[%zd]: %s", position, problem);
    return false;
}

bool read_range(PyObject *low, PyObject *high, Py_ssize_t position, Parameter &out) {
    if (!PyLong_Check(low) || !PyLong_Check(high)) {
        return bad_row(PyExc_TypeError, position, "low and high of an INT must be int");
    }
    if (!read_integer(low, out.low) || !read_integer(high, out.high)) {
        return !PyErr_Occurred() && bad_row(PyExc_ValueError, position, "low and high must fit 64 bits");
    }
    if (is_less(out.high, out.low)) return bad_row(PyExc_ValueError, position, "low is greater than high");
    return true;
}

bool read_limit(PyObject *high, Py_ssize_t position, Parameter &out) {
    out.limit = std::numeric_limits<double>::infinity();
    if (high == Py_None) return true;
    if (!PyFloat_Check(high)) return bad_row(PyExc_TypeError, position, "high of a FLOAT must be float or None");
    out.limit = PyFloat_AS_DOUBLE(high);
    if (!(out.limit > 0)) return bad_row(PyExc_ValueError, position, "high of a FLOAT must be positive");
    return true;
}

// A number from -1 up to, but not including, `end`.
bool read_small(PyObject *number, int end, const char *problem, Py_ssize_t position, int &out) {
    if (!PyLong_Check(number)) return bad_row(PyExc_TypeError, position, problem);
    int overflow = 0;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    if (overflow || value < -1 || value >= end) return bad_row(PyExc_ValueError, position, problem);
    out = static_cast<int>(value);
    return true;
}

bool read_kind(PyObject *number, Py_ssize_t position, Kind &out) {
    static const char *problem = "kind must be one of ANY, INT, FLOAT, ARRAY, CHECK";
    int value = 0;
    if (!read_small(number, 6, problem, position, value)) return false;
    if (value < 0 || value == 4) return bad_row(PyExc_ValueError, position, problem);
    out = static_cast<Kind>(value);
    return true;
}

}  // namespace

// False with or without an exception: without one, the number is outside of 64 bits.
bool read_integer(PyObject *number, Integer &out) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow == 0) {
        if (value == -1 && PyErr_Occurred()) return false;
        out = {value < 0, static_cast<std::uint64_t>(value)};
        return true;
    }
    if (overflow < 0) return false;
    unsigned long long bits = PyLong_AsUnsignedLongLong(number);
    if (bits == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) PyErr_Clear();
        return false;
    }
    out = {false, bits};
    return true;
}

// For two negative numbers the order of the two's complement bits is the order of the numbers.
bool is_less(Integer a, Integer b) { return a.negative != b.negative ? a.negative : a.bits < b.bits; }

bool parse_parameter(PyObject *row, Py_ssize_t position, Parameter &out) {
    if (!PyTuple_Check(row)) return bad_row(PyExc_TypeError, position, "expected a tuple");
    if (PyTuple_GET_SIZE(row) != row_size) {
        return bad_row(PyExc_ValueError, position,
                       "expected (name, kind, low, high, typenum, ndim, written, expected, check)");
    }
    PyObject *name = PyTuple_GET_ITEM(row, 0), *written = PyTuple_GET_ITEM(row, 6);
    PyObject *expected = PyTuple_GET_ITEM(row, 7), *check = PyTuple_GET_ITEM(row, 8);
    if (!PyUnicode_Check(name)) return bad_row(PyExc_TypeError, position, "name must be str");
    if (!PyUnicode_Check(expected)) return bad_row(PyExc_TypeError, position, "expected must be str");
    if (!PyBool_Check(written)) return bad_row(PyExc_TypeError, position, "written must be bool");
    if (!read_kind(PyTuple_GET_ITEM(row, 1), position, out.kind)) return false;
    if (out.kind == Kind::check ? !PyCallable_Check(check) : check != Py_None) {
        return bad_row(PyExc_TypeError, position, "check must be callable for CHECK and None otherwise");
    }
    static const char *bad_typenum = "typenum must be the number of a built-in NumPy type or -1";
    static const char *bad_ndim = "ndim must be -1 or at most 64";
    if (!read_small(PyTuple_GET_ITEM(row, 4), NPY_NTYPES_LEGACY, bad_typenum, position, out.typenum)) return false;
    if (!read_small(PyTuple_GET_ITEM(row, 5), 65, bad_ndim, position, out.ndim)) return false;
    PyObject *low = PyTuple_GET_ITEM(row, 2), *high = PyTuple_GET_ITEM(row, 3);
    if (out.kind == Kind::integer && !read_range(low, high, position, out)) return false;
    if (out.kind == Kind::real && !read_limit(high, position, out)) return false;
    out.written = written == Py_True;
    set_new(out.name, name);
    PyUnicode_InternInPlace(&out.name);
    set_new(out.expected, expected);
    set_new(out.check, none_to_null(check));
    return true;
}

}  // namespace rekernel
