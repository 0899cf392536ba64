// What an argument is, as far as the choice between functions depends on it.
//
// Invariant: a look decides nothing. What cannot be looked at (an exporter or an `__index__` that raises) is unknown,
// so that the function which is then called raises the error in its own words.
#include "cuda.hpp"
#include "numpy_api.hpp"
#include "overloads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rekernel {

namespace {

// The type number of NumPy's scalars and arrays of rank 0; -1 of all others.
int scalar_typenum(PyObject *argument) {
    if (PyArray_Check(argument)) return PyArray_NDIM(as_array(argument)) == 0 ? PyArray_TYPE(as_array(argument)) : -1;
    PyArray_Descr *dtype = PyArray_DescrFromScalar(argument);
    int typenum = dtype ? dtype->type_num : -1;
    if (!dtype) PyErr_Clear();
    Py_XDECREF(dtype);
    return typenum;
}

void look_at_numpy(PyObject *argument, NumberLook &out) {
    int typenum = scalar_typenum(argument);
    out.element = element_of_typenum(typenum);
    out.family = typenum == NPY_LONGDOUBLE ? Family::real : about(out.element).family;
}

bool look_at_whole(PyObject *argument, NumberLook &out) {
    PyObject *number = PyNumber_Index(argument);
    out.is_known = number && read_integer(number, out.value);
    out.magnitude = number ? std::fabs(PyLong_AsDouble(number)) : 0;
    if (number && PyErr_Occurred()) out.magnitude = std::numeric_limits<double>::infinity();
    Py_XDECREF(number);
    return drop_refusal();
}

bool look_at_real(PyObject *argument, NumberLook &out) {
    PyObject *number = PyFloat_Check(argument) ? new_reference(argument) : PyNumber_Float(argument);
    if (number && std::isfinite(PyFloat_AS_DOUBLE(number))) out.magnitude = std::fabs(PyFloat_AS_DOUBLE(number));
    Py_XDECREF(number);
    return drop_refusal();
}

void set_known(ArrayLook &out, Element element, int ndim, const Py_ssize_t *shape, PyObject *dtype) {
    out.is_array = out.is_known = true;
    out.is_single = std::all_of(shape, shape + ndim, [](Py_ssize_t extent) { return extent == 1; });
    out.element = element;
    out.ndim = ndim;
    out.dtype = nullptr;
    // A reference, because Python code may give an array another dtype meanwhile.
    if (element == Element::none) set_new(out.dtype, dtype);
}

// An array on a device, as far as it can be looked at without a stream.
bool look_on_device(const Refused &refused, View &out, Sizes &sizes, Foreign *&list) {
    const auto *kernel = reinterpret_cast<const CudaKernel *>(refused.function);
    void *producers[1];
    Sight sight;
    sight.driver = as_driver(kernel->driver);
    sight.producers = producers;
    if (!view_on_device(refused, out, sight, sizes, list)) return false;
    if (out.ndim >= 0) return true;
    Owned no_wait(PyLong_FromLong(-1));
    return no_wait && view_dlpack_on_device(refused, no_wait.object, out, list);
}

PyObject *rank_text(PyObject *stolen_element, int ndim) {
    PyObject *text = stolen_element;
    for (int i = 0; text && i < ndim; ++i) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(i == 0 ? "[:" : ", :"));
    }
    if (text) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(ndim == 0 ? "[]" : "]"));
    return text;
}

}  // namespace

bool drop_refusal() {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
    PyErr_Clear();
    return true;
}

bool look_at_array(const Function *function, Py_ssize_t parameter, PyObject *argument, ArrayLook &out,
                   Foreign *&list) {
    if (PyArray_Check(argument)) {
        PyArrayObject *array = as_array(argument);
        PyArray_Descr *dtype = PyArray_DESCR(array);
        set_known(out, element_of_typenum(dtype->type_num), PyArray_NDIM(array), PyArray_DIMS(array),
                  reinterpret_cast<PyObject *>(dtype));
        return true;
    }
    View view;
    view.ndim = -1;  // until it is known
    out = {};
    Sizes sizes;  // as long as the view is looked at
    if (function->on_device) {
        bool viewed = look_on_device({function, parameter, argument, nullptr}, view, sizes, list);
        if (!viewed && !drop_refusal()) return false;
        out.is_array = viewed || view.ndim >= 0 || exports_array(argument);
    } else {
        out.is_array = exports_array(argument);
        if (out.is_array && !view_foreign(function, parameter, argument, view, list) && !drop_refusal()) return false;
    }
    if (view.ndim >= 0) set_known(out, view.element, view.ndim, view.shape, view.dtype);
    return true;
}

bool look_at_number(PyObject *argument, NumberLook &out) {
    out = {Family::none, Element::none, false, false, {false, 0}, 0};
    if (PyFloat_CheckExact(argument)) out.family = Family::real;
    else if (PyLong_CheckExact(argument)) out.family = Family::signed_integer;
    else if (PyArray_Check(argument) || PyArray_IsScalar(argument, Generic)) look_at_numpy(argument, out);
    else if (PyBool_Check(argument)) out.family = Family::boolean;
    else if (PyFloat_Check(argument)) out.family = Family::real;
    else if (PyComplex_Check(argument)) out.family = Family::complex;
    else if (PyLong_Check(argument)) out.family = Family::signed_integer;
    else out.index_only = PyIndex_Check(argument);
    if (out.index_only) out.family = Family::signed_integer;
    switch (out.family) {
        case Family::none:
        case Family::complex: return true;
        case Family::boolean: out.is_known = true; return true;
        case Family::real: return look_at_real(argument, out);
        case Family::signed_integer:
        case Family::unsigned_integer: return look_at_whole(argument, out);
    }
    Py_UNREACHABLE();
}

PyObject *type_text(PyObject *argument, const ArrayLook *look) {
    if (PyArray_Check(argument)) {
        PyObject *dtype = PyObject_Str(reinterpret_cast<PyObject *>(PyArray_DESCR(as_array(argument))));
        return rank_text(dtype, PyArray_NDIM(as_array(argument)));
    }
    if (PyArray_IsScalar(argument, Generic)) {
        PyArray_Descr *dtype = PyArray_DescrFromScalar(argument);
        PyObject *text = dtype ? PyObject_Str(reinterpret_cast<PyObject *>(dtype)) : nullptr;
        Py_XDECREF(dtype);
        return text;
    }
    if (look && look->dtype) return rank_text(PyObject_Str(look->dtype), look->ndim);
    if (look && look->is_known && look->element != Element::none) {
        return rank_text(PyUnicode_FromString(about(look->element).name), look->ndim);
    }
    return describe(argument);
}

}  // namespace rekernel
