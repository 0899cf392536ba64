// Keyword arguments only, as pystencils' kernels take them: a missing one is a KeyError, unknown ones are ignored.
//
// Invariant: as for bind_arguments: on success each place of `out` holds exactly one argument of the caller.
#include "common.hpp"
#include "function.hpp"

#include <algorithm>

namespace rekernel {

namespace {

// "step(dst=..., src=..., k=...)"
PyObject *spelled_call(const Signature &signature) {
    PyObject *text = PyUnicode_FromFormat("%U(", signature.name);
    for (Py_ssize_t i = 0; text && i < signature.count; ++i) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%s%U=...", i ? ", " : "", signature.parameters[i].name));
    }
    if (text) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    return text;
}

bool raise_positional(const Signature &signature, Py_ssize_t positional) {
    PyObject *call = spelled_call(signature);
    if (!call) return false;
    PyErr_Format(PyExc_TypeError,
                 "%U() takes keyword arguments only but %zd positional argument%s given; call it as %U", signature.name,
                 positional, positional == 1 ? " was" : "s were", call);
    Py_DECREF(call);
    return false;
}

}  // namespace

bool bind_keywords_only(const Signature &signature, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames,
                        PyObject **out) {
    if (positional > 0) return raise_positional(signature, positional);
    std::fill(out, out + signature.count, nullptr);
    Py_ssize_t keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < keywords; ++i) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t place = PyUnicode_Check(keyword) ? find_parameter(signature, keyword) : -1;
        if (place >= 0) out[place] = args[i];
    }
    for (Py_ssize_t i = 0; i < signature.count; ++i) {
        if (out[i]) continue;
        PyErr_Format(PyExc_KeyError, "%U() misses the keyword argument '%U'", signature.name,
                     signature.parameters[i].name);
        return false;
    }
    return true;
}

}  // namespace rekernel
