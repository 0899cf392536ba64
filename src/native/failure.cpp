// What went wrong inside of a compiled kernel, as a Python exception.
//
// Invariant: nothing unwinds out of a kernel. It fills the error record and returns; describe_exception runs inside of
// its catch block, on any thread state, so it touches no Python object.
#include "function.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

#if defined(__GNUC__)
#include <cxxabi.h>
#endif

namespace rekernel {

namespace {

enum ErrorKind { cxx_exception = 1, bad_index = 2, bad_division = 3, failed_assertion = 4 };

void copy_text(rk_error *error, const char *text) {
    if (!text || !error->text || error->size <= 0) return;
    size_t length = std::min(std::strlen(text), static_cast<size_t>(error->size) - 1);
    std::memcpy(error->text, text, length);
    error->text[length] = 0;
}

// The type of what was thrown, for things that have no what().
void copy_type(rk_error *error) {
#if defined(__GNUC__)
    const std::type_info *type = abi::__cxa_current_exception_type();
    if (type) {
        int status = 0;
        char *name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
        copy_text(error, name ? name : type->name());
        std::free(name);
        return;
    }
#endif
    copy_text(error, "an exception of unknown type");
}

// A file or cell as it may be shown: nothing in its name ends the line.
PyObject *file_text(PyObject *filename) {
    PyObject *blank = filename ? PyUnicode_FromString(" ") : nullptr;
    PyObject *parts = blank ? PyUnicode_Splitlines(filename, 0) : nullptr;
    PyObject *text = parts ? PyUnicode_Join(blank, parts) : nullptr;
    Py_XDECREF(parts);
    Py_XDECREF(blank);
    return text;
}

// "heat.step(), line 3", "heat.step(), heat.cpp:3", or less of it. The kernel counts lines from 1.
PyObject *place_text(const Function *function, const rk_error &error) {
    PyObject *text = function->kernel_id ? PyUnicode_FromFormat("%U.%U()", function->kernel_id, function->name)
                                         : PyUnicode_FromFormat("%U()", function->name);
    if (!text || error.line <= 0) return text;
    int line = error.line;
    PyObject *file = nullptr;
    if (error.file) {
        file = PyUnicode_DecodeFSDefault(error.file);
    } else {
        line += function->first_line - 1;
        if (function->filename) file = file_text(function->filename);
    }
    if (PyErr_Occurred()) Py_CLEAR(text);
    else PyUnicode_AppendAndDel(&text, file ? PyUnicode_FromFormat(", %U:%d", file, line)
                                            : PyUnicode_FromFormat(", line %d", line));
    Py_XDECREF(file);
    return text;
}

PyObject *told(const rk_error &error, const char *otherwise) {
    const char *text = error.text && *error.text ? error.text : otherwise;
    return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
}

PyObject *index_text(const rk_error &error) {
    PyObject *text = PyUnicode_FromFormat("index %lld is out of bounds for axis %d with size %lld", error.index,
                                          error.axis, error.extent);
    if (text && error.text && *error.text) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(" of "));
        if (text) PyUnicode_AppendAndDel(&text, told(error, ""));
    }
    return text;
}

void raise_at(PyObject *cls, const Function *function, const rk_error &error, PyObject *problem) {
    PyObject *place = problem ? place_text(function, error) : nullptr;
    if (place) PyErr_Format(cls, "%U: %U", place, problem);
    Py_XDECREF(place);
    Py_XDECREF(problem);
}

}  // namespace

void describe_exception(rk_error *error) {
    error->kind = cxx_exception;
    // A kernel that was linked with another C++ library has its exceptions where this one cannot see them; rethrowing
    // nothing would end the process.
    if (!std::current_exception()) return copy_text(error, "an exception of another C++ library");
    try {
        throw;
    } catch (const std::exception &exception) {
        copy_text(error, exception.what());
    } catch (const char *text) {
        copy_text(error, text);
    } catch (...) {
        copy_type(error);
    }
}

void raise_failure(const Function *function, int status, const rk_error &error) {
    switch (error.kind) {
        case cxx_exception: raise_at(PyExc_RuntimeError, function, error, told(error, "a C++ exception")); return;
        case bad_index: raise_at(PyExc_IndexError, function, error, index_text(error)); return;
        case bad_division: raise_at(PyExc_ZeroDivisionError, function, error, told(error, "division by zero")); return;
        case failed_assertion:
            raise_at(PyExc_AssertionError, function, error, told(error, "an assertion failed"));
            return;
        default:
            raise_at(PyExc_RuntimeError, function, error,
                     PyUnicode_FromFormat("the kernel failed with status %d", status));
    }
}

}  // namespace rekernel
