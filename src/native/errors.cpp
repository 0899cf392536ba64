// Exceptions and their words.
//
// Invariant: after any function here that raises, exactly one exception is set. Wording an error can itself fail (a
// dtype without a text, no memory); then that failure is the exception, and nothing is lost silently.
#include "numpy_api.hpp"

#include <cstring>

namespace rekernel {

namespace {

// Set by configure(); until then the built-in exceptions, without the three attributes.
PyObject *argument_type_error = nullptr;
PyObject *argument_value_error = nullptr;

bool check_class(PyObject *cls, const char *name) {
    if (cls == Py_None || PyExceptionClass_Check(cls)) return true;
    PyErr_Format(PyExc_TypeError, "configure() %s must be an exception class or None, got %.200s", name,
                 Py_TYPE(cls)->tp_name);
    return false;
}

void assign_class(PyObject *&slot, PyObject *cls) {
    PyObject *old = slot;
    set_new(slot, none_to_null(cls));
    Py_XDECREF(old);
}

// cls(message, argument=..., expected=..., got=...)
PyObject *make_exception(PyObject *cls, PyObject *message, const Parameter &parameter, PyObject *got) {
    PyObject *args = PyTuple_Pack(1, message);
    PyObject *kwargs =
        Py_BuildValue("{sOsOsO}", "argument", parameter.name, "expected", parameter.expected, "got", got);
    PyObject *exception = args && kwargs ? PyObject_Call(cls, args, kwargs) : nullptr;
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    if (exception && !PyExceptionInstance_Check(exception)) {
        PyErr_Format(PyExc_TypeError, "%R did not make an exception", cls);
        Py_CLEAR(exception);
    }
    return exception;
}

bool starts_with_vowel(PyObject *text) {
    // "uint8" is spoken with a consonant.
    const char *utf8 = PyUnicode_AsUTF8(text);
    if (!utf8) PyErr_Clear();
    return utf8 && *utf8 && std::strchr("aeio", *utf8);
}

}  // namespace

PyObject *configure(PyObject *, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"argument_type_error", "argument_value_error", nullptr};
    PyObject *type_error = Py_None, *value_error = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OO:configure", const_cast<char **>(keywords), &type_error,
                                     &value_error)) {
        return nullptr;
    }
    if (!check_class(type_error, keywords[0]) || !check_class(value_error, keywords[1])) return nullptr;
    assign_class(argument_type_error, type_error);
    assign_class(argument_value_error, value_error);
    Py_RETURN_NONE;
}

void raise_argument(Fault fault, PyObject *kernel, const Parameter &parameter, PyObject *got, PyObject *problem) {
    PyObject *message = nullptr;
    if (got && problem) {
        message = PyUnicode_FromFormat("%U() argument '%U': %U", kernel, parameter.name, problem);
    }
    Py_XDECREF(problem);
    raise_message(fault, parameter, got, message);
}

void raise_message(Fault fault, const Parameter &parameter, PyObject *got, PyObject *message) {
    if (got && message) {
        PyObject *cls = fault == Fault::type ? argument_type_error : argument_value_error;
        if (cls) {
            Py_INCREF(cls);  // its constructor may call configure()
            PyObject *exception = make_exception(cls, message, parameter, got);
            if (exception) PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception)), exception);
            Py_XDECREF(exception);
            Py_DECREF(cls);
        } else {
            PyErr_SetObject(fault == Fault::type ? PyExc_TypeError : PyExc_ValueError, message);
        }
    }
    Py_XDECREF(message);
    Py_XDECREF(got);
}

void raise_unexpected(PyObject *kernel, const Parameter &parameter, PyObject *argument) {
    PyObject *got = describe(argument);
    PyObject *problem = got ? PyUnicode_FromFormat("expected %U, got %U", parameter.expected, got) : nullptr;
    raise_argument(Fault::type, kernel, parameter, got, problem);
}

PyObject *describe(PyObject *argument) {
    if (argument == Py_None) return PyUnicode_FromString("None");
    if (PyArray_Check(argument)) return describe_array(argument, nullptr);
    return PyUnicode_FromFormat("%.200s", Py_TYPE(argument)->tp_name);
}

// "a float64 array", "a read-only float64 array"
PyObject *describe_array(PyObject *array, const char *adjective) {
    PyObject *dtype = PyObject_Str(reinterpret_cast<PyObject *>(PyArray_DESCR(as_array(array))));
    if (!dtype) return nullptr;
    PyObject *text;
    if (adjective) text = PyUnicode_FromFormat("%s %U array", adjective, dtype);
    else text = PyUnicode_FromFormat("%s %U array", starts_with_vowel(dtype) ? "an" : "a", dtype);
    Py_DECREF(dtype);
    return text;
}

PyObject *take_error() {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && PyException_SetTraceback(value, traceback) < 0) PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

void restore_error(PyObject *stolen_exception) {
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(stolen_exception);
#else
    PyObject *type = new_reference(reinterpret_cast<PyObject *>(Py_TYPE(stolen_exception)));
    PyErr_Restore(type, stolen_exception, PyException_GetTraceback(stolen_exception));
#endif
}

}  // namespace rekernel
