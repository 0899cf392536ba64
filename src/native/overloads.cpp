// Overloads: the compiled kernels of one name. Here: how one is made, read, called and freed.
//
// Invariant: it holds at least one Function and one signature for each, and never changes. Of a call it keeps nothing.
#include "cuda.hpp"
#include "overloads.hpp"

#include <algorithm>

namespace rekernel {

PyTypeObject *overloads_type = nullptr;

namespace {

// Kernels for a device that need brackets say so whatever the arguments are.
bool needs_brackets(const Overloads *overloads) {
    PyObject *first = PyTuple_GET_ITEM(overloads->functions, 0);
    return Py_TYPE(first) == cuda_kernel_type && !as_cuda_kernel(first)->grid;
}

PyObject *call_chosen(const Overloads *overloads, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    if (needs_brackets(overloads)) return raise_no_brackets(function_at(overloads, 0), args, positional);
    PyObject *function = choose_function(overloads, args, positional, kwnames);
    if (!function) return nullptr;
    if (as_function(function)->on_device) return launch_kernel(function, nullptr, args, nargsf, kwnames);
    return function_call(function, args, nargsf, kwnames);
}

PyObject *overloads_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Overloads *overloads = as_overloads(self);
    ++overloads->calls;
    PyObject *result = call_chosen(overloads, args, nargsf, kwnames);
    if (!result) ++overloads->failures;
    return result;
}

bool check_items(PyObject *functions, PyObject *signatures) {
    Py_ssize_t count = PyTuple_GET_SIZE(functions);
    if (count == 0 || count != PyTuple_GET_SIZE(signatures)) {
        PyErr_Format(PyExc_ValueError,
                     "Overloads() takes one or more functions and a signature for each, got %zd and %zd", count,
                     PyTuple_GET_SIZE(signatures));
        return false;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *function = PyTuple_GET_ITEM(functions, i), *signature = PyTuple_GET_ITEM(signatures, i);
        // All for the CPU, or all for a device.
        if (Py_TYPE(function) != Py_TYPE(PyTuple_GET_ITEM(functions, 0)) ||
            (Py_TYPE(function) != function_type && Py_TYPE(function) != cuda_kernel_type)) {
            PyErr_Format(PyExc_TypeError,
                         "Overloads() functions must be Function objects, or all CudaKernel objects, got %R", function);
            return false;
        }
        if (!PyUnicode_Check(signature)) {
            PyErr_Format(PyExc_TypeError, "Overloads() signatures must be str, got %R", signature);
            return false;
        }
    }
    return true;
}

bool have_same_names(const Function *a, const Function *b) {
    return std::equal(a->parameters, a->parameters + a->count, b->parameters, b->parameters + b->count,
                      [](const Parameter &x, const Parameter &y) { return PyUnicode_Compare(x.name, y.name) == 0; });
}

void compare_functions(Overloads *overloads) {
    const Function *first = function_at(overloads, 0);
    overloads->one_count = overloads->same_names = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(overloads->functions); ++i) {
        const Function *function = function_at(overloads, i);
        overloads->most = std::max(overloads->most, function->count);
        overloads->one_count = overloads->one_count && function->count == first->count;
        overloads->same_names = overloads->same_names && have_same_names(function, first);
    }
}

PyObject *overloads_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"functions", "name", "signatures", nullptr};
    PyObject *functions, *name, *signatures = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!U|$O!:Overloads", const_cast<char **>(keywords), &PyTuple_Type,
                                     &functions, &name, &PyTuple_Type, &signatures)) {
        return nullptr;
    }
    if (!signatures) {
        PyErr_SetString(PyExc_TypeError, "Overloads() missing 1 required keyword-only argument: 'signatures'");
        return nullptr;
    }
    if (!check_items(functions, signatures)) return nullptr;
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Overloads *overloads = as_overloads(self);
    overloads->vectorcall = overloads_call;
    set_new(overloads->functions, functions);
    set_new(overloads->name, name);
    set_new(overloads->signatures, signatures);
    compare_functions(overloads);
    return self;
}

// There is no tp_clear: what it refers to was there before and cannot lead back to it.
int overloads_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_overloads(self)->functions);
    Py_VISIT(as_overloads(self)->signatures);
    return 0;
}

void overloads_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Overloads *overloads = as_overloads(self);
    if (overloads->weakrefs) PyObject_ClearWeakRefs(self);
    Py_CLEAR(overloads->functions);
    Py_CLEAR(overloads->name);
    Py_CLEAR(overloads->signatures);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *overloads_repr(PyObject *self) {
    Overloads *overloads = as_overloads(self);
    return PyUnicode_FromFormat("<overloads of compiled kernel '%U': %zd>", overloads->name,
                                PyTuple_GET_SIZE(overloads->functions));
}

PyMemberDef overloads_members[] = {
    {"name", T_OBJECT, offsetof(Overloads, name), READONLY, "The name of the kernels, for messages."},
    {"__name__", T_OBJECT, offsetof(Overloads, name), READONLY, "The name of the kernels."},
    {"functions", T_OBJECT, offsetof(Overloads, functions), READONLY, "The functions, in the order given."},
    {"calls", T_ULONGLONG, offsetof(Overloads, calls), READONLY, "How many calls were begun."},
    {"failures", T_ULONGLONG, offsetof(Overloads, failures), READONLY, "How many of these calls raised."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Overloads, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Overloads, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject *launch_overloads(PyObject *self, const Place &place, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames) {
    Overloads *overloads = as_overloads(self);
    ++overloads->calls;
    PyObject *kernel = choose_function(overloads, args, PyVectorcall_NARGS(nargsf), kwnames);
    PyObject *result = kernel ? launch_kernel(kernel, &place, args, nargsf, kwnames) : nullptr;
    if (!result) ++overloads->failures;
    return result;
}

PyTypeObject *make_overloads_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Overloads(functions, name, *, signatures)\n--\n\n"
                                       "Several compiled kernels of one name: the arguments choose which one runs.")},
        {Py_tp_new, slot(overloads_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(overloads_dealloc)},
        {Py_tp_traverse, slot(overloads_traverse)},
        {Py_tp_repr, slot(overloads_repr)},
        {Py_mp_subscript, slot(make_launch)},
        {Py_tp_members, overloads_members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Overloads", sizeof(Overloads), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
