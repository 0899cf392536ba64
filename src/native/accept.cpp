// One argument of a call, checked against its row.
//
// Invariant: what `accept` returns is a value that the row's type can hold, or an object that is none of NumPy's and
// Python's plain ones (a Taichi ndarray, a tensor) and is for the kernel itself to judge. Nothing about an argument is
// remembered between calls: an array whose dtype or shape was changed in place is judged anew.
#include "numpy_api.hpp"

#include <cmath>

namespace rekernel {

namespace {

// ---- scalars ----

bool is_numpy_integer(PyObject *object) {
    // NumPy counts timedelta64 among its signed integers.
    return PyArray_IsScalar(object, Integer) && !PyArray_IsScalar(object, Timedelta);
}

// Arrays and NumPy scalars have `__index__`, too; those of them that are integers are known by type.
bool has_own_index(PyObject *object) {
    return PyIndex_Check(object) && !PyArray_Check(object) && !PyArray_IsScalar(object, Generic);
}

bool is_scalar_array_of_integers(PyObject *object) {
    if (!PyArray_Check(object) || PyArray_NDIM(as_array(object)) != 0) return false;
    int type = PyArray_TYPE(as_array(object));
    return PyTypeNum_ISINTEGER(type) || PyTypeNum_ISBOOL(type);
}

// Digits, or a size: Python refuses to write out very long integers.
PyObject *integer_text(PyObject *number) {
    // int's own method: a subclass may have another.
    PyObject *bits = PyObject_CallMethod(reinterpret_cast<PyObject *>(&PyLong_Type), "bit_length", "O", number);
    if (!bits) return nullptr;
    int overflow = 0;
    long count = PyLong_AsLongAndOverflow(bits, &overflow);
    Py_DECREF(bits);
    if (count == -1 && PyErr_Occurred()) return nullptr;
    if (overflow || count > 256) return PyUnicode_FromString("an integer of more than 256 bits");
    return PyLong_Type.tp_repr(number);
}

PyObject *bound_text(Integer bound) {
    if (bound.negative) return PyUnicode_FromFormat("%lld", static_cast<long long>(bound.bits));
    return PyUnicode_FromFormat("%llu", static_cast<unsigned long long>(bound.bits));
}

void raise_out_of_range(const Parameter &parameter, PyObject *kernel, PyObject *number) {
    PyObject *got = integer_text(number);
    PyObject *low = bound_text(parameter.low);
    PyObject *high = bound_text(parameter.high);
    PyObject *problem = nullptr;
    if (got && low && high) {
        problem = PyUnicode_FromFormat("%U does not fit %U (%U to %U)", got, parameter.expected, low, high);
    }
    Py_XDECREF(low);
    Py_XDECREF(high);
    raise_argument(Fault::value, kernel, parameter, got, problem);
}

bool is_in_range(const Parameter &parameter, PyObject *kernel, PyObject *number) {
    Integer value;
    if (read_integer(number, value)) {
        if (!is_less(value, parameter.low) && !is_less(parameter.high, value)) return true;
    } else if (PyErr_Occurred()) {
        return false;
    }
    raise_out_of_range(parameter, kernel, number);
    return false;
}

PyObject *accept_integer(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    if (PyLong_Check(argument)) {
        return is_in_range(parameter, kernel, argument) ? new_reference(argument) : nullptr;
    }
    bool as_it_is = is_numpy_integer(argument);
    PyObject *number;
    if (PyArray_IsScalar(argument, Bool) || is_scalar_array_of_integers(argument)) {
        number = PyNumber_Long(argument);
    } else if (as_it_is || has_own_index(argument)) {
        number = PyNumber_Index(argument);
    } else {
        raise_unexpected(kernel, parameter, argument);
        return nullptr;
    }
    if (!number) return nullptr;
    if (!is_in_range(parameter, kernel, number)) Py_CLEAR(number);
    if (!number || !as_it_is) return number;
    Py_DECREF(number);
    return new_reference(argument);
}

void raise_infinite(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    PyObject *got = PyLong_Check(argument) ? integer_text(argument) : PyObject_Str(argument);
    PyObject *problem =
        got ? PyUnicode_FromFormat("%U does not fit %U (it would become infinite)", got, parameter.expected) : nullptr;
    raise_argument(Fault::value, kernel, parameter, got, problem);
}

bool is_numpy_real(PyObject *object) {
    if (PyArray_Check(object)) {
        int type = PyArray_TYPE(as_array(object));
        return is_scalar_array_of_integers(object) || (PyArray_NDIM(as_array(object)) == 0 && PyTypeNum_ISFLOAT(type));
    }
    return PyArray_IsScalar(object, Floating) || is_numpy_integer(object) || PyArray_IsScalar(object, Bool);
}

// A long double may be finite where the double made of it is not.
bool is_finite_long_double(PyObject *object, bool &out) {
    out = false;
    PyObject *scalar = new_reference(object);
    if (PyArray_Check(object)) {
        Py_DECREF(scalar);
        scalar = PyArray_ToScalar(PyArray_DATA(as_array(object)), as_array(object));
        if (!scalar) return false;
    }
    if (PyArray_IsScalar(scalar, LongDouble)) {
        npy_longdouble value = 0;
        PyArray_ScalarAsCtype(scalar, &value);
        out = std::isfinite(value);
    }
    Py_DECREF(scalar);
    return true;
}

PyObject *accept_real(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    bool python_float = PyFloat_Check(argument);  // numpy.float64 is one, too
    bool python_int = !python_float && PyLong_Check(argument);
    PyObject *number = nullptr;
    double value;
    if (python_float) {
        value = PyFloat_AS_DOUBLE(argument);
    } else if (python_int) {
        value = PyLong_AsDouble(argument);
        if (value == -1.0 && PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return nullptr;
            PyErr_Clear();
            raise_infinite(parameter, kernel, argument);
            return nullptr;
        }
    } else if (is_numpy_real(argument)) {
        number = PyNumber_Float(argument);
        if (!number) return nullptr;
        value = PyFloat_AS_DOUBLE(number);
    } else {
        raise_unexpected(kernel, parameter, argument);
        return nullptr;
    }
    bool too_large = std::isfinite(value) && std::fabs(value) >= parameter.limit;
    bool checked = true;
    if (number && std::isinf(value)) checked = is_finite_long_double(argument, too_large);
    if (checked && too_large) raise_infinite(parameter, kernel, argument);
    if (!checked || too_large) {
        Py_XDECREF(number);
        return nullptr;
    }
    return number ? number : new_reference(argument);
}

// ---- arrays ----

bool is_same_type(int wanted, PyArrayObject *array) {
    int actual = PyArray_TYPE(array);
    if (wanted < 0 || wanted == actual) return true;
    // int64 has two type numbers (`long` and `long long`); other kinds of dtypes have one or none.
    return PyTypeNum_ISINTEGER(wanted) && PyTypeNum_ISINTEGER(actual) && PyArray_EquivTypenums(wanted, actual);
}

// Raises for the array `argument`: an adjective for what it is, and a printf text with up to two `%U` for its name.
PyObject *refuse(Fault fault, const Parameter &parameter, PyObject *kernel, PyObject *argument, const char *adjective,
                 const char *problem) {
    PyObject *name = parameter.name;
    raise_argument(fault, kernel, parameter, describe_array(argument, adjective),
                   PyUnicode_FromFormat(problem, name, name));
    return nullptr;
}

PyObject *refuse_rank(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    PyObject *dtype = PyObject_Str(reinterpret_cast<PyObject *>(PyArray_DESCR(as_array(argument))));
    int ndim = PyArray_NDIM(as_array(argument));
    PyObject *got = dtype ? PyUnicode_FromFormat("a %d-dimensional %U array", ndim, dtype) : nullptr;
    PyObject *problem = got ? PyUnicode_FromFormat("expected %U, got %U", parameter.expected, got) : nullptr;
    Py_XDECREF(dtype);
    raise_argument(Fault::value, kernel, parameter, got, problem);
    return nullptr;
}

PyObject *accept_array(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    if (!PyArray_Check(argument)) {
        bool plain = argument == Py_None || PyLong_Check(argument) || PyFloat_Check(argument) ||
                     PyComplex_Check(argument) || PyUnicode_Check(argument) || PyBytes_Check(argument) ||
                     PyArray_IsScalar(argument, Generic);
        if (!plain) return new_reference(argument);
        raise_unexpected(kernel, parameter, argument);
        return nullptr;
    }
    PyArrayObject *array = as_array(argument);
    if (!is_same_type(parameter.typenum, array)) {
        raise_unexpected(kernel, parameter, argument);
        return nullptr;
    }
    if (!PyArray_ISNOTSWAPPED(array)) {
        return refuse(Fault::type, parameter, kernel, argument, "a byte-swapped",
                      "the bytes of the array are in foreign order; pass %U.astype(%U.dtype.newbyteorder('='))");
    }
    if (parameter.ndim >= 0 && PyArray_NDIM(array) != parameter.ndim) return refuse_rank(parameter, kernel, argument);
    if (!PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED)) {
        return refuse(Fault::value, parameter, kernel, argument, "an unaligned",
                      "the array is not aligned; pass an aligned array (%U.copy())");
    }
    if (!PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS) && !PyArray_CHKFLAGS(array, NPY_ARRAY_F_CONTIGUOUS)) {
        // ascontiguousarray() makes a copy: what the kernel writes there would be lost.
        return refuse(Fault::value, parameter, kernel, argument, "a non-contiguous",
                      parameter.written ? "the array is not contiguous and the kernel writes to it; pass a contiguous "
                                          "array and copy the result back"
                                        : "the array is not contiguous; pass np.ascontiguousarray(%U)");
    }
    if (parameter.written && !PyArray_ISWRITEABLE(array)) {
        return refuse(Fault::value, parameter, kernel, argument, "a read-only",
                      "the array is read-only and the kernel writes to it; pass a writeable array (%U.copy())");
    }
    return new_reference(argument);
}

}  // namespace

PyObject *accept(const Parameter &parameter, PyObject *kernel, PyObject *argument) {
    switch (parameter.kind) {
        case Kind::any: return new_reference(argument);
        case Kind::integer: return accept_integer(parameter, kernel, argument);
        case Kind::real: return accept_real(parameter, kernel, argument);
        case Kind::array: return accept_array(parameter, kernel, argument);
        case Kind::check: return PyObject_CallOneArg(parameter.check, argument);
    }
    Py_UNREACHABLE();
}

}  // namespace rekernel
