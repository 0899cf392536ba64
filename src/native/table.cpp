// The parameters of a Function, read once from plain tuples; its slots are read in slots.cpp.
//
// Invariant: whatever parse_tables leaves behind when it fails, free_tables can free; and what it has accepted refers
// only to parameters, axes and types that exist, so a call can trust every number in it.
#include "rows.hpp"

#include <algorithm>

namespace rekernel {

namespace {

constexpr Py_ssize_t scalar_size = 4;  // (name, 'scalar', type, dtype)
constexpr Py_ssize_t array_size = 15;  // (name, 'array', type, dtype, itemsize, ndim, shape, strides, trailing,
                                       //  contiguous, written, restrict, fields, group, margins)

// The number of a named extent; a new name gets the next one.
bool number_extent(Function *function, PyObject *name, Py_ssize_t &out) {
    for (out = 0; out < function->extent_count; ++out) {
        if (PyUnicode_Compare(function->extents[out], name) == 0) return true;
    }
    size_t size = static_cast<size_t>(function->extent_count + 1) * sizeof(PyObject *);
    PyObject **larger = static_cast<PyObject **>(PyMem_Realloc(function->extents, size));
    if (!larger) {
        PyErr_NoMemory();
        return false;
    }
    function->extents = larger;
    function->extents[function->extent_count++] = new_reference(name);
    return true;
}

bool read_axis(Function *function, const Row &row, PyObject *extent, PyObject *stride, Py_ssize_t itemsize,
               Axis &out) {
    out = {-1, -1, free_stride, -1, 0};
    if (PyUnicode_Check(extent)) {
        if (!number_extent(function, extent, out.name)) return false;
    } else if (extent != Py_None && !read_size(extent, 0, PY_SSIZE_T_MAX, out.extent)) {
        return bad_row(row, "an extent must be int, str or None");
    }
    if (stride == Py_None) return true;
    if (PyUnicode_Check(stride)) return number_extent(function, stride, out.stride_name);
    Py_ssize_t limit = PY_SSIZE_T_MAX / itemsize;
    if (!read_size(stride, -limit, limit, out.stride)) return bad_row(row, "a stride must be int, str or None");
    out.stride *= itemsize;
    return true;
}

bool read_axes(Function *function, const Row &row, Layout &out) {
    PyObject *shape = item(row, 6), *strides = item(row, 7);
    Py_ssize_t rank = std::max(out.ndim, 0);
    bool fits = PyTuple_Check(shape) && PyTuple_Check(strides);
    for (PyObject *each : {shape, strides}) fits = fits && (is_tuple_of(each, rank) || is_tuple_of(each, 0));
    if (!fits) return bad_row(row, "shape and strides must be tuples with one item for each axis, or empty");
    if (!allocate(out.axes, rank)) return false;
    for (Py_ssize_t i = 0; i < rank; ++i) {
        PyObject *extent = PyTuple_GET_SIZE(shape) ? PyTuple_GET_ITEM(shape, i) : Py_None;
        PyObject *stride = PyTuple_GET_SIZE(strides) ? PyTuple_GET_ITEM(strides, i) : Py_None;
        if (!read_axis(function, row, extent, stride, out.itemsize, out.axes[i])) return false;
    }
    return true;
}

bool read_margins(const Row &row, Layout &out) {
    PyObject *margins = item(row, 14);
    if (!read_size(item(row, 13), 0, PY_SSIZE_T_MAX, out.group)) return bad_row(row, "group must be an int");
    if (!is_tuple_of(margins, std::max(out.ndim, 0)) && !is_tuple_of(margins, 0)) {
        return bad_row(row, "margins must be a tuple with one item for each axis, or empty");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(margins); ++i) {
        if (!read_size(PyTuple_GET_ITEM(margins, i), 0, 1 << 30, out.axes[i].margin)) {
            return bad_row(row, "a margin must be an int");
        }
        out.has_margins = out.has_margins || out.axes[i].margin > 0;
    }
    return true;
}

// Only an axis of extent 1 can be missing: of any other there would be memory to miss.
bool read_trailing(const Row &row, Layout &out) {
    Py_ssize_t trailing = 0;
    if (!read_size(item(row, 8), 0, std::max(out.ndim, 0), trailing)) {
        return bad_row(row, "trailing must count axes of the array");
    }
    out.least_ndim = out.ndim;
    while (trailing-- > 0 && out.axes[out.least_ndim - 1].extent == 1) --out.least_ndim;
    return true;
}

bool read_fields(const Row &row, Layout &out) {
    PyObject *fields = item(row, 12);
    if (!PyTuple_Check(fields)) return bad_row(row, "fields must be a tuple");
    if (!allocate(out.fields, PyTuple_GET_SIZE(fields))) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i) {
        PyObject *field = PyTuple_GET_ITEM(fields, i);
        if (!is_tuple_of(field, 3) || !PyUnicode_Check(PyTuple_GET_ITEM(field, 0)) ||
            !PyUnicode_Check(PyTuple_GET_ITEM(field, 1))) {
            return bad_row(row, "a field must be (name, dtype, offset)");
        }
        Field &made = out.fields[i];
        made.element = element_named(PyTuple_GET_ITEM(field, 1));
        if (made.element == Element::none) return bad_row(row, "a field has an unknown dtype");
        if (!read_size(PyTuple_GET_ITEM(field, 2), 0, out.itemsize - about(made.element).size, made.offset)) {
            return bad_row(row, "a field lies outside of the record");
        }
        made.name = new_reference(PyTuple_GET_ITEM(field, 0));
        ++out.field_count;
    }
    return true;
}

std::uint8_t log2_of(Py_ssize_t size) {
    for (std::uint8_t shift = 0; shift < 31; ++shift) {
        if (size == Py_ssize_t{1} << shift) return shift;
    }
    return no_shift;
}

bool read_array(Function *function, const Row &row, Parameter &parameter, Layout &out) {
    parameter.kind = Kind::array;
    for (Py_ssize_t i : {9, 10, 11}) {
        if (!PyBool_Check(item(row, i))) return bad_row(row, "contiguous, written and restrict must be bool");
    }
    out.is_array = true;
    out.contiguous = item(row, 9) == Py_True;
    parameter.written = item(row, 10) == Py_True;
    out.restrict_ = item(row, 11) == Py_True;
    Py_ssize_t ndim = 0;
    if (!read_size(item(row, 4), 1, 1 << 30, out.itemsize)) return bad_row(row, "itemsize must be a positive int");
    if (!read_size(item(row, 5), -1, 64, ndim)) return bad_row(row, "ndim must be -1 or at most 64");
    out.ndim = static_cast<int>(ndim);
    out.shift = log2_of(out.itemsize);
    out.one_element = ndim == 0 && parameter.written;
    if (!read_axes(function, row, out) || !read_trailing(row, out) || !read_fields(row, out)) return false;
    if (!read_margins(row, out)) return false;
    const ElementInfo &element = about(out.element);
    out.alignment = element.alignment;
    if (out.element == Element::none ? out.field_count == 0 : out.field_count > 0 || element.size != out.itemsize) {
        return bad_row(row, "an array has a known dtype and its itemsize, or fields");
    }
    return true;
}

bool read_parameter(Function *function, const Row &row, Parameter &parameter, Layout &out) {
    if (!PyTuple_Check(row.items) || PyTuple_GET_SIZE(row.items) < scalar_size) return bad_row(row, "expected a tuple");
    for (Py_ssize_t i = 0; i < scalar_size; ++i) {
        if (!PyUnicode_Check(item(row, i))) return bad_row(row, "name, kind, type and dtype must be str");
    }
    set_new(parameter.name, item(row, 0));
    PyUnicode_InternInPlace(&parameter.name);
    set_new(parameter.expected, item(row, 2));
    for (Py_ssize_t i = 0; i < row.position; ++i) {
        if (PyUnicode_Compare(function->parameters[i].name, parameter.name) == 0) {
            return bad_row(row, "the name is there twice");
        }
    }
    out.element = element_named(item(row, 3));
    if (PyUnicode_CompareWithASCIIString(item(row, 1), "scalar") == 0) {
        if (PyTuple_GET_SIZE(row.items) != scalar_size) {
            return bad_row(row, "expected (name, 'scalar', type, dtype)");
        }
        return prepare_scalar(parameter, out.element) || bad_row(row, "a scalar has an unknown dtype");
    }
    if (PyUnicode_CompareWithASCIIString(item(row, 1), "array") == 0 && PyTuple_GET_SIZE(row.items) == array_size) {
        return read_array(function, row, parameter, out);
    }
    return bad_row(row, "expected (name, 'array', type, dtype, itemsize, ndim, shape, strides, trailing, contiguous, "
                        "written, restrict, fields, group, margins) or (name, 'scalar', type, dtype)");
}

}  // namespace

bool parse_tables(Function *function, PyObject *parameters, PyObject *slots) {
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    if (!allocate(function->parameters, count) || !allocate(function->layouts, count)) return false;
    function->count = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
        Row row = {"parameters", i, PyTuple_GET_ITEM(parameters, i)};
        if (!read_parameter(function, row, function->parameters[i], function->layouts[i])) return false;
    }
    return parse_slots(function, slots);
}

void free_tables(Function *function) {
    for (Py_ssize_t i = 0; i < function->count; ++i) {
        Py_XDECREF(function->parameters[i].name);
        Py_XDECREF(function->parameters[i].expected);
        Layout &layout = function->layouts[i];
        for (Py_ssize_t k = 0; k < layout.field_count; ++k) Py_XDECREF(layout.fields[k].name);
        PyMem_Free(layout.fields);
        PyMem_Free(layout.axes);
    }
    for (Py_ssize_t i = 0; i < function->extent_count; ++i) Py_XDECREF(function->extents[i]);
    PyMem_Free(function->extents);
    PyMem_Free(function->pairs);
    PyMem_Free(function->slots);
    PyMem_Free(function->layouts);
    PyMem_Free(function->parameters);
}

}  // namespace rekernel
