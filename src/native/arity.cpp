// Positional and keyword arguments, put into the order of the parameters; errors in the wording of Python itself.
//
// Invariant: on success each of the `count` places of `out` holds exactly one argument of the caller. The order of the
// checks is Python's too: unknown and doubled keywords, then too many positional arguments, then missing ones.
#include "common.hpp"

#include <algorithm>

namespace rekernel {

namespace {

const char *plural(Py_ssize_t count) { return count == 1 ? "" : "s"; }

bool bind_keyword(const Signature &signature, PyObject *keyword, PyObject *value, PyObject **out) {
    if (!PyUnicode_Check(keyword)) {
        PyErr_Format(PyExc_TypeError, "%U() keywords must be strings", signature.name);
        return false;
    }
    Py_ssize_t place = find_parameter(signature, keyword);
    if (place < 0) {
        PyErr_Format(PyExc_TypeError, "%U() got an unexpected keyword argument '%U'", signature.name, keyword);
        return false;
    }
    if (out[place]) {
        PyErr_Format(PyExc_TypeError, "%U() got multiple values for argument '%U'", signature.name, keyword);
        return false;
    }
    out[place] = value;
    return true;
}

// "'a'", "'a' and 'b'", "'a', 'b', and 'c'"
PyObject *list_missing(const Signature &signature, PyObject *const *out, Py_ssize_t missing) {
    PyObject *text = PyUnicode_FromString("");
    Py_ssize_t seen = 0;
    for (Py_ssize_t i = 0; text && i < signature.count; ++i) {
        if (out[i]) continue;
        ++seen;
        const char *before = "";
        if (seen > 1) before = seen < missing ? ", " : missing == 2 ? " and " : ", and ";
        PyObject *longer = PyUnicode_FromFormat("%U%s'%U'", text, before, signature.parameters[i].name);
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

void raise_missing(const Signature &signature, PyObject *const *out, Py_ssize_t missing) {
    PyObject *names = list_missing(signature, out, missing);
    if (!names) return;
    PyErr_Format(PyExc_TypeError, "%U() missing %zd required positional argument%s: %U", signature.name, missing,
                 plural(missing), names);
    Py_DECREF(names);
}

}  // namespace

Py_ssize_t find_parameter(const Signature &signature, PyObject *keyword) {
    for (Py_ssize_t i = 0; i < signature.count; ++i) {
        if (signature.parameters[i].name == keyword) return i;
    }
    for (Py_ssize_t i = 0; i < signature.count; ++i) {
        // Compares the characters; a str subclass has no say. Both are str, so it cannot fail.
        if (PyUnicode_Compare(signature.parameters[i].name, keyword) == 0) return i;
    }
    return -1;
}

bool bind_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames,
                    PyObject **out) {
    Py_ssize_t taken = std::min(positional, signature.count);
    std::copy(args, args + taken, out);
    std::fill(out + taken, out + signature.count, nullptr);
    Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < keywords; ++i) {
        if (!bind_keyword(signature, PyTuple_GET_ITEM(kwnames, i), args[positional + i], out)) return false;
    }
    if (positional > signature.count) {
        PyErr_Format(PyExc_TypeError, "%U() takes %zd positional argument%s but %zd %s given", signature.name,
                     signature.count, plural(signature.count), positional, positional == 1 ? "was" : "were");
        return false;
    }
    Py_ssize_t missing = std::count(out, out + signature.count, nullptr);
    if (missing > 0) raise_missing(signature, out, missing);
    return missing == 0;
}

}  // namespace rekernel
